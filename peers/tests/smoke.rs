//! Every system of this build carries some thousand messages on every question, and each message is checked.

use std::process::Command;

use serde_json::Value;

#[test]
fn every_system_carries_every_message() {
    let folder = std::env::temp_dir().join(format!("peers-smoke-{}", std::process::id()));
    let done = Command::new(env!("CARGO_BIN_EXE_peers"))
        .args(["run", "--turns", "1", "--measured-ms", "5", "--run-folder"])
        .arg(&folder)
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let record: Value = serde_json::from_slice(&std::fs::read(folder.join("run.json")).unwrap()).unwrap();
    let figures = record["figures"].as_array().unwrap();
    for system in record["systems"].as_array().unwrap() {
        let name = &system["name"];
        let of_it: Vec<_> = figures.iter().filter(|figure| figure["system"] == *name).collect();
        assert!(!of_it.is_empty(), "{name}");
        for figure in of_it {
            let done = &figure["done"];
            assert!(done.is_object(), "{figure}");
            let sent = done["sent"]["messages"].as_u64().unwrap();
            for one in done["received"].as_array().unwrap() {
                // It loses messages by design.
                if *name == "ring-lossy" {
                    continue;
                }
                assert_eq!(
                    (&one["lost"], &one["disordered"], &one["torn"]),
                    (&0.into(), &0.into(), &0.into()),
                    "{figure}"
                );
                assert!(one["messages"].as_u64().unwrap() > 0, "{figure}");
                // Limits have no queue, and some no sender.
                assert!(sent == 0 || one["messages"] == sent, "{figure}");
            }
        }
    }
    let page = Command::new(env!("CARGO_BIN_EXE_peers")).arg("report").arg(&folder).output().unwrap();
    let page = String::from_utf8(page.stdout).unwrap();
    assert!(page.contains("| Tapeline ring, packed, 1 MiB |") && page.contains("## Targets"), "{page}");
    std::fs::remove_dir_all(folder).unwrap();
}
