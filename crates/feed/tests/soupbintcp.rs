//! SoupBinTCP: real messages both ways byte for byte, any cut of the stream, logins, heartbeats, and damage.

use crate::shared_data;

use proptest::collection::vec;
use proptest::prelude::*;
use sha2::{Digest, Sha256};
use shared_data::{bytes, expected};
use tapeline_feed::history::{History, Limits};
use tapeline_feed::itch::framing::Frames;
use tapeline_feed::moldudp64;
use tapeline_feed::soupbintcp::{
    Accounts, CLIENT_HEARTBEAT, ClientEvent, ClientPacket, ClientStep, END_OF_SESSION, HEARTBEAT_NS,
    LOGIN_NS, LOGOUT, LONGEST_PACKET, Login, MalformedSoupPacket, Over, Password, Reject, SERVER_HEARTBEAT,
    SILENCE_NS, ServerPacket, ServerState, SoupClient, SoupServer, SoupSession, Split, Username, Violation,
    accepted, debug_header, login, rejected, sequenced_header, split, unsequenced_header,
};
use tapeline_nanos::Nanos;

const START: Nanos = Nanos(1_700_000_000_000_000_000);
/// Enough for anything that a test sends.
const ROOM: usize = 1 << 20;

fn a_login(session: &str, sequence: u64) -> Login {
    Login {
        username: Username::new("user01"),
        password: Password::new("secretpw"),
        session: SoupSession::new(session),
        sequence,
    }
}

fn accounts() -> Accounts {
    let mut accounts = Accounts::default();
    accounts.add(Username::new("other"), Password::new("otherpw"));
    accounts.add(Username::new("user01"), Password::new("secretpw"));
    accounts
}

fn history(session: &str, messages: u64) -> History {
    let mut history = History::new(Limits { messages: 100, bytes: 10_000 });
    history.begin(moldudp64::MoldSession::new(session));
    for sequence in 1..=messages {
        assert!(history.push(sequence, format!("message {sequence}").as_bytes()));
    }
    history
}

/// The packets of a stream that is whole.
fn packets(mut stream: &[u8]) -> Vec<(u8, &[u8], &[u8])> {
    let mut packets = Vec::new();
    while !stream.is_empty() {
        let Split::Packet(frame) = split(stream).unwrap() else { panic!("cut") };
        let (packet, rest) = stream.split_at(frame.bytes);
        packets.push((frame.kind, frame.payload, packet));
        stream = rest;
    }
    packets
}

/// Everything that a client makes of a stream that comes in pieces.
fn heard<'a>(client: &mut SoupClient, stream: &'a [u8], pieces: &[usize]) -> Vec<ClientEvent<'a>> {
    let (mut taken, mut there) = (0, 0);
    let mut pieces = pieces.iter().cycle();
    let mut events = Vec::new();
    while taken < stream.len() {
        match client.receive(&stream[taken..there], START).unwrap() {
            ClientStep::Event(event, bytes) => {
                events.push(event);
                taken += bytes;
            }
            ClientStep::Incomplete { needed } => {
                assert!(needed > there - taken && needed <= LONGEST_PACKET);
                assert!(there < stream.len(), "it wants more than there is");
                there = stream.len().min(there + pieces.next().unwrap());
            }
        }
    }
    events
}

