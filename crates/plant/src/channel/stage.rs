//! The part of a channel after the arbiter: messages to ticks.

use tapeline_feed::Protocol;
use tapeline_feed::draft::Draft;
use tapeline_feed::line::{LARGEST_GAP, Line, Messages, Session, Sink};
use tapeline_feed::normalise::{Applied, Instrument, Normaliser};
use tapeline_feed::symbols::Filter;
use tapeline_measure::Nanos;

use super::{ChannelCounters, MidnightBefore, PublishPolicy, orders};
use crate::ItemId;
use crate::body;
use crate::consolidation::Symbol;
use crate::publish::{Publish, Refused};
use crate::sequencer::{ChannelStanding, Consolidating, Origin, Sequencer, Stamps, Time};
use crate::state::{Seen, State};
use crate::tick::{Flags, Kind};

/// The state of a channel after the arbiter.
#[derive(Debug)]
pub(super) struct Stage {
    pub(super) number: u16,
    pub(super) publish: PublishPolicy,
    pub(super) normaliser: Normaliser,
    /// The item of each instrument.
    pub(super) items: Vec<KnownItem>,
    /// The suffix of an instrument's name in the name of its item.
    pub(super) suffix: Box<str>,
    pub(super) protocol: Protocol,
    /// The filter of messages; without one all are wanted.
    pub(super) filter: Option<Filter>,
    /// The published images of orders or price levels.
    pub(super) images: orders::Images,
    pub(super) counters: ChannelCounters,
    /// Time of the last report of the end of a session.
    pub(super) ended_at: Nanos,
    /// The channel's state, as published.
    pub(super) state: State,
    /// The first lost message of the session: data built without it may be wrong.
    pub(super) damaged_from: Option<u64>,
    /// The first received message of the session, if earlier ones were missed that the books need.
    pub(super) begun_late_at: Option<u64>,
    /// While the feed is silent: the state that applies as soon as it resumes, and the first message missing then.
    pub(super) waking: Option<(Seen, u64)>,
    pub(super) midnight_before: Option<MidnightBefore>,
}

/// An instrument's item, with everything that its ticks need.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownItem {
    /// `ItemId(0)` without a number so far.
    pub(super) id: ItemId,
    /// The symbol for consolidation with other channels.
    symbol: Symbol,
    /// The name of the item.
    name: Box<str>,
}

/// The arbiter's sink: a stage with its publisher. After a refusal it ignores further input.
pub(super) struct Output<'a, T, P> {
    pub(super) stage: &'a mut Stage,
    pub(super) time: &'a T,
    pub(super) to: &'a mut Sequencer<P>,
    pub(super) refused: Result<(), Refused>,
}

