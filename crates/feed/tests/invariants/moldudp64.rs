//! MoldUDP64: packets and requests.

use tapeline_feed::framing::{Framing, MalformedDatagram};
use tapeline_feed::moldudp64::{
    HEADER_BYTES, MoldPacket, PacketBuilder, Request, end_of_session, heartbeat, parse,
};

/// A datagram is a packet, every byte of which is accounted for; or it has a reason why not.
pub(crate) fn packet(bytes: &[u8]) {
    let parsed = parse(bytes);
    assert_eq!(Framing::MoldUdp64.parse(bytes).is_ok(), parsed.is_ok());
    match parsed {
        Ok(packet) => {
            let used = bytes.len() - packet.trailing();
            assert_eq!(written(&packet, used), bytes[..used]);
            // One byte less is no packet, and what is behind it makes no difference.
            assert!(parse(&bytes[..used - 1]).is_err());
            assert_eq!(parse(&bytes[..used]).unwrap().trailing(), 0);
        }
        Err(MalformedDatagram::ShortHeader) => assert!(bytes.len() < HEADER_BYTES),
        Err(_) => assert!(bytes.len() >= HEADER_BYTES),
    }
    request(bytes);
}

/// What was understood, written again.
fn written(packet: &MoldPacket<'_>, room: usize) -> Vec<u8> {
    match packet {
        MoldPacket::Data(data) => {
            let mut again = vec![0; room];
            let mut builder =
                PacketBuilder::with_limit(&mut again, data.session, data.sequence(), room).unwrap();
            let mut next = data.sequence();
            for (sequence, message) in data.messages() {
                assert_eq!(sequence, next);
                next += 1;
                builder.push(message).unwrap();
            }
            assert_eq!((next, builder.count()), (data.end(), data.count()));
            assert_eq!(builder.finish(), room);
            again
        }
        MoldPacket::Heartbeat { session, next, .. } => heartbeat(*session, *next).to_vec(),
        MoldPacket::EndOfSession { session, next, .. } => end_of_session(*session, *next).to_vec(),
    }
}

fn request(bytes: &[u8]) {
    match Request::decode(bytes) {
        Ok(request) => {
            assert_eq!(request.encode(), bytes[..HEADER_BYTES]);
            assert!(!request.is_answerable() || (request.sequence > 0 && request.count > 0));
        }
        Err(_) => assert!(bytes.len() < HEADER_BYTES),
    }
}

/// Inputs to begin with.
pub(crate) fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let session = tapeline_feed::moldudp64::MoldSession::new("FUZZ");
    let mut data = vec![0; 200];
    let mut packet = PacketBuilder::new(&mut data, session, 0x0102_0304).unwrap();
    for message in [&b"S\0\0\0\0"[..], b"", b"a message of some length"] {
        packet.push(message).unwrap();
    }
    let length = packet.finish();
    data.truncate(length);
    vec![
        ("data", data),
        ("heartbeat", heartbeat(session, 9).to_vec()),
        ("end", end_of_session(session, u64::MAX).to_vec()),
        ("request", Request { session, sequence: 7, count: 3 }.encode().to_vec()),
    ]
}