#[test]
fn the_derived_session_is_read_and_written_byte_for_byte() {
    let Some(expected) = expected("soupbintcp-derived/expected.json") else { return };
    let golden = bytes("soupbintcp-derived/aapl5000-server-to-client.bin").unwrap();
    let from_client = bytes("soupbintcp-derived/aapl5000-client-to-server.bin").unwrap();
    let itch = bytes("itch50-aapl-20200130/aapl-first5000.itch").unwrap();
    let mut history = History::new(Limits::default());
    history.begin(moldudp64::MoldSession::new("AAPL200130"));
    for (message, sequence) in Frames::new(&itch).zip(1..) {
        assert!(history.push(sequence, message));
    }

    // What the client says: the login, three heartbeats, the logout.
    let client = SoupClient::new(a_login("AAPL200130", 1), START);
    let said = [&client.hello()[..], &CLIENT_HEARTBEAT.repeat(3), &LOGOUT].concat();
    assert_eq!(said, from_client);
    assert_eq!(
        from_client.iter().map(|byte| format!("{byte:02x}")).collect::<String>(),
        expected["client_to_server_hex"].as_str().unwrap()
    );

    // What the client understands, wherever TCP cuts it.
    let wanted = &expected["server_to_client"]["packets_by_type"];
    for pieces in [&[1, 2, 3, 1_000, 7][..], &[usize::MAX / 2]] {
        let mut client = SoupClient::new(a_login("AAPL200130", 1), START);
        let events = heard(&mut client, &golden, pieces);
        let count = |is: fn(&ClientEvent<'_>) -> bool| events.iter().filter(|event| is(event)).count();
        assert_eq!(count(|e| matches!(e, ClientEvent::Debug(_))), wanted["+"].as_u64().unwrap() as usize);
        assert_eq!(count(|e| matches!(e, ClientEvent::Heartbeat)), wanted["H"].as_u64().unwrap() as usize);
        assert_eq!(count(|e| matches!(e, ClientEvent::EndOfSession { next: 5_001 })), 1);
        let accepted = ClientEvent::Accepted { session: SoupSession::new("AAPL200130"), sequence: 1 };
        assert_eq!(events.iter().filter(|event| **event == accepted).count(), 1);
        let mut joined = Sha256::new();
        let mut next = 1;
        for event in &events {
            if let ClientEvent::Message { sequence, bytes } = *event {
                assert_eq!(sequence, next);
                joined.update((bytes.len() as u16).to_be_bytes());
                joined.update(bytes);
                next += 1;
            }
        }
        assert_eq!(next, 5_001);
        let sha256 = format!("{:x}", joined.finalize());
        assert_eq!(sha256, expected["server_to_client"]["payload_rejoined_sha256"].as_str().unwrap());
        assert!(client.is_over());
    }

    // What the server says: the same, but for text and heartbeats, which depend on the writer and on time.
    history_end(&mut history);
    let mut server = SoupServer::new(START);
    let mut out = Vec::new();
    let mut taken = 0;
    while taken < from_client.len() {
        let bytes = server.receive(&from_client[taken..], &accounts(), &history, START, &mut out).unwrap();
        taken += bytes;
        // Bounded at each step, however far behind the client is.
        while matches!(server.state(), ServerState::Live { .. }) {
            let before = out.len();
            server.serve(&history, START, &mut out, before + LONGEST_PACKET);
            assert!(out.len() <= before + LONGEST_PACKET + END_OF_SESSION.len());
        }
    }
    assert_eq!(server.state(), ServerState::Over(Over::EndOfSession));
    let determined: Vec<u8> = packets(&golden)
        .into_iter()
        .filter(|(kind, ..)| !matches!(kind, b'+' | b'H'))
        .flat_map(|(_, _, packet)| packet.to_vec())
        .collect();
    assert!(out == determined, "{} bytes, {} expected", out.len(), determined.len());
    // And those are the bytes of a heartbeat and of text.
    for (kind, payload, packet) in packets(&golden) {
        match kind {
            b'H' => assert_eq!(packet, SERVER_HEARTBEAT),
            b'+' => assert_eq!(packet, [&debug_header(payload.len()).unwrap(), payload].concat()),
            _ => {}
        }
    }

    // A wrong password, and the answer to it.
    let mut server = SoupServer::new(START);
    let mut out = Vec::new();
    let wrong = login(&Login { password: Password::new("secretpx"), ..a_login("AAPL200130", 1) });
    server.receive(&wrong, &accounts(), &history, START, &mut out).unwrap();
    assert_eq!(out, bytes("soupbintcp-derived/aapl5000-reject.bin").unwrap());
    assert_eq!(server.state(), ServerState::Over(Over::Rejected(Reject::NotAuthorized)));
    let mut client = SoupClient::new(a_login("AAPL200130", 1), START);
    let events = heard(&mut client, &out, &[1]);
    assert_eq!(events, [ClientEvent::Rejected(Reject::NotAuthorized)]);
    assert!(client.is_over());
}

fn history_end(history: &mut History) {
    use tapeline_feed::line::Sink;
    let next = history.next();
    history.end_of_session(next);
}

/// Logs in and serves once: what came, and how the server stands.
fn served(login_: &Login, accounts: &Accounts, history: &History) -> (Vec<u8>, ServerState) {
    let mut server = SoupServer::new(START);
    let mut out = Vec::new();
    assert_eq!(server.receive(&login(login_), accounts, history, START, &mut out), Ok(49));
    server.serve(history, START, &mut out, ROOM);
    (out, server.state())
}

fn messages(sequences: std::ops::RangeInclusive<u64>) -> Vec<u8> {
    let message = |sequence| {
        let message = format!("message {sequence}");
        [&sequenced_header(message.len()).unwrap(), message.as_bytes()].concat()
    };
    sequences.flat_map(message).collect()
}

#[test]
fn a_login_begins_where_it_asks_or_where_there_is_something() {
    let open = Accounts::default();
    let day = SoupSession::new("DAY1");
    let mut kept = history("DAY1", 20);
    for (asked, begins) in [(1, 1), (7, 7), (20, 20), (0, 20), (21, 21), (500, 500)] {
        let (out, state) = served(&a_login("", asked), &open, &kept);
        assert_eq!(out, [&accepted(day, begins)[..], &messages(begins..=20)].concat(), "{asked}");
        assert_eq!(state, ServerState::Live { next: begins.max(21) });
    }
    // Padded on either side it is the same session; another is not.
    let (out, _) = served(&Login { session: SoupSession(*b"      DAY1"), ..a_login("", 20) }, &open, &kept);
    assert_eq!(out, [&accepted(day, 20)[..], &messages(20..=20)].concat());
    let unavailable = ServerState::Over(Over::Rejected(Reject::SessionNotAvailable));
    assert_eq!(
        served(&a_login("DAY2", 1), &open, &kept),
        (rejected(Reject::SessionNotAvailable).to_vec(), unavailable)
    );
    assert_eq!(served(&a_login("", 1), &open, &History::new(Limits::default())).1, unavailable);

    // With a hole it ends before it, and whoever comes again is told where it goes on.
    kept.push(25, b"message 25");
    kept.push(26, b"message 26");
    let (out, state) = served(&a_login("", 19), &open, &kept);
    assert_eq!(out, [&accepted(day, 19)[..], &messages(19..=20)].concat());
    assert_eq!(state, ServerState::Over(Over::NotHere { sequence: 21 }));
    let (out, state) = served(&a_login("", 21), &open, &kept);
    assert_eq!(out, [&accepted(day, 25)[..], &messages(25..=26)].concat());
    assert_eq!(state, ServerState::Live { next: 27 });
}

#[test]
fn names_and_passwords_are_compared_without_case_and_never_printed() {
    let history = history("DAY1", 1);
    let with = |username, password| {
        let login =
            Login { username: Username::new(username), password: Password::new(password), ..a_login("", 1) };
        served(&login, &accounts(), &history).1
    };
    assert_eq!(with("user01", "secretpw"), ServerState::Live { next: 2 });
    assert_eq!(with("USER01", "SecretPW"), ServerState::Live { next: 2 });
    assert_eq!(with("other", "otherpw"), ServerState::Live { next: 2 });
    for (username, password) in
        [("user01", "otherpw"), ("other", "secretpw"), ("", ""), ("user01", ""), ("user0", "secretpw")]
    {
        let refused = ServerState::Over(Over::Rejected(Reject::NotAuthorized));
        assert_eq!(with(username, password), refused, "{username}");
    }
    let text = format!("{:?} {:?}", a_login("", 1), accounts());
    assert!(!text.contains("secretpw") && text.contains("Password(…)"), "{text}");
}

#[test]
fn silence_brings_heartbeats_and_then_the_end() {
    let history = history("DAY1", 1);
    let mut client = SoupClient::new(a_login("", 1), START);
    let mut server = SoupServer::new(START);
    let mut out = Vec::new();
    server.receive(&client.hello(), &accounts(), &history, START, &mut out).unwrap();
    server.serve(&history, START, &mut out, ROOM);
    assert_eq!(heard(&mut client, &out, &[100]).len(), 2);
    assert_eq!(client.next_sequence(), Some(2));

    // Both say something once a second, and hear each other.
    let mut now = START;
    for _ in 0..60 {
        let early = Nanos(now.0 + HEARTBEAT_NS - 1);
        out.clear();
        server.serve(&history, early, &mut out, ROOM);
        assert_eq!((out.len(), client.heartbeat(early)), (0, None));
        assert_eq!((server.next_due(), client.next_due()), (now + HEARTBEAT_NS, now + HEARTBEAT_NS));
        now = now + HEARTBEAT_NS;
        server.serve(&history, now, &mut out, ROOM);
        assert_eq!(out, SERVER_HEARTBEAT);
        let heartbeat = client.heartbeat(now).unwrap();
        assert_eq!(heartbeat, CLIENT_HEARTBEAT);
        assert!(matches!(client.receive(&out, now), Ok(ClientStep::Event(ClientEvent::Heartbeat, 3))));
        assert_eq!(server.receive(heartbeat, &accounts(), &history, now, &mut Vec::new()), Ok(3));
        assert!(!client.is_dead(now));
    }
    // From here on neither hears the other.
    let last = Nanos(now.0 + SILENCE_NS - 1);
    server.serve(&history, last, &mut out, ROOM);
    assert!(matches!(server.state(), ServerState::Live { .. }) && !client.is_dead(last));
    server.serve(&history, now + SILENCE_NS, &mut out, ROOM);
    assert_eq!(server.state(), ServerState::Over(Over::Silent));
    assert!(client.is_dead(now + SILENCE_NS));

    // Nobody logs in.
    let mut server = SoupServer::new(START);
    server.serve(&history, Nanos(START.0 + LOGIN_NS - 1), &mut Vec::new(), ROOM);
    assert_eq!(server.state(), ServerState::AwaitingLogin);
    server.serve(&history, START + LOGIN_NS, &mut Vec::new(), ROOM);
    assert_eq!(server.state(), ServerState::Over(Over::Silent));
}

#[test]
fn what_is_new_goes_on_and_the_end_is_said() {
    let mut kept = history("DAY1", 0);
    kept.push(1, b"message 1");
    let mut server = SoupServer::new(START);
    let mut out = Vec::new();
    server.receive(&login(&a_login("DAY1", 1)), &accounts(), &kept, START, &mut out).unwrap();
    server.serve(&kept, START, &mut out, ROOM);
    kept.push(2, b"message 2");
    server.serve(&kept, START, &mut out, ROOM);
    assert_eq!(out, [&accepted(SoupSession::new("DAY1"), 1)[..], &messages(1..=2)].concat());

    // A client that does not read holds up nobody, and costs no more than its room.
    for sequence in 3..=200 {
        kept.push(sequence, b"message X");
    }
    let full = out.len();
    server.serve(&kept, START, &mut out, full);
    assert!(out.len() <= full.max(LONGEST_PACKET));
    for sequence in 201..=20_000 {
        kept.push(sequence, &[b'x'; 80]);
    }
    server.serve(&kept, START, &mut out, ROOM);
    let ServerState::Over(Over::NotHere { sequence }) = server.state() else {
        panic!("{:?}", server.state())
    };
    assert!(sequence < kept.first());

    // The next session ends the one before, for a client that has all of it. To one that is behind the end would be a lie.
    let mut servers = [20_001, 20_000].map(|from| {
        let mut server = SoupServer::new(START);
        server.receive(&login(&a_login("DAY1", from)), &accounts(), &kept, START, &mut out).unwrap();
        server
    });
    kept.begin(moldudp64::MoldSession::new("DAY2"));
    let lost = ServerState::Over(Over::NotHere { sequence: 20_000 });
    let ends = [(&END_OF_SESSION[..], ServerState::Over(Over::EndOfSession)), (&[][..], lost)];
    for (server, end) in servers.iter_mut().zip(ends) {
        out.clear();
        server.serve(&kept, START, &mut out, ROOM);
        assert_eq!((&out[..], server.state()), end);
    }
    // Two sessions later nobody knows where it ended.
    let mut server = SoupServer::new(START);
    server.receive(&login(&a_login("DAY2", 1)), &accounts(), &kept, START, &mut out).unwrap();
    kept.begin(moldudp64::MoldSession::new("DAY3"));
    kept.begin(moldudp64::MoldSession::new("DAY4"));
    out.clear();
    server.serve(&kept, START, &mut out, ROOM);
    let lost = ServerState::Over(Over::NotHere { sequence: 1 });
    assert_eq!((&out[..], server.state()), (&[][..], lost));

    let kept = history("DAY2", 3);
    let mut server = SoupServer::new(START);
    server.receive(&login(&a_login("", 3)), &accounts(), &kept, START, &mut out).unwrap();
    assert_eq!(server.receive(&LOGOUT, &accounts(), &kept, START, &mut out), Ok(3));
    assert_eq!(server.state(), ServerState::Over(Over::Logout));
}

#[test]
fn what_breaks_the_protocol_is_named_and_changes_nothing() {
    let message = [&sequenced_header(2).unwrap()[..], b"hi"].concat();
    let begin = accepted(SoupSession::new("DAY1"), 5);
    let mut client = SoupClient::new(a_login("DAY1", 5), START);
    let wrong: [(&[u8], Violation); 8] = [
        (&[0, 0, b'H'], MalformedSoupPacket::NoType.into()),
        (&[0, 1, b'R'], MalformedSoupPacket::UnknownType(b'R').into()),
        (&[0, 2, b'H', 0], MalformedSoupPacket::Length { kind: b'H', length: 2 }.into()),
        (&[0, 1, b'A'], MalformedSoupPacket::Length { kind: b'A', length: 1 }.into()),
        (&[0, 1, b'J'], MalformedSoupPacket::Length { kind: b'J', length: 1 }.into()),
        (&message, Violation::BeforeLogin),
        (&accepted(SoupSession::new("DAY2"), 5), Violation::OtherSession),
        (&accepted(SoupSession::new("DAY1"), 0), Violation::Sequence),
    ];
    for (bytes, violation) in wrong {
        assert_eq!(client.receive(bytes, START + SILENCE_NS), Err(violation), "{bytes:?}");
    }
    let mut not_a_number = begin;
    not_a_number[20] = b'x';
    assert_eq!(client.receive(&not_a_number, START), Err(MalformedSoupPacket::Number.into()));
    assert_eq!(client.receive(&begin[..20], START), Ok(ClientStep::Incomplete { needed: 33 }));
    assert!(client.is_dead(START + SILENCE_NS), "nonsense is no sign of life");
    assert_eq!(heard(&mut client, &begin, &[33]).len(), 1);
    assert_eq!(client.receive(&begin, START), Err(Violation::SecondLogin));
    assert_eq!(client.next_sequence(), Some(5));
    assert_eq!(heard(&mut client, &END_OF_SESSION, &[3]), [ClientEvent::EndOfSession { next: 5 }]);
    assert_eq!(client.receive(&message, START), Err(Violation::AfterEnd));

    // The end of all sequences.
    let mut client = SoupClient::new(a_login("", 5), START);
    heard(&mut client, &accepted(SoupSession::new("DAY1"), u64::MAX), &[33]);
    assert_eq!(client.receive(&message, START), Err(Violation::Sequence));

    let history = history("DAY1", 1);
    let mut server = SoupServer::new(START);
    let mut out = Vec::new();
    let mut says =
        |server: &mut SoupServer, bytes: &[u8]| server.receive(bytes, &accounts(), &history, START, &mut out);
    assert_eq!(says(&mut server, &CLIENT_HEARTBEAT), Err(Violation::BeforeLogin));
    assert_eq!(says(&mut server, &SERVER_HEARTBEAT), Err(MalformedSoupPacket::UnknownType(b'H').into()));
    let mut hello = login(&a_login("", 1));
    assert_eq!(says(&mut server, &hello[..48]), Ok(0));
    hello[48] = b'-';
    assert_eq!(says(&mut server, &hello), Err(MalformedSoupPacket::Number.into()));
    assert_eq!(server.state(), ServerState::AwaitingLogin);
    hello[48] = b'1';
    assert_eq!(says(&mut server, &hello), Ok(49));
    assert_eq!(says(&mut server, &hello), Err(Violation::SecondLogin));
    let order = [&unsequenced_header(3).unwrap()[..], b"buy"].concat();
    assert_eq!(says(&mut server, &order), Ok(6));
    assert_eq!(server.state(), ServerState::Live { next: 1 });
    assert_eq!((sequenced_header(65_534), sequenced_header(65_535)), (Some([255, 255, b'S']), None));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Any bytes: a packet and what follows it are all that there was; nothing is read from beyond.
    #[test]
    fn any_bytes_are_a_packet_a_part_of_one_or_refused(
        length in 0_u16..12,
        rest in vec(prop_oneof![Just(b'S'), Just(b'A'), Just(b'L'), Just(b'H'), any::<u8>()], 0..60),
        cut in 0_usize..70,
    ) {
        let stream = [&length.to_be_bytes()[..], &rest].concat();
        let stream = &stream[..cut.min(stream.len())];
        match split(stream) {
            Ok(Split::Packet(frame)) => {
                prop_assert_eq!(frame.bytes, 3 + frame.payload.len());
                prop_assert_eq!(&stream[..frame.bytes], [&length.to_be_bytes()[..], &[frame.kind], frame.payload].concat());
                let (_, _) = (ServerPacket::decode(frame), ClientPacket::decode(frame));
            }
            Ok(Split::Incomplete { needed }) => {
                prop_assert!(needed > stream.len());
                prop_assert!(stream.len() < 2 || needed == 2 + usize::from(length));
            }
            Err(malformed) => prop_assert_eq!((malformed, length), (MalformedSoupPacket::NoType, 0)),
        }
    }

    /// What both ends do with damaged streams: they take all, or name the reason and have not changed.
    #[test]
    fn a_damaged_stream_ends_with_a_reason(
        at in 0_usize..400,
        byte in any::<u8>(),
        pieces in vec(1_usize..50, 1..20),
    ) {
        let history = history("DAY1", 20);
        let (mut stream, _) = served(&a_login("", 1), &Accounts::default(), &history);
        stream.extend(SERVER_HEARTBEAT);
        stream.extend(END_OF_SESSION);
        if let Some(place) = stream.get_mut(at) {
            *place = byte;
        }
        let mut client = SoupClient::new(a_login("", 1), START);
        let (mut taken, mut there) = (0, 0);
        let mut pieces = pieces.iter().cycle();
        loop {
            let before = (client.next_sequence(), client.is_over(), client.next_due());
            match client.receive(&stream[taken..there], START) {
                Ok(ClientStep::Event(_, bytes)) => taken += bytes,
                Ok(ClientStep::Incomplete { .. }) if there == stream.len() => break,
                Ok(ClientStep::Incomplete { .. }) => {
                    there = stream.len().min(there + pieces.next().unwrap());
                }
                Err(_) => {
                    prop_assert_eq!(before, (client.next_sequence(), client.is_over(), client.next_due()));
                    break;
                }
            }
            prop_assert!(taken <= there);
        }
    }
}
