//! Datagrams per second over loopback, by size and by batch.
//!
//! `send` and `receive` alternate on one pinned core: the sender fills the receiver's kernel buffer, then the
//! receiver drains it, so each is timed alone (over loopback the send includes the kernel's delivery to the
//! socket). `both` runs one pinned thread each, as a feed and a plant do, at full speed, and reports the
//! kernel's drops. Bounded by counts; about five seconds.
#![allow(clippy::print_stdout, reason = "a bench prints its table")]

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tapeline_measure::{cores, monotonic_ns, pin};
use tapeline_wire::Error;
use tapeline_wire::udp::{Batch, ReceiveOptions, SendOptions, UdpReceiver, UdpSender};

/// Datagrams per `send` and `receive` figure.
const COUNT: usize = 200_000;
/// Datagrams per `both` figure.
const COUNT_BOTH: usize = 400_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // `cargo test --benches` also runs this, as a check: a hundredth is enough.
    let share = if std::env::args().any(|argument| argument == "--bench") { 1 } else { 100 };
    let cores = cores();
    let (first, last) = (cores[0], cores[cores.len() - 1]);
    pin(first)?;

    println!("UDP over loopback, million datagrams/s; cores {first} and {last}");
    println!("{:>6} {:>12} {:>8} {:>8}", "bytes", "batch", "send", "receive");
    for bytes in [64, 1400] {
        for batch in [1, 8, 64, 256] {
            let (send, receive) = in_turn(bytes, batch, COUNT / share)?;
            println!("{bytes:>6} {batch:>12} {send:>8.3} {receive:>8.3}");
        }
        // As many as fit into the 65,507 bytes that the kernel accepts at once.
        let segments = (65_507 / bytes).min(64);
        let send = segmented(bytes, segments, COUNT / share)?;
        println!("{bytes:>6} {:>12} {send:>8.3} {:>8}", format!("{segments} segments"), "");
    }
    println!("{:>6} {:>12} {:>8} {:>8}", "bytes", "batch", "both", "dropped");
    for bytes in [64, 1400] {
        let (rate, dropped) = both(bytes, 64, COUNT_BOTH / share, first, last)?;
        println!("{bytes:>6} {:>12} {rate:>8.3} {:>7.2}%", 64, dropped * 100.0);
    }
    Ok(())
}

fn pair() -> Result<(UdpReceiver, UdpSender), Error> {
    let receiver = UdpReceiver::open(&ReceiveOptions {
        receive_buffer: 64 << 20,
        ..ReceiveOptions::new(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))
    })?;
    let sender = UdpSender::open(&SendOptions::new(receiver.local_address()))?;
    Ok((receiver, sender))
}

/// Returns the number of datagrams that certainly fit into the receiver's buffer: the kernel charges under 4
/// KiB for one of up to 1,400 bytes.
fn room(receiver: &UdpReceiver) -> usize {
    receiver.receive_buffer().got * 2 / 4096
}

fn in_turn(bytes: usize, batch: usize, count: usize) -> Result<(f64, f64), Error> {
    let (mut receiver, mut sender) = pair()?;
    let datagrams = vec![vec![7u8; bytes]; batch];
    let mut into = Batch::new(batch, 2048);
    let a_round = (room(&receiver) / batch).max(1);
    let (mut moved, mut sending, mut receiving) = (0, 0, 0);
    while moved < count {
        let start = monotonic_ns();
        let mut sent = 0;
        for _ in 0..a_round {
            sent += if batch == 1 {
                sender.send(&datagrams[0])?.count
            } else {
                sender.send_many(&datagrams)?.count
            };
        }
        let full = monotonic_ns();
        let mut received = 0;
        while received < sent {
            match receiver.receive(&mut into)? {
                0 if receiver.ask_kernel_drops() > 0 => break,
                taken => received += taken,
            }
        }
        receiving += monotonic_ns() - full;
        sending += full - start;
        moved += sent;
    }
    assert_eq!(receiver.ask_kernel_drops(), 0, "the buffer was filled beyond its room");
    Ok((millions(moved, sending), millions(moved, receiving)))
}

fn segmented(bytes: usize, segments: usize, count: usize) -> Result<f64, Error> {
    let (mut receiver, mut sender) = pair()?;
    let block = vec![7u8; bytes * segments];
    let mut into = Batch::new(256, 2048);
    let a_round = (room(&receiver) / segments).max(1);
    let (mut moved, mut sending) = (0, 0);
    while moved < count {
        let start = monotonic_ns();
        for _ in 0..a_round {
            moved += sender.send_segmented(&block, bytes as u16)?.count;
        }
        sending += monotonic_ns() - start;
        while receiver.receive(&mut into)? > 0 {}
    }
    Ok(millions(moved, sending))
}

fn both(
    bytes: usize,
    batch: usize,
    count: usize,
    first: usize,
    last: usize,
) -> Result<(f64, f64), Box<dyn std::error::Error>> {
    let (mut receiver, mut sender) = pair()?;
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let sending = scope.spawn(|| -> Result<usize, String> {
            pin(last).map_err(|e| e.to_string())?;
            let datagrams = vec![vec![7u8; bytes]; batch];
            let mut sent = 0;
            while sent < count {
                sent += sender.send_many(&datagrams).map_err(|e| e.to_string())?.count;
            }
            // Release: a thread that sees the flag also sees the preceding sends.
            done.store(true, Ordering::Release);
            Ok(sent)
        });
        pin(first)?;
        let mut into = Batch::new(batch, 2048);
        let start = monotonic_ns();
        let mut received = 0;
        loop {
            // Acquire, and read before the receive: nothing can arrive after an empty receive that follows it.
            let over = done.load(Ordering::Acquire) || sending.is_finished();
            match receiver.receive(&mut into)? {
                0 if over => break,
                0 => _ = receiver.wait(Duration::from_millis(10)),
                taken => received += taken,
            }
        }
        let elapsed = monotonic_ns() - start;
        let sent = sending.join().map_err(|_| "the sender's thread panicked")??;
        Ok((millions(received, elapsed), (sent - received.min(sent)) as f64 / sent as f64))
    })
}

fn millions(count: usize, ns: u64) -> f64 {
    count as f64 * 1e3 / ns.max(1) as f64
}
