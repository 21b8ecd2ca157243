//! One sequence for all ticks of the plant.

use tapeline_feed::draft::Draft;
use tapeline_feed::nbbo::{Market, Nbbo};
use tapeline_measure::{Clock, Nanos};

use crate::body;
use crate::consolidation::{Consolidation, ConsolidationSettings, Symbol};
use crate::publish::{Publish, Refused};
use crate::tick::{Flags, HEADER_BYTES, Header, Kind, MAX_NAME_BYTES, Tick};
use crate::{ItemId, ItemSource, Items, State, TooManyItems};

/// A tick's place in the plant's sequence: the first is 1, no number is skipped. 0 is the place of ticks outside the sequence: what a plant says of
/// the [bridge](crate::bridge) to the plant that numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seq(pub u64);

impl Seq {
    /// Returns `true` for the place of a tick outside the sequence: readers that count or expect sequences leave the tick out of that.
    #[inline]
    #[must_use]
    pub const fn is_outside(self) -> bool {
        self.0 == 0
    }
}

/// The clock, as an argument: a real one in a real plant, a simulated one in a simulated plant.
pub trait Time {
    /// Returns the current time in ns since 1970 UTC.
    fn now(&self) -> Nanos;
}

impl Time for Clock {
    fn now(&self) -> Nanos {
        Self::now(self)
    }
}

/// The times at which a message happened, arrived and was decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamps {
    /// The time of the event, as stated by the exchange.
    pub event: Nanos,
    /// The arrival time of the datagram.
    pub wire: Nanos,
    /// The time of decoding.
    pub decoded: Nanos,
}

impl Stamps {
    /// Returns the stamps of what happens now, in the plant itself.
    #[inline]
    pub(crate) const fn at(now: Nanos) -> Self {
        Self { event: now, wire: now, decoded: now }
    }
}

/// The origin of a tick.
#[derive(Clone, Copy, Debug, Default)]
pub struct Origin<'a> {
    /// The service's number in the plant; `None` for the service of the feeds.
    pub service: Option<u16>,
    /// The channel's number in the plant.
    pub channel: u16,
    /// The channel's state.
    pub state: State,
    /// The item; 0 for the channel as a whole.
    pub item: ItemId,
    /// The item's name; cut at a character if longer than [`MAX_NAME_BYTES`].
    pub name: &'a str,
    /// The feed's sequence; 0 if there is none.
    pub feed_seq: u64,
    /// The first byte of the feed's message.
    pub source_type: u8,
    /// The feed's message if every message is published; else empty.
    pub source: &'a [u8],
}

/// A tick that is published together with others of the same origin: see [`Sequencer::ticks_together`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Together<'a> {
    pub(crate) kind: Kind,
    pub(crate) flags: Flags,
    pub(crate) item: ItemId,
    /// The item's name: UTF-8, at most [`MAX_NAME_BYTES`].
    pub(crate) name: &'a [u8],
    /// The RWF message: its header, and the rest.
    pub(crate) header: &'a [u8],
    pub(crate) payload: &'a [u8],
    /// At most 65,535 bytes.
    pub(crate) source: &'a [u8],
}

/// The cause of a change of a best bid and offer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Consolidating {
    /// The channel's number.
    pub(crate) channel: u16,
    pub(crate) feed_seq: u64,
    /// The first byte of the feed's message.
    pub(crate) source_type: u8,
    /// The message's stamps.
    pub(crate) stamps: Stamps,
}

/// The validity of a channel's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChannelStanding {
    /// Messages are missing, or no data arrives.
    Doubtful,
    /// All data has arrived again.
    Current,
    /// A session begins: the data is current, and empty.
    New,
}

/// A sequencer that assigns the next sequence to every tick and writes the tick once, in place for its readers.
#[derive(Debug)]
pub struct Sequencer<P> {
    publish: P,
    items: Items,
    service: u16,
    first: u64,
    next: u64,
    consolidation: Option<Box<Consolidation>>,
    /// The lengths of ticks that are published together.
    lens: Vec<usize>,
}

impl<P: Publish> Sequencer<P> {
    /// The maximum size of the RWF message in a feed's tick, in bytes.
    pub const MAX_BODY_BYTES: usize = 512;

    /// Creates a sequencer that passes ticks to `publish`, those of feeds under `service`. The first tick gets sequence 1, unless
    /// [`after`](Self::after) sets another.
    pub fn new(service: u16, items: Items, publish: P) -> Self {
        Self { publish, items, service, first: 1, next: 1, consolidation: None, lens: Vec::new() }
    }

