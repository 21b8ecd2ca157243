//! One feed's whole way: datagrams in, ticks out.

mod orders;

use tapeline_feed::line::{self, Arbiter, Line, LineStatistics, Messages, Session, Sink};
use tapeline_feed::normalise::{Instrument, Normaliser};
use tapeline_feed::symbols::{Filter, Symbols};
use tapeline_feed::{Protocol, book};
use tapeline_measure::Nanos;

use crate::ItemId;
use crate::body;
use crate::publish::{Publish, Refused};
use crate::sequencer::{Consolidating, Origin, Sequencer, Stamps, Standing, Time};
use crate::tick::{Flags, Kind};

/// Which of a feed's messages become ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PublishPolicy {
    /// Those that change a published field: top of book, trade, trading status. A new stock gives its image.
    #[default]
    Changes,
    /// All, in the feed's order, each with the feed's own message behind the update.
    EveryMessage,
}

/// What a channel is and how it treats its feed.
#[derive(Clone, Copy, Debug)]
pub struct ChannelSettings {
    /// The channel's number in the plant.
    pub number: u16,
    /// What the feed speaks.
    pub protocol: Protocol,
    /// Midnight in New York of the trading day.
    pub midnight: Nanos,
    /// Which messages become ticks.
    pub publish: PublishPolicy,
    /// Bounds and policies of arbitration; framing and restarts are taken from the protocol.
    pub arbitration: line::Settings,
    /// Bounds of the books.
    pub books: book::Settings,
}

/// What a channel has seen, beyond what its arbiter, normaliser and lines count themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelCounters {
    /// Messages taken from the arbiter, in order.
    pub messages: u64,
    /// Bytes of them.
    pub message_bytes: u64,
    /// Ticks published.
    pub ticks: u64,
    /// Messages that could not be decoded; by reason in the normaliser's counters.
    pub malformed_messages: u64,
    /// Messages that were missing on every line.
    pub missing: u64,
    /// Holes that they make.
    pub gaps: u64,
    /// Ticks that went out under item 0 because the service is full.
    pub items_refused: u64,
    /// Drafts that did not fit a tick; a defect if it is not 0.
    pub drafts_cut: u64,
    /// Sessions that were begun.
    pub sessions: u64,
    /// Whether the present session is over.
    pub ended: bool,
}

/// One feed: its lines' datagrams go in, ticks come out.
#[derive(Debug)]
pub struct Channel {
    arbiter: Arbiter,
    stage: Stage,
}

/// Everything behind the arbiter.
#[derive(Debug)]
struct Stage {
    number: u16,
    publish: PublishPolicy,
    normaliser: Normaliser,
    /// The item of each instrument: `ItemId(0)` where it has not been numbered yet.
    items: Vec<ItemId>,
    protocol: Protocol,
    /// Which messages are wanted at all; all of them without it.
    filter: Option<Filter>,
    /// Which images of orders went out.
    images: orders::Images,
    counters: ChannelCounters,
}

impl Channel {
    /// A channel that has seen nothing.
    #[must_use]
    pub fn new(settings: ChannelSettings) -> Self {
        Self {
            arbiter: Arbiter::new(line::Settings {
                framing: settings.protocol.framing(),
                restart: settings.protocol.restart(),
                ..settings.arbitration
            }),
            stage: Stage {
                number: settings.number,
                publish: settings.publish,
                normaliser: settings.protocol.normaliser(settings.books, settings.midnight),
                items: Vec::new(),
                protocol: settings.protocol,
                filter: None,
                images: orders::Images::default(),
                counters: ChannelCounters::default(),
            },
        }
    }

    /// Takes only the messages of these symbols: others are counted as messages and
    /// [passed over](Self::passed_over) before they are decoded.
    pub fn choose_symbols(&mut self, symbols: Symbols) {
        self.stage.filter = Some(self.stage.protocol.filter(symbols));
    }

    /// Messages that were passed over because of their symbol.
    #[must_use]
    pub fn passed_over(&self) -> u64 {
        self.stage.filter.as_ref().map_or(0, Filter::passed_over)
    }

    /// Publishes the orders too, in ticks of the domain market by order: at most `max_orders` are kept at once. Whether the
    /// protocol has orders; without, nothing changes.
    pub fn publish_orders(&mut self, max_orders: usize) -> bool {
        self.stage.normaliser.keep_orders(max_orders)
    }

    /// Takes a datagram that arrived on `line` at `wire`. One that is malformed is counted by its reason and changes
    /// nothing else.
    ///
    /// # Errors
    /// [`Refused`] when a tick could not be published; the plant cannot go on without losing it.
    pub fn datagram<P: Publish>(
        &mut self,
        line: Line,
        datagram: &[u8],
        wire: Nanos,
        time: &impl Time,
        to: &mut Sequencer<P>,
    ) -> Result<(), Refused> {
        let mut output = Output { stage: &mut self.stage, time, to, refused: Ok(()) };
        // A malformed datagram is counted by the arbiter, by line and reason.
        let _ = self.arbiter.datagram(line, datagram, wire, &mut output);
        output.refused
    }

