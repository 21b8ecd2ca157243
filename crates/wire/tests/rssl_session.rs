//! Sessions without sockets: the bytes of other implementations, the reasons that end a connection and how
//! they are reported, and timing.
use std::sync::Arc;

use tapeline_measure::Nanos;
use tapeline_wire::rssl::{
    Compression, ConnectionSettings, ConnectionType, Event, Reason, Sent, Session, SubProtocol, Version,
};

const NOW: Nanos = Nanos(1_000_000_000_000);
const SECOND: u64 = 1_000_000_000;

fn settings(change: impl FnOnce(&mut ConnectionSettings)) -> Arc<ConnectionSettings> {
    let mut settings = ConnectionSettings::default();
    change(&mut settings);
    Arc::new(settings)
}

/// Returns the messages of these bytes.
fn take(session: &mut Session, bytes: &[u8]) -> Result<Vec<Vec<u8>>, Reason> {
    let (mut bytes, mut messages) = (bytes.to_vec(), Vec::new());
    loop {
        let (consumed, event) = session.take(&mut bytes, NOW)?;
        let done = event.is_none();
        if let Some(Event::Message(message)) = event {
            messages.push(message.to_vec());
        }
        bytes.drain(..consumed);
        if done {
            return Ok(messages);
        }
    }
}

/// Returns both ends of an open connection: client, server.
fn open(settings: &Arc<ConnectionSettings>, version: Version) -> (Session, Session) {
    let mut client = Session::client(settings.clone(), version, NOW);
    let mut server = Session::server(settings.clone(), NOW);
    while !(client.is_open() && server.is_open()) {
        take(&mut server, &client.drain()).unwrap();
        take(&mut client, &server.drain()).unwrap();
    }
    (client, server)
}

/// JSON on a WebSocket with permessage-deflate, and a maximum message length.
fn compressed_json(max_message_bytes: u32) -> Arc<ConnectionSettings> {
    settings(|settings| {
        settings.connection_type = ConnectionType::WebSocket;
        settings.ws_protocols = vec![SubProtocol::TrJson2];
        settings.compression_type = Compression::Zlib;
        settings.max_message_bytes = max_message_bytes;
    })
}

