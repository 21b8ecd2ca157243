//! The cost of a pool per datagram, by kind of pool, without the kernel's part: `put`, `deliver`, `take`.
//!
//! `one thread` does all three in turn: the instructions that must be executed. `two threads` has a thread at
//! each end, as a plant has: the cost when two cores share the same cache lines. The kinds take turns, so
//! that the ratios are from one run. Bounded by counts; about three seconds.
#![allow(clippy::print_stdout, reason = "a bench prints its table")]

use std::thread;

use tapeline_measure::{cores, monotonic_ns, pin};
use tapeline_wire::pool::{self, Intake, Outlet, PoolKind, PoolSettings, QueuePoll};

const KINDS: [(&str, PoolKind); 3] =
    [("spsc", PoolKind::Spsc), ("malloc", PoolKind::Heap), ("list-lock", PoolKind::List)];
const TURNS: usize = 7;
/// Datagrams per turn.
const COUNT: usize = 300_000;
const SLOTS: usize = 16_384;
/// Datagrams per `deliver`, as per system call.
const BATCH: usize = 64;
/// A short message in its packet.
const DATAGRAM: [u8; 57] = [7; 57];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // `cargo test --benches` also runs this, as a check: a hundredth is enough.
    let share = if std::env::args().any(|argument| argument == "--bench") { 1 } else { 100 };
    let cores = cores();
    let (first, last) = (cores[0], cores[cores.len() - 1]);
    println!(
        "ns a datagram through a pool; median of {TURNS} turns (least to most); cores {first} and {last}"
    );
    println!("{:>10} {:>28} {:>28}", "pool", "one thread", "two threads");
    let mut found = [const { (Vec::new(), Vec::new()) }; KINDS.len()];
    for _ in 0..TURNS {
        for ((_, kind), (one, two)) in KINDS.iter().zip(&mut found) {
            let settings =
                PoolSettings { kind: *kind, slots: SLOTS, batch: BATCH, ..PoolSettings::default() };
            let (intake, outlet) = pool::open(&settings)?;
            one.push(alone(intake, outlet, COUNT / share));
            let (intake, outlet) = pool::open(&settings)?;
            two.push(both(intake, outlet, COUNT / share, first, last));
        }
    }
    let spsc = [median(&mut found[0].0), median(&mut found[0].1)];
    for ((name, _), (one, two)) in KINDS.iter().zip(&mut found) {
        println!("{name:>10} {:>28} {:>28}", shown(one, spsc[0]), shown(two, spsc[1]));
    }
    Ok(())
}

fn alone(mut intake: Intake, mut outlet: Outlet, count: usize) -> f64 {
    let begun = monotonic_ns();
    let mut done = 0;
    while done < count {
        for _ in 0..BATCH {
            let _ = intake.put(&DATAGRAM, None, 0);
        }
        let _ = intake.deliver();
        while let QueuePoll::Ready(datagrams) = outlet.take() {
            done += datagrams.len();
        }
    }
    each(begun, done)
}

fn both(mut intake: Intake, mut outlet: Outlet, count: usize, first: usize, last: usize) -> f64 {
    thread::scope(|scope| {
        scope.spawn(move || {
            // Best effort: the bench also works on an unpinned thread.
            let _ = pin(last);
            let mut put = 0;
            while put < count {
                for _ in 0..BATCH {
                    put += intake.put(&DATAGRAM, None, 0).count;
                }
                if intake.deliver() == Ok(0) {
                    thread::yield_now();
                }
            }
        });
        let taking = scope.spawn(move || {
            let _ = pin(first);
            let (mut begun, mut done) = (0, 0);
            loop {
                match outlet.take() {
                    QueuePoll::Ready(datagrams) => {
                        if done == 0 {
                            begun = monotonic_ns();
                        }
                        done += datagrams.len();
                    }
                    QueuePoll::Empty => thread::yield_now(),
                    QueuePoll::Ended => return each(begun, done),
                }
            }
        });
        taking.join().unwrap_or(f64::NAN)
    })
}

fn each(begun: u64, count: usize) -> f64 {
    (monotonic_ns() - begun) as f64 / count.max(1) as f64
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn shown(values: &mut [f64], spsc: f64) -> String {
    let median = median(values);
    format!("{median:.1} ({:.1} to {:.1}), ×{:.2}", values[0], values[values.len() - 1], median / spsc)
}
