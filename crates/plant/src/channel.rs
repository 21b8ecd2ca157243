//! The complete path of one feed: datagrams to ticks.

use std::ops::RangeInclusive;

use tapeline_feed::line::{self, Arbiter, Line, LineStatistics, MAX_LINES, Restart};
use tapeline_feed::normalise::{Instrument, Normaliser};
use tapeline_feed::symbols::{Filter, Symbols};
use tapeline_feed::{Protocol, book, dbn};
use tapeline_measure::Nanos;

mod levels;
mod orders;
mod stage;
mod venue;

pub use venue::VenueConnection;

use stage::{Output, Stage};

use crate::publish::{Publish, Refused};
use crate::sequencer::{Sequencer, Time};
use crate::state::{Seen, State};

/// A function that returns the start of the trading day of an instant; `None` if that is unknown.
pub type MidnightBefore = fn(Nanos) -> Option<Nanos>;

/// The selection of a feed's messages that become ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PublishPolicy {
    /// Messages that change a published field: top of book, trade, trading status. A new stock produces its image.
    #[default]
    Changes,
    /// All messages, in the feed's order, each with the feed's own message after the update.
    EveryMessage,
}

/// The settings of a channel.
#[derive(Clone, Copy, Debug)]
pub struct ChannelSettings {
    /// The channel's number in the plant.
    pub number: u16,
    /// The protocol of the feed.
    pub protocol: Protocol,
    /// The number of lines.
    pub lines: usize,
    /// Time without any data, in ns, after which a line is stale, and the channel if all its lines are; 0 for never.
    pub stale_after_ns: u64,
    /// Midnight in New York at the start of the trading day.
    pub midnight: Nanos,
    /// For feeds in which each session is a new day: the function that finds the start of the day. `None` if the day is given.
    pub midnight_before: Option<MidnightBefore>,
    /// The selection of messages that become ticks.
    pub publish: PublishPolicy,
    /// The limits and policies of arbitration. The protocol sets the framing, and also the handling of a restart unless restarts are ignored.
    pub arbitration: line::ArbiterSettings,
    /// The limits of the books.
    pub books: book::BookSettings,
}

/// The counters of a channel, in addition to those of its arbiter, normaliser and lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelCounters {
    /// Messages taken from the arbiter, in order.
    pub messages: u64,
    /// Bytes of those messages.
    pub message_bytes: u64,
    /// Ticks published.
    pub ticks: u64,
    /// Messages that could not be decoded; the normaliser counts them by reason.
    pub malformed_messages: u64,
    /// Messages missing on every line, except those of [`absurd_gaps`](Self::absurd_gaps).
    pub missing: u64,
    /// Gaps of missing messages.
    pub gaps: u64,
    /// The first and the last message of the latest gap; zeros if there was none.
    pub last_gap: (u64, u64),
    /// Gaps of more messages than any feed sends ([`line::LARGEST_GAP`]).
    pub absurd_gaps: u64,
    /// Ticks published under item 0 because the service is full, or its free places are reserved for other sources.
    pub items_refused: u64,
    /// Drafts that did not fit in a tick; any value but 0 is a defect.
    pub drafts_cut: u64,
    /// Sessions that have begun.
    pub sessions: u64,
    /// `true` if the present session is over.
    pub ended: bool,
}

/// The channel of one feed, which turns the datagrams of its lines into ticks.
#[derive(Debug)]
pub struct Channel {
    arbiter: Arbiter,
    stage: Stage,
    /// `true` if missing messages are requested.
    recovers: bool,
    stale_after_ns: u64,
    /// Time of the last check of the lines.
    looked: Nanos,
    lines: usize,
    /// For each line, `true` if it was last reported as silent.
    silent: [bool; MAX_LINES],
    /// The connection of a venue's feed, which has no lines.
    venue: Option<VenueConnection>,
}

impl Channel {
    /// Creates a channel in its initial state.
    #[must_use]
    pub fn new(settings: ChannelSettings) -> Self {
        Self {
            arbiter: Arbiter::new(line::ArbiterSettings {
                framing: settings.protocol.framing().unwrap_or_default(),
                restart: match settings.arbitration.restart {
                    Restart::Ignore => Restart::Ignore,
                    Restart::Changed | Restart::Reset => settings.protocol.restart(),
                },
                ..settings.arbitration
            }),
            stage: Stage {
                number: settings.number,
                publish: settings.publish,
                normaliser: settings.protocol.normaliser(settings.books, settings.midnight),
                items: Vec::new(),
                suffix: Box::default(),
                protocol: settings.protocol,
                filter: None,
                images: orders::Images::default(),
                counters: ChannelCounters::default(),
                ended_at: Nanos(0),
                state: State::Initial,
                damaged_from: None,
                begun_late_at: None,
                waking: None,
                midnight_before: settings.midnight_before,
            },
            recovers: settings.arbitration.recovery_age_ns > 0,
            stale_after_ns: settings.stale_after_ns,
            looked: Nanos(0),
            lines: settings.lines.min(MAX_LINES),
            silent: [false; MAX_LINES],
            venue: None,
        }
    }

