//! Compares the clock of the plant above with this plant's, by round trips to its re-request server, or over a line of TCP if no such server is asked.

use std::net::{Ipv4Addr, SocketAddrV4};

use tapeline_measure::{Clock, Nanos};
use tapeline_plant::bridge::PlantId;
use tapeline_plant::bridge::clocks::{CLOCK_BYTES, ClockEstimate, ClockExchange};
use tapeline_plant::{ClockDifference, StampedBy};
use tapeline_wire::udp::{Batch, ReceiveOptions, UdpReceiver};

use super::line::LineReceiver;
use crate::error::Context;

/// How often the plant above is asked. The kernel stamps the arrival of an answer, so the answer is not waited for.
const EVERY_NS: i64 = 250_000_000;
/// A difference is stated for readers that look at it this much later: the plant writes its note once a second, and they read it once a second.
const HELD_NS: u64 = 2_000_000_000;

/// The clock of the plant above.
pub(super) struct ClockAbove {
    /// The socket, and the server; `None` without a server: then a line is asked.
    peer: Option<(UdpReceiver, SocketAddrV4)>,
    plant: PlantId,
    batch: Batch,
    /// When the plant above was last asked: what the server's answer must repeat.
    asked: Nanos,
    estimate: ClockEstimate,
}

impl ClockAbove {
    /// Opens the socket, if there is a server to ask.
    pub(super) fn of(server: Option<SocketAddrV4>, plant: PlantId) -> crate::Result<Self> {
        let open = |server: SocketAddrV4| {
            let own = if server.ip().is_loopback() { Ipv4Addr::LOCALHOST } else { Ipv4Addr::UNSPECIFIED };
            let options =
                ReceiveOptions { receive_buffer: 64 << 10, ..ReceiveOptions::new(SocketAddrV4::new(own, 0)) };
            let socket = UdpReceiver::open(&options).context("cannot open a socket to compare clocks")?;
            Ok::<_, crate::Error>((socket, server))
        };
        Ok(Self {
            peer: server.map(open).transpose()?,
            plant,
            // A longer datagram is cut, and still too long.
            batch: Batch::new(8, CLOCK_BYTES + 1),
            asked: Nanos(0),
            estimate: ClockEstimate::default(),
        })
    }

    /// Asks this server from now on, if another one was asked before: what is known of that one's clock does not hold.
    pub(super) fn ask(&mut self, server: SocketAddrV4) {
        if let Some((_, before)) = &mut self.peer
            && *before != server
        {
            *before = server;
            (self.asked, self.estimate) = (Nanos(0), ClockEstimate::default());
        }
    }

    /// Takes the answer, and asks again if that is due.
    #[inline]
    pub(super) fn turn(&mut self, lines: &mut [LineReceiver], now: Nanos, clock: &Clock) {
        let is_due = now.since(self.asked) >= EVERY_NS;
        if self.peer.is_none() {
            self.exchange_over(lines, is_due, clock);
        } else if is_due {
            self.exchange(now, clock);
        }
    }

    /// Nothing stamps the arrival of bytes over TCP: an answer is taken in the turn that has read it.
    #[inline]
    fn exchange_over(&mut self, lines: &mut [LineReceiver], is_due: bool, clock: &Clock) {
        let Self { plant, estimate, .. } = self;
        for answer in lines.iter_mut().filter_map(LineReceiver::take_time) {
            if answer.plant == *plant {
                // A clock that is read after the arrival makes the bound greater, and one read before would make it wrong.
                estimate.take(&answer, clock.now(), clock.error_ns());
            }
        }
        if is_due {
            self.asked = clock.now();
            let request = ClockExchange::request(*plant, self.asked);
            // A line that cannot be asked now is asked later: the bound grows.
            lines.iter_mut().any(|line| line.ask_time(&request));
        }
    }

    fn exchange(&mut self, now: Nanos, clock: &Clock) {
        let Self { peer, plant, batch, asked, estimate } = self;
        let Some((socket, server)) = peer else { return };
        // A socket that fails is silent: the bound grows.
        let count = socket.receive(batch).unwrap_or(0);
        for datagram in batch.iter().take(count).filter(|datagram| datagram.source == *server) {
            let answer = ClockExchange::decode(datagram.bytes);
            if let Some(answer) = answer.filter(|answer| answer.plant == *plant && answer.sent == *asked) {
                estimate.take(&answer, datagram.received.unwrap_or(now), clock.error_ns());
            }
        }
        *asked = clock.now();
        let _ = socket.send_to(&ClockExchange::request(*plant, *asked).encode(), *server);
    }

    /// Returns the difference, as it holds until it is stated anew.
    pub(super) fn difference(&self, now: Nanos) -> Option<ClockDifference> {
        self.estimate.difference(now + HELD_NS)
    }

    /// Returns by which clock the ticks of this plant are stamped.
    pub(super) fn stamped_by(&self, now: Nanos) -> StampedBy {
        StampedBy::PlantAbove(self.difference(now))
    }
}
