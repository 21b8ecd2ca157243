//! Runs the commands of a page in `docs` unchanged.

use std::path::Path;
use std::process::Command;

/// The blocks of a page that are commands for a shell.
pub(crate) fn commands(page: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
    let page = std::fs::read_to_string(path).unwrap();
    let blocks = page.split("```sh\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap().to_owned()).collect()
}

/// Runs a block in a folder, with this build's binaries in the path. A failed background command is an error: the last
/// one is waited for by its number.
pub(crate) fn run(block: &str, folder: &Path) {
    let binaries = Path::new(env!("CARGO_BIN_EXE_tapeline")).parent().unwrap();
    let path = format!("{}:{}", binaries.display(), std::env::var("PATH").unwrap());
    let script = format!("set -e\n{}", block.replace("\nwait\n", "\nwait $!\n"));
    let output =
        Command::new("sh").args(["-c", &script]).env("PATH", &path).current_dir(folder).output().unwrap();
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{script}\n{}\n{}", text(&output.stdout), text(&output.stderr));
}
