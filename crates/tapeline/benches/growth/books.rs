//! The way from datagrams to ticks by symbols and orders.

use std::hint::black_box;

use tapeline_feed::Protocol;
use tapeline_feed::book::{Book, BookSettings, Books};
use tapeline_feed::itch::framing::{FileFraming, Frames};
use tapeline_feed::itch::{Decoder, ItchRecord};
use tapeline_feed::line::{ArbiterSettings, Line as FeedLine};
use tapeline_measure::Nanos;
use tapeline_perf::plot::Scale;
use tapeline_plant::{Channel, ChannelSettings, Items, Publish, PublishPolicy, Refused, Sequencer};

use crate::input::{Input, packed};
use crate::{Drawing, Line, Measuring};

/// Messages of a turn.
const MESSAGES: u64 = 1_000_000;
/// Orders on the books where their number stays.
const ORDERS: u32 = 500_000;
/// Symbols where their number stays.
const SYMBOLS: u16 = 8_000;

/// What a message costs by the number of symbols.
pub(crate) fn symbols(measuring: &Measuring) -> anyhow::Result<Drawing> {
    let sizes = measuring.sizes(&[10, 100, 1_000, 8_000, 50_000], 0);
    let (lines, _) = by_size(measuring, &sizes, |symbols| (symbols as u16, ORDERS));
    Ok(Drawing {
        name: "growth-symbols",
        title: "A feed by symbols",
        x_title: "symbols",
        y_title: "ns for each message",
        scale: Scale::Logarithmic,
        what: "ITCH of a simulated exchange with 500,000 orders on the books at the start. *Books*: decode, books, an event for each change of a best price. *Ticks*: \
               datagrams of up to 1,400 bytes, arbitration, decode, books, and the ticks of all changes, written into memory.",
        sizes,
        lines,
    })
}

/// What a message costs by the number of orders on the books.
pub(crate) fn orders(measuring: &Measuring) -> anyhow::Result<Drawing> {
    let begun = measuring.sizes(&[10_000, 100_000, 1_000_000, 3_000_000], 1);
    let (lines, sizes) = by_size(measuring, &begun, |orders| (SYMBOLS, orders as u32));
    Ok(Drawing {
        name: "growth-orders",
        title: "A feed by orders",
        x_title: "orders on the books",
        y_title: "ns for each message",
        scale: Scale::Logarithmic,
        what: "The same with 8,000 symbols. Orders come and go while the messages run: the size is the mean of their numbers before and after.",
        sizes,
        lines,
    })
}

/// Bytes of the books for each of so many orders of 500 symbols.
pub(crate) fn bytes_of_an_order(orders: u64) -> Vec<f64> {
    let input = Input::simulated(1, 500, orders as u32, 0);
    let mut books = Books::new(BookSettings { reserve_orders: 0, ..BookSettings::default() });
    decode(&input.before, &mut books);
    vec![books.bytes() as f64 / books.live_orders() as f64]
}

/// Both lines, and the orders on the books at each size.
fn by_size(measuring: &Measuring, sizes: &[u64], input: impl Fn(u64) -> (u16, u32)) -> (Vec<Line>, Vec<u64>) {
    let mut orders = Vec::new();
    let mut lines = ["books", "ticks"].map(Line::new);
    for size in sizes {
        let (symbols, live) = input(*size);
        let input = Input::simulated(1, symbols, live, MESSAGES);
        orders.push((u64::from(live) + input.live_orders as u64) / 2);
        let (before, next) = packed(&input.before, 1);
        let (packets, _) = packed(&input.file, next);
        let (mut of_books, mut of_ticks) = (Vec::new(), Vec::new());
        let mut bytes = 0;
        for _ in 0..measuring.turns {
            let mut books = Books::new(BookSettings::default());
            decode(&input.before, &mut books);
            of_books.push(measuring.once(|| {
                decode(&input.file, &mut books);
                MESSAGES
            }));
            bytes = books.bytes() as u64;
            let mut to = Sequencer::new(1, Items::new(100_000), Unread(vec![0; 64 << 10]));
            let mut channel = channel();
            feed(measuring, &before, &mut channel, &mut to);
            of_ticks.push(measuring.once(|| {
                feed(measuring, &packets, &mut channel, &mut to);
                MESSAGES
            }));
        }
        for (line, figures) in lines.iter_mut().zip([of_books, of_ticks]) {
            line.figures.push(figures);
            line.bytes.push(bytes);
            line.memory = "the books";
        }
    }
    lines[0].bend = "orders and levels in turn, of more than the caches hold";
    lines[1].bend = "orders, levels and items in turn, of more than the caches hold";
    (lines.into(), orders)
}

/// Decode and books alone, with an event for each change of a best price.
fn decode(file: &[u8], books: &mut Books) {
    let decoder = Decoder::new();
    let mut frames = Frames::with(file, FileFraming::Length);
    let mut records = [ItchRecord::default(); 32];
    loop {
        let filled = decoder.fill(&mut frames, &mut records);
        books.apply_all(&records[..filled], |books, _, change| {
            black_box(books.book(change.locate).map(Book::top).unwrap_or_default());
        });
        if filled < records.len() {
            return;
        }
    }
}

/// Ticks written into the same memory again and again.
struct Unread(Vec<u8>);

impl Publish for Unread {
    fn publish(&mut self, len: usize, fill: impl FnOnce(&mut [u8]) -> usize) -> Result<(), Refused> {
        black_box(fill(&mut self.0[..len]));
        Ok(())
    }
}

fn channel() -> Channel {
    Channel::new(ChannelSettings {
        number: 1,
        protocol: Protocol::ItchMoldUdp64,
        lines: 1,
        stale_after_ns: 0,
        midnight: Nanos(0),
        midnight_before: None,
        publish: PublishPolicy::Changes,
        arbitration: ArbiterSettings::default(),
        books: BookSettings::default(),
    })
}

fn feed(measuring: &Measuring, packets: &[u8], channel: &mut Channel, to: &mut Sequencer<Unread>) {
    for packet in Frames::with(packets, FileFraming::Length) {
        channel.datagram(FeedLine::A, packet, Nanos(1), &measuring.clock, to).unwrap();
    }
}