    /// Sets the last sequence in use: the first tick gets the next one, so that a plant continues where another ended.
    #[must_use]
    pub fn after(self, last: Seq) -> Self {
        let first = last.0 + 1;
        Self { first, next: first, ..self }
    }

    /// Returns the number of an item of the feeds' service; assigns one if the item is new.
    ///
    /// # Errors
    /// [`TooManyItems`] if it is new and the plant is full.
    pub fn item(&mut self, name: &str) -> Result<ItemId, TooManyItems> {
        self.items.id(self.service, name)
    }

    /// As [`item`](Self::item), on behalf of a channel, whose share includes the item.
    ///
    /// # Errors
    /// [`TooManyItems`] if it is new, and the plant is full, or has only places that are reserved for other sources.
    pub(crate) fn item_by(&mut self, channel: u16, name: &str) -> Result<ItemId, TooManyItems> {
        self.items.id_by(ItemSource::Channel(channel), self.service, name)
    }

    /// Returns the number of an item of the feeds' service, if it has one.
    #[must_use]
    pub(crate) fn find_item(&self, name: &str) -> Option<ItemId> {
        self.items.find(self.service, name)
    }

    /// Does the same as [`Self::item`] for an item of any service.
    ///
    /// # Errors
    /// [`TooManyItems`] if it is new and the plant is full.
    pub fn item_of(&mut self, service: u16, name: &str) -> Result<ItemId, TooManyItems> {
        self.items.id(service, name)
    }

    /// Publishes the last tick of a provider's item, with [`Flags::LAST`], and frees its number; no other tick comes between.
    ///
    /// # Errors
    /// As [`tick_up_to`](Self::tick_up_to); the item then keeps its number.
    pub fn end_item(
        &mut self,
        most_body: usize,
        flags: Flags,
        origin: &Origin<'_>,
        stamps: Stamps,
        time: &impl Time,
        write_body: impl FnOnce(&mut [u8]) -> usize,
    ) -> Result<Seq, Refused> {
        let what = (Kind::Status, flags | Flags::LAST);
        let seq = self.tick_up_to(most_body, what, origin, stamps, time, write_body)?;
        self.items.free(origin.item);
        Ok(seq)
    }

    /// Returns the numbered items.
    pub fn items(&self) -> &Items {
        &self.items
    }

    /// Publishes one tick. `write_body` fills the RWF message and returns its length; its buffer has
    /// [`Sequencer::MAX_BODY_BYTES`]. The `sequenced` time stamp is taken last, just before readers can see the tick.
    ///
    /// Costs a claim, a copy of name and source, one clock read and a commit; no allocation, no system call.
    ///
    /// # Errors
    /// [`Refused`] if the tick could not be published; its sequence is then not used.
    #[inline]
    pub fn tick(
        &mut self,
        kind: Kind,
        flags: Flags,
        origin: &Origin<'_>,
        stamps: Stamps,
        time: &impl Time,
        write_body: impl FnOnce(&mut [u8]) -> usize,
    ) -> Result<Seq, Refused> {
        self.tick_up_to(Self::MAX_BODY_BYTES, (kind, flags), origin, stamps, time, write_body)
    }

    /// Does the same as [`Self::tick`] for an RWF message of up to `most_body` bytes: messages of OMM providers may have any length.
    ///
    /// # Errors
    /// As [`tick`](Self::tick): [`Refused::TooLong`] if the tick exceeds the maximum of the ring.
    pub fn tick_up_to(
        &mut self,
        most_body: usize,
        (kind, flags): (Kind, Flags),
        origin: &Origin<'_>,
        stamps: Stamps,
        time: &impl Time,
        write_body: impl FnOnce(&mut [u8]) -> usize,
    ) -> Result<Seq, Refused> {
        let seq = Seq(self.next);
        let name = cut(origin.name, MAX_NAME_BYTES);
        let source_len = source_len(origin)?;
        let service = origin.service.unwrap_or(self.service);
        let most = HEADER_BYTES + name.len() + most_body + origin.source.len();
        self.publish.publish(most, |frame| {
            let (fixed, rest) =
                frame.split_first_chunk_mut::<HEADER_BYTES>().expect("the frame is as long as was claimed");
            let (name_place, rest) = rest.split_at_mut(name.len());
            copy_name(name_place, name.as_bytes());
            let body_len = write_body(&mut rest[..most_body]).min(most_body);
            if !origin.source.is_empty() {
                rest[body_len..body_len + origin.source.len()].copy_from_slice(origin.source);
            }
            let header = header(seq, service, (kind, flags), origin, stamps, time.now());
            // Lossless: `name` has at most MAX_NAME_BYTES.
            header.write(fixed, name.len() as u8, source_len);
            HEADER_BYTES + name.len() + body_len + origin.source.len()
        })?;
        self.next += 1;
        Ok(seq)
    }