    /// Limits the channel to messages of these symbols. Others are counted as messages and
    /// [skipped](Self::passed_over) before they are decoded.
    pub fn choose_symbols(&mut self, symbols: Symbols) {
        self.stage.filter = Some(self.stage.protocol.filter(symbols));
    }

    /// Returns the number of messages skipped because of their symbol.
    #[must_use]
    pub fn passed_over(&self) -> u64 {
        self.stage.filter.as_ref().map_or(0, Filter::passed_over)
    }

    /// Names the items of this channel by their symbols plus `suffix`, so that channels which list the same symbols have separate items. Two
    /// channels whose items have the same name share the item.
    pub fn name_items(&mut self, suffix: &str) {
        self.stage.suffix = suffix.into();
    }

    /// Also publishes the orders, in ticks of the domain market by order, with at most `max_orders` orders in memory. Returns `false`, without
    /// any effect, if the protocol has no orders.
    pub fn publish_orders(&mut self, max_orders: usize) -> bool {
        self.stage.normaliser.keep_orders(max_orders)
    }

    /// Handles a datagram that arrived on `line` at `wire`. A malformed one is counted by its reason and has no other effect.
    ///
    /// # Errors
    /// [`Refused`] if a tick could not be published; the plant cannot continue without losing it.
    pub fn datagram<P: Publish>(
        &mut self,
        line: Line,
        datagram: &[u8],
        wire: Nanos,
        time: &impl Time,
        to: &mut Sequencer<P>,
    ) -> Result<(), Refused> {
        if self.stage.state != State::Live {
            return self.unsettled(line, datagram, wire, time, to);
        }
        // A datagram with one message is visible at its end too: nothing waits.
        to.publisher().hold();
        let mut output = Output { stage: &mut self.stage, time, to, refused: Ok(()) };
        // The arbiter counts a malformed datagram by line and reason.
        let _ = self.arbiter.datagram(line, datagram, wire, &mut output);
        let refused = output.refused;
        to.publisher().show();
        refused
    }

    /// As [`datagram`](Self::datagram), while the channel is not live: the datagram may change that.
    #[cold]
    fn unsettled<P: Publish>(
        &mut self,
        line: Line,
        datagram: &[u8],
        wire: Nanos,
        time: &impl Time,
        to: &mut Sequencer<P>,
    ) -> Result<(), Refused> {
        let heard = self.arbiter.heard();
        // Data of recovery is not data of the feed: only the feed's own lines wake a channel.
        if self.stage.state != State::Recovering && line != Line::RECOVERY {
            let seen = if self.has_hole(wire) { Seen::Hole } else { Seen::Whole };
            self.stage.waking = Some((seen, self.first_missing()));
        }
        let mut output = Output { stage: &mut self.stage, time, to, refused: Ok(()) };
        let _ = self.arbiter.datagram(line, datagram, wire, &mut output);
        output.refused?;
        self.stage.waking = None;
        if self.stage.state != State::Recovering && self.arbiter.heard() == heard {
            // A stray packet, or recovery: the feed itself has not resumed.
            return Ok(());
        }
        self.see(self.seen(wire), time, to).map(|_| ())
    }

    /// Handles a message that no datagram carried, such as one of a file, which is in order by itself. Sequences go up from 1.
    ///
    /// # Errors
    /// As [`datagram`](Self::datagram).
    pub fn message<P: Publish>(
        &mut self,
        sequence: u64,
        message: &[u8],
        wire: Nanos,
        time: &impl Time,
        to: &mut Sequencer<P>,
    ) -> Result<(), Refused> {
        if self.stage.state != State::Live {
            self.stage.waking = Some((Seen::Whole, 0));
        }
        self.stage.message(sequence, message, None, wire, time, to)
    }

    /// Prefetches what the next records of a DBN file need; `ahead` are the bytes behind the last one. No effect for other protocols.
    #[inline]
    pub fn expect(&mut self, ahead: &[u8]) {
        if let (Normaliser::Dbn(dbn), None) = (&mut self.stage.normaliser, &self.stage.filter) {
            dbn.expect(ahead);
        }
    }

