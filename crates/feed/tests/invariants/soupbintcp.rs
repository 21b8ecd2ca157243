//! SoupBinTCP: streams from a server and from a client, in whatever pieces they come.

use tapeline_feed::history::{History, Limits};
use tapeline_feed::moldudp64;
use tapeline_feed::soupbintcp::{
    Accounts, ClientEvent, ClientPacket, ClientStep, END_OF_SESSION, LONGEST_PACKET, Login, Password,
    SERVER_HEARTBEAT, ServerPacket, SoupClient, SoupServer, SoupSession, Split, Username, accepted, login,
    sequenced_header, split,
};
use tapeline_nanos::Nanos;

fn some_login() -> Login {
    Login {
        username: Username::new("fuzz"),
        password: Password::new("secret"),
        session: SoupSession::CURRENT,
        sequence: 1,
    }
}

/// The bytes as a stream, first cut into packets, then told to a client and to a server.
pub(crate) fn stream(bytes: &[u8]) {
    packets(bytes);
    from_server(bytes);
    from_client(bytes);
}

/// Every byte belongs to a packet, to an unfinished one at the end, or to what follows something that is none.
fn packets(bytes: &[u8]) {
    let mut rest = bytes;
    loop {
        match split(rest) {
            Ok(Split::Packet(frame)) => {
                assert!((3..=LONGEST_PACKET).contains(&frame.bytes));
                assert_eq!(3 + frame.payload.len(), frame.bytes);
                assert_eq!((frame.kind, frame.payload), (rest[2], &rest[3..frame.bytes]));
                // One byte less is not enough, and the answer says how many are.
                let needed = frame.bytes;
                assert!(
                    matches!(split(&rest[..needed - 1]), Ok(Split::Incomplete { needed: n }) if n <= needed)
                );
                let _ = (ServerPacket::decode(frame), ClientPacket::decode(frame));
                rest = &rest[frame.bytes..];
            }
            Ok(Split::Incomplete { needed }) => {
                assert!(rest.len() < needed && needed <= LONGEST_PACKET);
                return;
            }
            Err(_) => {
                assert!(rest.starts_with(&[0, 0]));
                return;
            }
        }
    }
}

fn from_server(bytes: &[u8]) {
    let mut client = SoupClient::new(some_login(), Nanos(0));
    let (mut at, mut next) = (0, None);
    loop {
        let before = (client.next_sequence(), client.is_over());
        match client.receive(&bytes[at..], Nanos(at as u64)) {
            Ok(ClientStep::Event(event, taken)) => {
                let is_last = matches!(event, ClientEvent::EndOfSession { .. } | ClientEvent::Rejected(_));
                match event {
                    ClientEvent::Accepted { sequence, .. } => {
                        assert_eq!(before.0, None);
                        next = Some(sequence);
                    }
                    ClientEvent::Message { sequence, .. } => {
                        assert_eq!(Some(sequence), next);
                        next = sequence.checked_add(1);
                    }
                    ClientEvent::EndOfSession { next: end } => assert_eq!(Some(end), next),
                    _ => {}
                }
                let after = if is_last { None } else { next };
                assert_eq!((client.next_sequence(), client.is_over()), (after, is_last));
                at += taken;
            }
            Ok(ClientStep::Incomplete { needed }) => {
                assert!(bytes.len() - at < needed);
                return;
            }
            Err(_) => {
                // Nothing has changed: the same again is refused again.
                assert_eq!(before, (client.next_sequence(), client.is_over()));
                assert!(client.receive(&bytes[at..], Nanos(0)).is_err());
                return;
            }
        }
    }
}

fn from_client(bytes: &[u8]) {
    let mut history = History::new(Limits { messages: 16, bytes: 256 });
    history.begin(moldudp64::MoldSession::new("FUZZ"));
    for sequence in 1..10 {
        assert!(history.push(sequence, &sequence.to_be_bytes()));
    }
    let mut accounts = Accounts::default();
    accounts.add(Username::new("fuzz"), Password::new("secret"));
    let mut server = SoupServer::new(Nanos(0));
    let (mut at, mut out) = (0, Vec::new());
    loop {
        let before = (server.state(), server.sent(), out.len());
        match server.receive(&bytes[at..], &accounts, &history, Nanos(at as u64), &mut out) {
            Ok(0) => break,
            Ok(taken) => at += taken,
            Err(_) => {
                assert_eq!(before, (server.state(), server.sent(), out.len()));
                break;
            }
        }
        server.serve(&history, Nanos(at as u64), &mut out, 1_000);
        // Answers to logins, which come once, and what there was room for.
        assert!(out.len() <= LONGEST_PACKET + 1_000);
        assert!(server.sent() <= 9);
    }
    // What it says is a stream that a client understands.
    packets(&out);
    from_server(&out);
}

/// Inputs to begin with.
pub(crate) fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let message = |text: &[u8]| [&sequenced_header(text.len()).unwrap()[..], text].concat();
    let server = [
        &accepted(SoupSession::new("FUZZ"), 1)[..],
        &message(b"one"),
        &SERVER_HEARTBEAT,
        &message(b"two"),
        b"\0\x05+text",
        &END_OF_SESSION,
    ];
    let client = [&login(&some_login())[..], b"\0\x01R", b"\0\x03Uxy", b"\0\x01O"];
    let long =
        [&accepted(SoupSession::new("FUZZ"), 7)[..], &message(&[b'x'; 300]), &message(b""), &message(b"end")];
    vec![("long", long.concat()), ("server", server.concat()), ("client", client.concat())]
}
