//! Simulated messages in memory.

use tapeline_feed::itch::encode::LONGEST;
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
