//! The ring's speed in both framings, compared with the machine's limits: `cargo bench -p tapeline-ring [-- --json]
//! [-- --short]`.
//!
//! One publisher and one subscriber, each pinned to a core. Latency is the time from before the claim until the
//! subscriber has the frame, for 32 bytes, on a fixed schedule. The limit shown with it is the same without a ring:
//! a stamp stored in a line, until another core sees it. Both are measured in turns, because virtual cores move.
//!
//! For throughput, every frame is visible on its own and the subscriber copies it out. Throughput has two regimes:
//! *contended*, where the subscriber has caught up and pulls each line before it is complete, and *backlog*, where
//! it is behind. The same program flips between them, so both are shown: a publisher that reads the clock for each
//! frame is the slower side and always contended; one at full speed is mostly not.
//!
//! The rows *alone* are the work of one thread without another: the cost of a change to the hot paths shows there
//! first, because a publisher that is slower than its subscriber falls into the contended regime and seems far
//! slower than it is.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use tapeline_measure::{Clock, Pacer, Recorder, Ticks, Waiting, cores, figures, pin, ticks, ticks_ordered};
use tapeline_ring::{Framing, Name, Options, Poll, Publisher, Start, Subscriber};

/// Bytes of a frame.
const THROUGHPUT: [usize; 3] = [32, 100, 1500];
const RATES: [u64; 3] = [250_000, 1_000_000, 10_000_000];
const FRAMINGS: [Framing; 2] = [Framing::Packed, Framing::Lines];
/// Bytes of the rings that are compared at full speed.
const CAPACITIES: [usize; 4] = [256 << 10, 1 << 20, 8 << 20, 64 << 20];
const TURNS: usize = 5;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    // `cargo test --benches` runs this without `--bench`: only show that it works.
    let short = has("--short") || !has("--bench");
    let scale = if short { 100 } else { 1 };
    let cores = cores();
    let (near, far) = (cores[0], cores[cores.len() - 1]);
    let clock = Clock::calibrate();
    let mut rows = Vec::new();
    let ring = |framing| Options { framing, ..Options::default() };
    for rate in RATES {
        let messages = rate / 5 / scale;
        let mut turns: [Vec<Recorder>; 3] = Default::default();
        for _ in 0..TURNS {
            turns[0].push(visibility(&clock, rate, messages, (near, far)));
            for (framing, turns) in FRAMINGS.into_iter().zip(&mut turns[1..]) {
                turns.push(latency(&clock, &ring(framing), rate, messages, (near, far)));
            }
        }
        for (what, turns) in ["store to load", "packed, 32 B", "lines, 32 B"].into_iter().zip(&turns) {
            rows.push(latency_row(what, rate, turns));
        }
    }
    for framing in FRAMINGS {
        for len in [32, 100] {
            let messages = 20_000_000 / scale;
            let [publishing, reading] = alone(&clock, &ring(framing), len, messages, near);
            rows.push(throughput_row(&format!("{framing}, {len} B, publishing alone"), len, &publishing));
            rows.push(throughput_row(&format!("{framing}, {len} B, reading alone"), len, &reading));
        }
    }
    let turns_of = |options: &Options, len: usize, pace| {
        let messages = match pace {
            Pace::Contended => 4_000_000,
            Pace::Full => 800_000_000 / (len as u64 + 8),
        };
        let one = || throughput(&clock, options, len, messages / scale, pace, (near, far));
        sorted((0..TURNS).map(|_| one()).collect())
    };
    for len in THROUGHPUT {
        for framing in FRAMINGS {
            for (pace, regime) in [(Pace::Contended, "stamped (contended)"), (Pace::Full, "full speed")] {
                let rates = turns_of(&ring(framing), len, pace);
                rows.push(throughput_row(&format!("{framing}, {len} B, {regime}"), len, &rates));
            }
        }
    }
    for len in [32, 1500] {
        for capacity in CAPACITIES {
            let rates = turns_of(&Options { capacity, ..Options::default() }, len, Pace::Full);
            let what = format!("packed, {len} B, ring of {} KiB", capacity >> 10);
            rows.push(throughput_row(&what, len, &rates));
        }
    }
    print(&rows, has("--json"), (near, far));
}

/// The pace of the publisher in a throughput run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pace {
    /// Reads the clock for each frame, and so is slower than the subscriber.
    Contended,
    /// As fast as the ring has space.
    Full,
}

