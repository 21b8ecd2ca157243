//! Output of the performance tools for their options: help, refused options, conflicts, bad files. The text files in
//! this folder have each command with its output;
//! `WRITE=1 cargo test -p tapeline --test commands omm_perf_options` rewrites them.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Runs a command of a text in a folder; returns its output, and its exit status if that is not 0.
fn said(line: &str, folder: &Path) -> String {
    let mut words = line.split_whitespace();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tapeline"));
    // The program's own name, or that of a link to it.
    command.arg0(words.next().unwrap()).args(words).current_dir(folder).env_remove("COLUMNS");
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    let mut said = [text(&output.stdout), text(&output.stderr)].join("\n").trim().to_owned();
    if !output.status.success() {
        said.push_str(&format!("\n[exit status {}]", output.status.code().unwrap()));
    }
    said
}

/// Checks that each command of the text prints the output below it.
fn check(name: &str) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [
        (
            "types.xml",
            "<msgFormat>\n<marketPriceMsgList>\n<refreshMsg><dataBody><fieldList>\n<fieldEntry fieldId=\"22\" dataType=\"RSSL_DT_ENUM\" data=\"1\"/>\n</fieldList></dataBody></refreshMsg>\n</marketPriceMsgList>\n</msgFormat>\n",
        ),
        ("items.xml", "<itemList>\n<item domain=\"MarketPrice\" name=\"A\" post=\"yes\"/>\n</itemList>\n"),
        ("fields", "BID \"BID\" 22 NULL PRICE 17 REAL64 7\n"),
        (
            "two.xml",
            "<itemList>\n<item domain=\"MarketPrice\" name=\"A\"/>\n<item domain=\"MarketPrice\" name=\"B\"/>\n</itemList>\n",
        ),
        (
            "twice.xml",
            "<itemList>\n<item domain=\"MarketPrice\" name=\"A\"/>\n<item domain=\"MarketPrice\" name=\"A\"/>\n</itemList>\n",
        ),
    ] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/commands/omm_perf_options").join(name);
    let expected = std::fs::read_to_string(&path).unwrap();
    let commands: Vec<&str> = expected.lines().filter_map(|line| line.strip_prefix("$ ")).collect();
    assert!(!commands.is_empty(), "{name}");
    let mut found = String::new();
    for command in commands {
        found.push_str(&format!("$ {command}\n{}\n\n", said(command, folder.path())));
    }
    let found = format!("{}\n", found.trim_end());
    if std::env::var_os("WRITE").is_some() {
        std::fs::write(&path, &found).unwrap();
        return;
    }
    for (number, (found, expected)) in found.lines().zip(expected.lines()).enumerate() {
        assert_eq!(found, expected, "{name}:{}; WRITE=1 writes the file anew", number + 1);
    }
    assert_eq!(found.lines().count(), expected.lines().count(), "{name}");
}

#[test]
fn help_is_as_committed() {
    check("help.txt");
}

#[test]
fn refusals_are_as_committed() {
    check("refusals.txt");
}

#[test]
fn each_tool_writes_its_log_for_machines() {
    for (tool, words) in [
        ("consumer", &["--posting-rate", "10"][..]),
        ("provider", &["--update-rate", "10"]),
        ("ni-provider", &["--update-rate", "10"]),
        ("transport", &["client", "--msg-rate", "10"]),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tapeline"));
        let output = command.args(["omm", tool]).args(words).args(["--log", "json"]).output().unwrap();
        let said: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
        assert_eq!((&said["level"], &said["part"]), (&"error".into(), &tool.into()), "{said}");
        assert!(said["message"].as_str().unwrap().contains("-rate"), "{said}");
    }
}