    /// Publishes ticks of one origin that become visible together, in batches of up to half the ring; each has its own sequence, item, name and
    /// source. The clock is read once for 64 of them, and for the first of a batch, as the ring may have been full before it.
    ///
    /// # Errors
    /// As [`tick`](Self::tick); for [`Refused::TooLong`] none was published.
    pub(crate) fn ticks_together<'t>(
        &mut self,
        ticks: impl Iterator<Item = Together<'t>> + Clone,
        origin: &Origin<'_>,
        stamps: Stamps,
        time: &impl Time,
    ) -> Result<(), Refused> {
        let Self { publish, lens, next, service, .. } = self;
        let service = origin.service.unwrap_or(*service);
        lens.clear();
        lens.extend(ticks.clone().map(|Together { name, header, payload, source, .. }| {
            HEADER_BYTES + name.len() + header.len() + payload.len() + source.len()
        }));
        let mut left = ticks;
        let mut sequenced = Nanos(0);
        publish.publish_together(lens, |at, written, mut frame| {
            let Some(tick) = left.next() else { return };
            let Together { kind, flags, item, name, source, .. } = tick;
            if written % STAMPED_TOGETHER == 0 {
                sequenced = time.now();
            }
            let seq = Seq(*next + at as u64);
            let header = header(seq, service, (kind, flags), &Origin { item, ..*origin }, stamps, sequenced);
            let mut fixed = [0; HEADER_BYTES];
            // Lossless: the lengths are within those limits.
            header.write(&mut fixed, name.len() as u8, source.len() as u16);
            for part in [&fixed[..], name, tick.header, tick.payload, source] {
                let (place, rest) = frame.split_at_mut(part.len());
                place.copy_from_slice(part);
                frame = rest;
            }
        })?;
        *next += lens.len() as u64;
        Ok(())
    }

    /// Publishes a tick of another plant as it stands, with the sequence that it has: later than all before, or 0. The first one sets where
    /// this plant's sequence begins.
    ///
    /// Costs a claim, a copy and a commit; no allocation, no system call.
    ///
    /// # Errors
    /// As [`tick_up_to`](Self::tick_up_to).
    #[inline]
    pub fn relay(&mut self, seq: Seq, frame: &[u8]) -> Result<(), Refused> {
        self.publish.publish(frame.len(), |place| {
            place[..frame.len()].copy_from_slice(frame);
            frame.len()
        })?;
        if !seq.is_outside() {
            if self.next == self.first {
                self.first = seq.0;
            }
            self.next = seq.0 + 1;
        }
        Ok(())
    }

    /// Publishes a tick that has no place in the sequence.
    ///
    /// # Errors
    /// As [`tick_up_to`](Self::tick_up_to).
    pub(crate) fn outside(&mut self, tick: &Tick<'_>) -> Result<(), Refused> {
        let mut frame = Vec::new();
        tick.write(&mut frame);
        self.relay(Seq(0), &frame)
    }

    /// Starts publishing the best bid and offer over several channels.
    pub fn consolidate(&mut self, settings: &ConsolidationSettings) {
        self.consolidation = Some(Box::new(Consolidation::new(settings)));
    }

    /// Returns the consolidation, if best bids and offers are published.
    #[must_use]
    pub fn consolidation(&self) -> Option<&Consolidation> {
        self.consolidation.as_deref()
    }

    /// Returns the consolidated symbol of a channel's symbol.
    pub(crate) fn symbol(&mut self, channel: u16, name: &str) -> Symbol {
        match &mut self.consolidation {
            Some(consolidation) => consolidation.symbol(channel, name),
            None => Symbol::default(),
        }
    }

    /// Handles a channel's draft of a symbol: publishes the best bid and offer if it changed.
    #[inline]
    pub(crate) fn show(
        &mut self,
        origin: &Consolidating,
        symbol: Symbol,
        draft: &Draft,
        time: &impl Time,
    ) -> Result<(), Refused> {
        let Some(consolidation) = &mut self.consolidation else { return Ok(()) };
        match consolidation.show(origin.channel, symbol, draft) {
            Some(best) => self.publish_best(&[(symbol, best)], origin, time),
            None => Ok(()),
        }
    }

    /// Handles a change in the validity of a channel's data.
    pub(crate) fn set_standing(
        &mut self,
        channel: u16,
        standing: ChannelStanding,
        time: &impl Time,
    ) -> Result<(), Refused> {
        let Some(consolidation) = &mut self.consolidation else { return Ok(()) };
        let changed = match standing {
            ChannelStanding::Doubtful => consolidation.set_current(channel, false),
            ChannelStanding::Current => consolidation.set_current(channel, true),
            ChannelStanding::New => {
                let mut changed = consolidation.clear(channel);
                changed.extend(consolidation.set_current(channel, true));
                changed
            }
        };
        let stamps = Stamps::at(time.now());
        let origin = Consolidating { channel, feed_seq: 0, source_type: 0, stamps };
        self.publish_best(&changed, &origin, time)
    }

    fn publish_best(
        &mut self,
        changed: &[(Symbol, Nbbo)],
        origin: &Consolidating,
        time: &impl Time,
    ) -> Result<(), Refused> {
        // Taken out meanwhile, so that publication may use the rest of the sequencer.
        let Some(mut consolidation) = self.consolidation.take() else { return Ok(()) };
        let mut done = Ok(());
        for (symbol, best) in changed {
            let source = (origin.channel, self.service);
            let Some(named) = consolidation.named(*symbol, source, &mut self.items) else { continue };
            let tick_origin = Origin {
                channel: consolidation.number(),
                // The state of the live channels: the others do not participate.
                state: State::Live,
                item: named.item,
                name: named.name(),
                feed_seq: origin.feed_seq,
                source_type: origin.source_type,
                ..Origin::default()
            };
            let kind = if named.is_new { Kind::Refresh } else { Kind::Update };
            let event = origin.stamps.event;
            done = self
                .tick(kind, Flags::default(), &tick_origin, origin.stamps, time, |out| {
                    body::best(out, kind, |fields| consolidation.encode(best, event, fields)).unwrap_or(0)
                })
                .map(|_| ());
            if done.is_err() {
                break;
            }
            let market = best.market();
            consolidation.counters.ticks += 1;
            consolidation.counters.locked += u64::from(market == Market::Locked);
            consolidation.counters.crossed += u64::from(market == Market::Crossed);
        }
        self.consolidation = Some(consolidation);
        done
    }

    /// Returns the number of published ticks.
    pub fn published(&self) -> u64 {
        self.next - self.first
    }

    /// Returns the publisher of the ticks.
    pub fn publisher(&mut self) -> &mut P {
        &mut self.publish
    }

    /// Ends sequencing and returns the publisher of the ticks.
    pub fn into_publisher(self) -> P {
        self.publish
    }
}