    /// Declares the gaps that have been open for too long: to be called when nothing is left to read on any line. Whether
    /// there were any, and so ticks.
    ///
    /// # Errors
    /// As [`datagram`](Self::datagram).
    pub fn expire<P: Publish>(&mut self, time: &impl Time, to: &mut Sequencer<P>) -> Result<bool, Refused> {
        let Some(expiry) = self.arbiter.next_expiry() else { return Ok(false) };
        let now = time.now();
        if expiry > now {
            return Ok(false);
        }
        let mut output = Output { stage: &mut self.stage, time, to, refused: Ok(()) };
        self.arbiter.expire(now, &mut output);
        output.refused.map(|()| true)
    }

    /// Delivers what is still held back behind a gap: nothing more will come.
    ///
    /// # Errors
    /// As [`datagram`](Self::datagram).
    pub fn finish<P: Publish>(&mut self, time: &impl Time, to: &mut Sequencer<P>) -> Result<(), Refused> {
        let mut output = Output { stage: &mut self.stage, time, to, refused: Ok(()) };
        self.arbiter.flush(&mut output);
        output.refused
    }

    /// What it has seen.
    #[must_use]
    pub fn counters(&self) -> &ChannelCounters {
        &self.stage.counters
    }

    /// What arrived on a line.
    #[must_use]
    pub fn line(&self, line: Line) -> &LineStatistics {
        self.arbiter.line(line)
    }

    /// The arbiter: its session, its next sequence, its statistics.
    #[must_use]
    pub fn arbiter(&self) -> &Arbiter {
        &self.arbiter
    }

    /// The books and what was counted while they were built.
    #[must_use]
    pub fn normaliser(&self) -> &Normaliser {
        &self.stage.normaliser
    }
}

/// The arbiter's sink: a stage with the places that its ticks go to. After a refusal it takes nothing more.
struct Output<'a, T, P> {
    stage: &'a mut Stage,
    time: &'a T,
    to: &'a mut Sequencer<P>,
    refused: Result<(), Refused>,
}

impl<T: Time, P: Publish> Sink for Output<'_, T, P> {
    #[inline]
    fn coming(&mut self, messages: Messages<'_>) {
        // With a filter most of them may be passed over.
        if self.stage.filter.is_none() {
            self.stage.normaliser.expect(messages.map(|(_, bytes)| bytes));
        }
    }

    fn message(&mut self, sequence: u64, bytes: &[u8], received: Nanos) {
        if self.refused.is_ok() {
            self.refused = self.stage.message(sequence, bytes, received, self.time, self.to);
        }
    }

    fn gap(&mut self, first: u64, last: u64) {
        if self.refused.is_ok() {
            self.refused = self.stage.gap(first, last, self.time, self.to);
        }
    }

    fn end_of_session(&mut self, next: u64) {
        if self.refused.is_ok() {
            self.refused = self.stage.end_of_session(next, self.time, self.to);
        }
    }

    fn reset(&mut self, session: Session) {
        if self.refused.is_ok() {
            self.refused = self.stage.reset(session, self.time, self.to);
        }
    }
}

impl Stage {
    /// Costs (without the publishing): a decode, a book update, two clock reads; no allocation but for a new stock.
    fn message<P: Publish>(
        &mut self,
        sequence: u64,
        bytes: &[u8],
        wire: Nanos,
        time: &impl Time,
        to: &mut Sequencer<P>,
    ) -> Result<(), Refused> {
        self.counters.messages += 1;
        self.counters.message_bytes += bytes.len() as u64;
        if let Some(filter) = &mut self.filter
            && !filter.wants(bytes)
        {
            return Ok(());
        }
        let Ok(applied) = self.normaliser.apply(bytes) else {
            self.counters.malformed_messages += 1;
            return match self.publish {
                PublishPolicy::Changes => Ok(()),
                PublishPolicy::EveryMessage => self.undecoded(sequence, bytes, wire, time, to),
            };
        };
        let stamps = Stamps { event: applied.event, wire, decoded: time.now() };
        let every = self.publish == PublishPolicy::EveryMessage;
        let image = if applied.image { self.normaliser.image(applied.instrument) } else { None };
        let draft = image.as_ref().or(applied.change.as_ref());
        if applied.image {
            // The number may stand for another instrument now.
            self.forget_item(applied.instrument);
        }
        if draft.is_none() && !every {
            return self.orders(&applied, sequence, stamps, time, to);
        }
        let item = self.item(applied.instrument, to);
        let origin = Origin {
            channel: self.number,
            item,
            name: self.normaliser.name(applied.instrument).unwrap_or_default(),
            feed_seq: sequence,
            source_type: bytes.first().copied().unwrap_or(0),
            source: if every { bytes } else { &[] },
        };
        let mut cut = false;
        let kind = if image.is_some() { Kind::Refresh } else { Kind::Update };
        let flags = if every { Flags::SOURCE } else { Flags::default() };
        to.tick(kind, flags, &origin, stamps, time, |out| {
            let written = match draft {
                Some(draft) if image.is_some() => body::refresh(out, draft),
                Some(draft) => body::update(out, draft),
                None => body::empty_update(out),
            };
            written.unwrap_or_else(|| {
                cut = true;
                body::empty_update(out).unwrap_or(0)
            })
        })?;
        self.counters.drafts_cut += u64::from(cut);
        self.counters.ticks += 1;
        if let Some(draft) = draft {
            let origin = Consolidating {
                channel: self.number,
                feed_seq: sequence,
                source_type: applied.letter,
                stamps,
            };
            to.show(&origin, item, draft, time)?;
        }
        self.orders(&applied, sequence, stamps, time, to)
    }

