//! A feed's messages from a journal, sent over UDP.

use crate::stage;

use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::{Value, json};
use stage::{Place, Running, tapeline};
use tapeline_feed::moldudp64::{MoldPacket, parse};

/// Few enough that their datagrams fit into any socket's buffer: nothing is lost, however late they are read.
const MESSAGES: &str = "300";

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A simulated day's messages, and the journal of a plant that read them.
fn day(place: &Place, publish: &str) -> (Vec<Vec<u8>>, PathBuf) {
    let (file, journal) = (place.folder.path().join("day.itch"), place.folder.path().join("journal"));
    let write =
        ["feed", "simulate", "--symbols", "3", "--messages", MESSAGES, "--write", file.to_str().unwrap()];
    let output = tapeline(&write).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let config = place.folder.path().join("plant.toml");
    let text = format!(
        "[plant]\nring = \"{}\"\npublish = \"{publish}\"\n[[feed]]\nname = \"file\"\nprotocol = \"itch50-moldudp64\"\n\
         date = \"2020-01-02\"\nfile = \"{}\"\npace = \"fast\"\n[journal]\nfolder = \"{}\"\n",
        place.ring,
        file.display(),
        journal.display()
    );
    std::fs::write(&config, text).unwrap();
    let arguments =
        ["plant", "--config", config.to_str().unwrap(), "--until-end-of-session", "--format", "json"];
    let mut plant = Running::start(&arguments);
    plant.says();
    let report = plant.says();
    assert!(plant.child.wait().unwrap().success(), "{report}");
    // Messages with length prefixes.
    let bytes = std::fs::read(&file).unwrap();
    let (mut messages, mut rest) = (Vec::new(), &bytes[..]);
    while let [high, low, behind @ ..] = rest {
        let (message, behind) = behind.split_at(usize::from(u16::from_be_bytes([*high, *low])));
        messages.push(message.to_vec());
        rest = behind;
    }
    (messages, journal)
}

fn replay(journal: &Path, options: &[&str]) -> Output {
    tapeline(&[&["journal", "replay", journal.to_str().unwrap()], options].concat()).output().unwrap()
}

#[test]
fn a_feeds_messages_are_sent_as_they_were() {
    let place = Place::new(1);
    let (messages, journal) = day(&place, "every-message");
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = socket.local_addr().unwrap().to_string();
    for speed in ["max", "1000000"] {
        let output =
            replay(&journal, &["--to", &to, "--speed", speed, "--session", "AGAIN", "--format", "json"]);
        assert!(output.status.success(), "{}", said(&output));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((&report["messages"], &report["missing"]), (&json!(messages.len()), &json!(0)));
        let (mut received, mut ends, mut datagram) = (Vec::new(), 0, [0; 2_048]);
        while ends < 3 {
            let length = socket.recv(&mut datagram).unwrap();
            let next = received.len() as u64 + 1;
            match parse(&datagram[..length]).unwrap() {
                MoldPacket::Data(data) => {
                    assert_eq!(data.sequence(), next);
                    received.extend(data.messages().map(|(_, message)| message.to_vec()));
                }
                MoldPacket::EndOfSession { next: said, .. } => {
                    assert_eq!(said, next);
                    ends += 1;
                }
                MoldPacket::Heartbeat { .. } => {}
            }
        }
        assert_eq!(received, messages, "{speed}");
    }
}

#[test]
fn what_was_not_kept_cannot_be_sent() {
    let place = Place::new(1);
    let (_, journal) = day(&place, "changes");
    let output = replay(&journal, &["--to", "127.0.0.1:9", "--speed", "max"]);
    let talk = said(&output);
    assert!(!output.status.success() && talk.contains("without the feed's message"), "{talk}");
    assert!(talk.contains("every-message"), "{talk}");
    let output = replay(&journal, &["--to", "127.0.0.1:9", "--speed", "max", "--feed", "7"]);
    assert!(said(&output).contains("no messages of feed 7"), "{}", said(&output));
    // Exactly one destination is required.
    assert_eq!(replay(&journal, &["--to", "127.0.0.1:9", "--onto", "ring"]).status.code(), Some(2));
    assert_eq!(replay(&journal, &[]).status.code(), Some(2));
}