/// The number of ticks that share a reading of the clock when ticks become visible together: writing them takes a few microseconds.
const STAMPED_TOGETHER: usize = 64;

/// Returns the length of a tick's source for its header.
fn source_len(origin: &Origin<'_>) -> Result<u16, Refused> {
    let len = origin.source.len();
    u16::try_from(len).map_err(|_| Refused::TooLong { len, max: usize::from(u16::MAX) })
}

/// Returns a tick's header.
#[inline]
fn header(
    seq: Seq,
    service: u16,
    (kind, flags): (Kind, Flags),
    origin: &Origin<'_>,
    stamps: Stamps,
    sequenced: Nanos,
) -> Header {
    Header {
        seq,
        feed_seq: origin.feed_seq,
        event: stamps.event,
        wire: stamps.wire,
        decoded: stamps.decoded,
        sequenced,
        item: origin.item,
        service,
        channel: origin.channel,
        kind,
        flags,
        source_type: origin.source_type,
        state: origin.state,
    }
}

/// Copies a name into a place of its length. Most names have few letters: two moves of four or eight bytes that overlap, without a call.
#[inline]
fn copy_name(place: &mut [u8], name: &[u8]) {
    if let (Some(to), Some(from)) = (place.first_chunk_mut::<4>(), name.first_chunk::<4>())
        && name.len() <= 8
    {
        *to = *from;
        if let (Some(to), Some(from)) = (place.last_chunk_mut::<4>(), name.last_chunk::<4>()) {
            *to = *from;
        }
    } else {
        place.copy_from_slice(name);
    }
}

/// Returns at most `max` bytes of `text`, cut between characters.
fn cut(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}
