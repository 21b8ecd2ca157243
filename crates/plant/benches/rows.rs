//! The throughput of the ticks of updates of rows, as kdb+ publishers send them, in million updates a second on one core.
//!
//! ```text
//! cargo bench -p tapeline-plant --bench rows -- [--core N] [--seconds S] [--repeats N] [--json]
//!     [--case publish/ROWS/trade] [--rounds N]
//! ```
//!
//! `publish` makes ticks of the rows of an update, each of one of 1,000 items with two fields and the row itself as source,
//! and writes them to memory in place of a ring. The harness describes the options and figures; its fields are rows here.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr)]

// The common harness of these benches.
#[path = "../../omm/benches/harness/mod.rs"]
mod harness;

use std::hint::black_box;

use harness::{Bench, VARIED};
use tapeline_measure::Nanos;
use tapeline_omm::{FieldListEncoder, Real, fid};
use tapeline_plant::rows::{Row, RowChannel, Update};
use tapeline_plant::{Items, Publish, Refused, Sequencer, Time};

/// The number of items.
const ITEMS: usize = 1_000;
/// The bytes of a row of time, symbol, price and size, as `tick.q` logs it.
const SOURCE: [u8; 57] = [0x55; 57];

fn main() {
    let mut bench = Bench::new("rows");
    for rows in [1, 100] {
        publish(&mut bench, rows);
    }
    bench.print();
}

/// The place of the last tick.
struct Memory(Vec<u8>);

impl Publish for Memory {
    #[inline]
    fn publish(&mut self, len: usize, fill: impl FnOnce(&mut [u8]) -> usize) -> Result<(), Refused> {
        black_box(fill(&mut self.0[..len]));
        Ok(())
    }
}

struct Still;

impl Time for Still {
    fn now(&self) -> Nanos {
        Nanos(7)
    }
}

fn publish(bench: &mut Bench, rows: usize) {
    let updates: Vec<Update> = (0..VARIED).map(|turn| update(turn, rows)).collect();
    let bytes = updates.iter().map(Update::bytes).sum::<usize>() as f64 / VARIED as f64;
    let mut channel = RowChannel::new(1);
    let mut to = Sequencer::new(1, Items::new(ITEMS), Memory(vec![0; 4_096]));
    bench.add(("publish", rows, "trade"), bytes, |place| {
        channel.publish(&updates[place % VARIED], &mut to, &Still).unwrap();
        to.published()
    });
}

fn update(turn: usize, rows: usize) -> Update {
    let mut update = Update::default();
    update.begin(Nanos(5));
    let mut room = [0; 64];
    for row in 0..rows {
        let number = turn * 31 + row * 7;
        let mut fields = FieldListEncoder::new(&mut room).unwrap();
        fields.real(fid::TRDPRC_1, Real::decimal(8_000 + number as i64 % 1_000, 2)).unwrap();
        fields.real(fid::TRDVOL_1, Real::integer(100 * (number as i64 % 40))).unwrap();
        let len = fields.finish();
        let name = format!("SYM{}.T", number % ITEMS);
        update.push(Row { name: &name, fields: &room[..len], source: &SOURCE }).unwrap();
    }
    update
}