struct Row {
    what: String,
    cells: Vec<(&'static str, String, f64)>,
}

fn latency_row(what: &str, rate: u64, turns: &[Recorder]) -> Row {
    let cells = [("min", 0.0), ("p1", 0.01), ("p50", 0.5), ("p90", 0.9), ("p99", 0.99)]
        .into_iter()
        .map(|(title, quantile)| {
            let mut values: Vec<u64> = turns.iter().filter_map(|turn| turn.value_at(quantile)).collect();
            values.sort_unstable();
            let median = values.get(values.len() / 2).copied().unwrap_or(0);
            (title, figures::duration(median), median as f64)
        })
        .collect();
    Row { what: format!("{what}, {}/s", figures::thousands(rate)), cells }
}

fn throughput_row(what: &str, len: usize, rates: &[f64]) -> Row {
    let median = rates[rates.len() / 2];
    let cell = |title, value: f64, unit: &str| (title, figures::quantity(value, unit, false), value);
    Row {
        what: what.to_owned(),
        cells: vec![
            cell("median", median, "msg/s"),
            cell("least", rates[0], "msg/s"),
            cell("most", rates[rates.len() - 1], "msg/s"),
            cell("bytes", median * len as f64, "B/s"),
        ],
    }
}

fn sorted(mut rates: Vec<f64>) -> Vec<f64> {
    rates.sort_by(f64::total_cmp);
    rates
}

#[expect(clippy::print_stdout, reason = "the bench's result")]
fn print(rows: &[Row], json: bool, (near, far): (usize, usize)) {
    if json {
        let rows: Vec<String> = rows
            .iter()
            .map(|row| {
                let cells: Vec<String> =
                    row.cells.iter().map(|(title, _, value)| format!("\"{title}\":{value:.1}")).collect();
                format!("{{\"what\":\"{}\",{}}}", row.what, cells.join(","))
            })
            .collect();
        println!("{{\"cores\":[{near},{far}],\"turns\":{TURNS},\"rows\":[{}]}}", rows.join(","));
        return;
    }
    println!("cores {near} and {far}, medians of {TURNS} turns, rings of 1 MiB unless said");
    for row in rows {
        let cells: Vec<String> =
            row.cells.iter().map(|(title, text, _)| format!("{title} {text:>12}")).collect();
        println!("{:<36} {}", row.what, cells.join("  "));
    }
}

/// The machine's limit: the time from a stamp's store by one core until another core has it.
fn visibility(clock: &Clock, rate: u64, messages: u64, (near, far): (usize, usize)) -> Recorder {
    #[repr(align(128))]
    struct Line(AtomicU64);
    let line = Line(AtomicU64::new(0));
    let (line, ready) = (&line, &AtomicBool::new(false));
    thread::scope(|scope| {
        let reader = scope.spawn(move || {
            pin_or_tell(far);
            let mut recorder = Recorder::new();
            let mut seen = 0;
            ready.store(true, Ordering::Release);
            // The last stamp is the highest possible one.
            while seen != u64::MAX {
                let stamp = line.0.load(Ordering::Acquire);
                if stamp != seen {
                    let now = ticks_ordered();
                    if stamp != u64::MAX {
                        recorder.record(clock.ns_between(Ticks(stamp), now));
                    }
                    seen = stamp;
                }
            }
            recorder
        });
        pin_or_tell(near);
        while !ready.load(Ordering::Acquire) {
            thread::yield_now();
        }
        paced(clock, rate, messages, || line.0.store(ticks().0, Ordering::Release));
        line.0.store(u64::MAX, Ordering::Release);
        reader.join().unwrap_or_default()
    })
}

/// The ring's latency: the time from a stamp in a frame of 32 bytes until the subscriber has it.
fn latency(
    clock: &Clock,
    options: &Options,
    rate: u64,
    messages: u64,
    (near, far): (usize, usize),
) -> Recorder {
    let (mut publisher, mut subscriber) = pair(options);
    let ready = &AtomicBool::new(false);
    thread::scope(|scope| {
        let reader = scope.spawn(move || {
            pin_or_tell(far);
            let mut recorder = Recorder::new();
            ready.store(true, Ordering::Release);
            loop {
                match subscriber.next() {
                    Poll::Frame(frame) => {
                        let now = ticks_ordered();
                        let stamp = frame.first_chunk().map_or(0, |stamp| u64::from_le_bytes(*stamp));
                        recorder.record(clock.ns_between(Ticks(stamp), now));
                    }
                    Poll::Empty => {}
                    _ => return recorder,
                }
            }
        });
        pin_or_tell(near);
        while !ready.load(Ordering::Acquire) {
            thread::yield_now();
        }
        paced(clock, rate, messages, || {
            let stamp = ticks().0;
            if let Ok(mut claim) = publisher.claim(32) {
                for (place, word) in claim.as_chunks_mut::<8>().0.iter_mut().zip([stamp, 1, 2, 3]) {
                    *place = word.to_le_bytes();
                }
                claim.commit();
            }
        });
        drop(publisher);
        reader.join().unwrap_or_default()
    })
}

/// Messages per second, each visible on its own and copied out.
fn throughput(
    clock: &Clock,
    options: &Options,
    len: usize,
    messages: u64,
    pace: Pace,
    (near, far): (usize, usize),
) -> f64 {
    let (mut publisher, mut subscriber) = pair(options);
    let ready = &AtomicBool::new(false);
    thread::scope(|scope| {
        let reader = scope.spawn(move || {
            pin_or_tell(far);
            let mut copy = [0; 2048];
            let (mut frames, mut sum) = (0u64, 0u64);
            ready.store(true, Ordering::Release);
            loop {
                match subscriber.next() {
                    Poll::Frame(frame) => {
                        let copied = frame.copy_to(&mut copy);
                        black_box(&copy[..copied]);
                        sum = sum.wrapping_add(u64::from_le_bytes(*copy.first_chunk().unwrap_or(&[0; 8])));
                        frames += 1;
                    }
                    Poll::Empty => {}
                    _ => return (frames, sum),
                }
            }
        });
        pin_or_tell(near);
        let len = black_box(len);
        let mut message = vec![7u8; len];
        while !ready.load(Ordering::Acquire) {
            thread::yield_now();
        }
        let start = ticks_ordered();
        for counter in 0..messages {
            if pace == Pace::Contended {
                black_box(ticks());
            }
            message[..8].copy_from_slice(&counter.to_le_bytes());
            while publisher.publish(&message).is_err() {
                std::hint::spin_loop();
            }
        }
        drop(publisher);
        let (frames, sum) = reader.join().unwrap_or_default();
        let ns = clock.ns_between(start, ticks_ordered());
        assert_eq!((frames, sum), (messages, (0..messages).fold(0, u64::wrapping_add)), "nothing is lost");
        messages as f64 * 1e9 / ns as f64
    })
}

fn paced(clock: &Clock, rate: u64, messages: u64, mut send: impl FnMut()) {
    let pacer = Pacer::per_second(rate, clock.now() + 1_000_000);
    for message in 0..messages {
        pacer.wait(clock, pacer.due(message), Waiting::Spin);
        send();
    }
}

/// Messages per second that one thread publishes into a ring without subscribers, and that it reads from a full
/// ring.
fn alone(clock: &Clock, options: &Options, len: usize, messages: u64, core: usize) -> [Vec<f64>; 2] {
    pin_or_tell(core);
    let message = black_box(vec![7u8; len]);
    let per_second = |messages: u64, ns: i64| messages as f64 * 1e9 / ns.max(1) as f64;
    let mut rates = [Vec::new(), Vec::new()];
    for _ in 0..TURNS {
        let (mut publisher, mut subscriber) = pair(options);
        let (mut read, mut reading_ns) = (0, 0);
        while read < messages {
            let mut filled = 0;
            while publisher.publish(&message).is_ok() {
                filled += 1;
            }
            let mut copy = [0; 2048];
            let start = ticks_ordered();
            while let Poll::Frame(frame) = subscriber.next() {
                let copied = frame.copy_to(&mut copy);
                black_box(&copy[..copied]);
            }
            reading_ns += clock.ns_between(start, ticks_ordered());
            read += filled;
        }
        drop(subscriber);
        let start = ticks_ordered();
        for _ in 0..messages {
            black_box(publisher.publish(&message).is_ok());
        }
        rates[0].push(per_second(messages, clock.ns_between(start, ticks_ordered())));
        rates[1].push(per_second(read, reading_ns));
    }
    rates.map(sorted)
}

fn pair(options: &Options) -> (Publisher, Subscriber) {
    let name = Name::new(&format!("bench-{}", std::process::id())).expect("a plain name");
    let publisher = Publisher::open(&name, options).expect("64 MiB of shared memory");
    let subscriber = Subscriber::join(&name, Start::Newest).expect("the ring was just made");
    (publisher, subscriber)
}

#[expect(clippy::print_stderr, reason = "what makes the result doubtful is said")]
fn pin_or_tell(core: usize) {
    if let Err(error) = pin(core) {
        eprintln!("not pinned: {error}");
    }
}
