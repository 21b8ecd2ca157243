//! A plant's ring, read tick by tick: what is on it, and what there is to say where it cannot be read.

use std::time::Duration;

use tapeline_plant::tick::Tick;
use tapeline_ring::{Name, Poll, Start, Subscriber, SubscriberId};

use crate::Error;
use crate::error::Context;
use crate::image_server::ImageReader;

/// What stands next on a plant's ring.
#[derive(Debug)]
pub enum Next<'a> {
    /// The next tick.
    Tick(Tick<'a>),
    /// Nothing, for now.
    Nothing,
    /// The plant has ended, and everything was read.
    End,
    /// The plant went on without this reader, which has to join again.
    Lost(Lost),
}

/// Where a reader lost its place.
#[derive(Debug)]
pub struct Lost {
    /// Position on the ring from which ticks are lost, in bytes since its first frame.
    pub position: u64,
    stall_limit: Duration,
}

/// The ticks of a plant as one reader takes them: from [its ring](OnRing), or a simulated ring's.
pub trait Ticks {
    /// Takes the next tick.
    ///
    /// # Errors
    /// The ring holds something that is not a tick.
    fn next(&mut self) -> crate::Result<Next<'_>>;
}

/// A position among them that can be lost and taken again.
pub trait Position: Ticks {
    /// Applies `view` to each tick already published, starting with the next one, without taking it.
    fn ahead<T>(&mut self, view: impl FnMut(&[u8]) -> T) -> impl Iterator<Item = T>;

    /// Returns `true` if a tick can be taken.
    fn has_next(&self) -> bool;

    /// Returns the number of the plant's start on this ring: it changes when another plant takes the ring over.
    fn epoch(&self) -> u32;

    /// Returns the reader's position in the ring's registry, if it has one.
    fn seat(&self) -> Option<SubscriberId>;

    /// Returns the ring's name.
    fn ring(&self) -> String;

    /// Takes a new position after the last one was lost, at the oldest tick that the ring still holds. Returns `false` if the ring is
    /// another plant's by now.
    ///
    /// # Errors
    /// The ring cannot be joined.
    fn rejoin(&mut self, reader: &str) -> crate::Result<bool>;

    /// Asks the plant for the images of all items; `None` if it keeps none.
    ///
    /// # Errors
    /// The images are there and cannot be read.
    fn images(&self) -> crate::Result<Option<ImageReader>>;
}

/// A reader's position on a ring in shared memory.
#[derive(Debug)]
pub struct OnRing {
    pub(crate) ring: Name,
    pub(crate) subscriber: Subscriber,
}

impl Ticks for OnRing {
    #[inline]
    fn next(&mut self) -> crate::Result<Next<'_>> {
        next(&mut self.subscriber)
    }
}

impl Position for OnRing {
    fn ahead<T>(&mut self, view: impl FnMut(&[u8]) -> T) -> impl Iterator<Item = T> {
        self.subscriber.ahead(view)
    }

    fn has_next(&self) -> bool {
        self.subscriber.has_next()
    }

    fn epoch(&self) -> u32 {
        self.subscriber.epoch()
    }

    fn seat(&self) -> Option<SubscriberId> {
        Some(self.subscriber.seat())
    }

    fn ring(&self) -> String {
        self.ring.to_string()
    }

    fn rejoin(&mut self, reader: &str) -> crate::Result<bool> {
        let subscriber = Subscriber::join_as(&self.ring, Start::Oldest, reader);
        let subscriber = subscriber.with_context(|| format!("{reader} cannot join the ring again"))?;
        let is_ours = self.subscriber.is_named()?;
        self.subscriber = subscriber;
        Ok(is_ours)
    }

    fn images(&self) -> crate::Result<Option<ImageReader>> {
        ImageReader::of(&self.ring)
    }
}

/// Takes the next tick.
///
/// # Errors
/// There is something else than ticks.
#[inline]
pub fn next(subscriber: &mut Subscriber) -> crate::Result<Next<'_>> {
    let stall_limit = subscriber.stall_limit();
    match subscriber.next() {
        Poll::Frame(frame) => {
            let tick = Tick::parse(frame.bytes()).context("the ring holds something that is not a tick")?;
            Ok(Next::Tick(tick))
        }
        Poll::Ended => Ok(Next::End),
        Poll::Damaged { position } => crate::error::bail!(
            "the ring is damaged at position {}: something other than its publisher has written into it",
            position.0
        ),
        Poll::Evicted { position } => Ok(Next::Lost(Lost { position: position.0, stall_limit })),
        // And what a later version of the ring may say: nothing that this one can act on.
        _ => Ok(Next::Nothing),
    }
}

impl Lost {
    /// Creates it: the ring's stall limit, and the position from which ticks are lost.
    #[must_use]
    pub const fn new(position: u64, stall_limit: Duration) -> Self {
        Self { position, stall_limit }
    }

    /// What there is to say where that is the end of a reader.
    pub fn of(&self, reader: &str) -> Error {
        let (limit, position) = (self.stall_limit.as_secs_f64(), self.position);
        let what = format!(
            "read nothing for {limit} s while the ring was full, and the plant continued without {reader}; ticks from position \
             {position} on are lost"
        );
        let hint =
            "start it again, on a core of its own; or raise stall_limit or ring_size in the plant's file";
        Error::hinted(what, hint)
    }
}

/// An update of an item of a feed, as it stands on a ring.
#[cfg(test)]
pub fn frame(seq: u64) -> Vec<u8> {
    use tapeline_measure::Nanos;
    use tapeline_plant::tick::{Flags, Header, Kind};
    use tapeline_plant::{ItemId, Seq, State};

    let never = Nanos(0);
    let header = Header {
        seq: Seq(seq),
        feed_seq: 0,
        event: never,
        wire: never,
        decoded: never,
        sequenced: never,
        item: ItemId(1),
        service: 1,
        channel: 0,
        kind: Kind::Update,
        flags: Flags::default(),
        source_type: 0,
        state: State::default(),
    };
    let mut frame = Vec::new();
    Tick { header, name: "A", body: &[0; 8], source: &[] }.write(&mut frame);
    frame
}
