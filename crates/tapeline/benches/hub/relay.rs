//! A bare relay: the hub's ring, sockets and waiting, and none of its work. What is slower than this is the hub's own.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context;
use tapeline_measure::{Clock, pin};
use tapeline_plant::tick::Tick;
use tapeline_ring::{Bell, Name, Poll, Start, Subscriber};
use tapeline_wire::rssl::{ConnectionSettings, Event, Reactor, Sent};

/// As the hub has them, where bursts are short.
const BATCH: usize = 32;
const LONGEST_SLEEP: Duration = Duration::from_millis(10);
const OUTPUT_BUFFERS: u32 = 200;

/// Begins to send every tick's message to whoever connects, until the ring ends.
pub(crate) fn begin(
    ring: &Name,
    core: Option<usize>,
) -> anyhow::Result<(SocketAddr, JoinHandle<anyhow::Result<()>>)> {
    let mut reactor = Reactor::new(1)?;
    let settings =
        ConnectionSettings { guaranteed_output_buffers: OUTPUT_BUFFERS, ..ConnectionSettings::default() };
    let address = reactor.listen("127.0.0.1:0".parse()?, &Arc::new(settings))?;
    let (joined, is_joined) = sync_channel(1);
    let ring = ring.clone();
    let thread = std::thread::Builder::new().name("relay".to_owned()).spawn(move || {
        if let Some(core) = core {
            pin(core)?;
        }
        let (clock, bell) = (Clock::calibrate(), Bell::new());
        let mut subscriber = Subscriber::join(&ring, Start::Newest)?;
        let _ = joined.send(());
        let mut client = None;
        loop {
            let mut taken = 0;
            while taken < BATCH {
                let frame = match subscriber.next() {
                    Poll::Frame(frame) => frame,
                    Poll::Ended => return Ok(()),
                    _ => break,
                };
                taken += 1;
                let tick = Tick::parse(&frame)?;
                if let Some(mut sender) = client.and_then(|client| reactor.sender(client)) {
                    anyhow::ensure!(sender.send(tick.body) == Sent::Queued, "the relay's client is too slow");
                }
            }
            reactor.wait(Duration::ZERO)?;
            while let Some((id, event, _)) = reactor.next(clock.now()) {
                if let Event::Connected(_) = event {
                    client = Some(id);
                }
            }
            if taken == 0 {
                subscriber.wait_or(&bell, LONGEST_SLEEP);
            }
        }
    })?;
    is_joined.recv().context("the relay has ended before it began")?;
    Ok((address, thread))
}