    /// A message that could not be decoded still has its place in the order, and its bytes.
    fn undecoded<P: Publish>(
        &mut self,
        sequence: u64,
        bytes: &[u8],
        wire: Nanos,
        time: &impl Time,
        to: &mut Sequencer<P>,
    ) -> Result<(), Refused> {
        let origin = Origin {
            channel: self.number,
            feed_seq: sequence,
            source_type: bytes.first().copied().unwrap_or(0),
            source: bytes,
            ..Origin::default()
        };
        let now = time.now();
        let stamps = Stamps { event: now, wire, decoded: now };
        to.tick(Kind::Update, Flags::SOURCE, &origin, stamps, time, |out| {
            body::empty_update(out).unwrap_or(0)
        })?;
        self.counters.ticks += 1;
        Ok(())
    }

    /// The item of an instrument, given a number when its name is first known. Item 0 is for messages about no
    /// instrument, for those about one that has not been named yet, and for those that find no room.
    #[inline]
    fn item<P: Publish>(&mut self, instrument: Instrument, to: &mut Sequencer<P>) -> ItemId {
        match self.items.get(instrument.0 as usize) {
            Some(known) if *known != ItemId(0) => *known,
            _ => self.new_item(instrument, to),
        }
    }

    #[cold]
    fn new_item<P: Publish>(&mut self, instrument: Instrument, to: &mut Sequencer<P>) -> ItemId {
        let Some(name) = self.normaliser.name(instrument) else { return ItemId(0) };
        let Ok(item) = to.item(name) else {
            self.counters.items_refused += 1;
            return ItemId(0);
        };
        let at = instrument.0 as usize;
        if self.items.len() <= at {
            // The normaliser's numbers are dense and bounded: those of ITCH are 16 bits wide.
            self.items.resize(at + 1, ItemId(0));
        }
        self.items[at] = item;
        item
    }

    fn forget_item(&mut self, instrument: Instrument) {
        if let Some(known) = self.items.get_mut(instrument.0 as usize) {
            *known = ItemId(0);
        }
    }

    fn gap<P: Publish>(
        &mut self,
        first: u64,
        last: u64,
        time: &impl Time,
        to: &mut Sequencer<P>,
    ) -> Result<(), Refused> {
        self.counters.gaps += 1;
        self.counters.missing =
            self.counters.missing.saturating_add((last - first.min(last)).saturating_add(1));
        self.status(Flags::GAP, last, time, to, |out| body::gap(out, first, last))?;
        to.set_standing(self.number, Standing::Doubtful, time)
    }

    fn end_of_session<P: Publish>(
        &mut self,
        next: u64,
        time: &impl Time,
        to: &mut Sequencer<P>,
    ) -> Result<(), Refused> {
        self.counters.ended = true;
        self.status(Flags::END_OF_SESSION, next.saturating_sub(1), time, to, |out| {
            body::end_of_session(out, next.saturating_sub(1))
        })
    }

    fn reset<P: Publish>(
        &mut self,
        session: Session,
        time: &impl Time,
        to: &mut Sequencer<P>,
    ) -> Result<(), Refused> {
        self.counters.ended = false;
        self.counters.sessions += 1;
        self.normaliser.reset();
        self.items.clear();
        self.images.clear();
        if let Some(filter) = &mut self.filter {
            filter.clear();
        }
        self.status(Flags::RESET, 0, time, to, |out| body::reset(out, session))?;
        to.set_standing(self.number, Standing::New, time)
    }

    /// A tick about the channel as a whole.
    fn status<P: Publish>(
        &mut self,
        flags: Flags,
        feed_seq: u64,
        time: &impl Time,
        to: &mut Sequencer<P>,
        write_body: impl FnOnce(&mut [u8]) -> Option<usize>,
    ) -> Result<(), Refused> {
        let now = time.now();
        let stamps = Stamps { event: now, wire: now, decoded: now };
        let origin = Origin { channel: self.number, feed_seq, ..Origin::default() };
        to.tick(Kind::Status, flags, &origin, stamps, time, |out| write_body(out).unwrap_or(0))?;
        self.counters.ticks += 1;
        Ok(())
    }
}
