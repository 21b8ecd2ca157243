//! A subscriber's end of ZMTP that sends any bytes.

use tapeline_wire::zmtp::{Asked, Protocol, SubscriberFault};

const GREETING: usize = 64;
const READY: &[u8] = b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03SUB";

/// The result of some bytes: the requests, the answers, and the end.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    asked: Vec<(bool, Vec<u8>)>,
    answers: Vec<u8>,
    end: Result<usize, SubscriberFault>,
    is_open: bool,
}

/// The first byte selects whether the handshake precedes the others, and how they are split.
pub(crate) fn bytes(input: &[u8]) {
    let [first, rest @ ..] = input else { return };
    let mut said = Vec::new();
    if first & 1 != 0 {
        said.extend_from_slice(&greeting());
    }
    if first & 2 != 0 {
        said.extend_from_slice(READY);
    }
    said.extend_from_slice(rest);
    let whole = run(&said, said.len().max(1));
    let cut = run(&said, usize::from(first >> 2) + 1);
    assert_eq!(whole, cut);
    assert!(whole.asked.iter().all(|(_, topic)| topic.len() <= 512));
    assert!(whole.asked.is_empty() || whole.is_open);
    // An answer is shorter than its request, except for the handshake's and an error's.
    assert!(whole.answers.len() <= said.len() + 64, "{} bytes to {}", whole.answers.len(), said.len());
}

fn run(said: &[u8], step: usize) -> Seen {
    let mut protocol = Protocol::default();
    let (mut asked, mut answers) = (Vec::new(), Vec::new());
    let (mut taken, mut end) = (0, Ok(0));
    for there in (0..said.len()).step_by(step).map(|from| said.len().min(from + step)) {
        end = protocol.take(&said[taken..there], &mut answers, |what| {
            asked.push(match what {
                Asked::Subscribe(topic) => (true, topic.to_vec()),
                Asked::Cancel(topic) => (false, topic.to_vec()),
            });
            Ok(())
        });
        match &end {
            Ok(more) => {
                assert!(*more <= there - taken);
                taken += more;
            }
            Err(_) => break,
        }
        // Only a part of a greeting or of one frame remains for later.
        assert!(there - taken < 1024 + 9);
    }
    Seen { asked, answers, end: end.map(|_| taken), is_open: protocol.is_open() }
}

fn greeting() -> [u8; GREETING] {
    let mut greeting = [0; GREETING];
    (greeting[0], greeting[9], greeting[10], greeting[11]) = (0xFF, 0x7F, 3, 1);
    greeting[12..16].copy_from_slice(b"NULL");
    greeting
}

/// Seed inputs.
pub(crate) fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let behind = |first: u8, frames: &[&[u8]]| [&[first][..], &frames.concat()].concat();
    vec![
        ("greeting", behind(0, &[&greeting(), READY])),
        (
            "subscribes",
            behind(3, &[b"\x04\x0c\x09SUBSCRIBEA/", b"\0\x03\x01B/", b"\x04\x08\x06CANCELC", b"\0\x02\0D"]),
        ),
        ("pings", behind(7, &[b"\x04\x0a\x04PING\0\x05ctx", b"\x04\x08\x04PONGctx"])),
        ("parts", behind(11, &[b"\x01\x02\x01E\0\x02\x01F", b"\0\x02\x01G"])),
        ("long", behind(3, &[b"\x02\0\0\0\0\0\0\x01\0\x01", &[b'T'; 255]])),
        ("huge", behind(3, &[b"\x02\0\x04\0\0\0\0\0\0"])),
        ("push", behind(1, &[b"\x04\x1a\x05READY\x0bSocket-Type\0\0\0\x04PUSH"])),
        ("http", behind(0, &[b"GET / HTTP/1.1\r\n\r\n"])),
    ]
}