    /// Ends the input after message `last`: delivers the messages that are held behind a gap, and ends the session if the feed itself
    /// did not.
    ///
    /// # Errors
    /// As [`datagram`](Self::datagram).
    pub fn end<P: Publish>(
        &mut self,
        last: u64,
        time: &impl Time,
        to: &mut Sequencer<P>,
    ) -> Result<(), Refused> {
        self.finish(time, to)?;
        if self.stage.counters.ended {
            return Ok(());
        }
        self.stage.end_of_session(last.saturating_add(1), time, to)
    }

    /// Sets the symbols for the numbers in DBN records, from the metadata of a file. No effect for other protocols.
    pub fn name_by(&mut self, symbols: &dbn::DbnSymbols) {
        if let Normaliser::Dbn(dbn) = &mut self.stage.normaliser {
            dbn.name_by(symbols.clone());
        }
        if let Some(Filter::Dbn(filter)) = &mut self.stage.filter {
            filter.name_by(symbols.clone());
        }
    }

    /// Declares gaps that have been open for too long, and finds lines that have become stale. Call it regularly, when there is nothing left to
    /// read on any line. Returns `true` if there was anything to report, and so ticks.
    ///
    /// # Errors
    /// As [`datagram`](Self::datagram).
    pub fn expire<P: Publish>(&mut self, time: &impl Time, to: &mut Sequencer<P>) -> Result<bool, Refused> {
        let now = time.now();
        let mut told = false;
        if self.arbiter.next_expiry().is_some_and(|expiry| expiry <= now) {
            let mut output = Output { stage: &mut self.stage, time, to, refused: Ok(()) };
            self.arbiter.expire(now, &mut output);
            output.refused?;
            told = true;
        }
        // A stale channel stays stale until a line receives data, regardless of recovery.
        let seen = if self.stage.state == State::Stale { Seen::Silent } else { self.seen(now) };
        if self.stage.state != State::Initial && !(seen == Seen::Whole && self.stage.state == State::Live) {
            told |= self.see(seen, time, to)?;
        }
        // A sixteenth of the time is precise enough.
        if now.since(self.looked) >= as_i64(self.stale_after_ns / 16) {
            self.looked = now;
            told |= self.look_at_lines(time, to)?;
        }
        Ok(told)
    }

    /// Marks all later recovery data as coming from another server.
    pub const fn other_server(&mut self) {
        self.arbiter.other_server();
    }

    /// Gives up these messages, which recovery cannot deliver.
    ///
    /// # Errors
    /// As [`datagram`](Self::datagram).
    pub fn give_up<P: Publish>(
        &mut self,
        messages: RangeInclusive<u64>,
        time: &impl Time,
        to: &mut Sequencer<P>,
    ) -> Result<(), Refused> {
        let now = time.now();
        let mut output = Output { stage: &mut self.stage, time, to, refused: Ok(()) };
        self.arbiter.give_up(messages, now, &mut output);
        output.refused?;
        if self.stage.state == State::Recovering && !self.has_hole(now) {
            self.see(self.seen(now), time, to)?;
        }
        Ok(())
    }

    fn see<P: Publish>(
        &mut self,
        seen: Seen,
        time: &impl Time,
        to: &mut Sequencer<P>,
    ) -> Result<bool, Refused> {
        self.stage.see(seen, self.first_missing(), time, to)
    }

    /// Returns the first missing message, if there is one.
    fn first_missing(&self) -> u64 {
        self.arbiter.next_sequence().unwrap_or_default()
    }

    fn seen(&self, now: Nanos) -> Seen {
        if let Some(connection) = &self.venue {
            self.venue_seen(connection)
        } else if self.is_stale(now) {
            Seen::Silent
        } else if self.has_hole(now) {
            Seen::Hole
        } else {
            Seen::Whole
        }
    }

    /// Returns `true` if messages are missing after the lines have had their time. During recovery any missing message counts, so that the channel
    /// is live only when all are there.
    fn has_hole(&self, now: Nanos) -> bool {
        let overdue = self.arbiter.overdue_at();
        match self.stage.state {
            State::Recovering => overdue.is_some(),
            _ => self.recovers && overdue.is_some_and(|at| at <= now),
        }
    }

    /// Returns `true` if no data has arrived for too long. After the end of a session none is expected, even while recovery delivers the rest of
    /// it.
    fn is_stale(&self, now: Nanos) -> bool {
        self.stale_after_ns > 0
            && !self.stage.counters.ended
            && !self.arbiter.is_left_to_recovery()
            && self.arbiter.heard().is_some_and(|heard| now.since(heard) >= as_i64(self.stale_after_ns))
    }

