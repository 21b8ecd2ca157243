//! The floor under the path through a plant: the same sockets, ring and threads, and nothing between them.
//!
//! The relay receives a feed's datagrams as a plant does, and passes each message on as a tick whose body is the
//! message. It has no arbiter but the feed's sequence, no decoder, no books, no messages for clients. What a
//! subscriber measures behind it are the socket, the ring and the wake-ups.

use std::net::SocketAddrV4;
use std::time::Duration;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use tapeline_console::failure::of_socket;
use tapeline_console::stop::Stop;
use tapeline_feed::moldudp64::{self, MoldPacket};
use tapeline_measure::{Clock, Nanos};
use tapeline_plant::tick::{Flags, Kind};
use tapeline_plant::{Items, Origin, Publish, RingPublish, Sequencer, Stamps};
use tapeline_ring::{Name, Options, Publisher};
use tapeline_wire::udp::{Batch, ReceiveOptions, UdpReceiver, wait_any};

/// Datagrams in one receive call, as in a plant.
const BATCH: usize = 64;
/// The longest datagram that is received whole.
const SLOT_BYTES: usize = tapeline_wire::pool::SLOT_BYTES;
/// The longest sleep, so that a stop is noticed.
const LONGEST_SLEEP: Duration = Duration::from_millis(5);
/// After this many datagrams of a receive call, subscribers that sleep are woken, as in a plant.
const WAKE_EVERY: usize = 8;

/// The settings of a relay.
#[derive(Clone, Debug)]
pub struct BareRelay {
    /// The feed's lines: MoldUDP64 groups on the loopback interface.
    pub lines: Vec<SocketAddrV4>,
    /// The ring's name and its capacity in bytes.
    pub ring: (Name, usize),
    /// `true` to poll without sleeping.
    pub spins: bool,
    /// The core to run on; `None` lets the kernel choose.
    pub core: Option<usize>,
}

/// What a relay passed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RelayReport {
    /// Messages passed on.
    pub messages: u64,
    /// Messages that had come on no line when a later one came, or the end of the session: the relay waits for none.
    pub missing: u64,
}

impl BareRelay {
    /// Relays until the feed ends its session, or a stop is requested. `is_ready` is called when the ring exists and
    /// the lines are heard.
    ///
    /// # Errors
    /// A line or the ring cannot be opened, or fails.
    pub fn run(
        &self,
        stop: &Stop,
        is_ready: impl FnOnce() -> anyhow::Result<()>,
    ) -> anyhow::Result<RelayReport> {
        if let Some(core) = self.core {
            tapeline_measure::pin(core)?;
        }
        let open = |line: &SocketAddrV4| {
            UdpReceiver::open(&ReceiveOptions {
                interface: "127.0.0.1".to_owned(),
                receive_buffer: 16 << 20,
                ..ReceiveOptions::new(*line)
            })
            .map_err(of_socket)
        };
        let mut receivers = self.lines.iter().map(open).collect::<anyhow::Result<Vec<_>>>()?;
        let (name, capacity) = &self.ring;
        let options = Options { capacity: *capacity, wake_on_commit: false, ..Options::default() };
        let ring = Publisher::open(name, &options).context("cannot publish the relay's ring")?;
        let stopped = stop.clone();
        let publish = RingPublish::new(ring, Box::new(move |_, _| !stopped.requested()));
        let mut passing = Passing {
            to: Sequencer::new(0, Items::new(1), publish),
            clock: Clock::calibrate(),
            next: 1,
            is_over: false,
            report: RelayReport::default(),
        };
        is_ready()?;
        let mut batch = Batch::new(BATCH, SLOT_BYTES);
        while !passing.is_over && !stop.requested() {
            let mut taken = 0;
            for receiver in &mut receivers {
                let count = receiver.receive(&mut batch).map_err(of_socket)?;
                taken += count;
                for (datagram, left) in batch.iter().zip((0..count).rev()) {
                    let wire = datagram.received.unwrap_or_else(|| passing.clock.now());
                    passing.datagram(datagram.bytes, wire)?;
                    if left % WAKE_EVERY == 0 {
                        passing.to.publisher().flush();
                    }
                }
            }
            if taken == 0 && !self.spins {
                wait_any(&receivers, LONGEST_SLEEP);
            }
        }
        let report = passing.report;
        passing.to.into_publisher().close()?;
        Ok(report)
    }
}

/// The running relay.
struct Passing {
    to: Sequencer<RingPublish>,
    clock: Clock,
    /// The sequence of the next message.
    next: u64,
    /// The session has ended: each line says so.
    is_over: bool,
    report: RelayReport,
}

