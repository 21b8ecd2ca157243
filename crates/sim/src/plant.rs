//! The plant: datagrams in, ticks on the tape, what is missing asked for.

use std::collections::VecDeque;
use std::rc::Rc;

use tapeline_feed::moldudp64::recover::{Client, Settings};
use tapeline_feed::{Protocol, book, line};
use tapeline_measure::Nanos;
use tapeline_plant::{Channel, ChannelSettings, Items, PublishPolicy, Refused, Sequencer};

use crate::plan::{MIDNIGHT, MS, Plan, SERVICE};
use crate::tape::{Clock, Tape};

/// Datagrams that a socket's buffer holds; those beyond are lost.
const SOCKET: usize = 512;
/// Unread ticks at which the plant waits for the hub.
const RING: usize = 2_000;
/// Datagrams taken in one turn.
const BATCH: usize = 64;

/// One feed's way into the plant.
#[derive(Debug)]
struct Inlet {
    channel: Channel,
    recovery: Client,
    /// Of the feed's numbers, as recovery was told last.
    restarts: u64,
    socket: VecDeque<(line::Line, Rc<[u8]>, u64)>,
}

/// A plant, from its start to its crash.
#[derive(Debug)]
pub(crate) struct Plant {
    inlets: Vec<Inlet>,
    sequencer: Sequencer<Tape>,
    clock: Clock,
}

/// A request that recovery sends.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) feed: usize,
    pub(crate) request: Vec<u8>,
}

impl Plant {
    pub(crate) fn new(plan: &Plan, clock: Clock) -> Self {
        let inlets = (0..plan.feeds).map(|number| Inlet::new(plan, number)).collect();
        let sequencer = Sequencer::new(SERVICE, Items::new(1_000), Tape::new(RING));
        Self { inlets, sequencer, clock }
    }

    /// A datagram arrives: on one of a feed's lines, or as an answer of its server.
    pub(crate) fn arrive(&mut self, feed: usize, line: line::Line, datagram: Rc<[u8]>, now: u64) {
        let inlet = &mut self.inlets[feed];
        if inlet.socket.len() < SOCKET {
            inlet.socket.push_back((line, datagram, now));
        }
    }

    /// Takes what has arrived, as far as the ring has room, and does what is due.
    pub(crate) fn turn(&mut self, now: u64) -> Result<Vec<Ask>, Refused> {
        let Self { inlets, sequencer, clock } = self;
        let mut asks = Vec::new();
        for (inlet, feed) in inlets.iter_mut().zip(0..) {
            let mut is_all_read = false;
            for _ in 0..BATCH {
                if !sequencer.publisher().has_room() {
                    break;
                }
                let Some((line, datagram, wire)) = inlet.socket.pop_front() else {
                    is_all_read = true;
                    break;
                };
                if line != line::Line::RECOVERY || inlet.recovery.answer(0, &datagram).is_ok() {
                    inlet.channel.datagram(line, &datagram, Nanos(wire), clock, sequencer)?;
                }
            }
            inlet.recover(feed, now, clock, sequencer, &mut asks)?;
            if is_all_read {
                inlet.channel.expire(clock, sequencer)?;
            }
        }
        Ok(asks)
    }

    pub(crate) fn tape(&mut self) -> &mut Tape {
        self.sequencer.publisher()
    }

    pub(crate) fn channel(&self, feed: usize) -> &Channel {
        &self.inlets[feed].channel
    }
}

impl Inlet {
    fn new(plan: &Plan, number: usize) -> Self {
        let policy = if plan.every_message { PublishPolicy::EveryMessage } else { PublishPolicy::Changes };
        let mut channel = Channel::new(ChannelSettings {
            number: number as u16,
            protocol: Protocol::ItchMoldUdp64,
            lines: 2,
            stale_after_ns: 800 * MS,
            midnight: Nanos(MIDNIGHT),
            midnight_before: None,
            publish: policy,
            arbitration: line::Settings {
                window_messages: 4_096,
                window_age_ns: 15 * MS,
                recovery_age_ns: if plan.recovers { 400 * MS } else { 0 },
                start: line::Start::FromOne,
                session_hold_ns: 750 * MS,
                expire_on_packet: false,
                ..line::Settings::default()
            },
            books: book::Settings::default(),
        });
        if number > 0 {
            channel.name_items(&format!(".{number}"));
        }
        let recovery = Client::new(Settings { delay_ns: 5 * MS, timeout_ns: 40 * MS, ..Settings::default() });
        Self { channel, recovery, restarts: 0, socket: VecDeque::new() }
    }

    /// Tells recovery what is missing, and the channel what it will not bring: as the plant's loop does.
    fn recover(
        &mut self,
        feed: usize,
        now: u64,
        clock: &Clock,
        to: &mut Sequencer<Tape>,
        asks: &mut Vec<Ask>,
    ) -> Result<(), Refused> {
        let now = Nanos(now);
        let Self { channel, recovery, restarts, .. } = self;
        let begun = channel.arbiter().statistics().restarts;
        if std::mem::replace(restarts, begun) != begun {
            recovery.begin_again();
        }
        if channel.arbiter().missing().next().is_none() && !recovery.is_busy() {
            return Ok(());
        }
        let Some(line::Session::MoldUdp64(session)) = channel.arbiter().session() else { return Ok(()) };
        recovery.update(session, channel.arbiter().wanted(), now);
        if channel.arbiter().is_left_to_recovery() {
            recovery.hurry();
        }
        while let Some(ask) = recovery.poll(now) {
            asks.push(Ask { feed, request: ask.request.encode().to_vec() });
        }
        while let Some(range) = recovery.given_up() {
            channel.give_up(range, clock, to)?;
        }
        Ok(())
    }
}
