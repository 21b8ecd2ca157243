//! The commands of `docs/ring-tools.md`, run as they stand there.

use std::path::Path;
use std::process::Command;

use crate::{OwnName, text};

/// The blocks of a page that are commands for a shell.
fn commands(page: &str) -> Vec<String> {
    let blocks = page.split("```sh\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap().to_owned()).collect()
}

#[test]
fn every_command_of_the_page_works() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/ring-tools.md");
    let blocks = commands(&std::fs::read_to_string(page).unwrap());
    assert!(blocks.len() >= 7, "{blocks:?}");
    let binaries = Path::new(env!("CARGO_BIN_EXE_tapeline")).parent().unwrap();
    let path = format!("{}:{}", binaries.display(), std::env::var("PATH").unwrap());
    let place = tempfile::tempdir().unwrap();
    let has_two_cores = std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1);
    for block in blocks {
        // A ring of this test's own, and a core that there is. Other tests' dead rings are not ours to remove.
        let name = OwnName::new();
        let mut script =
            block.replace("smem", name.as_str()).replace("rm --dead", &format!("rm {}", name.as_str()));
        if !has_two_cores {
            script = script.replace("--cpu 1", "--cpu 0");
        }
        // A failure in the background is a failure: the last one is waited for by its number.
        let script = format!("set -e\n{}", script.replace("\nwait\n", "\nwait $!\n"));
        let output = Command::new("sh")
            .args(["-c", &script])
            .env("PATH", &path)
            .current_dir(place.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{script}\n{}\n{}", text(&output.stdout), text(&output.stderr));
    }
}
