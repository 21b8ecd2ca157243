//! A feed's recovery: what is missing on every line is asked for again, in the plant's own loop, without waiting.
//!
//! The rules (what to ask, whom, when to give up) are [`Client`]'s, whatever the servers speak. Servers of MoldUDP64 are
//! asked here; those of SoupBinTCP by [`soup`], which turns a request into a login and what comes into an answer.

mod soup;

use std::net::{Ipv4Addr, SocketAddrV4};

use tapeline_feed::line::{self, Line};
use tapeline_feed::moldudp64::recover::{Ask, Client, Settings, Statistics};
use tapeline_measure::{Clock, Nanos};
use tapeline_plant::{Channel, Refused, RingPublish, Sequencer};
use tapeline_wire::udp::{Batch, ReceiveOptions, Receiver};

use self::soup::Soup;
use crate::config::{RecoveryConfig as Configured, RecoveryKind as Kind};
use crate::error::Context;
use crate::events::{self, Events, Severity};

/// Answers taken in one turn, so that the lines are not left waiting, and the longest that is taken whole.
const BATCH_SLOTS: usize = 16;
const SLOT_BYTES: usize = 9_216;

/// One feed's recovery.
pub(crate) struct Recovery {
    client: Client,
    servers: Vec<SocketAddrV4>,
    transport: Transport,
    counters: Counters,
    /// How often the feed's numbers have begun again.
    restarts: u64,
    /// The server whose answer was taken last.
    answered: usize,
    events: Events,
}

/// How servers are reached.
enum Transport {
    Datagrams { socket: Receiver, batch: Batch },
    Soup(Soup),
}

/// What went on beside requests and answers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    /// Datagrams of somebody who is no server of this feed.
    pub(crate) strangers: u64,
    /// Requests that could not be sent, connections that could not be made or broke, logins that were refused.
    pub(crate) failures: u64,
    /// Connections begun.
    pub(crate) connections: u64,
}

/// Where answers come in: on loopback alone where every server is there. Else at any address of this machine, since the routes
/// to several servers may begin at several; who is no server is not listened to.
fn own_address(servers: &[SocketAddrV4]) -> SocketAddrV4 {
    let is_local = servers.iter().all(|server| server.ip().is_loopback());
    SocketAddrV4::new(if is_local { Ipv4Addr::LOCALHOST } else { Ipv4Addr::UNSPECIFIED }, 0)
}

impl Recovery {
    /// Opens what it needs; `delay_ns` is for how long what is missing is left to the lines.
    pub(crate) fn open(configured: &Configured, delay_ns: u64, events: &Events) -> crate::Result<Self> {
        let transport = match &configured.kind {
            Kind::MoldUdp64 => {
                let options = ReceiveOptions {
                    receive_buffer: 1 << 20,
                    ..ReceiveOptions::new(own_address(&configured.servers))
                };
                let socket = Receiver::open(&options).context("cannot open a socket for recovery")?;
                Transport::Datagrams { socket, batch: Batch::new(BATCH_SLOTS, SLOT_BYTES) }
            }
            Kind::SoupBinTcp { username, password } => Transport::Soup(Soup::new(*username, *password)),
        };
        let client = Client::new(Settings {
            servers: configured.servers.len(),
            delay_ns,
            timeout_ns: configured.timeout.as_nanos() as u64,
            max_tries: configured.tries,
            max_hole: configured.max_hole,
            max_outstanding: match configured.kind {
                Kind::MoldUdp64 => Settings::default().max_outstanding,
                // One connection, and one place in it.
                Kind::SoupBinTcp { .. } => 1,
            },
            requests_per_second: configured.requests_per_second,
            ..Settings::default()
        });
        let (servers, counters) = (configured.servers.clone(), Counters::default());
        let events = events.clone();
        Ok(Self { client, servers, transport, counters, restarts: 0, answered: 0, events })
    }

    /// Takes what came, tells the channel what will not come, and asks for what is missing. Whether anything came. Costs a
    /// look at the arbiter while nothing is missing.
    ///
    /// # Errors
    /// As [`Channel::datagram`].
    pub(crate) fn turn(
        &mut self,
        channel: &mut Channel,
        clock: &Clock,
        to: &mut Sequencer<RingPublish>,
    ) -> Result<bool, Refused> {
        let restarts = channel.arbiter().statistics().restarts;
        if std::mem::replace(&mut self.restarts, restarts) != restarts {
            self.client.begin_again();
            // What a connection goes on to bring was asked for by the old numbers.
            self.rest();
        }
        let is_whole = channel.arbiter().missing().next().is_none();
        if is_whole && !self.client.is_busy() {
            self.rest();
            return Ok(false);
        }
        let Some(line::Session::MoldUdp64(session)) = channel.arbiter().session() else { return Ok(false) };
        let mut came = self.receive(channel, clock, to)?;
        let now = clock.now();
        self.client.update(session, channel.arbiter().wanted(), now);
        if channel.arbiter().is_left_to_recovery() {
            self.client.hurry();
        }
        while let Some(ask) = self.client.poll(now) {
            self.ask(&ask, now);
        }
        while let Some(range) = self.client.given_up() {
            channel.give_up(range, clock, to)?;
            came = true;
        }
        Ok(came)
    }

    /// Whether an answer is waited for, so that the plant should not sleep for long.
    pub(crate) fn is_busy(&self) -> bool {
        self.client.is_busy()
    }

    /// What was asked and answered.
    pub(crate) fn statistics(&self) -> &Statistics {
        self.client.statistics()
    }

    /// What went on beside that.
    pub(crate) fn counters(&self) -> Counters {
        self.counters
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
                    // What is wrong with an answer is counted by the client.
                    if self.client.answer(server, datagram.bytes).is_ok() {
                        let wire = datagram.received.unwrap_or(now);
                        answered_by(server, &mut self.answered, channel);
                        channel.datagram(Line::RECOVERY, datagram.bytes, wire, clock, to)?;
                    }
                }
                Ok(got > 0)
            }
            Transport::Soup(soup) => match soup.receive(now) {
                Ok(Some((server, packet))) => {
                    if self.client.answer(server, packet).is_ok() {
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
        // What cannot be sent is as good as lost: the next server is asked when its time is over.
        let failed: Option<Box<dyn std::error::Error>> = match &mut self.transport {
            Transport::Datagrams { socket, .. } => match socket.send_to(&ask.request.encode(), server) {
                Ok(true) => None,
                Ok(false) => {
                    self.counters.failures += 1;
                    None
                }
                Err(error) => Some(error.into()),
            },
            Transport::Soup(soup) => match soup.ask(ask, server, now) {
                Ok(connected) => {
                    self.counters.connections += u64::from(connected);
                    None
                }
                Err(error) => Some(error.into()),
            },
        };
        if let Some(error) = failed {
            self.failed(error.as_ref(), now);
        }
    }

    /// Nothing is missing of what was asked for: a server need not be kept busy with our silence.
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

/// Tells the channel where answers come of another server than the last one.
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
