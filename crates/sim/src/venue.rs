//! An exchange with two lines, and a retransmission server for messages lost on both.

use std::net::Ipv4Addr;

use tapeline_feed::history::{History, Limits};
use tapeline_feed::itch::encode::LONGEST;
use tapeline_feed::moldudp64::retransmit::{self, RetransmissionServer};
use tapeline_feed::moldudp64::{MoldSession, PacketBuilder, end_of_session, heartbeat};
use tapeline_feed::simulate::{Exchange, SimulatedDay};
use tapeline_measure::Nanos;

use crate::books::Orders;
use crate::chance::Chance;
use crate::plan::{MIDNIGHT, MS, Plan};

/// Silence after which the exchange sends a heartbeat: as all times of a feed, a quarter of the real one.
const HEARTBEAT_NS: u64 = 250 * MS;
const MOST_IN_PACKET: u64 = 6;

/// The faults of a line's datagrams.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Line {
    /// Lost datagrams per thousand.
    pub(crate) loss: u64,
    /// Duplicated datagrams per thousand.
    pub(crate) twice: u64,
    /// The least and the greatest delay in ns. Where they differ, datagrams overtake one another.
    pub(crate) delay: (u64, u64),
    pub(crate) dead_until: u64,
}

impl Line {
    /// The arrival times of a datagram sent now, and of its duplicate.
    pub(crate) fn arrivals(&self, now: u64, chance: &mut Chance) -> [Option<u64>; 2] {
        let arrive = |is_there: bool, chance: &mut Chance| {
            let at = now + chance.within(self.delay.0, self.delay.1);
            is_there.then_some(at)
        };
        let is_lost = chance.per_mille(self.loss) || now < self.dead_until;
        let is_double = chance.per_mille(self.twice);
        [arrive(!is_lost, chance), arrive(!is_lost && is_double, chance)]
    }
}

#[derive(Debug)]
pub(crate) struct Venue {
    number: usize,
    seed: u64,
    symbols: u16,
    chance: Chance,
    pub(crate) exchange: Exchange,
    /// Approximate limit of live orders.
    live_orders: u32,
    /// The orders themselves, if they are published.
    pub(crate) orders: Option<Orders>,
    history: History,
    server: RetransmissionServer,
    session: MoldSession,
    sessions: u64,
    /// The sequence of the next message.
    next: u64,
    /// Time of the last message; each message has a different time.
    event_ns: u64,
    /// Time of the last packet.
    spoke: u64,
    pub(crate) lines: [Line; 2],
    pub(crate) silent_until: u64,
    pub(crate) server_dead_until: u64,
    /// Number of packets to send at once.
    pub(crate) burst: u64,
    /// Trading has ended: only heartbeats follow.
    pub(crate) is_closed: bool,
}

impl Venue {
    pub(crate) fn new(number: usize, seed: u64, plan: &Plan) -> Self {
        let (symbols, lines) = (plan.symbols, plan.lines[number]);
        let live_orders = plan.orders.unwrap_or(2_000);
        let mut venue = Self {
            number,
            seed,
            symbols,
            chance: Chance::of(seed, 100 + number as u64),
            exchange: Exchange::new(SimulatedDay { seed, symbols, live_orders }),
            live_orders,
            orders: plan.orders.map(|_| Orders::default()),
            history: History::new(Limits { messages: 1 << 14, bytes: 1 << 20 }),
            server: RetransmissionServer::new(retransmit::ServerSettings::default()),
            session: MoldSession::new(""),
            sessions: 0,
            next: 1,
            event_ns: 0,
            spoke: 0,
            lines,
            silent_until: 0,
            server_dead_until: 0,
            burst: 0,
            is_closed: false,
        };
        venue.begin_session();
        venue
    }

    /// Begins a session with empty books.
    pub(crate) fn begin_session(&mut self) {
        self.sessions += 1;
        self.session = MoldSession::new(&format!("F{}S{:05}", self.number, self.sessions));
        let seed = self.seed.wrapping_add(self.sessions << 32);
        let (symbols, live_orders) = (self.symbols, self.live_orders);
        self.exchange = Exchange::new(SimulatedDay { seed, symbols, live_orders });
        self.orders = self.orders.take().map(|_| Orders::default());
        self.history.begin(self.session);
        self.next = 1;
    }

    /// Ends a session with its last packets.
    pub(crate) fn end_session(&mut self, now: u64, out: &mut Vec<Vec<u8>>) {
        self.exchange.end_day();
        while self.packet(now, MOST_IN_PACKET, out) {}
        for _ in 0..3 {
            out.push(end_of_session(self.session, self.next).to_vec());
        }
    }

    /// Takes a turn: appends the packets for both lines and returns the time of the next turn.
    pub(crate) fn turn(&mut self, now: u64, out: &mut Vec<Vec<u8>>) -> u64 {
        let next = now + self.chance.within(MS, 9 * MS);
        if now < self.silent_until {
            return next;
        }
        if !self.is_closed {
            // Until all stocks are listed it sends faster, as exchanges do in the morning.
            let is_opening = self.next <= self.exchange.opening_messages();
            let packets = 1 + std::mem::take(&mut self.burst) + if is_opening { 3 } else { 0 };
            for _ in 0..packets {
                let messages = self.chance.within(1, MOST_IN_PACKET);
                self.packet(now, messages, out);
            }
        }
        if out.is_empty() && now >= self.spoke + HEARTBEAT_NS {
            out.push(heartbeat(self.session, self.next).to_vec());
        }
        if !out.is_empty() {
            self.spoke = now;
        }
        next
    }

    /// Appends one packet of at most `messages` messages. Returns whether there were any.
    fn packet(&mut self, now: u64, messages: u64, out: &mut Vec<Vec<u8>>) -> bool {
        let mut bytes = vec![0; 1_400];
        let Ok(mut packet) = PacketBuilder::new(&mut bytes, self.session, self.next) else { return false };
        let mut message = [0; LONGEST];
        for _ in 0..messages {
            self.event_ns = (self.event_ns + 1).max(now - MIDNIGHT);
            let Some(len) = self.exchange.next(self.event_ns, &mut message) else { break };
            let message = &message[..len];
            // Six messages of 50 bytes: they fit.
            packet.push(message).expect("a packet has room for a few messages");
            self.history.push(self.next, message);
            self.orders.iter_mut().for_each(|orders| orders.take(message));
            self.next += 1;
        }
        let count = packet.count();
        let len = packet.finish();
        if count == 0 {
            return false;
        }
        bytes.truncate(len);
        out.push(bytes);
        true
    }

    /// Answers a retransmission request; `None` if it does not answer.
    pub(crate) fn answer(&mut self, now: u64, request: &[u8]) -> Option<Vec<u8>> {
        if now < self.server_dead_until {
            return None;
        }
        let mut room = vec![0; 2_000];
        let answer =
            self.server.answer(Ipv4Addr::LOCALHOST, request, &self.history, Nanos(now), &mut room).ok()?;
        Some(answer.to_vec())
    }

    /// Number of messages in this session.
    pub(crate) fn messages(&self) -> u64 {
        self.next - 1
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = String> + '_ {
        (1..=self.symbols).filter_map(|locate| {
            let symbol = self.exchange.symbol(locate)?;
            Some(String::from_utf8_lossy(&symbol).trim_end().to_owned())
        })
    }
}