fn hex(text: &str) -> Vec<u8> {
    let digit = |digit: u8| char::from(digit).to_digit(16).unwrap() as u8;
    text.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

/// Captured from `TransportPerf` of LSEG's Real-Time SDK (ETA C 3.6.2).
#[test]
fn handshakes_of_eta_c_are_taken() {
    let name = "eta3.6.2.L1.linux.rrg 64-bit Static";
    let component = "23657461332e362e322e4c312e6c696e75782e7272672036342d62697420537461746963";
    // Its container includes its own length byte, 37 in place of 36.
    for (version, key, ack) in [
        (
            Version::V14,
            true,
            "005301010a00000000091800031e0000000000080118\
          03ad6ec947e6bad200000000000000050076357714831099\
          25",
        ),
        (Version::V14, false, "003801010a00000000091800031e000000000025"),
        (Version::V13, false, "003801010a00000000081800031e000000000525"),
    ] {
        let mut client = Session::client(settings(|settings| settings.key_exchange = key), version, NOW);
        client.drain();
        assert!(take(&mut client, &hex(&format!("{}{component}", ack.replace(' ', "")))).unwrap().is_empty());
        assert_eq!(client.negotiated().unwrap().peer_version, name);
        assert_eq!(client.drain().len(), if key { 12 } else { 0 });
    }
    let mut client = Session::client(settings(|_| ()), Version::V12, NOW);
    client.drain();
    assert!(take(&mut client, &hex("001301010a00000000071800031e0000000005")).unwrap().is_empty());
    assert_eq!(client.negotiated().unwrap().peer_version, "");

    // Requests for 14 (with a key, protocol type 88), 13 and 12.
    for request in [
        "00410000000017081c003c0058000002766d093132372e302e302e3124",
        "00410000000016001c003c0058000002766d093132372e302e302e3124",
        "001c0000000015001c003c0058000002766d093132372e302e302e31",
    ] {
        let mut server = Session::server(settings(|settings| settings.protocol_type = 88), NOW);
        let request =
            hex(&if request.ends_with("24") { format!("{request}{component}") } else { request.to_owned() });
        assert!(take(&mut server, &request).unwrap().is_empty());
        let negotiated = server.negotiated().unwrap();
        assert_eq!((negotiated.peer_host.as_str(), negotiated.peer_address.as_str()), ("vm", "127.0.0.1"));
        assert_eq!(negotiated.ping_timeout, 30);
    }
}

/// A client that requests another protocol type is refused with the reason. On a WebSocket the sub-protocol
/// decides the type, and TransportPerf, which requests 88 elsewhere, requests 0 there.
#[test]
fn a_websocket_says_by_itself_what_messages_are() {
    for connection_type in [ConnectionType::Socket, ConnectionType::WebSocket] {
        let of_type = |protocol_type| {
            settings(|settings| {
                settings.protocol_type = protocol_type;
                settings.connection_type = connection_type;
            })
        };
        let mut client = Session::client(of_type(0), Version::V14, NOW);
        let mut server = Session::server(of_type(88), NOW);
        let mut refused = None;
        while refused.is_none() && !client.is_open() {
            refused = take(&mut server, &client.drain()).err();
            if refused.is_none() {
                take(&mut client, &server.drain()).unwrap();
            }
        }
        let expected = (connection_type == ConnectionType::Socket).then_some("a client of protocol type 0");
        let reason = refused.map(|reason| reason.to_string());
        assert_eq!(reason.is_some(), expected.is_some(), "{reason:?}");
        assert!(expected.is_none_or(|text| reason.as_ref().is_some_and(|reason| reason.contains(text))));
    }
}

#[test]
fn a_sealed_frame_is_shared_no_longer() {
    let (mut client, mut server) = open(&settings(|_| ()), Version::V14);
    let before = client.output().frames();
    for number in 0..6_u8 {
        assert_eq!(client.output().pack(&[number; 10]), Sent::Queued);
        if number % 3 == 2 {
            client.output().seal();
        }
    }
    assert_eq!(client.output().frames() - before, 2);
    client.output().seal();
    assert_eq!(client.output().frames() - before, 2, "nothing to end");
    assert_eq!(take(&mut server, &client.drain()).unwrap().len(), 6);
}

#[test]
fn messages_share_no_more_than_they_may() {
    let small = settings(|settings| settings.pack_bytes = Some(30));
    let (mut client, mut server) = open(&small, Version::V14);
    let messages = [&b"aaaaaaaa"[..], b"bbbbbbbb", b"cccccccc", b"d", &[b'e'; 29], &[b'f'; 28], b"g"];
    messages.iter().for_each(|message| assert_eq!(client.output().pack(message), Sent::Queued));
    let wire = client.drain();
    let mut golden = Vec::new();
    // Three messages of eight bytes, each with its length, are the maximum for 30 bytes.
    golden.extend(b"\0\x21\x12\0\x08aaaaaaaa\0\x08bbbbbbbb\0\x08cccccccc");
    golden.extend(b"\0\x06\x12\0\x01d");
    // Too long for a pack, and exactly as long as one.
    golden.extend([&b"\0\x20\x02"[..], &[b'e'; 29]].concat());
    golden.extend([&b"\0\x21\x12\0\x1c"[..], &[b'f'; 28]].concat());
    golden.extend(b"\0\x06\x12\0\x01g");
    assert_eq!(wire, golden);
    assert_eq!(take(&mut server, &wire).unwrap(), messages);
}

/// Messages of ETA C that are longer than a frame: each fragment is compressed by itself, with the
/// compression bit set. Without and with context takeover between messages.
#[test]
fn compressed_pieces_of_eta_c_are_taken() {
    for context in [false, true] {
        let (mut client, _server) = open(&compressed_json(100_000), Version::V14);
        let mut deflate = flate2::Compress::new(flate2::Compression::new(6), false);
        for number in 0..3 {
            let message: Vec<u8> = (0..15_000_u32).map(|at| b'a' + (at % 7 + number) as u8).collect();
            let pieces: Vec<&[u8]> = message.chunks(6144).collect();
            let mut frames = Vec::new();
            for (index, piece) in pieces.iter().enumerate() {
                if !context {
                    deflate.reset();
                }
                let mut compressed = Vec::with_capacity(10_000);
                deflate.compress_vec(piece, &mut compressed, flate2::FlushCompress::Sync).unwrap();
                let compressed = compressed.strip_suffix(&[0, 0, 0xff, 0xff]).unwrap();
                assert!(compressed.len() < 126);
                let opcode = u8::from(index == 0) | 0x40 | if index + 1 == pieces.len() { 0x80 } else { 0 };
                frames.extend([opcode, compressed.len() as u8]);
                frames.extend(compressed);
            }
            assert_eq!(take(&mut client, &frames).unwrap(), [message]);
        }
    }
}

/// RFC 7692, 7.2.3.4: a final block may end a message; a zero byte after it starts the next one.
#[test]
fn last_blocks_end_messages_and_parts_of_them() {
    let (mut client, _server) = open(&compressed_json(100_000), Version::V14);
    let last = |text: &[u8]| {
        let mut compressed = Vec::with_capacity(100);
        let mut deflate = flate2::Compress::new(flate2::Compression::new(6), false);
        deflate.compress_vec(text, &mut compressed, flate2::FlushCompress::Finish).unwrap();
        compressed
    };
    let many = [last(b"first "), last(b"second "), last(b"third"), vec![0]].concat();
    for (compressed, message) in [
        // The RFC's own examples.
        (hex("f348cdc9c9070000"), "Hello"),
        (hex("f248cdc9c90700"), "Hello"),
        (many, "first second third"),
        // Without the zeros, the restored end of a sync flush completes nothing.
        (last(b"alone"), "alone"),
        (hex("f348cdc9c9070000"), "Hello"),
    ] {
        let frame = [&[0xc1, compressed.len() as u8], &compressed[..]].concat();
        assert_eq!(take(&mut client, &frame).unwrap(), [message.as_bytes()], "{compressed:02x?}");
    }
}

/// An endless message whose frames have no bytes: the restored end of a flush counts toward the limit.
#[test]
fn frames_of_nothing_do_not_go_on_for_ever() {
    let (mut client, _server) = open(&compressed_json(1000), Version::V14);
    assert!(take(&mut client, &[0x41, 4, 0, 0, 0, 0]).unwrap().is_empty());
    assert!(take(&mut client, &[0x40, 0].repeat(249)).unwrap().is_empty());
    let Err(Reason::Broken(fault)) = take(&mut client, &[0x40, 0]) else { panic!("taken") };
    assert_eq!(fault.what, "WebSocket message of 1004 bytes or more");
    assert_eq!(fault.expected, "at most 1000, the limit that is set");
}

#[test]
fn what_is_broken_is_named_with_its_place_and_what_was_expected() {
    let v14 = |bytes: &'static str| (Version::V14, Compression::None, bytes);
    let common = settings(|settings| {
        (settings.max_message_bytes, settings.max_open_messages) = (1000, 2);
    });
    for ((version, compression, bytes), said) in [
        (v14("0002"), ""),
        (v14("000202"), "frame of 2 bytes at byte 0, at least 3, its header"),
        (v14("00040200 000502"), ""),
        (v14("00040200 00060607"), "frame with flags 0x06 at byte 4, 0x02 (plain), 0x12"),
        (v14("00042200"), "frame with flags 0x22 at byte 0, "),
        (v14("00040a00"), "frame with flags 0x0a at byte 0, "),
        (v14("00061300"), "frame with flags 0x13 at byte 0, "),
        (v14("000404ff"), "compressed frame at byte 0, none: no compression was agreed on"),
        (v14("000412ff"), "packed frame with one byte left over at byte 3, a length of two bytes"),
        (v14("00061200050a"), "packed message of 5 bytes at byte 3, at most 1, the rest of its frame"),
        (v14("000303"), "fragment's frame of 3 bytes at byte 0, at least 4, its header"),
        (v14("00040302"), "frame with extended flags 0x02 at byte 0, 0x08 (first fragment) or 0x04"),
        (v14("00050304 00"), "fragment's frame of 5 bytes at byte 0, at least 6, its header"),
        (v14("00070304 000109"), "further fragment of message 1 at byte 0, a first one"),
        (v14("000b0308 000003e9 000109"), "message of 1001 bytes in fragments at byte 0, at most 1000"),
        (v14("000a0308 00000003 0001"), "fragment of 0 bytes for message 1 at byte 0, 1 to 3 bytes"),
        (
            v14("000b0308 00000003 000109 000b0308 00000003 000109"),
            "first fragment of message 1 at byte 11, a next one",
        ),
        (
            v14("000b0308 00000003 000109 000b0304 0001 0909090909"),
            "fragment of 5 bytes for message 1 at byte 11, 1 to 2 bytes: it has 1 of 3",
        ),
        (
            v14("000b0308 00000003 000109 000b0308 00000003 000209 000b0308 00000003 000309"),
            "3 messages begun in fragments and not completed at byte 22, at most 2",
        ),
        (
            (Version::V12, Compression::None, "00060304 0909"),
            "further fragment of message 9 at byte 0, a first one",
        ),
        ((Version::V14, Compression::Zlib, "000504 ffff"), "zlib payload of 2 bytes: "),
        ((Version::V14, Compression::Lz4, "000504 ffff"), "LZ4 payload of 2 bytes: "),
        (
            (Version::V14, Compression::Lz4, "00050c 1041 000402 01"),
            "frame with flags 0x02 at byte 5, 0x04: the second half",
        ),
    ] {
        let common = Arc::new(ConnectionSettings {
            compression_type: compression,
            component_version: String::new(),
            ..ConnectionSettings::clone(&common)
        });
        let (_client, mut server) = open(&common, version);
        let handshake = if version == Version::V14 { 19 } else { 17 };
        let taken = take(&mut server, &hex(&bytes.replace(' ', "")));
        if said.is_empty() {
            assert!(taken.is_ok(), "{bytes}: {taken:?}");
            continue;
        }
        let Err(Reason::Broken(fault)) = taken else { panic!("{bytes}: {taken:?}") };
        let request = handshake + u64::from(compression != Compression::None);
        let shown = format!("{} at byte {}, {}", fault.what, fault.position - request, fault.expected);
        assert!(shown.starts_with(said), "{bytes}: {shown}");
    }
}

#[test]
fn handshakes_that_are_broken_are_named() {
    for (bytes, said) in [
        ("0003", "handshake message of 3 bytes at byte 0 of what was received, expected 4 to 4096"),
        ("160301", "handshake message of 5635 bytes (it looks like TLS) at byte 0"),
        ("00130000000018", ""),
        (
            "001300000000180011001e00000e0100000100",
            "connect request of version 0x18 at byte 0 of what was received, expected 0x14 to 0x17",
        ),
        ("001300000000170012001e00000e0100000100", "connect request with a header length of 18 at byte 0"),
        ("001300000000170011001e00000e0100050100", "connect request of 19 bytes at byte 0"),
        ("001400000000170011001e00000e010000010000", "connect request with 1 bytes too many at byte 0"),
        // With a line break, as some clients send.
        ("001500000000170011001e00000e01000001000d0a", ""),
    ] {
        let mut server = Session::server(settings(|_| ()), NOW);
        match take(&mut server, &hex(bytes)) {
            Ok(_) => assert!(said.is_empty(), "{bytes}"),
            Err(reason) => {
                assert!(!said.is_empty() && reason.to_string().starts_with(said), "{bytes}: {reason}");
            }
        }
    }
    for (bytes, said) in [
        (
            "001301010a00000000071800031e0e01000000",
            "ack of version 7 at byte 0 of what was received, expected 9",
        ),
        ("001501010a00000000091800031e0e010003000100", "compression type 3 in the ack"),
        ("001501010a0000000009000a031e0e010000000100", "largest payload of 10 bytes in the ack"),
        ("001501010a0000000009180003000e010000000100", "ping time-out of 0 s in the ack"),
        ("000d010208000005 6e6f207700", "refused: no w"),
        ("000501030a", "answer to the connect request with flags 0x01 0x03"),
    ] {
        let mut client = Session::client(settings(|_| ()), Version::V14, NOW);
        let reason = take(&mut client, &hex(&bytes.replace(' ', ""))).unwrap_err();
        assert!(reason.to_string().starts_with(said), "{bytes}: {reason}");
    }
}

#[test]
fn pings_go_out_by_the_third_and_silence_is_counted_from_the_last_byte() {
    let (mut client, mut server) =
        open(&settings(|settings| settings.connection_ping_timeout = 30), Version::V14);
    let ping = [0, 3, 2];
    client.turn(NOW).unwrap();
    client.turn(NOW + 9 * SECOND).unwrap();
    assert!(client.drain().is_empty());
    client.turn(NOW + 10 * SECOND).unwrap();
    assert_eq!(client.drain(), ping);
    // Everything sent is a sign of life.
    assert_eq!(client.output().send(b"alive"), Sent::Queued);
    client.turn(NOW + 19 * SECOND).unwrap();
    assert_eq!(client.drain(), *b"\0\x08\x02alive");
    client.turn(NOW + 28 * SECOND).unwrap();
    assert!(client.drain().is_empty());
    client.turn(NOW + 29 * SECOND).unwrap();
    assert_eq!(client.drain(), ping);
    // An incomplete frame counts as received, too.
    let _ = server.take(&mut [0], NOW + 20 * SECOND).unwrap();
    server.turn(NOW + 49 * SECOND).unwrap();
    assert!(matches!(server.turn(NOW + 50 * SECOND), Err(Reason::Silent { seconds: 30 })));
    assert!(matches!(client.turn(NOW + 30 * SECOND), Err(Reason::Silent { seconds: 30 })));
}

/// JSON clients answer pings and send nothing else, however much is sent to them: for example
/// `websocket-client` and `lseg-data`.
#[test]
fn who_only_answers_is_asked_though_messages_go_out_all_the_time() {
    let json = settings(|settings| {
        settings.connection_type = ConnectionType::WebSocket;
        settings.ws_protocols = vec![SubProtocol::TrJson2];
        settings.connection_ping_timeout = 30;
    });
    let (mut client, mut server) = open(&json, Version::V14);
    let mut answers = 0;
    for second in 1..=120 {
        let now = NOW + second * SECOND;
        server.turn(now).unwrap();
        assert_eq!(server.output().send(b"[]"), Sent::Queued);
        let _ = take(&mut client, &server.drain()).unwrap();
        let mut answer = client.drain();
        if !answer.is_empty() {
            answers += 1;
            let _ = server.take(&mut answer, now).unwrap();
        }
    }
    // After a third of the time-out, counted from the last answer.
    assert_eq!(answers, 12);
    // A client that does not answer is closed after the time-out.
    let deaf = NOW + 149 * SECOND;
    server.turn(deaf).unwrap();
    assert!(matches!(server.turn(deaf + SECOND), Err(Reason::Silent { seconds: 30 })));
}

/// A payload that compression makes longer than a frame is sent in two frames, and received as one payload.
#[test]
fn growing_payloads_are_cut_whatever_they_are() {
    let stored = settings(|settings| {
        (settings.compression_type, settings.compression_level) = (Compression::Zlib, 0);
        settings.max_fragment_size = 256;
    });
    let (mut client, mut server) = open(&stored, Version::V14);
    let whole = vec![b'w'; 254];
    assert_eq!(client.output().send(&whole), Sent::Queued);
    let wire = client.drain();
    assert_eq!((wire[2], wire[259 + 2]), (0x0c, 0x04));
    assert_eq!(take(&mut server, &wire).unwrap(), [whole]);
    let packed = [vec![b'p'; 126], vec![b'q'; 126]];
    packed.iter().for_each(|message| assert_eq!(client.output().pack(message), Sent::Queued));
    let wire = client.drain();
    assert_eq!((wire[2], wire[259 + 2]), (0x1c, 0x04));
    assert_eq!(take(&mut server, &wire).unwrap(), packed);
}
