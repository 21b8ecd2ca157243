//! The example programs of the libraries (`examples/`) with a real plant.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use stage::{Place, Running, tapeline};

use crate::stage;

/// An example, which cargo builds before any test runs.
fn example(name: &str) -> Command {
    let mut path: PathBuf = std::env::current_exe().unwrap();
    path.pop();
    path.pop();
    path.extend(["examples", name]);
    assert!(path.is_file(), "{} is not there; cargo test without a name builds it", path.display());
    Command::new(path)
}

fn lines(output: &Output) -> Vec<String> {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn ticks_journal_and_books_say_the_same_of_one_session() {
    let place = Place::new(1);
    let journal = place.folder.path().join("journal");
    let config = place.config("");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, format!("{text}[journal]\nfolder = \"journal\"\n")).unwrap();
    let mut plant =
        Running::start(&["plant", "--config", &config, "--until-end-of-session", "--format", "json"]);
    plant.says();
    let mut ticks = example("ticks");
    let mut ticks = ticks.arg(&place.ring).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut joined = String::new();
    BufReader::new(ticks.stderr.take().unwrap()).read_line(&mut joined).unwrap();
    assert_eq!(joined, "joined\n");
    let mut printed = ticks.stdout.take().unwrap();
    let reading = std::thread::spawn(move || {
        let mut text = String::new();
        printed.read_to_string(&mut text).unwrap();
        text
    });

    let day = place.folder.path().join("day.itch");
    let write =
        ["feed", "simulate", "--symbols", "3", "--messages", "3000", "--write", day.to_str().unwrap()];
    assert!(tapeline(&write).output().unwrap().status.success());
    place.replay(&day, 0);
    let report = plant.says();
    assert!(plant.child.wait().unwrap().success(), "{report}");
    assert!(ticks.wait().unwrap().success());

    let records = lines(&example("journal").arg(&journal).arg("1").output().unwrap());
    assert_eq!(records.len() as u64, report["ticks"].as_u64().unwrap());
    let mut bids = BTreeMap::new();
    for line in reading.join().unwrap().lines() {
        let (seq, rest) = line.split_once(' ').unwrap();
        let (name, bid) = rest.split_once(' ').unwrap();
        let record = &records[seq.parse::<usize>().unwrap() - 1];
        assert!(record.starts_with(&format!("{seq} ")) && record.ends_with(&format!(" {name}")), "{record}");
        bids.insert(name.to_owned(), bid.parse::<f64>().unwrap());
    }
    let books = lines(&example("books").arg(&day).output().unwrap());
    assert_eq!((books.len(), bids.len()), (3, 3), "{books:?} {bids:?}");
    for book in &books {
        // NAME, shares × bid, shares × ask.
        let words: Vec<&str> = book.split(' ').collect();
        assert_eq!(
            (words.len(), words[3].parse::<f64>().ok()),
            (7, bids.get(words[0]).copied()),
            "{book} {words:?}"
        );
        let _: f64 = words[6].parse().unwrap();
    }
}

/// Reads lines from a child up to one with this beginning, and returns the rest of that line.
fn until(lines: &mut impl BufRead, begins: &str) -> String {
    let mut line = String::new();
    while lines.read_line(&mut line).unwrap() > 0 {
        if let Some(rest) = line.strip_prefix(begins) {
            return rest.trim_end().to_owned();
        }
        line.clear();
    }
    panic!("no line begins with {begins}");
}

#[test]
fn a_plant_in_one_program_is_a_plant() {
    let place = Place::new(0);
    let journal = place.folder.path().join("journal");
    // A free port for datagrams to this host only.
    let line = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let mut plant = example("plant");
    plant.args([place.ring.as_str(), &line, "127.0.0.1:0"]).arg(&journal);
    let mut plant = plant.stdout(Stdio::piped()).spawn().unwrap();
    let mut says = BufReader::new(plant.stdout.take().unwrap());
    let hub = until(&mut says, "clients connect to ");

    let day = place.folder.path().join("day.itch");
    let write =
        ["feed", "simulate", "--symbols", "3", "--messages", "3000", "--write", day.to_str().unwrap()];
    assert!(tapeline(&write).output().unwrap().status.success());
    let replay = ["feed", "replay", day.to_str().unwrap(), "--to", &line, "--rate", "20k"];
    assert!(tapeline(&replay).output().unwrap().status.success());
    // "N messages became N ticks, N are missing"
    let ended = until(&mut says, "");
    let words: Vec<&str> = ended.split(' ').collect();
    assert_eq!((words[0], words[5]), ("3000", "0"), "{ended}");
    assert!(plant.wait().unwrap().success(), "{ended}; {hub}");
    let records = lines(&example("journal").arg(&journal).arg("1").output().unwrap());
    assert_eq!(records.len().to_string(), words[3], "{ended}");
}
