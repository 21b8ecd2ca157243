//! A feed's recovery: messages missing on every line are requested again, in the plant's own loop, without
//! blocking.
//!
//! [`GapRequests`] has the rules (what to request, from which server, when to give up), for any protocol of the
//! servers. MoldUDP64 servers are asked here; SoupBinTCP servers by [`soup`], which turns a request into a
//! login and the received messages into an answer.

mod soup;

use std::net::{Ipv4Addr, SocketAddrV4};

use tapeline_feed::line::Line;
use tapeline_feed::moldudp64::recover::{Ask, ClientSettings, ClientStatistics};
use tapeline_measure::{Clock, Nanos};
use tapeline_plant::{Channel, GapRequests, Look, Refused, RingPublish, Sequencer};
use tapeline_wire::udp::{Batch, ReceiveOptions, UdpReceiver};

use self::soup::Soup;
use crate::config::{RecoveryConfig as Configured, RecoveryKind as Kind};
use crate::error::Context;
use crate::events::{self, Events, Severity};

/// Maximum number of answers taken in one turn, so that the lines do not wait, and the longest answer
/// accepted without truncation.
const BATCH_SLOTS: usize = 16;
const SLOT_BYTES: usize = 9_216;

pub(crate) struct Recovery {
    requests: GapRequests,
    servers: Vec<SocketAddrV4>,
    transport: Transport,
    pub(crate) counters: Counters,
    /// The server of the last accepted answer.
    answered: usize,
    events: Events,
}

/// How servers are reached.
enum Transport {
    Datagrams { socket: UdpReceiver, batch: Batch },
    Soup(Soup),
}

/// Counters besides requests and answers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    /// Datagrams from an address that is not a server of this feed.
    pub(crate) strangers: u64,
    /// Requests that could not be sent, connections that failed, logins that were refused.
    pub(crate) failures: u64,
    pub(crate) connections: u64,
}

/// The local address for answers: loopback only if every server is there. Otherwise any address of this
/// machine, since the routes to several servers may start at different addresses; datagrams from other
/// senders are ignored.
fn own_address(servers: &[SocketAddrV4]) -> SocketAddrV4 {
    let is_local = servers.iter().all(|server| server.ip().is_loopback());
    SocketAddrV4::new(if is_local { Ipv4Addr::LOCALHOST } else { Ipv4Addr::UNSPECIFIED }, 0)
}

impl Recovery {
    /// Opens the transport; `delay_ns` is the time that missing messages are left to the lines.
    pub(crate) fn open(configured: &Configured, delay_ns: u64, events: &Events) -> crate::Result<Self> {
        let transport = match &configured.kind {
            Kind::MoldUdp64 => {
                let options = ReceiveOptions {
                    receive_buffer: 1 << 20,
                    ..ReceiveOptions::new(own_address(&configured.servers))
                };
                let socket = UdpReceiver::open(&options).context("cannot open a socket for recovery")?;
                Transport::Datagrams { socket, batch: Batch::new(BATCH_SLOTS, SLOT_BYTES) }
            }
            Kind::SoupBinTcp { username, password } => Transport::Soup(Soup::new(*username, *password)),
        };
        let requests = GapRequests::new(ClientSettings {
            servers: configured.servers.len(),
            delay_ns,
            timeout_ns: configured.timeout.as_nanos() as u64,
            max_tries: configured.tries,
            max_hole: configured.max_hole,
            max_outstanding: match configured.kind {
                Kind::MoldUdp64 => ClientSettings::default().max_outstanding,
                // One connection, with one position in it.
                Kind::SoupBinTcp { .. } => 1,
            },
            requests_per_second: configured.requests_per_second,
            overtaking_ns: match configured.kind {
                Kind::MoldUdp64 => ClientSettings::default().overtaking_ns,
                // A request is a connection and a login: not for a datagram that was overtaken.
                Kind::SoupBinTcp { .. } => delay_ns,
            },
            ..ClientSettings::default()
        });
        let (servers, counters) = (configured.servers.clone(), Counters::default());
        let events = events.clone();
        Ok(Self { requests, servers, transport, counters, answered: 0, events })
    }

