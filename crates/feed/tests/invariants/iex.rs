//! IEX: segments, the decoder of TOPS and DEEP, and books made of any messages.

use tapeline_feed::framing::MalformedDatagram;
use tapeline_feed::iex::encode::{SecurityEvent, text};
use tapeline_feed::iex::tp::{self, IexSession, MessageProtocol, SegmentBuilder, heartbeat};
use tapeline_feed::iex::{self, IexMessageType, IexSettings};
use tapeline_feed::itch::Side;
use tapeline_feed::normalise::Iex;
use tapeline_feed::symbols::Symbols;

const BOUNDS: IexSettings = IexSettings { max_symbols: 5, max_levels: 8 };

/// A datagram is a segment, every byte of which is accounted for; or it has a reason why not.
pub(crate) fn segment(bytes: &[u8]) {
    match tp::parse(bytes) {
        Ok(segment) => {
            let used = tp::HEADER_BYTES + segment.blocks.len();
            assert_eq!(used + segment.trailing, bytes.len());
            assert_eq!(segment.next() - segment.first, u64::from(segment.count()));
            assert_eq!(segment.next_offset() - segment.offset, segment.blocks.len() as u64);
            let blocks: usize = segment.messages.map(|(_, message)| 2 + message.len()).sum();
            assert_eq!(blocks, segment.blocks.len());
            assert!(segment.messages.map(|(sequence, _)| sequence).eq(segment.first..segment.next()));
            // Written again, it is the same but for a byte that means nothing.
            let mut again = vec![0; used];
            let builder = SegmentBuilder::new(&mut again, segment.session, segment.first, segment.offset);
            let mut builder = builder.unwrap();
            if used <= tp::DEFAULT_SEGMENT_BYTES {
                for (_, message) in segment.messages {
                    builder.push(message).unwrap();
                }
                let length = builder.finish(segment.sent.0);
                again[1] = bytes[1];
                assert_eq!(again[..length], bytes[..used]);
            }
            assert!(tp::parse(&bytes[..used - 1]).is_err());
            messages(segment.messages.map(|(_, message)| message));
        }
        Err(MalformedDatagram::ShortHeader) => assert!(bytes.len() < tp::HEADER_BYTES),
        Err(reason) => assert_eq!(MalformedDatagram::ALL[reason.index()], reason),
    }
}

/// Messages of any kind, each behind its length.
pub(crate) fn pieces(bytes: &[u8]) {
    messages(super::pieces(bytes));
}

fn messages<'a>(messages: impl Iterator<Item = &'a [u8]>) {
    let mut normaliser = Iex::new(BOUNDS);
    let symbols = Symbols::new(["IB*"]).unwrap();
    let mut filter = tapeline_feed::Protocol::IexDeep.filter(symbols.clone());
    for bytes in messages {
        let wanted = filter.wants(bytes);
        let books = |normaliser: &Iex| -> Vec<_> {
            let books = normaliser.books().iter();
            books.map(|(_, book, _)| (book.top, book.symbol)).collect()
        };
        let before = books(&normaliser);
        let taken = normaliser.apply(bytes).is_ok();
        match iex::decode(bytes) {
            Ok(message) => {
                assert!(taken);
                // Of a known type, it is passed over exactly if nobody asked for its symbol.
                if IexMessageType::of(bytes[0]).is_some() {
                    let symbol = message.symbol();
                    assert_eq!(wanted, symbol.is_none_or(|symbol| symbols.contains(symbol.as_str())));
                }
                let length = IexMessageType::of(bytes[0]).map_or(bytes.len(), IexMessageType::length);
                assert_eq!(message.bytes(), &bytes[..length]);
                assert_eq!(message.bytes().len() + message.extra_bytes(bytes), bytes.len());
                assert!(!format!("{message:?}").is_empty());
            }
            Err(iex::MalformedIexMessage::Short { kind, length }) => {
                assert!(!taken && length == bytes.len() && length < kind.length());
                assert_eq!(before, books(&normaliser));
            }
            Err(_) => assert!(!taken && bytes.is_empty()),
        }
        assert!(normaliser.books().iter().len() <= BOUNDS.max_symbols);
        for (_, book, _) in normaliser.books().iter() {
            for side in [Side::Bid, Side::Ask] {
                assert!(book.levels(side).len() <= BOUNDS.max_levels);
            }
        }
    }
}

/// Messages of every type that have a symbol, with zeros for the rest.
fn samples() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for letter in 0..=u8::MAX {
        let Some(kind) = IexMessageType::of(letter) else { continue };
        let mut message = vec![0; kind.length()];
        message[0] = letter;
        if let Some(symbol) = message.get_mut(10..18) {
            symbol.copy_from_slice(b"IBM     ");
            message[1] = 1;
        }
        if let Some(numbers) = message.get_mut(18..30) {
            numbers.copy_from_slice(&[100, 0, 0, 0, 0x10, 0x27, 0, 0, 0, 0, 0, 0]);
        }
        all.push(message);
    }
    all
}

/// Inputs to begin with, for [`segment`].
pub(crate) fn segment_seeds() -> Vec<(&'static str, Vec<u8>)> {
    let session = IexSession { protocol: MessageProtocol::DEEP_1_0, channel: 1, number: 7 };
    let mut data = vec![0; 1_000];
    let mut segment = SegmentBuilder::new(&mut data, session, 1, 0).unwrap();
    for message in samples() {
        segment.push(&message).unwrap();
    }
    let mut message = [0; SecurityEvent::LENGTH];
    SecurityEvent { event: b'C', symbol: text("IBM") }.encode(1, &mut message).unwrap();
    segment.push(&message).unwrap();
    let length = segment.finish(1_499_697_138_000_000_000);
    data.truncate(length);
    vec![("data", data), ("heartbeat", heartbeat(session, 9, 120, 1).to_vec())]
}

/// Inputs to begin with, for [`pieces`].
pub(crate) fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let pieces = samples().into_iter().flat_map(|message| [vec![message.len() as u8], message].concat());
    vec![("messages", pieces.collect())]
}
