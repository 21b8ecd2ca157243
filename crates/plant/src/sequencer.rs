//! One sequence for everything that the plant says.

use tapeline_measure::{Clock, Nanos};

use crate::publish::{Publish, Refused};
use crate::tick::{Flags, HEADER_BYTES, Header, Kind, MAX_NAME_BYTES};
use crate::{ItemId, Items, TooManyItems};

/// A tick's place in the plant's sequence: the first is 1, none is left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seq(pub u64);

/// The time, as an argument: a real clock in a real plant, a made one in a simulated plant.
pub trait Time {
    /// Now, in ns since 1970 UTC.
    fn now(&self) -> Nanos;
}

impl Time for Clock {
    fn now(&self) -> Nanos {
        Self::now(self)
    }
}

/// When a message happened, arrived and was understood.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamps {
    /// When it happened, as the exchange says.
    pub event: Nanos,
    /// When its datagram arrived.
    pub wire: Nanos,
    /// When it was decoded.
    pub decoded: Nanos,
}

/// Where a tick comes from.
#[derive(Clone, Copy, Debug, Default)]
pub struct Origin<'a> {
    /// The channel's number in the plant.
    pub channel: u16,
    /// The item, 0 for the channel as a whole.
    pub item: ItemId,
    /// The item's name; longer ones than [`MAX_NAME_BYTES`] are cut at a character.
    pub name: &'a str,
    /// The feed's sequence, 0 where there is none.
    pub feed_seq: u64,
    /// The first byte of the feed's message.
    pub source_type: u8,
    /// The feed's message, where every message is published; else empty.
    pub source: &'a [u8],
}

/// Gives every tick the next number and writes it, once, where readers will see it.
#[derive(Debug)]
pub struct Sequencer<P> {
    publish: P,
    items: Items,
    service: u16,
    next: u64,
}

impl<P: Publish> Sequencer<P> {
    /// The most bytes that a tick's RWF message may take.
    pub const MAX_BODY_BYTES: usize = 512;

    /// Ticks of `service` go to `publish`; the first one gets sequence 1.
    pub fn new(service: u16, items: Items, publish: P) -> Self {
        Self { publish, items, service, next: 1 }
    }

    /// The number of an item, given now if it is new.
    ///
    /// # Errors
    /// [`TooManyItems`] if it is new and the service is full.
    pub fn item(&mut self, name: &str) -> Result<ItemId, TooManyItems> {
        self.items.id(name)
    }

    /// The items that have been numbered.
    pub fn items(&self) -> &Items {
        &self.items
    }

    /// Publishes one tick. `write_body` fills the RWF message and returns its length; it is given
    /// [`Sequencer::MAX_BODY_BYTES`]. The `sequenced` stamp is taken last, just before readers can see the tick.
    ///
    /// Costs a claim, a copy of name and source, one clock read and a commit; no allocation, no system call.
    ///
    /// # Errors
    /// [`Refused`] when the tick could not be published; its sequence is then not used up.
    pub fn tick(
        &mut self,
        kind: Kind,
        flags: Flags,
        origin: &Origin<'_>,
        stamps: Stamps,
        time: &impl Time,
        write_body: impl FnOnce(&mut [u8]) -> usize,
    ) -> Result<Seq, Refused> {
        let seq = Seq(self.next);
        let name = cut(origin.name, MAX_NAME_BYTES);
        let source = origin.source;
        let source_len = u16::try_from(source.len())
            .map_err(|_| Refused::TooLong { len: source.len(), max: usize::from(u16::MAX) })?;
        let service = self.service;
        let most = HEADER_BYTES + name.len() + Self::MAX_BODY_BYTES + source.len();
        self.publish.publish(most, |frame| {
            let (fixed, rest) =
                frame.split_first_chunk_mut::<HEADER_BYTES>().expect("the frame is as long as was claimed");
            let (name_place, rest) = rest.split_at_mut(name.len());
            name_place.copy_from_slice(name.as_bytes());
            let body_len = write_body(&mut rest[..Self::MAX_BODY_BYTES]).min(Self::MAX_BODY_BYTES);
            rest[body_len..body_len + source.len()].copy_from_slice(source);
            let header = Header {
                seq,
                feed_seq: origin.feed_seq,
                event: stamps.event,
                wire: stamps.wire,
                decoded: stamps.decoded,
                sequenced: time.now(),
                item: origin.item,
                service,
                channel: origin.channel,
                kind,
                flags,
                source_type: origin.source_type,
            };
            // Cannot cut: `name` is at most MAX_NAME_BYTES long.
            header.write(fixed, name.len() as u8, source_len);
            HEADER_BYTES + name.len() + body_len + source.len()
        })?;
        self.next += 1;
        Ok(seq)
    }

    /// How many ticks have been published.
    pub fn published(&self) -> u64 {
        self.next - 1
    }

    /// What the ticks go to.
    pub fn publisher(&mut self) -> &mut P {
        &mut self.publish
    }

    /// Ends sequencing and gives back what the ticks went to.
    pub fn into_publisher(self) -> P {
        self.publish
    }
}

/// At most `max` bytes of `text`, cut between characters.
fn cut(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}
