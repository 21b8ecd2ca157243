//! The ring by length and by subscribers.

use std::sync::atomic::{AtomicU64, Ordering};

use tapeline_measure::pin;
use tapeline_perf::plot::Scale;
use tapeline_plant::{Publish, RingPublish};
use tapeline_ring::{Name, Options, Poll, Publisher, Start, Subscriber};

use crate::{Drawing, Line, Measuring};

/// Bytes of a turn, and messages at most.
const BYTES: u64 = 512 << 20;
const MESSAGES: u64 = 4_000_000;

/// What a message costs by its length.
pub(crate) fn lengths(measuring: &Measuring) -> anyhow::Result<Drawing> {
    let sizes = measuring.sizes(&[32, 64, 128, 256, 512, 1_500, 4_096, 16_384], 0);
    let mut line = Line::new("one subscriber");
    for length in &sizes {
        line.figures.push(
            (0..measuring.turns)
                .map(|_| measuring.pinned(|| pass(measuring, *length as usize, 1, std::hint::spin_loop)))
                .collect(),
        );
    }
    line.bend = "the copy of the bytes is what costs";
    Ok(Drawing {
        name: "growth-lengths",
        title: "The ring by length",
        x_title: "bytes of a message",
        y_title: "ns for each message",
        scale: Scale::Logarithmic,
        what: "One publisher and one subscriber on two cores; the publisher writes each message as a whole, the subscriber reads its first and last \
               byte, and spins when it finds nothing. The time until the subscriber has the last message.",
        sizes,
        lines: vec![line],
    })
}

/// What a message costs by the number of subscribers.
pub(crate) fn subscribers(measuring: &Measuring) -> anyhow::Result<Drawing> {
    let sizes = measuring.sizes(&[1, 2, 3, 4, 8], 0);
    let mut line = Line::new("messages of 64 bytes");
    for count in &sizes {
        line.figures.push(
            (0..measuring.turns)
                .map(|_| measuring.pinned(|| pass(measuring, 64, *count as usize, std::thread::yield_now)))
                .collect(),
        );
    }
    line.bend = "subscribers share a core and take turns";
    Ok(Drawing {
        name: "growth-subscribers",
        title: "The ring by subscribers",
        x_title: "subscribers",
        y_title: "ns for each message",
        scale: Scale::Logarithmic,
        what: "Each subscriber reads all messages, and lets other threads run when it finds nothing. The time until the last subscriber has the last message. \
               Where there are fewer cores than threads, this shows what the machine's scheduler costs, not what the ring does.",
        sizes,
        lines: vec![line],
    })
}

/// Nanoseconds of a message of this length that so many subscribers read, who wait by `idle` when they find nothing.
fn pass(measuring: &Measuring, length: usize, subscribers: usize, idle: fn()) -> f64 {
    let name = Name::new(&format!("bench-growth-{}", std::process::id())).unwrap();
    let options = Options { capacity: 4 << 20, max_frame: 32 << 10, ..Options::default() };
    let publisher = Publisher::open(&name, &options).unwrap();
    let count = (BYTES / length as u64).min(MESSAGES);
    let others = &measuring.cores[..measuring.cores.len().saturating_sub(1).max(1)];
    let done = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for number in 0..subscribers {
            let (name, done, core) = (&name, &done, others[number % others.len()]);
            scope.spawn(move || {
                let _ = pin(core);
                let mut subscriber = Subscriber::join(name, Start::Oldest).unwrap();
                let mut read = 0;
                loop {
                    match subscriber.next() {
                        Poll::Frame(frame) => {
                            std::hint::black_box((frame.bytes().first(), frame.bytes().last()));
                            read += 1;
                            if read == count {
                                done.fetch_add(1, Ordering::Release);
                            }
                        }
                        Poll::Empty => idle(),
                        _ => return,
                    }
                }
            });
        }
        let mut to = RingPublish::new(publisher, Box::new(|_, _| true));
        while to.ring().subscribers() < subscribers {
            std::thread::yield_now();
        }
        let ns = measuring.once(|| {
            for message in 0..count {
                to.publish(length, |room| {
                    room.fill(message as u8);
                    room.len()
                })
                .unwrap();
            }
            to.flush();
            while done.load(Ordering::Acquire) < subscribers as u64 {
                std::thread::yield_now();
            }
            count
        });
        to.close().unwrap();
        ns
    })
}