    /// Takes answers, reports to the channel the messages that will not come, and requests missing ones.
    /// Returns whether there was any input. While nothing is missing, the cost is a look at the arbiter.
    ///
    /// # Errors
    /// As [`Channel::datagram`].
    pub(crate) fn turn(
        &mut self,
        channel: &mut Channel,
        clock: &Clock,
        to: &mut Sequencer<RingPublish>,
    ) -> Result<bool, Refused> {
        match self.requests.look(channel) {
            Look::Missing => {}
            Look::Reset => self.rest(),
            Look::Whole => {
                self.rest();
                return Ok(false);
            }
        }
        let mut came = self.receive(channel, clock, to)?;
        let now = clock.now();
        self.requests.update(channel, now);
        while let Some(ask) = self.requests.client().poll(now) {
            self.ask(&ask, now);
        }
        while let Some(range) = self.requests.client().given_up() {
            channel.give_up(range, clock, to)?;
            came = true;
        }
        Ok(came)
    }

    /// Whether an answer is pending, so that the plant should not sleep for long.
    pub(crate) fn is_busy(&self) -> bool {
        self.requests.is_busy()
    }

    /// Returns the counters of requests and answers.
    pub(crate) fn statistics(&self) -> &ClientStatistics {
        self.requests.statistics()
    }

    fn receive(
        &mut self,
        channel: &mut Channel,
        clock: &Clock,
        to: &mut Sequencer<RingPublish>,
    ) -> Result<bool, Refused> {
        let now = clock.now();
        match &mut self.transport {
            Transport::Datagrams { socket, batch } => {
                let got = match socket.receive(batch) {
                    Ok(got) => got,
                    Err(error) => {
                        self.failed(&error, now);
                        return Ok(false);
                    }
                };
                for datagram in batch.iter() {
                    let Some(server) = self.servers.iter().position(|server| *server == datagram.source)
                    else {
                        self.counters.strangers += 1;
                        continue;
                    };
                    // The client counts invalid answers.
                    if self.requests.client().answer(server, datagram.bytes).is_ok() {
                        let wire = datagram.received.unwrap_or(now);
                        answered_by(server, &mut self.answered, channel);
                        channel.datagram(Line::RECOVERY, datagram.bytes, wire, clock, to)?;
                    }
                }
                Ok(got > 0)
            }
            Transport::Soup(soup) => match soup.receive(now) {
                Ok(Some((server, packet))) => {
                    if self.requests.client().answer(server, packet).is_ok() {
                        answered_by(server, &mut self.answered, channel);
                        channel.datagram(Line::RECOVERY, packet, now, clock, to)?;
                    }
                    Ok(true)
                }
                Ok(None) => Ok(false),
                Err(error) => {
                    self.failed(&error, now);
                    Ok(false)
                }
            },
        }
    }

    fn ask(&mut self, ask: &Ask, now: Nanos) {
        let Some(&server) = self.servers.get(ask.server) else { return };
        // A request that cannot be sent is treated as lost: the next server is asked after the timeout.
        match &mut self.transport {
            Transport::Datagrams { socket, .. } => match socket.send_to(&ask.request.encode(), server) {
                Ok(is_sent) => self.counters.failures += u64::from(!is_sent),
                Err(error) => self.failed(&error, now),
            },
            Transport::Soup(soup) => match soup.ask(ask, server, now) {
                Ok(connected) => self.counters.connections += u64::from(connected),
                Err(error) => self.failed(&error, now),
            },
        }
    }

    /// No requested message can come any more: disconnects, so that a server does not keep an idle connection.
    fn rest(&mut self) {
        if let Transport::Soup(soup) = &mut self.transport {
            soup.log_out();
        }
    }

    fn failed(&mut self, error: &dyn std::error::Error, now: Nanos) {
        self.counters.failures += 1;
        let said = format_args!("recovery: {error} ({} failures so far)", self.counters.failures);
        self.events.peer(now, events::Kind::Recovery, Severity::Warning, said);
    }
}

/// Notifies the channel when answers come from another server than the last one.
fn answered_by(server: usize, last: &mut usize, channel: &mut Channel) {
    if std::mem::replace(last, server) != server {
        channel.other_server();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_on_loopback_are_asked_from_there() {
        let [local, second, other] =
            [[127, 0, 0, 1], [127, 0, 0, 2], [10, 0, 0, 5]].map(|ip| SocketAddrV4::new(ip.into(), 26_479));
        assert_eq!(*own_address(&[local, second]).ip(), Ipv4Addr::LOCALHOST);
        assert_eq!(*own_address(&[local, other]).ip(), Ipv4Addr::UNSPECIFIED);
    }
}