    /// Reports lines that have become silent while another continues, and lines that have resumed.
    fn look_at_lines<P: Publish>(
        &mut self,
        time: &impl Time,
        to: &mut Sequencer<P>,
    ) -> Result<bool, Refused> {
        let (Some(heard), State::Live | State::Recovering) = (self.arbiter.heard(), self.stage.state) else {
            return Ok(false);
        };
        if self.stale_after_ns == 0 || self.stage.counters.ended {
            return Ok(false);
        }
        let mut told = false;
        for number in 0..self.lines {
            let Some(line) = Line::new(number) else { break };
            let last = self.arbiter.line(line).last.unwrap_or_default();
            // A silent line stays silent at the start of a session; the others have their time from then on.
            let since = if self.silent[number] { last } else { last.max(self.arbiter.begun()) };
            // Compared with the line heard last, not with the clock: a pause of the plant affects all lines.
            let silent = heard.since(since) >= as_i64(self.stale_after_ns);
            if std::mem::replace(&mut self.silent[number], silent) != silent {
                self.stage.line(line, silent, time, to)?;
                told = true;
            }
        }
        Ok(told)
    }

    /// Delivers the messages that are held behind a gap, at the end of the input.
    ///
    /// # Errors
    /// As [`datagram`](Self::datagram).
    pub fn finish<P: Publish>(&mut self, time: &impl Time, to: &mut Sequencer<P>) -> Result<(), Refused> {
        let mut output = Output { stage: &mut self.stage, time, to, refused: Ok(()) };
        self.arbiter.flush(&mut output);
        output.refused?;
        if self.stage.state == State::Recovering && self.venue.is_none() {
            self.see(Seen::Whole, time, to)?;
        }
        Ok(())
    }

    /// Returns the channel's state, as published to its subscribers.
    #[must_use]
    pub fn state(&self) -> State {
        self.stage.state
    }

    /// Returns the state of one line: initial until it receives anything, then live or stale.
    #[must_use]
    pub fn line_state(&self, line: Line) -> State {
        match self.silent.get(line.number()) {
            Some(true) => State::Stale,
            Some(false) if self.arbiter.line(line).last.is_some() => match self.stage.state {
                State::Stale => State::Stale,
                _ => State::Live,
            },
            _ => State::Initial,
        }
    }

    /// Returns `true` if the data of an instrument may be wrong or old: nothing was received yet, the channel is recovering or stale, or messages
    /// of the session were lost. A lost message can concern any instrument of the channel, and every book depends on all earlier messages, so the
    /// result is the same for all instruments; only the next session or reset clears it.
    #[must_use]
    pub fn is_suspect(&self, _instrument: Instrument) -> bool {
        self.stage.state == State::Initial || self.stage.is_suspect()
    }

    /// Returns the first received message of the session if the channel missed earlier ones that its books need. The books are then suspect, as
    /// if message 1 had been [lost](Self::damaged_from), but nothing counts as missing.
    #[must_use]
    pub fn begun_late_at(&self) -> Option<u64> {
        self.stage.begun_late_at
    }

    /// Returns the first message that was lost in this session.
    #[must_use]
    pub fn damaged_from(&self) -> Option<u64> {
        self.stage.damaged_from
    }

    /// Returns `true` if the session is over for good: it has ended, and nothing from after the end has arrived for the time in which a quiet
    /// feed becomes stale. If that time is unlimited, the first end of session is enough.
    #[must_use]
    pub fn is_over(&self, now: Nanos) -> bool {
        let last_word = self.stage.ended_at.max(self.arbiter.end_doubted_at().unwrap_or_default());
        self.stage.counters.ended && now.since(last_word) >= as_i64(self.stale_after_ns)
    }

    /// Returns the counters of the channel.
    #[must_use]
    pub fn counters(&self) -> &ChannelCounters {
        &self.stage.counters
    }

    /// Returns the statistics of a line.
    #[must_use]
    pub fn line(&self, line: Line) -> &LineStatistics {
        self.arbiter.line(line)
    }

    /// Returns the arbiter: its session, its next sequence, its statistics.
    #[must_use]
    pub fn arbiter(&self) -> &Arbiter {
        &self.arbiter
    }

    /// Returns the books and the counters of the normaliser.
    #[must_use]
    pub fn normaliser(&self) -> &Normaliser {
        &self.stage.normaliser
    }
}

fn as_i64(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}