impl<T: Time, P: Publish> Sink for Output<'_, T, P> {
    #[inline]
    fn run(&mut self, mut messages: Messages<'_>, received: Nanos) {
        while self.refused.is_ok() {
            // With a filter, most messages may be skipped.
            let expected = match self.stage.filter {
                None => self.stage.normaliser.expect(messages.map(|(_, bytes)| bytes)),
                Some(_) => 0,
            };
            for at in 0..expected.max(1) {
                let Some((sequence, bytes)) = messages.next() else { return };
                let expected = (at < expected).then_some(at);
                // A refusal is copied only if there is one: a copy of an outcome that was just written waits for the store buffer.
                if let Err(refused) =
                    self.stage.message(sequence, bytes, expected, received, self.time, self.to)
                {
                    self.refused = Err(refused);
                    return;
                }
            }
        }
    }

    fn message(&mut self, sequence: u64, bytes: &[u8], received: Nanos) {
        if self.refused.is_ok() {
            self.refused = self.stage.message(sequence, bytes, None, received, self.time, self.to);
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

    fn end_taken_back(&mut self, next: u64) {
        if self.refused.is_ok() {
            self.refused = self.stage.end_taken_back(next, self.time, self.to);
        }
    }

    fn reset(&mut self, session: Session) {
        if self.refused.is_ok() {
            self.refused = self.stage.reset(session, self.time, self.to);
        }
    }

    fn begins_late(&mut self, first: u64) {
        if self.refused.is_ok() {
            self.refused = self.stage.begins_late(first, self.time, self.to);
        }
    }
}

impl Stage {
    /// Applies a message and publishes its changes. `expected` is its place among the messages that the normaliser expects.
    ///
    /// Costs, without the publication: a decode, a book update, for a tick two clock reads; allocates only for a new stock.
    #[inline]
    pub(super) fn message<P: Publish>(
        &mut self,
        sequence: u64,
        bytes: &[u8],
        expected: Option<usize>,
        wire: Nanos,
        time: &impl Time,
        to: &mut Sequencer<P>,
    ) -> Result<(), Refused> {
        self.wake(time, to)?;
        self.counters.messages += 1;
        self.counters.message_bytes += bytes.len() as u64;
        if let Some(filter) = &mut self.filter
            && !filter.wants(bytes)
        {
            return Ok(());
        }
        // A draft is large: it stays where it was written.
        let applied = match expected {
            Some(at) => self.normaliser.apply_expected(at, bytes),
            None => self.normaliser.apply(bytes),
        };
        let Ok(applied) = &applied else { return self.malformed(sequence, bytes, wire, time, to) };
        self.applied(applied, sequence, bytes, wire, time, to)
    }

    /// Counts a message that could not be decoded, and publishes it if every message is published.
    #[cold]
    pub(super) fn malformed<P: Publish>(
        &mut self,
        sequence: u64,
        bytes: &[u8],
        wire: Nanos,
        time: &impl Time,
        to: &mut Sequencer<P>,
    ) -> Result<(), Refused> {
        self.counters.malformed_messages += 1;
        match self.publish {
            PublishPolicy::Changes => Ok(()),
            PublishPolicy::EveryMessage => self.undecoded(sequence, bytes, wire, time, to),
        }
    }

    /// Publishes the result of a message.
    #[inline]
    pub(super) fn applied<P: Publish>(
        &mut self,
        applied: &Applied,
        sequence: u64,
        bytes: &[u8],
        wire: Nanos,
        time: &impl Time,
        to: &mut Sequencer<P>,
    ) -> Result<(), Refused> {
        let every = self.publish == PublishPolicy::EveryMessage;
        if applied.change.is_none() && !(applied.image || every || self.has_depth()) {
            return Ok(());
        }
        let stamps = Stamps { event: applied.event, wire, decoded: time.now() };
        // A reader of an item's ticks begins with an image, even if its listing never arrived.
        let is_told = every || applied.change.is_some();
        let needs_image = applied.image || is_told && self.is_unheard_of(applied.instrument);
        let image = if needs_image { self.normaliser.image(applied.instrument) } else { None };
        if applied.image {
            // The number may stand for another instrument now.
            self.forget_item(applied.instrument);
        }
        if applied.change.is_none() && image.is_none() && !every {
            return self.depth(applied, sequence, stamps, time, to);
        }
        self.publish_change(applied, image.as_ref(), (sequence, bytes), stamps, time, to)
    }

    /// Publishes the tick of a message: an image, an update, or an update without fields for a message that changes nothing.
    #[inline]
    fn publish_change<P: Publish>(
        &mut self,
        applied: &Applied,
        image: Option<&Draft>,
        (sequence, bytes): (u64, &[u8]),
        stamps: Stamps,
        time: &impl Time,
        to: &mut Sequencer<P>,
    ) -> Result<(), Refused> {
        let every = self.publish == PublishPolicy::EveryMessage;
        let draft = image.or(applied.change.as_ref());
        let item = self.item(applied.instrument, to);
        let mut room;
        let name = match self.known_name(applied.instrument) {
            Some(name) => name,
            None => {
                room = [0; ROOM];
                self.normaliser
                    .name(applied.instrument)
                    .map_or("", |symbol| join(&mut room, symbol, &self.suffix))
            }
        };
        let source = if every { bytes } else { &[] };
        let origin = Origin { source, ..self.origin((item, name), sequence, applied.letter) };
        let mut cut = false;
        let kind = if image.is_some() { Kind::Refresh } else { Kind::Update };
        let flags = self.doubt(draft) | if every { Flags::SOURCE } else { Flags::default() };
        let suspect = self.is_suspect();
        let detail = match &applied.change {
            Some(change) if change.changed.has_detail() => self.normaliser.detail(),
            _ => None,
        };
        to.tick(kind, flags, &origin, stamps, time, |out| {
            body::of_change(out, kind, draft, detail, suspect).unwrap_or_else(|| {
                cut = true;
                body::empty_update(out).unwrap_or(0)
            })
        })?;
        self.counters.drafts_cut += u64::from(cut);
        self.counters.ticks += 1;
        if let Some(draft) = draft {
            self.consolidate(applied, draft, sequence, stamps, time, to)?;
        }
        if self.has_depth() { self.depth(applied, sequence, stamps, time, to) } else { Ok(()) }
    }

    /// Passes a draft on to the best bid and offer over several feeds, if that is published.
    #[inline]
    fn consolidate<P: Publish>(
        &self,
        applied: &Applied,
        draft: &Draft,
        sequence: u64,
        stamps: Stamps,
        time: &impl Time,
        to: &mut Sequencer<P>,
    ) -> Result<(), Refused> {
        let origin =
            Consolidating { channel: self.number, feed_seq: sequence, source_type: applied.letter, stamps };
        let known = self.items.get(applied.instrument.0 as usize);
        let symbol = known.map_or(Symbol::default(), |known| known.symbol);
        to.show(&origin, symbol, draft, time)
    }

    /// Returns `true` if orders or price levels are published.
    #[inline]
    fn has_depth(&self) -> bool {
        self.normaliser.depth().is_some() || self.normaliser.levels().is_some()
    }

    /// Publishes the changes of orders or price levels, if those are published.
    fn depth<P: Publish>(
        &mut self,
        applied: &Applied,
        sequence: u64,
        stamps: Stamps,
        time: &impl Time,
        to: &mut Sequencer<P>,
    ) -> Result<(), Refused> {
        self.orders(applied, sequence, stamps, time, to)?;
        self.levels(applied, sequence, stamps, time, to)
    }

    /// Publishes a message that could not be decoded, with its place in the sequence and its bytes.
    fn undecoded<P: Publish>(
        &mut self,
        sequence: u64,
        bytes: &[u8],
        wire: Nanos,
        time: &impl Time,
        to: &mut Sequencer<P>,
    ) -> Result<(), Refused> {
        let letter = bytes.first().copied().unwrap_or(0);
        let origin = Origin { source: bytes, ..self.origin((ItemId(0), ""), sequence, letter) };
        let stamps = Stamps { wire, ..Stamps::at(time.now()) };
        to.tick(Kind::Update, self.doubt(None) | Flags::SOURCE, &origin, stamps, time, |out| {
            body::empty_update(out).unwrap_or(0)
        })?;
        self.counters.ticks += 1;
        Ok(())
    }

    /// Returns the origin of a tick of an item, without a source.
    #[inline]
    pub(super) fn origin<'n>(
        &self,
        (item, name): (ItemId, &'n str),
        feed_seq: u64,
        letter: u8,
    ) -> Origin<'n> {
        let (channel, state) = (self.number, self.state);
        Origin { channel, state, item, name, feed_seq, source_type: letter, ..Origin::default() }
    }

    /// Returns the item of an instrument, numbered when its name is first known. Item 0 stands for messages without an instrument, for instruments
    /// without a name so far, and for items beyond the limit.
    #[inline]
    pub(super) fn item<P: Publish>(&mut self, instrument: Instrument, to: &mut Sequencer<P>) -> ItemId {
        match self.items.get(instrument.0 as usize) {
            Some(known) if known.id != ItemId(0) => known.id,
            _ => self.new_item(instrument, to),
        }
    }

    /// Returns the name of an instrument's item, if the instrument has one.
    #[inline]
    fn known_name(&self, instrument: Instrument) -> Option<&str> {
        let known = self.items.get(instrument.0 as usize)?;
        (known.id != ItemId(0)).then_some(&*known.name)
    }

    /// Returns `true` if an instrument with a name has no item in this session yet.
    #[inline]
    fn is_unheard_of(&self, instrument: Instrument) -> bool {
        self.items.get(instrument.0 as usize).is_none_or(|item| item.id == ItemId(0))
            && self.normaliser.name(instrument).is_some()
    }

    #[cold]
    fn new_item<P: Publish>(&mut self, instrument: Instrument, to: &mut Sequencer<P>) -> ItemId {
        let Some(symbol) = self.normaliser.name(instrument) else { return ItemId(0) };
        let mut room = [0; ROOM];
        let name = join(&mut room, symbol, &self.suffix);
        let Ok(item) = to.item_by(self.number, name) else {
            self.counters.items_refused += 1;
            return ItemId(0);
        };
        let at = instrument.0 as usize;
        if self.items.len() <= at {
            // The normaliser's numbers are dense and bounded: those of ITCH have 16 bits.
            self.items.resize(at + 1, KnownItem::default());
        }
        self.items[at] = KnownItem { id: item, symbol: to.symbol(self.number, symbol), name: name.into() };
        item
    }

    fn forget_item(&mut self, instrument: Instrument) {
        if let Some(known) = self.items.get_mut(instrument.0 as usize) {
            known.id = ItemId(0);
        }
    }

    /// Returns `true` if the published data may be wrong or old.
    #[inline]
    pub(super) const fn is_suspect(&self) -> bool {
        self.damaged_from.is_some() || matches!(self.state, State::Recovering | State::Stale)
    }

    /// Returns the flag of a tick whose values may be wrong because earlier messages were lost. Recovered data is late and right, and a complete
    /// quote does not depend on earlier messages; a trade does, because of its volume of the day.
    #[inline]
    pub(super) const fn doubt(&self, draft: Option<&Draft>) -> Flags {
        if self.damaged_from.is_none() {
            return Flags(0);
        }
        match draft {
            Some(Draft { changed, .. })
                if !self.protocol.builds_on_history()
                    && changed.is_quote()
                    && !(changed.trade | changed.correction | changed.status) =>
            {
                Flags(0)
            }
            _ => Flags::SUSPECT,
        }
    }

    pub(super) fn gap<P: Publish>(
        &mut self,
        first: u64,
        last: u64,
        time: &impl Time,
        to: &mut Sequencer<P>,
    ) -> Result<(), Refused> {
        self.wake(time, to)?;
        self.counters.gaps += 1;
        self.counters.last_gap = (first, last);
        match (last - first.min(last)).saturating_add(1) {
            missing @ ..=LARGEST_GAP => {
                self.counters.missing = self.counters.missing.saturating_add(missing);
            }
            _ => self.counters.absurd_gaps += 1,
        }
        self.damaged_from.get_or_insert(first);
        self.status(Flags::GAP, last, time, to, |out| body::gap(out, first, last))?;
        to.set_standing(self.number, ChannelStanding::Doubtful, time)
    }

    pub(super) fn end_of_session<P: Publish>(
        &mut self,
        next: u64,
        time: &impl Time,
        to: &mut Sequencer<P>,
    ) -> Result<(), Refused> {
        self.wake(time, to)?;
        (self.counters.ended, self.ended_at) = (true, time.now());
        let last = next.saturating_sub(1);
        self.status(Flags::END_OF_SESSION, last, time, to, |out| body::end_of_session(out, last))
    }

    /// Handles the revocation of the announced end.
    fn end_taken_back<P: Publish>(
        &mut self,
        next: u64,
        time: &impl Time,
        to: &mut Sequencer<P>,
    ) -> Result<(), Refused> {
        self.wake(time, to)?;
        self.counters.ended = false;
        let last = next.saturating_sub(1);
        self.status(Flags(0), last, time, to, |out| body::end_taken_back(out, last))
    }

    /// Handles the start of a session: the books are empty, and a blank image of every item is published, so that no reader shows quotes of the
    /// previous session. Nothing is suspect any more.
    fn reset<P: Publish>(
        &mut self,
        session: Session,
        time: &impl Time,
        to: &mut Sequencer<P>,
    ) -> Result<(), Refused> {
        self.counters.ended = false;
        self.counters.sessions += 1;
        (self.damaged_from, self.begun_late_at, self.waking) = (None, None, None);
        let told = if self.state.see(Seen::Whole).is_some() { Flags::STATE } else { Flags(0) };
        self.status(Flags::RESET | told, 0, time, to, |out| body::reset(out, session))?;
        self.blank_all(time, to)?;
        self.normaliser.reset();
        self.items.clear();
        self.images.clear();
        if let Some(filter) = &mut self.filter {
            filter.clear();
        }
        if let Some(midnight_before) = self.midnight_before
            && let Some(midnight) = midnight_before(time.now())
        {
            self.normaliser.begin_day(midnight);
        }
        to.set_standing(self.number, ChannelStanding::New, time)
    }

    /// Handles missing messages before this one: books that depend on them are suspect until the next session.
    fn begins_late<P: Publish>(
        &mut self,
        first: u64,
        time: &impl Time,
        to: &mut Sequencer<P>,
    ) -> Result<(), Refused> {
        if !self.protocol.builds_on_history() {
            return Ok(());
        }
        self.begun_late_at = Some(first);
        self.damaged_from = Some(1);
        self.status(Flags(0), first.saturating_sub(1), time, to, |out| body::begins_late(out, first))?;
        to.set_standing(self.number, ChannelStanding::Doubtful, time)
    }

    /// Publishes an image without values for each item that has one.
    fn blank_all<P: Publish>(&mut self, time: &impl Time, to: &mut Sequencer<P>) -> Result<(), Refused> {
        let stamps = Stamps::at(time.now());
        for (at, KnownItem { id: item, name, .. }) in (0..).zip(&self.items) {
            if *item == ItemId(0) || self.normaliser.name(Instrument(at)).is_none() {
                continue;
            }
            let origin = self.origin((*item, name), 0, 0);
            to.tick(Kind::Refresh, Flags::RESET, &origin, stamps, time, |out| body::blank(out).unwrap_or(0))?;
            self.counters.ticks += 1;
            if self.images.is_published(Instrument(at)) {
                let has_levels = self.normaliser.levels().is_some();
                to.tick(Kind::Refresh, Flags::RESET, &origin, stamps, time, |out| {
                    let blank = if has_levels {
                        body::levels::refresh(out, false, std::iter::empty())
                    } else {
                        body::orders::blank(out)
                    };
                    blank.unwrap_or(0)
                })?;
                self.counters.ticks += 1;
            }
        }
        Ok(())
    }

    /// Handles the first data after a silence: the change of state is published first.
    #[inline]
    fn wake<P: Publish>(&mut self, time: &impl Time, to: &mut Sequencer<P>) -> Result<(), Refused> {
        match self.waking.take() {
            Some((seen, first)) => self.see(seen, first, time, to).map(|_| ()),
            None => Ok(()),
        }
    }

    /// Sets the state that follows from `seen`, and publishes it if it changed; returns `true` if it did. `first` is the first missing message, if
    /// there is one.
    #[cold]
    pub(super) fn see<P: Publish>(
        &mut self,
        seen: Seen,
        first: u64,
        time: &impl Time,
        to: &mut Sequencer<P>,
    ) -> Result<bool, Refused> {
        let Some(before) = self.state.see(seen) else { return Ok(false) };
        let (state, damaged_from) = (self.state, self.damaged_from);
        self.status(Flags::STATE, 0, time, to, |out| body::state(out, before, state, first, damaged_from))?;
        let standing = if self.is_suspect() { ChannelStanding::Doubtful } else { ChannelStanding::Current };
        to.set_standing(self.number, standing, time)?;
        Ok(true)
    }

    /// Publishes that a line has become silent while others continue, or has resumed.
    pub(super) fn line<P: Publish>(
        &mut self,
        line: Line,
        silent: bool,
        time: &impl Time,
        to: &mut Sequencer<P>,
    ) -> Result<(), Refused> {
        self.status(Flags(0), 0, time, to, |out| body::line(out, line, silent))
    }

    /// Publishes a tick about the whole channel.
    fn status<P: Publish>(
        &mut self,
        flags: Flags,
        feed_seq: u64,
        time: &impl Time,
        to: &mut Sequencer<P>,
        write_body: impl FnOnce(&mut [u8]) -> Option<usize>,
    ) -> Result<(), Refused> {
        let stamps = Stamps::at(time.now());
        let origin = self.origin((ItemId(0), ""), feed_seq, 0);
        let flags = flags | if self.is_suspect() { Flags::SUSPECT } else { Flags(0) };
        to.tick(Kind::Status, flags, &origin, stamps, time, |out| write_body(out).unwrap_or(0))?;
        self.counters.ticks += 1;
        Ok(())
    }
}

/// Maximum length of an item's name with a suffix: a symbol of any protocol and the suffix.
pub(super) const ROOM: usize = 96;

/// Returns the item's name of a symbol. A name that is too long is cut at a character.
#[inline]
pub(super) fn join<'a>(room: &'a mut [u8; ROOM], symbol: &'a str, suffix: &str) -> &'a str {
    if suffix.is_empty() {
        return symbol;
    }
    let mut used = 0;
    for part in [symbol, suffix] {
        let part = &part[..part.floor_char_boundary(ROOM - used)];
        room[used..used + part.len()].copy_from_slice(part.as_bytes());
        used += part.len();
    }
    // Two texts make a valid text.
    std::str::from_utf8(&room[..used]).unwrap_or(symbol)
}
