//! Simulated messages in memory, and packets of them.

use tapeline_feed::itch::encode::LONGEST;
use tapeline_feed::itch::framing::{FileFraming, Frames};
use tapeline_feed::moldudp64::{DEFAULT_PACKET_BYTES, MoldSession, PacketBuilder, PacketRefused};
use tapeline_feed::simulate::{Exchange, SimulatedDay};

/// A stretch of a day.
pub(crate) struct Input {
    /// Everything up to the stretch: directory, and the orders that are on the books by then.
    pub(crate) before: Vec<u8>,
    /// The stretch itself: messages behind their lengths.
    pub(crate) file: Vec<u8>,
    /// Orders on the books and levels when it ends, and the sum over all best prices.
    pub(crate) live_orders: usize,
    pub(crate) levels: usize,
    pub(crate) checksum: u64,
}

impl Input {
    pub(crate) fn simulated(seed: u64, symbols: u16, live: u32, messages: u64) -> Self {
        let mut exchange = Exchange::new(SimulatedDay { seed, symbols, live_orders: live.saturating_mul(2) });
        // From half past nine on, a message a microsecond.
        let mut time = 34_200_000_000_000;
        let mut message = [0; LONGEST];
        let mut push = |out: &mut Vec<u8>, exchange: &mut Exchange, adds: bool| {
            time += 1_000;
            let length = if adds {
                exchange.next_addition(time, &mut message)
            } else {
                exchange.next(time, &mut message)
            };
            let length = length.expect("the day does not end");
            out.extend((length as u16).to_be_bytes());
            out.extend(&message[..length]);
        };
        let mut before = Vec::with_capacity(live as usize * 40);
        while exchange.live_orders() < live as usize {
            push(&mut before, &mut exchange, true);
        }
        let mut file = Vec::with_capacity(messages as usize * 33);
        for _ in 0..messages {
            push(&mut file, &mut exchange, false);
        }
        Self {
            before,
            file,
            live_orders: exchange.live_orders(),
            levels: exchange.levels(),
            checksum: exchange.checksum(),
        }
    }
}

/// The same messages in packets from this sequence on, one behind another, each behind its length; and the next sequence.
pub(crate) fn packed(file: &[u8], first: u64) -> (Vec<u8>, u64) {
    let session = MoldSession::new("BENCH");
    let mut out = Vec::with_capacity(file.len() + file.len() / 16);
    let mut buffer = [0; DEFAULT_PACKET_BYTES];
    let mut frames = Frames::with(file, FileFraming::Length).peekable();
    let mut sequence = first;
    while frames.peek().is_some() {
        let mut packet = PacketBuilder::new(&mut buffer, session, sequence).unwrap();
        while let Some(message) = frames.peek() {
            match packet.push(message) {
                Ok(()) => frames.next(),
                Err(PacketRefused::Full) => break,
                Err(other) => panic!("{other}"),
            };
        }
        sequence = packet.next_sequence();
        let length = packet.finish();
        out.extend((length as u16).to_be_bytes());
        out.extend(&buffer[..length]);
    }
    (out, sequence)
}
