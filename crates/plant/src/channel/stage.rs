//! Behind the arbiter: messages in, ticks out.

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
use crate::sequencer::{Consolidating, Origin, Sequencer, Stamps, Standing, Time};
use crate::state::{Seen, State};
use crate::tick::{Flags, Kind};

/// Everything behind the arbiter.
#[derive(Debug)]
pub(super) struct Stage {
    pub(super) number: u16,
    pub(super) publish: PublishPolicy,
    pub(super) normaliser: Normaliser,
    /// The item of each instrument: `ItemId(0)` where it has not been numbered yet.
    pub(super) items: Vec<ItemId>,
    /// What each of them is called where it is consolidated with those of other channels.
    pub(super) symbols: Vec<Symbol>,
    /// What stands behind an instrument's name in the name of its item.
    pub(super) suffix: Box<str>,
    pub(super) protocol: Protocol,
    /// Which messages are wanted at all; all of them without it.
    pub(super) filter: Option<Filter>,
    /// Which images of orders or price levels went out.
    pub(super) images: orders::Images,
    pub(super) counters: ChannelCounters,
    /// When subscribers were last told that the session is over.
    pub(super) ended_at: Nanos,
    /// What subscribers have been told that the channel's state is.
    pub(super) state: State,
    /// The first message that was lost since the session began: what was built without it may be wrong.
    pub(super) damaged_from: Option<u64>,
    /// The first message of the session that came, where it was not the first of the session and what is built needs those before.
    pub(super) begun_late_at: Option<u64>,
    /// The feed was silent: what it is seen to be as soon as it says something, and the first message that is missing then.
    pub(super) waking: Option<(Seen, u64)>,
    pub(super) midnight_before: Option<MidnightBefore>,
}

