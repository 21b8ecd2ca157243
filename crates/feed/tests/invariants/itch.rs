//! ITCH: the framing of files, the decoder, and books made of any messages.

use tapeline_feed::Protocol;
use tapeline_feed::book;
use tapeline_feed::itch::framing::{FileFraming, Frames, RunEnd};
use tapeline_feed::itch::{self, MessageKind, MessageType};
use tapeline_feed::normalise::Itch;
use tapeline_feed::simulate::{Exchange, SimulatedDay};
use tapeline_feed::symbols::{Filter, Symbols};
use tapeline_nanos::Nanos;

/// Bounds that a handful of messages reaches.
const BOUNDS: book::BookSettings =
    book::BookSettings { max_orders: 40, reserve_orders: 0, max_ladders: 2, max_far_levels: 6, queues: true };

/// The bytes as a file of messages, in either framing.
pub(crate) fn file(bytes: &[u8]) {
    for framing in [FileFraming::Length, FileFraming::Type] {
        let mut frames = Frames::with(bytes, framing);
        let mut normaliser = Itch::new(BOUNDS, Nanos(0));
        let symbols = Symbols::new(["TAPE", "Z*"]).unwrap();
        let mut filter = Protocol::ItchMoldUdp64.filter(symbols.clone());
        let mut taken = 0;
        for bytes in frames.by_ref() {
            taken += 2 + bytes.len();
            message(bytes);
            chosen(&mut filter, &symbols, bytes);
            applied(&mut normaliser, bytes);
        }
        let left = match frames.end() {
            RunEnd::Complete => 0,
            RunEnd::Session { after } => 2 + after,
            RunEnd::Incomplete { bytes } | RunEnd::Lost { bytes } => bytes,
            RunEnd::NotYet => panic!("it has ended"),
        };
        assert_eq!(taken + left, bytes.len());
        assert_eq!(frames.consumed() + frames.rest().len(), bytes.len());
    }
}

fn message(bytes: &[u8]) {
    match itch::decode(bytes) {
        Ok(message) => {
            let length = MessageType::of(bytes[0]).map_or(bytes.len(), MessageType::length);
            assert_eq!(message.kind(), MessageKind::from(bytes[0]));
            assert_eq!(message.bytes(), &bytes[..length]);
            assert_eq!(message.bytes().len() + message.extra_bytes(bytes), bytes.len());
            // Reads every field.
            assert!(!format!("{message:?}").is_empty());
        }
        Err(itch::MalformedItchMessage::Short { kind, length }) => {
            assert_eq!((MessageType::of(bytes[0]), length), (Some(kind), bytes.len()));
            assert!(length < kind.length());
        }
        Err(_) => assert!(bytes.is_empty()),
    }
}

/// What is passed over is counted, and a directory entry is passed over exactly if nobody asked for its stock.
fn chosen(filter: &mut Filter, symbols: &Symbols, bytes: &[u8]) {
    let before = filter.passed_over();
    let wanted = filter.wants(bytes);
    assert_eq!(filter.passed_over(), before + u64::from(!wanted));
    assert!(wanted || bytes.len() >= 3);
    if let Ok(message @ itch::Message::StockDirectory(entry)) = itch::decode(bytes) {
        let numbered = message.prefix().is_some_and(|prefix| prefix.locate != itch::Locate(0));
        assert_eq!(wanted, !numbered || symbols.contains(entry.stock().as_str()));
    }
}

fn applied(normaliser: &mut Itch, bytes: &[u8]) {
    let before = (normaliser.books().live_orders(), normaliser.counters().messages.clone());
    let tops =
        |normaliser: &Itch| -> Vec<_> { normaliser.books().iter().map(|(_, book)| book.top()).collect() };
    let tops_before = tops(normaliser);
    match normaliser.apply(bytes) {
        Ok(applied) => assert_eq!(applied.letter, bytes[0]),
        Err(_) => {
            assert_eq!(before, (normaliser.books().live_orders(), normaliser.counters().messages.clone()));
            assert_eq!(tops_before, tops(normaliser));
        }
    }
    assert!(normaliser.books().live_orders() <= BOUNDS.max_orders);
    // One entry for each locate at most, and each of them at most as deep as there are orders.
    for (_, book) in normaliser.books().iter() {
        for side in [itch::Side::Bid, itch::Side::Ask] {
            assert!(book.levels(side).len() <= BOUNDS.max_orders);
        }
    }
}

/// Inputs to begin with.
pub(crate) fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let day = |by_type: bool, messages| {
        let mut exchange = Exchange::new(SimulatedDay { symbols: 2, ..SimulatedDay::default() });
        let mut file = Vec::new();
        for ns in 0..messages {
            let mut message = [0; itch::encode::LONGEST];
            let length = exchange.next(34_200_000_000_000 + ns, &mut message).unwrap();
            file.extend(if by_type { [0, 0] } else { (length as u16).to_be_bytes() });
            file.extend(&message[..length]);
        }
        file
    };
    vec![("day", day(false, 60)), ("day-by-type", day(true, 30)), ("end", vec![0, 1, b'S', 0, 0])]
}
