//! A plant under a service manager: what systemd hears of it, and the files that packages make of the command line.

use std::collections::BTreeSet;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use stage::{Place, Running, tapeline};

use crate::stage;

/// The next message of the plant.
fn hears(listener: &UnixDatagram) -> String {
    let mut bytes = [0; 4_096];
    let length = listener.recv(&mut bytes).unwrap();
    String::from_utf8(bytes[..length].to_vec()).unwrap()
}

/// The next message that begins with a text; those before it are skipped.
fn hears_next(listener: &UnixDatagram, begin: &str) -> String {
    loop {
        let message = hears(listener);
        if message.starts_with(begin) {
            return message;
        }
    }
}

#[test]
fn a_service_manager_hears_of_readiness_health_reload_and_end() {
    let place = Place::new(1);
    let config = place.config("");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text + "[hub]\nport = 0\n[hub.access]\n").unwrap();
    let socket = place.folder.path().join("notify");
    let listener = UnixDatagram::bind(&socket).unwrap();
    let mut command = tapeline(&["plant", "--config", &config, "--format", "json"]);
    command.env("NOTIFY_SOCKET", &socket).env("WATCHDOG_USEC", "30000000");
    let (mut plant, _talk) = Running::talking(&mut command);

    let pid = plant.child.id();
    assert_eq!(hears(&listener), format!("READY=1\nMAINPID={pid}"));
    assert_eq!(plant.says()["ready"], json!(place.ring));
    // The first figures: the feed has received nothing yet, which is no reason for a restart.
    assert_eq!(hears_next(&listener, "STATUS="), "STATUS=0 ticks; feed test initial; 0 sessions");
    hears_next(&listener, "WATCHDOG=1");

    kill_process(Pid::from_child(&plant.child), Signal::HUP).unwrap();
    let reloading = hears_next(&listener, "RELOADING=1");
    let at_us: u64 = reloading.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").unwrap().parse().unwrap();
    assert!(at_us <= tapeline_measure::monotonic_ns() / 1_000 && at_us > 0, "{reloading}");
    hears_next(&listener, "READY=1");

    plant.ask_to_end();
    plant.says();
    assert!(plant.child.wait().unwrap().success());
    // The plant has ended: what it has said is there.
    listener.set_nonblocking(true).unwrap();
    let mut bytes = [0; 4_096];
    let messages =
        std::iter::from_fn(|| listener.recv(&mut bytes).ok().map(|length| bytes[..length].to_vec()));
    let last = messages.last().expect("a message");
    assert_eq!(String::from_utf8(last).unwrap(), "STOPPING=1\nSTATUS=ending");
}

#[test]
fn a_plant_without_access_rules_answers_a_reload_at_an_abstract_address() {
    let place = Place::new(1);
    let config = place.config("");
    let name = format!("tapeline-test-{}", place.ring);
    let listener = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let mut command = tapeline(&["plant", "--config", &config, "--format", "json"]);
    command.env("NOTIFY_SOCKET", format!("@{name}"));
    let (plant, _talk) = Running::talking(&mut command);
    hears_next(&listener, "READY=1");
    kill_process(Pid::from_child(&plant.child), Signal::HUP).unwrap();
    hears_next(&listener, "RELOADING=1");
    hears_next(&listener, "READY=1");
}

#[test]
fn a_feed_with_simulate_has_an_exchange_that_ends_with_the_plant() {
    let place = Place::new(2);
    let config = place.config("simulate = \"10k\"");
    let mut plant = Running::start(&["plant", "--config", &config, "--format", "json"]);
    plant.says();
    let mut watch = Running::start(&["plant", "watch", "--ring", &place.ring, "--format", "json"]);
    while !watch.says()["item"].is_string() {}
    let children = format!("/proc/{0}/task/{0}/children", plant.child.id());
    let children = std::fs::read_to_string(children).unwrap();
    let exchange: i32 = children.trim().parse().unwrap();
    plant.ask_to_end();
    let report = plant.says();
    assert!(plant.child.wait().unwrap().success(), "{report}");
    assert_eq!(report["feeds"][0]["session"], json!("SIM0000001"), "{report}");
    assert!(!Path::new(&format!("/proc/{exchange}")).exists(), "the exchange has outlived its plant");
}

#[test]
fn the_demo_configuration_of_the_packages_is_sound() {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/demo.toml");
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(demo).unwrap();
    let here = text.replace("/var/lib/tapeline/demo", "journal");
    assert_ne!(here, text);
    let config = folder.path().join("demo.toml");
    std::fs::write(&config, here).unwrap();
    let output = tapeline(&["plant", "check", config.to_str().unwrap()]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn every_command_has_a_manual_page_and_completions() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    let output = tapeline(&["man", pages.to_str().unwrap()]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let names: BTreeSet<String> = std::fs::read_dir(&pages)
        .unwrap()
        .map(|page| page.unwrap().file_name().into_string().unwrap())
        .collect();
    for page in [
        "tapeline.1",
        "tapeline-plant.1",
        "tapeline-plant-watch.1",
        "tapeline-doctor.1",
        "tapeline-omm-serve.1",
    ] {
        assert!(names.contains(page), "{page} in {names:?}");
    }
    let page = std::fs::read_to_string(pages.join("tapeline-plant-watch.1")).unwrap();
    assert!(page.contains(".TH") && page.contains("Watch quotes and trades live"), "{page}");

    for (shell, expected) in
        [("bash", "complete -F"), ("zsh", "#compdef tapeline"), ("fish", "complete -c tapeline")]
    {
        let output = tapeline(&["completions", shell]).output().unwrap();
        let script = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && script.contains(expected) && script.contains("watch"), "{shell}");
        if shell == "bash" {
            let file = folder.path().join("completions");
            std::fs::write(&file, script).unwrap();
            assert!(Command::new("bash").arg("-n").arg(&file).status().unwrap().success());
        }
    }
}
