//! A plant's ring, read tick by tick, and the error when the position is lost.

use std::time::Duration;

use tapeline_plant::tick::{Malformed, Tick};
use tapeline_ring::{Name, Poll, Start, Subscriber, SubscriberId};

use crate::Error;
use crate::error::Context;
use crate::image_server::ImageReader;

/// The next entry of a plant's ring.
#[derive(Debug)]
pub enum Next<'a> {
    /// The next tick.
    Tick(Tick<'a>),
    /// Nothing yet.
    Nothing,
    /// The plant has ended, and everything was read.
    End,
    /// The plant continued without this reader, which has to join again.
    Lost(Lost),
}

/// A lost position.
#[derive(Debug)]
pub struct Lost {
    /// Position on the ring from which ticks are lost, in bytes since its first frame.
    pub position: u64,
    stall_limit: Duration,
}

/// The ticks of a plant as read by one reader: from [its ring](OnRing), or from a simulated ring.
pub trait Ticks {
    /// Takes the next tick.
    ///
    /// # Errors
    /// The ring contains something that is not a tick.
    fn next(&mut self) -> crate::Result<Next<'_>>;
}

/// A position in the ticks that can be lost and taken again.
pub trait Position: Ticks {
    /// Applies `view` to each tick already published, starting with the next one, without taking it.
    fn ahead<T>(&mut self, view: impl FnMut(&[u8]) -> T) -> impl Iterator<Item = T>;

    /// Returns `true` if a tick can be taken.
    fn has_next(&self) -> bool;

    /// Returns the number of the plant's start on this ring; another plant on the ring has another number.
    fn epoch(&self) -> u32;

    /// Returns the reader's place in the ring's registry, if it has one.
    fn seat(&self) -> Option<SubscriberId>;

    /// Returns the ring's name.
    fn ring(&self) -> String;

    /// Takes a new position at the ring's oldest tick after the last position was lost. Returns `false` if
    /// the ring belongs to another plant now.
    ///
    /// # Errors
    /// The ring cannot be joined.
    fn rejoin(&mut self, reader: &str) -> crate::Result<bool>;

    /// Asks the plant for the images of all items; `None` if it serves none.
    ///
    /// # Errors
    /// The plant serves images, but they cannot be read.
    fn images(&self) -> crate::Result<Option<ImageReader>>;
}

/// A reader's position on a ring in shared memory.
#[derive(Debug)]
pub struct OnRing {
    pub(crate) ring: Name,
    pub(crate) subscriber: Subscriber,
}

impl Ticks for OnRing {
    #[inline(always)]
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
/// The ring contains something that is not a tick.
#[inline(always)]
pub fn next(subscriber: &mut Subscriber) -> crate::Result<Next<'_>> {
    let stall_limit = subscriber.stall_limit();
    match subscriber.next() {
        Poll::Frame(frame) => match Tick::parse(frame.bytes()) {
            Ok(tick) => Ok(Next::Tick(tick)),
            Err(malformed) => Err(not_a_tick(malformed)),
        },
        Poll::Ended => Ok(Next::End),
        Poll::Damaged { position } => crate::error::bail!(
            "the ring is damaged at position {}: something other than its publisher has written into it",
            position.0
        ),
        Poll::Evicted { position } => Ok(Next::Lost(Lost { position: position.0, stall_limit })),
        // Includes entries of a later version of the ring, which this version cannot handle.
        _ => Ok(Next::Nothing),
    }
}

#[cold]
fn not_a_tick(malformed: Malformed) -> Error {
    Error::new("the ring holds something that is not a tick").because(malformed)
}

impl Lost {
    /// Creates it from the position from which ticks are lost and the ring's stall limit.
    #[must_use]
    pub const fn new(position: u64, stall_limit: Duration) -> Self {
        Self { position, stall_limit }
    }

    /// The error for a reader that ends because of it.
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

/// A header of an update of service 7.
#[cfg(test)]
pub fn header(item: u32, seq: u64) -> tapeline_plant::tick::Header {
    use tapeline_plant::tick::Header;
    use tapeline_plant::{ItemId, Seq};

    Header { seq: Seq(seq), item: ItemId(item), service: 7, ..Header::default() }
}

/// An update of a feed's item, as a frame on a ring.
#[cfg(test)]
pub fn frame(seq: u64) -> Vec<u8> {
    let mut frame = Vec::new();
    Tick { header: header(1, seq), name: "A", body: &[0; 8], source: &[] }.write(&mut frame);
    frame
}
