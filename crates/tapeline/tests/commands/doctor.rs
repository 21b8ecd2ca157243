//! `tapeline doctor` through the real binary, on the machine that runs the tests.
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn doctor(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tapeline")).arg("doctor").args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn json(arguments: &[&str]) -> serde_json::Value {
    let output = doctor(&[arguments, &["--format", "json"]].concat());
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn tells_people_what_is_and_what_is_better() {
    let output = doctor(&["--no-jitter"]);
    assert!(output.status.success(), "{output:?}");
    let found = text(&output.stdout);
    for topic in ["frequency governor", "interrupts", "huge pages", "receive buffers", "open files"] {
        assert!(found.contains(&format!("  {topic} ")), "{topic} in {found}");
    }
    assert!(found.contains(" could be better, ") && found.contains("machine   "), "{found}");
    assert!(!found.contains('\x1b'), "no styles in a pipe: {found:?}");
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn tells_programs_the_same() {
    let report = json(&["--no-jitter"]);
    let findings = report["findings"].as_array().unwrap();
    let count = |severity: &str| findings.iter().filter(|finding| finding["severity"] == severity).count();
    assert_eq!(report["could_be_better"], count("could-be-better"));
    assert_eq!(report["unknown"], count("unknown"));
    assert_eq!(report["good"], count("good"));
    assert_eq!(count("could-be-better") + count("unknown") + count("good"), findings.len());
    for finding in findings {
        let is_improvable = finding["severity"] == "could-be-better";
        assert_eq!(finding["better"].is_string() && finding["why"].is_string(), is_improvable, "{finding}");
        assert!(finding["area"].is_string() && finding["found"].is_string(), "{finding}");
        assert_ne!(finding["topic"], "jitter floor");
    }
    assert!(report["environment"]["kernel"].is_string());
}

#[test]
fn measures_the_floor_of_the_cores_that_are_named() {
    let core = tapeline_measure::cores()[0];
    let report = json(&["--cores", &core.to_string(), "--duration", "20ms"]);
    assert_eq!(report["quiet_cores"], serde_json::json!([core]));
    let floor =
        report["findings"].as_array().unwrap().iter().find(|finding| finding["topic"] == "jitter floor");
    let found = floor.unwrap()["found"].as_str().unwrap();
    assert!(found.contains(" at p99, longest gap ") && found.contains(&format!("(core {core}, ")), "{found}");
}

#[test]
fn is_strict_when_asked() {
    let could_be_better = json(&["--no-jitter"])["could_be_better"].as_u64().unwrap();
    let status = doctor(&["--no-jitter", "--strict"]).status.code();
    assert_eq!(status, Some(i32::from(could_be_better > 0)));
}

#[test]
fn what_cannot_be_is_explained() {
    let output = doctor(&["--cores", "8191"]);
    assert_eq!(output.status.code(), Some(1));
    let error = text(&output.stderr);
    assert!(
        error.contains("there is no core 8191") && error.contains("hint: the cores that are online are"),
        "{error}"
    );
    let output = doctor(&["--no-jitter", "--duration", "1s"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn what_it_writes_after_asking_it_removes_again() {
    let core = tapeline_measure::cores()[0].to_string();
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("machine");
    let drop_in = root.join("etc/systemd/system/tapeline@.service.d/tapeline-cores.conf");
    let asked = |answers: &str, arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tapeline"));
        command.arg("doctor").args(arguments).arg("--root").arg(&root);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // The program may end before it has read every answer.
        let _ = child.stdin.take().unwrap().write_all(answers.as_bytes());
        child.wait_with_output().unwrap()
    };
    let apply = ["--cores", &core, "--apply"];

    let nobody = asked("", &apply);
    assert_eq!(nobody.status.code(), Some(1));
    assert!(text(&nobody.stderr).contains("hint: --yes answers yes"), "{nobody:?}");
    let no = asked(&"n\n".repeat(50), &apply);
    assert!(no.status.success() && !root.exists(), "{no:?}");

    // Yes to the first question, the cores of plants, and no to all others.
    let one = asked(&("y\n".to_owned() + &"n\n".repeat(50)), &apply);
    assert!(one.status.success(), "{one:?}");
    assert!(text(&one.stderr).contains("write `CPUAffinity="), "{one:?}");
    assert!(text(&one.stdout).contains("systemctl daemon-reload"), "{one:?}");
    let written = std::fs::read_to_string(&drop_in).unwrap();
    assert!(written.contains("\n[Service]\n# before: systemctl daemon-reload"), "{written}");
    assert!(written.ends_with(&format!("\nCPUAffinity={core}\n")), "{written}");

    let all = asked("", &["--cores", &core, "--apply", "--yes"]);
    assert!(all.status.success(), "{all:?}");
    let reverted = asked("", &["--revert", "--yes"]);
    assert!(reverted.status.success() && text(&reverted.stdout).contains("removed "), "{reverted:?}");
    let left = |folder: &Path| std::fs::read_dir(folder).map_or(0, Iterator::count);
    assert!(!drop_in.parent().unwrap().exists());
    for folder in ["etc/sysctl.d", "etc/tmpfiles.d", "etc/systemd/logind.conf.d"] {
        assert_eq!(left(&root.join(folder)), 0, "{folder}");
    }
    let again = asked("", &["--revert", "--yes"]);
    assert!(text(&again.stdout).contains("there is no file of `tapeline doctor --apply`"), "{again:?}");
}

#[test]
fn help_shows_examples() {
    let help = text(&doctor(&["--help"]).stdout);
    for expected in ["tapeline doctor --cores 2-3", "--no-jitter", "--strict", "Nothing is changed"] {
        assert!(help.contains(expected), "{expected:?} in {help}");
    }
}