/// The arbiter's sink: a stage with the places that its ticks go to. After a refusal it takes nothing more.
pub(super) struct Output<'a, T, P> {
    pub(super) stage: &'a mut Stage,
    pub(super) time: &'a T,
    pub(super) to: &'a mut Sequencer<P>,
    pub(super) refused: Result<(), Refused>,
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
    /// Costs (without the publishing): a decode, a book update, two clock reads; no allocation but for a new stock.
    pub(super) fn message<P: Publish>(
        &mut self,
        sequence: u64,
        bytes: &[u8],
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
        let Ok(applied) = self.normaliser.apply(bytes) else {
            self.counters.malformed_messages += 1;
            return match self.publish {
                PublishPolicy::Changes => Ok(()),
                PublishPolicy::EveryMessage => self.undecoded(sequence, bytes, wire, time, to),
            };
        };
        let stamps = Stamps { event: applied.event, wire, decoded: time.now() };
        let every = self.publish == PublishPolicy::EveryMessage;
        // Whoever reads the ticks of an item begins with an image, also where its listing never came.
        let is_told = every || applied.change.is_some();
        let image = if applied.image || is_told && self.is_unheard_of(applied.instrument) {
            self.normaliser.image(applied.instrument)
        } else {
            None
        };
        let draft = image.as_ref().or(applied.change.as_ref());
        if applied.image {
            // The number may stand for another instrument now.
            self.forget_item(applied.instrument);
        }
        if draft.is_none() && !every {
            return self.depth(&applied, sequence, stamps, time, to);
        }
        let item = self.item(applied.instrument, to);
        let mut room = Room::default();
        let origin = Origin {
            service: None,
            channel: self.number,
            state: self.state,
            item,
            name: match self.normaliser.name(applied.instrument) {
                Some(symbol) => room.join(symbol, &self.suffix),
                None => "",
            },
            feed_seq: sequence,
            source_type: applied.letter,
            source: if every { bytes } else { &[] },
        };
        let mut cut = false;
        let kind = if image.is_some() { Kind::Refresh } else { Kind::Update };
        let flags = self.doubt(draft) | if every { Flags::SOURCE } else { Flags::default() };
        let suspect = self.is_suspect();
        let detail = match &applied.change {
            Some(change) if change.changed.has_detail() => self.normaliser.detail(),
            _ => None,
        };
        to.tick(kind, flags, &origin, stamps, time, |out| {
            let written = match draft {
                Some(draft) if image.is_some() => body::refresh(out, draft, detail, suspect),
                Some(draft) => body::update(out, draft, detail),
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
            let symbol = self.symbols.get(applied.instrument.0 as usize).copied().unwrap_or_default();
            to.show(&origin, symbol, draft, time)?;
        }
        self.depth(&applied, sequence, stamps, time, to)
    }

    /// What a message did to orders or price levels, where those are published.
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
            state: self.state,
            feed_seq: sequence,
            source_type: bytes.first().copied().unwrap_or(0),
            source: bytes,
            ..Origin::default()
        };
        let now = time.now();
        let stamps = Stamps { event: now, wire, decoded: now };
        to.tick(Kind::Update, self.doubt(None) | Flags::SOURCE, &origin, stamps, time, |out| {
            body::empty_update(out).unwrap_or(0)
        })?;
        self.counters.ticks += 1;
        Ok(())
    }

    /// The item of an instrument, given a number when its name is first known. Item 0 is for messages about no
    /// instrument, for those about one that has not been named yet, and for those that find no room.
    #[inline]
    pub(super) fn item<P: Publish>(&mut self, instrument: Instrument, to: &mut Sequencer<P>) -> ItemId {
        match self.items.get(instrument.0 as usize) {
            Some(known) if *known != ItemId(0) => *known,
            _ => self.new_item(instrument, to),
        }
    }

    /// Whether an instrument that can be named has no item in this session yet.
    #[inline]
    fn is_unheard_of(&self, instrument: Instrument) -> bool {
        self.items.get(instrument.0 as usize).is_none_or(|item| *item == ItemId(0))
            && self.normaliser.name(instrument).is_some()
    }

    #[cold]
    fn new_item<P: Publish>(&mut self, instrument: Instrument, to: &mut Sequencer<P>) -> ItemId {
        let Some(symbol) = self.normaliser.name(instrument) else { return ItemId(0) };
        let mut room = Room::default();
        let Ok(item) = to.item_by(self.number, room.join(symbol, &self.suffix)) else {
            self.counters.items_refused += 1;
            return ItemId(0);
        };
        let at = instrument.0 as usize;
        if self.items.len() <= at {
            // The normaliser's numbers are dense and bounded: those of ITCH are 16 bits wide.
            self.items.resize(at + 1, ItemId(0));
            self.symbols.resize(at + 1, Symbol::default());
        }
        (self.items[at], self.symbols[at]) = (item, to.symbol(self.number, symbol));
        item
    }

    fn forget_item(&mut self, instrument: Instrument) {
        if let Some(known) = self.items.get_mut(instrument.0 as usize) {
            *known = ItemId(0);
        }
    }

    /// Whether what is published may be wrong or old.
    #[inline]
    pub(super) const fn is_suspect(&self) -> bool {
        self.damaged_from.is_some() || matches!(self.state, State::Recovering | State::Stale)
    }

    /// The flag of a tick whose values may be wrong, as messages before it were lost. What was recovered is late and right, and a quote
    /// that the feed tells whole stands for itself; a trade does not, with its volume of the day.
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

    fn gap<P: Publish>(
        &mut self,
        first: u64,
        last: u64,
        time: &impl Time,
        to: &mut Sequencer<P>,
    ) -> Result<(), Refused> {
        self.wake(time, to)?;
        self.counters.gaps += 1;
        match (last - first.min(last)).saturating_add(1) {
            missing @ ..=LARGEST_GAP => {
                self.counters.missing = self.counters.missing.saturating_add(missing);
            }
            _ => self.counters.absurd_gaps += 1,
        }
        self.damaged_from.get_or_insert(first);
        self.status(Flags::GAP, last, time, to, |out| body::gap(out, first, last))?;
        to.set_standing(self.number, Standing::Doubtful, time)
    }

    pub(super) fn end_of_session<P: Publish>(
        &mut self,
        next: u64,
        time: &impl Time,
        to: &mut Sequencer<P>,
    ) -> Result<(), Refused> {
        self.wake(time, to)?;
        (self.counters.ended, self.ended_at) = (true, time.now());
        self.status(Flags::END_OF_SESSION, next.saturating_sub(1), time, to, |out| {
            body::end_of_session(out, next.saturating_sub(1))
        })
    }

    /// The end that was told is none.
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

    /// The books begin anew, and so do images: every item is told that it is blank, so that nobody goes on showing the
    /// quotes of a session that is over. Nothing is suspect any more.
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
        self.symbols.clear();
        self.images.clear();
        if let Some(filter) = &mut self.filter {
            filter.clear();
        }
        if let Some(midnight_before) = self.midnight_before
            && let Some(midnight) = midnight_before(time.now())
        {
            self.normaliser.begin_day(midnight);
        }
        to.set_standing(self.number, Standing::New, time)
    }

    /// What came before this message is not known: books that are built on it are suspect until the next session.
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
        to.set_standing(self.number, Standing::Doubtful, time)
    }

    /// An image without values for each item that has one.
    fn blank_all<P: Publish>(&mut self, time: &impl Time, to: &mut Sequencer<P>) -> Result<(), Refused> {
        let now = time.now();
        let stamps = Stamps { event: now, wire: now, decoded: now };
        for (at, item) in (0..).zip(&self.items) {
            let Some(symbol) = self.normaliser.name(Instrument(at)).filter(|_| *item != ItemId(0)) else {
                continue;
            };
            let mut room = Room::default();
            let name = room.join(symbol, &self.suffix);
            let origin =
                Origin { channel: self.number, state: self.state, item: *item, name, ..Origin::default() };
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

    /// The feed says something, and was silent: that is told first.
    #[inline]
    fn wake<P: Publish>(&mut self, time: &impl Time, to: &mut Sequencer<P>) -> Result<(), Refused> {
        match self.waking.take() {
            Some((seen, first)) => self.see(seen, first, time, to).map(|_| ()),
            None => Ok(()),
        }
    }

    /// Goes over to the state that follows from what is seen, and tells it if it is another one; whether it is. `first` is
    /// the first message that is missing, where one is.
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
        let standing = if self.is_suspect() { Standing::Doubtful } else { Standing::Current };
        to.set_standing(self.number, standing, time)?;
        Ok(true)
    }

    /// Tells that a line has fallen silent while others go on, or is heard of again.
    pub(super) fn line<P: Publish>(
        &mut self,
        line: Line,
        silent: bool,
        time: &impl Time,
        to: &mut Sequencer<P>,
    ) -> Result<(), Refused> {
        self.status(Flags(0), 0, time, to, |out| body::line(out, line, silent))
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
        let origin = Origin { channel: self.number, state: self.state, feed_seq, ..Origin::default() };
        let flags = flags | if self.is_suspect() { Flags::SUSPECT } else { Flags(0) };
        to.tick(Kind::Status, flags, &origin, stamps, time, |out| write_body(out).unwrap_or(0))?;
        self.counters.ticks += 1;
        Ok(())
    }
}

/// The longest name of an item where names have a suffix: a symbol of any protocol and an ending.
const ROOM: usize = 96;

/// Room for the name of an item.
pub(super) struct Room([u8; ROOM]);

impl Default for Room {
    fn default() -> Self {
        Self([0; ROOM])
    }
}

impl Room {
    /// The name of the item of a symbol. What does not fit is cut, at a character.
    #[inline]
    pub(super) fn join<'a>(&'a mut self, symbol: &'a str, suffix: &str) -> &'a str {
        if suffix.is_empty() {
            return symbol;
        }
        let mut used = 0;
        for part in [symbol, suffix] {
            let part = &part[..part.floor_char_boundary(ROOM - used)];
            self.0[used..used + part.len()].copy_from_slice(part.as_bytes());
            used += part.len();
        }
        // Made of two texts, so it is one.
        std::str::from_utf8(&self.0[..used]).unwrap_or(symbol)
    }
}
