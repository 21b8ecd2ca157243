//! `tapeline jitter` through the real binary.
use std::io::Read;
use std::process::{Command, Output, Stdio};

fn jitter(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tapeline")).arg("jitter").args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn prints_a_row_for_each_core_and_nothing_on_standard_error() {
    let output = jitter(&["--duration", "30ms"]);
    assert!(output.status.success(), "{output:?}");
    let table = text(&output.stdout);
    assert!(table.starts_with("core   >1 µs /s"), "{table}");
    for core in tapeline_measure::cores() {
        let row = table.lines().find(|line| line.starts_with(&format!("{core} ")));
        assert!(row.is_some_and(|row| row.contains('%')), "{table}");
    }
    assert!(table.contains("floor     p50 "), "{table}");
    assert!(table.contains("machine   "), "{table}");
    assert!(!table.contains('\x1b'), "no styles in a pipe: {table:?}");
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn prints_json_for_programs() {
    let core = tapeline_measure::cores()[0];
    let cpus = core.to_string();
    let output = jitter(&["--cpus", &cpus, "--duration", "0.02", "--threshold", "200ns", "--format", "json"]);
    assert!(output.status.success(), "{output:?}");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let cores = json["cores"].as_array().unwrap();
    assert_eq!(cores.len(), 1);
    assert_eq!(cores[0]["core"], core);
    assert_eq!(cores[0]["threshold_ns"], 200);
    assert!(cores[0]["elapsed_ns"].as_u64().unwrap() >= 20_000_000);
    assert!(cores[0]["readings"].as_u64().unwrap() > 0);
    assert!(json["floor_ns"]["p99"].is_u64());
    assert!(json["environment"]["kernel"].is_string());
}

#[test]
fn a_wrong_core_is_named_with_those_that_exist() {
    let output = jitter(&["--cpus", "8191"]);
    assert_eq!(output.status.code(), Some(1));
    let error = text(&output.stderr);
    assert!(error.contains("core 8191 is not available"), "{error}");
    assert!(error.contains("hint: the cores that may be used are"), "{error}");
    assert_eq!(text(&output.stdout), "");
}

#[test]
fn wrong_values_are_explained() {
    for (arguments, expected) in [
        (["--duration", "soon"], "write 15s, 500ms"),
        (["--duration", "0"], "is zero"),
        (["--cpus", "x"], "write 0, 0,2 or 0-3"),
        (["--threshold", "1ms"], "between 100ns and 1us"),
        (["--format", "xml"], "possible values: table, json"),
    ] {
        let output = jitter(&arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let error = text(&output.stderr);
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
}

#[test]
fn help_shows_examples() {
    let output = jitter(&["--help"]);
    assert!(output.status.success());
    let help = text(&output.stdout);
    for expected in ["Examples:", "tapeline jitter --cpus 2-3", "--duration <TIME>", "[default: 5s]"] {
        assert!(help.contains(expected), "{expected:?} in {help}");
    }
}

#[test]
fn ctrl_c_ends_early_with_what_was_seen() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tapeline"))
        .args(["jitter", "--duration", "1h", "--format", "json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // One thread for each core and the main thread: when all run, the signal handlers are installed.
    let expected = tapeline_measure::cores().len() + 1;
    let threads = format!("/proc/{}/task", child.id());
    while std::fs::read_dir(&threads).map_or(0, Iterator::count) < expected {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::yield_now();
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let mut json = String::new();
    child.stdout.take().unwrap().read_to_string(&mut json).unwrap();
    assert!(child.wait().unwrap().success());
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(json["cores"][0]["elapsed_ns"].as_u64().unwrap() < 3_600_000_000_000);
}
