//! Books of all symbols, with an event at each change of a best price or size.

use std::hint::black_box;

use tapeline_feed::book::{Book, BookSettings, Books, Change, Quote, Top};
use tapeline_feed::itch::framing::{FileFraming, Frames};
use tapeline_feed::itch::{Decoder, ItchRecord, Locate};
use tapeline_feed::simulate::checksum;
use tapeline_measure::{Clock, Recorder, ticks_ordered};

use crate::fields::BATCH;
use crate::input::Input;

/// Books as they are when the stretch begins.
pub(crate) fn opened(input: &Input, queues: bool) -> Books {
    let mut books = Books::new(BookSettings { queues, ..BookSettings::default() });
    batched(&input.before, &mut books, Decoder::new());
    books
}

/// What a subscriber of best prices would be handed.
struct Events {
    ring: [(Locate, Top); 256],
    count: u64,
}

impl Events {
    fn new() -> Self {
        Self { ring: [(Locate(0), Top::default()); 256], count: 0 }
    }

    #[inline(always)]
    fn event(&mut self, books: &Books, change: &Change) {
        // Written in any case, and overwritten by the next one where there is none: every third message changes a best price,
        // too many and too few for a jump.
        let top = books.book(change.locate).map(Book::top).unwrap_or_default();
        self.ring[(self.count % 256) as usize] = (change.locate, top);
        self.count += u64::from(change.is_quote());
    }

    fn finish(self) -> u64 {
        black_box(&self.ring);
        self.count
    }
}

/// A datagram's messages at once; gives the number of events.
#[inline(never)]
pub(crate) fn batched(file: &[u8], books: &mut Books, decoder: Decoder) -> u64 {
    let mut frames = Frames::with(file, FileFraming::Length);
    let mut records = [ItchRecord::default(); BATCH];
    let mut events = Events::new();
    loop {
        let filled = decoder.fill(&mut frames, &mut records);
        books.apply_all(&records[..filled], |books, _, change| events.event(books, &change));
        if filled < BATCH {
            return events.finish();
        }
    }
}

/// One message after another.
#[inline(never)]
pub(crate) fn one_by_one(file: &[u8], books: &mut Books) -> u64 {
    let decoder = Decoder::new();
    let mut events = Events::new();
    for message in Frames::with(file, FileFraming::Length) {
        let change = books.apply_record(&decoder.record(message));
        events.event(books, &change);
    }
    events.finish()
}

/// Time that each message takes alone, from its bytes to its event, in ns: with it the time of two stamps and nothing.
pub(crate) fn alone(file: &[u8], books: &mut Books, clock: &Clock) -> (Recorder, Recorder) {
    let decoder = Decoder::new();
    let mut events = Events::new();
    let (mut times, mut nothing) = (Recorder::new(), Recorder::new());
    for message in Frames::with(file, FileFraming::Length) {
        let start = ticks_ordered();
        let change = books.apply_record(&decoder.record(message));
        events.event(books, &change);
        let end = ticks_ordered();
        times.record(clock.ns_between(start, end) as i64);
        let start = ticks_ordered();
        nothing.record(clock.ns_between(start, ticks_ordered()) as i64);
    }
    black_box(events.finish());
    (times, nothing)
}

/// The books agree with the exchange's own.
pub(crate) fn check(books: &Books, input: &Input, symbols: u16) {
    let sum = checksum((1..=symbols).map(|locate| {
        let top = books.book(Locate(locate)).map(Book::top).unwrap_or_default();
        let plain = |quote: Quote| (quote.price.0, quote.shares);
        (top.bid.map(plain), top.ask.map(plain))
    }));
    assert_eq!(sum, input.checksum, "best prices of all symbols");
    assert_eq!(books.live_orders(), input.live_orders);
    assert_eq!(books.counters().unknown_reference.total(), 0);
}
