//! The pages for developers with a local server, followed step by step: files and commands unchanged except for the
//! ports.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::program::{Place, free_port};
use crate::remains;

/// Follows the pages, and checks the output of their commands.
pub(crate) fn follow(place: &Place) -> Result<(), String> {
    let folder = place.logs().join("local-real-time-server");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let ports = [("14002", free_port()), ("14020", free_port())].map(|(port, free)| (port, free.to_string()));
    let page = page("local-real-time-server.md", &ports);
    let blocks: Vec<_> = blocks(&page).chain(blocks_of_zeromq(&ports)).collect();
    for (_, text) in blocks.iter().filter(|(language, _)| language != "sh") {
        let name = file_name(text).ok_or_else(|| format!("a block without a file's name:\n{text}"))?;
        std::fs::write(folder.join(name), text.replace("local-real-time", &format!("local-{}", ports[0].1)))
            .unwrap();
    }
    let mut commands = blocks.iter().filter(|(language, _)| language == "sh").map(|(_, text)| text.trim());
    // The last line of the first block serves until it is stopped.
    let (before, serves) =
        commands.next().and_then(|first| first.split_once('\n')).ok_or("a server's commands")?;
    run(place, &folder, before, &[])?;
    let mut server = shell(place, &folder, &format!("exec {serves}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let ends = [
        ("java", ["TAPE image", "BID"]),
        ("prices.py", ["3 Refresh", "Update"]),
        ("frame.py", ["Instrument", "TAPE"]),
        ("subscriber.py", ["TAPELINE/TAPE", "{'"]),
    ];
    let mut done = Ok(());
    for command in commands.chain(["python3 subscriber.py"]) {
        let wanted = ends.iter().find(|(part, _)| command.contains(part));
        done = wanted
            .ok_or_else(|| format!("nobody knows what `{command}` prints"))
            .and_then(|(_, wanted)| run(place, &folder, command, wanted));
        if done.is_err() {
            break;
        }
    }
    server.kill().unwrap();
    server.wait().unwrap();
    remains::remove(server.id());
    done
}

fn page(name: &str, ports: &[(&str, String)]) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    let page = std::fs::read_to_string(path).unwrap();
    ports.iter().fold(page, |page, (port, free)| page.replace(port, free))
}

/// Blocks of code with their languages.
fn blocks(page: &str) -> impl Iterator<Item = (String, String)> {
    let inside = page.split("\n```").skip(1).step_by(2);
    inside.filter_map(|block| {
        let (language, text) = block.split_once('\n')?;
        Some((language.to_owned(), text.to_owned()))
    })
}

/// The subscriber's block; the other blocks of that page are not whole files.
fn blocks_of_zeromq(ports: &[(&str, String)]) -> Vec<(String, String)> {
    blocks(&page("zeromq.md", ports)).filter(|(language, _)| language == "python").collect()
}

/// The file name in a block's first comment.
fn file_name(text: &str) -> Option<&str> {
    let lines = text.lines().take(2);
    lines
        .filter_map(|line| line.split_whitespace().nth(1))
        .find(|word| word.contains('.') && !word.contains('"'))
}

fn shell(place: &Place, folder: &Path, command: &str) -> Command {
    let binaries = Path::new(env!("CARGO_BIN_EXE_tapeline")).parent().unwrap();
    let path =
        format!("{}:{}:{}", binaries.display(), place.path("python/bin"), std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).env("PATH", path).env("EMA", place.path("lib")).current_dir(folder);
    shell
}

/// Runs a command, which must succeed and print these texts.
fn run(place: &Place, folder: &Path, command: &str, wanted: &[&str]) -> Result<(), String> {
    let output = shell(place, folder, command).stdin(Stdio::null()).output().unwrap();
    let [said, complained] =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    match wanted.iter().find(|wanted| !said.contains(**wanted)) {
        _ if !output.status.success() => Err(format!("`{command}`: {}\n{said}\n{complained}", output.status)),
        Some(missing) => Err(format!("`{command}` does not print \"{missing}\":\n{said}\n{complained}")),
        None => Ok(()),
    }
}