impl Passing {
    /// Passes on what is new in a datagram.
    fn datagram(&mut self, bytes: &[u8], wire: Nanos) -> anyhow::Result<()> {
        match moldudp64::parse(bytes) {
            Ok(MoldPacket::Data(data)) if !self.is_over => {
                self.to.publisher().hold();
                for (sequence, message) in data.messages() {
                    if sequence >= self.next {
                        self.pass(Kind::Update, Flags::default(), (sequence, message), wire)?;
                    }
                }
                self.to.publisher().show();
            }
            Ok(MoldPacket::EndOfSession { next, .. }) if !self.is_over => {
                self.is_over = true;
                self.report.missing += next.saturating_sub(self.next);
                self.pass(Kind::Status, Flags::END_OF_SESSION, (next.saturating_sub(1), &[]), wire)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn pass(
        &mut self,
        kind: Kind,
        flags: Flags,
        (sequence, message): (u64, &[u8]),
        wire: Nanos,
    ) -> anyhow::Result<()> {
        let origin = Origin { feed_seq: sequence, ..Origin::default() };
        let stamps = Stamps { event: Nanos(0), wire, decoded: self.clock.now() };
        self.to.tick_up_to(message.len(), (kind, flags), &origin, stamps, &self.clock, |out| {
            out.copy_from_slice(message);
            message.len()
        })?;
        if kind == Kind::Update {
            self.report.missing += sequence - self.next;
            self.report.messages += 1;
            self.next = sequence + 1;
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
mod tests {
    use std::net::UdpSocket;

    use tapeline_feed::moldudp64::{DEFAULT_PACKET_BYTES, MoldSession, PacketBuilder, end_of_session};
    use tapeline_plant::tick::Tick;
    use tapeline_ring::{Poll, Start, Subscriber};

    use super::*;

    const SESSION: &str = "RELAY";

    fn packet(first: u64, messages: &[&[u8]]) -> Vec<u8> {
        let mut room = [0; DEFAULT_PACKET_BYTES];
        let mut packet = PacketBuilder::new(&mut room, MoldSession::new(SESSION), first).unwrap();
        messages.iter().for_each(|message| packet.push(message).unwrap());
        let len = packet.finish();
        room[..len].to_vec()
    }

    /// Two real lines: each message is passed on once, a missing one is counted, and the end is the last tick.
    #[test]
    fn each_message_is_passed_on_once_and_what_is_missing_is_counted() {
        let free = || match UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap() {
            std::net::SocketAddr::V4(address) => address,
            other => panic!("{other}"),
        };
        let name = Name::new(&format!("relay-test-{}", std::process::id())).unwrap();
        let relay = BareRelay {
            lines: vec![free(), free()],
            ring: (name.clone(), 1 << 20),
            spins: false,
            core: None,
        };
        let stop = Stop::on_signals().unwrap();
        let mut subscriber = None;
        let report = relay.run(&stop, || {
            subscriber = Some(Subscriber::join(&name, Start::Oldest)?);
            let sender = UdpSocket::bind("127.0.0.1:0")?;
            let [a, b] = [relay.lines[0], relay.lines[1]];
            sender.send_to(&packet(1, &[b"one", b"two"]), a)?;
            sender.send_to(&packet(1, &[b"one", b"two"]), b)?;
            sender.send_to(b"not a packet", a)?;
            // Message 3 comes on no line. Line A is read before B.
            sender.send_to(&packet(4, &[b"four"]), a)?;
            sender.send_to(&end_of_session(MoldSession::new(SESSION), 6), a)?;
            sender.send_to(&end_of_session(MoldSession::new(SESSION), 6), b)?;
            Ok(())
        });
        // Message 5 is missing, too: the end says that it existed.
        assert_eq!(report.unwrap(), RelayReport { messages: 3, missing: 2 });
        let mut subscriber = subscriber.unwrap();
        let mut found = Vec::new();
        while let Poll::Frame(frame) = subscriber.next() {
            let tick = Tick::parse(&frame).unwrap();
            found.push((tick.header.feed_seq, tick.body.to_vec(), tick.header.flags));
        }
        let bodies: Vec<_> = found.iter().map(|(sequence, body, _)| (*sequence, body.as_slice())).collect();
        let expected: [(u64, &[u8]); 4] = [(1, b"one"), (2, b"two"), (4, b"four"), (5, b"")];
        assert_eq!(bodies, expected);
        assert!(found.last().unwrap().2.contains(Flags::END_OF_SESSION));
    }
}
