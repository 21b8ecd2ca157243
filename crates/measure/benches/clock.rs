//! The costs of reading, converting and recording, in nanoseconds each. The results are block means, because a
//! single reading is shorter than the clock's own step.

#![allow(clippy::print_stdout)]

use std::hint::black_box;

use tapeline_measure::{
    Clock, Nanos, Pacer, Recorder, Series, Ticks, monotonic_ns, pin, ticks, ticks_ordered,
};

const BLOCK: u64 = 1_000_000;
const BLOCKS: usize = 9;

fn main() {
    // `cargo test --benches` runs this too: once through is enough there.
    let blocks = if std::env::args().any(|argument| argument == "--bench") { BLOCKS } else { 1 };
    // Best effort: without the binding the bench still works.
    let _ = pin(tapeline_measure::cores()[0]);
    let mut clock = Clock::calibrate();
    println!("ns each: best and median of {blocks} blocks of {BLOCK}");
    let show = |name: &str, work: &mut dyn FnMut(u64)| {
        let mut blocks: Vec<f64> = (0..blocks).map(|_| block(&clock, work)).collect();
        blocks.sort_by(f64::total_cmp);
        println!("{name:<28} {:>7.2} {:>7.2}", blocks[0], blocks[blocks.len() / 2]);
    };
    show("empty loop", &mut |k| {
        black_box(k);
    });
    show("ticks", &mut |_| {
        black_box(ticks());
    });
    show("ticks_ordered", &mut |_| {
        black_box(ticks_ordered());
    });
    show("Clock::at", &mut |k| {
        black_box(clock.at(Ticks(black_box(k))));
    });
    show("Clock::now", &mut |_| {
        black_box(clock.now());
    });
    show("clock_gettime(MONOTONIC)", &mut |_| {
        black_box(monotonic_ns());
    });
    let mut recorder = Recorder::new();
    show("Recorder::record", &mut |k| {
        recorder.record(black_box((k.wrapping_mul(2_654_435_761) & 0xffff) as i64));
    });
    let mut series = Series::by_second(Nanos(0));
    show("Series::record", &mut |k| series.record(Nanos(k), black_box((k & 0xffff) as i64)));
    let pacer = Pacer::per_second(black_box(999_983), Nanos(0));
    show("Pacer::due", &mut |k| {
        black_box(pacer.due(black_box(k)));
    });
    show("Pacer::due_by", &mut |k| {
        black_box(pacer.due_by(Nanos(black_box(k))));
    });
    let start = ticks();
    for _ in 0..1_000 {
        black_box(clock.recalibrate());
    }
    println!("{:<28} {:>7.0}", "Clock::recalibrate", clock.ns_between(start, ticks()) as f64 / 1_000.0);
}

fn block(clock: &Clock, work: &mut dyn FnMut(u64)) -> f64 {
    let start = ticks_ordered();
    for k in 0..BLOCK {
        work(k);
    }
    clock.ns_between(start, ticks_ordered()) as f64 / BLOCK as f64
}
