//! Any bytes at all: nothing panics, what is rejected is rejected for the stated reason, and nothing gets lost.

use proptest::collection::vec;
use proptest::prelude::*;
use tapeline_feed::framing::MalformedDatagram;
use tapeline_feed::itch::framing::{FileFraming, Frames, RunEnd};
use tapeline_feed::itch::{self, Message, MessageKind, MessageType};
use tapeline_feed::moldudp64::{
    self, HEADER_BYTES, MoldPacket, MoldSession, PacketBuilder, PacketRefused, Request,
};

/// Bytes that often look like a message: a letter of a type, then anything.
fn message() -> impl Strategy<Value = Vec<u8>> {
    let letter =
        prop_oneof![(0..MessageType::ALL.len()).prop_map(|at| MessageType::ALL[at].letter()), any::<u8>()];
    (letter, vec(any::<u8>(), 0..70)).prop_map(|(letter, rest)| [vec![letter], rest].concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_message_is_known_unknown_or_short(bytes in message()) {
        let known = MessageType::of(bytes[0]);
        match itch::decode(&bytes) {
            Ok(message) => {
                prop_assert_eq!(message.kind(), MessageKind::from(bytes[0]));
                let length = known.map_or(bytes.len(), MessageType::length);
                prop_assert_eq!(message.bytes(), &bytes[..length]);
                prop_assert_eq!(message.extra_bytes(&bytes), bytes.len() - length);
                prop_assert_eq!(message.prefix().is_some(), length >= 11);
                if let Some(prefix) = message.prefix() {
                    prop_assert_eq!(prefix.locate.0, u16::from_be_bytes([bytes[1], bytes[2]]));
                    let ns = bytes[5..11].iter().fold(0, |ns, byte| ns << 8 | u64::from(*byte));
                    prop_assert_eq!(prefix.ts_ns, ns);
                }
                // Reads every field.
                let text = format!("{message:?}");
                prop_assert!(!text.is_empty());
            }
            Err(itch::MalformedItchMessage::Short { kind, length }) => {
                prop_assert_eq!(Some(kind), known);
                prop_assert_eq!(length, bytes.len());
                prop_assert!(length < kind.length());
            }
            Err(other) => prop_assert!(false, "{other}"),
        }
    }

    #[test]
    fn frames_take_every_byte_once(bytes in vec(0_u8..6, 0..300), by_type in any::<bool>()) {
        let framing = if by_type { FileFraming::Type } else { FileFraming::Length };
        let mut frames = Frames::with(&bytes, framing);
        let taken: usize = frames.by_ref().map(|message| 2 + message.len()).sum();
        let left = match frames.end() {
            RunEnd::Complete => 0,
            RunEnd::Session { after } => 2 + after,
            RunEnd::Incomplete { bytes } | RunEnd::Lost { bytes } => bytes,
            RunEnd::NotYet => panic!("it has ended"),
        };
        prop_assert_eq!(taken + left, bytes.len());
        prop_assert_eq!(frames.consumed() + frames.rest().len(), bytes.len());
    }

    #[test]
    fn a_datagram_is_a_packet_or_has_a_reason(
        mut head in vec(any::<u8>(), 0..=HEADER_BYTES),
        count in 0_u16..8,
        special in any::<bool>(),
        rest in vec(0_u8..4, 0..60),
    ) {
        if let Some(place) = head.get_mut(18..20) {
            place.copy_from_slice(&(if special { count.wrapping_sub(4) } else { count }).to_be_bytes());
        }
        let bytes = if head.len() < HEADER_BYTES { head } else { [head, rest].concat() };
        match moldudp64::parse(&bytes) {
            Ok(packet @ (MoldPacket::Heartbeat { .. } | MoldPacket::EndOfSession { .. })) => {
                prop_assert_eq!(packet.trailing(), bytes.len() - HEADER_BYTES);
            }
            Ok(MoldPacket::Data(data)) => {
                let blocks: usize = data.messages().map(|(_, message)| 2 + message.len()).sum();
                prop_assert_eq!(HEADER_BYTES + blocks + data.trailing, bytes.len());
                prop_assert!(data.messages().map(|(sequence, _)| sequence).eq(data.sequence()..data.end()));
                prop_assert_eq!(data.messages().len(), usize::from(data.count()));
            }
            Err(MalformedDatagram::ShortHeader) => prop_assert!(bytes.len() < HEADER_BYTES),
            Err(malformed) => {
                prop_assert!(bytes.len() >= HEADER_BYTES);
                prop_assert_eq!(MalformedDatagram::ALL[malformed.index()], malformed);
            }
        }
        prop_assert_eq!(Request::decode(&bytes).is_ok(), bytes.len() >= HEADER_BYTES);
    }

    #[test]
    fn what_is_packed_is_parsed(
        messages in vec(vec(any::<u8>(), 0..90), 0..40),
        first in 1_u64..u64::MAX - 100,
        limit in HEADER_BYTES..400,
        extra in 0_usize..5,
    ) {
        let session = MoldSession::new("ROUNDTRIP");
        let mut buffer = [0xEE; 410];
        let mut packet = PacketBuilder::with_limit(&mut buffer, session, first, limit).unwrap();
        let mut taken = Vec::new();
        let mut used = HEADER_BYTES;
        for message in &messages {
            let block = 2 + message.len();
            let wanted = if HEADER_BYTES + block > limit {
                Err(PacketRefused::TooLong)
            } else if used + block > limit {
                Err(PacketRefused::Full)
            } else {
                used += block;
                taken.push(&message[..]);
                Ok(())
            };
            prop_assert_eq!(packet.push(message), wanted);
        }
        prop_assert_eq!(packet.next_sequence(), first + taken.len() as u64);
        let length = packet.finish();
        prop_assert_eq!(length, used);
        match moldudp64::parse(&buffer[..length + extra]).unwrap() {
            MoldPacket::Data(data) => {
                prop_assert_eq!((data.session, data.sequence(), data.trailing), (session, first, extra));
                prop_assert!(data.messages().map(|(_, message)| message).eq(taken.iter().copied()));
            }
            other => {
                prop_assert!(taken.is_empty());
                prop_assert_eq!(other, MoldPacket::Heartbeat { session, next: first, trailing: extra });
            }
        }
        // Cut anywhere, it is no packet any more.
        for cut in 0..length {
            prop_assert!(moldudp64::parse(&buffer[..cut]).is_err());
        }
    }
}

#[test]
fn each_reason_has_its_datagram() {
    let packet = |count: u16, blocks: &[u8]| {
        let mut bytes = [b'S'; HEADER_BYTES].to_vec();
        bytes[10..18].copy_from_slice(&7_u64.to_be_bytes());
        bytes[18..].copy_from_slice(&count.to_be_bytes());
        bytes.extend(blocks);
        bytes
    };
    let mut far = packet(2, &[0, 0, 0, 0]);
    far[10..18].copy_from_slice(&(u64::MAX - 1).to_be_bytes());
    let cases: [(&[u8], MalformedDatagram, &str); 6] = [
        (&[], MalformedDatagram::ShortHeader, "short-header"),
        (&packet(0, &[])[..19], MalformedDatagram::ShortHeader, "short-header"),
        (&packet(1, &[]), MalformedDatagram::MissingLength, "missing-length"),
        (&packet(2, &[0, 1, b'x', 0]), MalformedDatagram::MissingLength, "missing-length"),
        (&packet(1, &[0, 2, b'x']), MalformedDatagram::BlockPastEnd, "block-past-end"),
        (&far, MalformedDatagram::SequenceOverflow, "sequence-overflow"),
    ];
    for (bytes, reason, label) in cases {
        assert_eq!(moldudp64::parse(bytes), Err(reason));
        assert_eq!(reason.reason(), label);
    }
    assert_eq!(moldudp64::parse(&packet(2, &[0, 0, 0, 0])).unwrap().trailing(), 0);
}

#[test]
fn the_special_counts_are_no_messages() {
    let session = MoldSession::new("S");
    let heartbeat = moldudp64::heartbeat(session, 9);
    assert_eq!(moldudp64::parse(&heartbeat), Ok(MoldPacket::Heartbeat { session, next: 9, trailing: 0 }));
    let end = moldudp64::end_of_session(session, 9);
    assert_eq!(moldudp64::parse(&end), Ok(MoldPacket::EndOfSession { session, next: 9, trailing: 0 }));
    assert_eq!(session.to_string(), "S");
    assert_eq!(MoldSession([0; 10]).to_string(), "\\x00".repeat(10));
}

#[test]
fn a_request_names_as_much_of_a_gap_as_it_can() {
    let session = MoldSession::new("S");
    let request = Request::for_gap(session, 5, 5 + 0xFFFE);
    assert_eq!((request.sequence, request.count), (5, 0xFFFE));
    assert_eq!(Request::for_gap(session, 5, 5).count, 1);
    assert!(!Request { session, sequence: 0, count: 1 }.is_answerable());
    assert!(!Request { session, sequence: 1, count: 0 }.is_answerable());
    assert!(!Request { session, sequence: 1, count: 0xFFFF }.is_answerable());
}

#[test]
fn an_unknown_type_and_a_longer_message_are_no_errors() {
    let message = itch::decode(b"z12").unwrap();
    assert_eq!(message, Message::Unknown(b"z12"));
    assert_eq!((message.letter(), message.bytes()), (b'z', &b"z12"[..]));
    assert_eq!(itch::decode(b""), Err(itch::MalformedItchMessage::Empty));
    let mut event = [0_u8; 20];
    event[0] = b'S';
    event[11] = b'?';
    let Ok(Message::SystemEvent(view)) = itch::decode(&event) else { panic!("it is a system event") };
    assert_eq!(view.event().0, b'?');
    assert_eq!(
        itch::decode(&event[..11]).unwrap_err().to_string(),
        "message type S (system event) has 12 bytes, 11 received"
    );
}
