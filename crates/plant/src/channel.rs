//! One feed's whole way: datagrams in, ticks out.

use tapeline_feed::book;
use tapeline_feed::draft::Draft;
use tapeline_feed::itch::{Kind as MessageKind, Locate, MessageType, Symbol};
use tapeline_feed::line::{self, Arbiter, Line, LineStatistics, Sink};
use tapeline_feed::moldudp64::Session;
use tapeline_feed::normalise::Normaliser;
use tapeline_measure::Nanos;

use crate::ItemId;
use crate::body;
use crate::publish::{Publish, Refused};
use crate::sequencer::{Origin, Sequencer, Stamps, Time};
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
    /// Midnight in New York of the trading day.
    pub midnight: Nanos,
    /// Which messages become ticks.
    pub publish: PublishPolicy,
    /// Bounds and policies of arbitration.
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
    /// The item of each stock and its name, by locate: `ItemId(0)` where it has not been named yet.
    items: Vec<(ItemId, Symbol)>,
    counters: ChannelCounters,
}

impl Channel {
    /// A channel that has seen nothing.
    #[must_use]
    pub fn new(settings: ChannelSettings) -> Self {
        Self {
            arbiter: Arbiter::new(settings.arbitration),
            stage: Stage {
                number: settings.number,
                publish: settings.publish,
                normaliser: Normaliser::new(settings.books, settings.midnight),
                items: Vec::new(),
                counters: ChannelCounters::default(),
            },
        }
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
        let Ok(applied) = self.normaliser.apply(bytes) else {
            self.counters.malformed_messages += 1;
            return match self.publish {
                PublishPolicy::Changes => Ok(()),
                PublishPolicy::EveryMessage => self.undecoded(sequence, bytes, wire, time, to),
            };
        };
        let stamps =
            Stamps { event: self.normaliser.instant(applied.event_ns_of_day), wire, decoded: time.now() };
        let every = self.publish == PublishPolicy::EveryMessage;
        let new_stock = applied.kind == MessageKind::Known(MessageType::StockDirectory);
        let image = if new_stock { self.normaliser.image(applied.locate) } else { None };
        let draft = image.as_ref().or(applied.change.as_ref());
        if draft.is_none() && !every {
            return Ok(());
        }
        if new_stock && let Some(known) = self.items.get_mut(usize::from(applied.locate.0)) {
            // The number may stand for another stock now.
            *known = (ItemId(0), Symbol::BLANK);
        }
        let (item, symbol) = self.item(applied.locate, draft, to);
        let origin = Origin {
            channel: self.number,
            item,
            name: symbol.as_str(),
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
        Ok(())
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

    /// The item of a stock, given a number when its name is first known. Item 0 without a name is for messages about
    /// no stock, and for those about a stock that has not been named yet.
    fn item<P: Publish>(
        &mut self,
        locate: Locate,
        draft: Option<&Draft>,
        to: &mut Sequencer<P>,
    ) -> (ItemId, Symbol) {
        let at = usize::from(locate.0);
        if let Some(known) = self.items.get(at).filter(|(item, _)| *item != ItemId(0)) {
            return *known;
        }
        let symbol = match draft {
            Some(draft) => draft.symbol,
            None => self.normaliser.books().book(locate).map_or(Symbol::BLANK, book::Book::symbol),
        };
        if symbol.is_blank() {
            return (ItemId(0), Symbol::BLANK);
        }
        let Ok(item) = to.item(symbol.as_str()) else {
            self.counters.items_refused += 1;
            return (ItemId(0), symbol);
        };
        if self.items.len() <= at {
            // At most 65,536 entries: a locate is a u16.
            self.items.resize(at + 1, (ItemId(0), Symbol::BLANK));
        }
        self.items[at] = (item, symbol);
        (item, symbol)
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
        self.status(Flags::GAP, last, time, to, |out| body::gap(out, first, last))
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
        self.status(Flags::RESET, 0, time, to, |out| body::reset(out, session))
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
