//! A hub that joins late, or has lost its position: the plant's images replace what has left the ring, and
//! ticks that arrive meanwhile are buffered.

use std::collections::HashMap;

use tapeline_hub::{Connections, Hub};
use tapeline_measure::Nanos;
use tapeline_omm::rwf::{Domain, MessageView};
use tapeline_plant::tick::{Flags, Tick};
use tapeline_plant::{ItemId, Seq};

use crate::Error;
use crate::cursor::{RingCursor, another_plant};
use crate::image_server::{Came, ImageReader, put};
use crate::ticks::{Lost, Next, Position};

/// Maximum bytes of ticks buffered while images are read: seconds of a busy day's.
const MOST_HELD: usize = 512 << 20;

/// How long the plant may send nothing: several hubs take turns.
const PATIENCE_NS: i64 = 30_000_000_000;
/// Images read before the hub looks at the ring again, and buffered ticks replayed per turn.
const IMAGES: usize = 256;
const REPLAYED: usize = 256;

/// The state from which a late hub starts, or from which a hub resynchronises after it lost its position.
#[derive(Debug)]
pub(super) struct CatchingUp {
    held: Held,
    asked: Option<ImageReader>,
    known: Known,
    /// When images last arrived.
    heard: Option<Nanos>,
    /// All images have arrived.
    has_all: bool,
}

/// Buffered ticks, in order.
#[derive(Debug, Default)]
struct Held {
    /// The ticks, each with its length in front.
    frames: Vec<u8>,
    /// Bytes of `frames` already passed to the hub.
    at: usize,
    /// The ticks start with the plant's first.
    is_whole: bool,
    /// The ticks follow others that the hub has processed.
    is_behind: bool,
}

pub(super) enum Turn {
    /// There was input.
    Busy,
    /// There was nothing yet.
    Nothing,
    /// The hub has all the state that is available.
    Done,
    /// The position on the ring is lost, and with it the ticks after the buffered ones.
    Lost(Lost),
}

/// The result of reading the ring.
enum Taken {
    All,
    End,
    Lost(Lost),
}

impl CatchingUp {
    /// Buffers the ticks that are still on the ring, and asks for the images of the rest.
    pub(super) fn begin(place: &mut RingCursor<impl Position>) -> crate::Result<Self> {
        let mut held = Held::default();
        if let Taken::Lost(lost) = held.take(place, false)? {
            return Err(lost.of("this hub"));
        }
        let is_all = held.is_whole || held.frames.is_empty();
        let asked = if is_all { None } else { place.ticks.images()? };
        if !is_all && asked.is_none() {
            place.events.warning_with(
                "the ring no longer holds the plant's first ticks, and the plant keeps no images: items whose image is gone are suspect \
                 until their next image",
                "images = \"1GiB\" in the plant's [plant] keeps them",
            );
        }
        Ok(Self { held, asked, known: Known::default(), heard: None, has_all: false })
    }

    /// Starts after a gap before this tick. The caller must [ask](Self::ask) for images.
    pub(super) fn behind(tick: &Tick<'_>) -> Self {
        let mut held = Held { is_behind: true, ..Held::default() };
        put(&mut held.frames, |out| tick.write(out));
        Self { held, asked: None, known: Known::default(), heard: None, has_all: false }
    }

    /// Asks for images. Returns whether the plant serves them.
    pub(super) fn ask(&mut self, ticks: &impl Position) -> crate::Result<bool> {
        self.asked = ticks.images()?;
        Ok(self.asked.is_some())
    }

    /// Whether items may exist that this hub knows nothing of.
    pub(super) const fn lacks_images(&self) -> bool {
        !self.held.is_whole && self.asked.is_none()
    }

    /// The number of items with images, if all images arrived.
    pub(super) fn images(&self) -> Option<usize> {
        self.has_all.then_some(self.known.items.len())
    }

    /// Whether images are expected.
    pub(super) const fn is_asking(&self) -> bool {
        self.asked.is_some()
    }

    /// Stops waiting for images.
    pub(super) fn give_up(&mut self) {
        self.asked = None;
    }

    /// Passes some of the images or buffered ticks to the hub.
    ///
    /// # Errors
    /// The images are not available after all, or too many ticks arrive meanwhile.
    pub(super) fn turn(
        &mut self,
        now: Nanos,
        place: &mut RingCursor<impl Position>,
        hub: &mut Hub,
        connections: &mut impl Connections,
    ) -> crate::Result<Turn> {
        // The plant must not wait for this.
        let taken = self.held.take(place, self.asked.is_none())?;
        if let Taken::Lost(lost) = taken {
            return Ok(Turn::Lost(lost));
        }
        if matches!(taken, Taken::End) {
            // The image server ends as well.
            self.give_up();
        }
        let Some(asked) = &mut self.asked else { return self.replay(now, hub, connections) };
        for came in 0..IMAGES {
            match asked.next()? {
                Came::Tick(tick) => {
                    if place.gate.as_ref().is_some_and(|gate| !gate.lets_out(tick.header.seq)) {
                        // The tick will never be on disk: the plant ends.
                        return Ok(Turn::Nothing);
                    }
                    self.known.note(&tick);
                    hub.image(now, &tick, connections);
                    self.heard = Some(now);
                }
                Came::Nothing if came > 0 => return Ok(Turn::Busy),
                Came::Nothing => {
                    if now.since(*self.heard.get_or_insert(now)) >= PATIENCE_NS {
                        let hint = "another hub may be reading them, or the plant hangs: `tapeline stat` shows since when";
                        return Err(Error::hinted("the plant does not send its images", hint));
                    }
                    return Ok(Turn::Nothing);
                }
                Came::End => {
                    // The ticks in an image were on the ring before the image was made: the next look at the
                    // ring takes all of them.
                    (self.asked, self.has_all) = (None, true);
                    break;
                }
            }
        }
        Ok(Turn::Busy)
    }

    /// Passes buffered ticks to the hub, except those that images already contain.
    fn replay(
        &mut self,
        now: Nanos,
        hub: &mut Hub,
        connections: &mut impl Connections,
    ) -> crate::Result<Turn> {
        for _ in 0..REPLAYED {
            let Some(frame) = self.held.next() else { return Ok(Turn::Done) };
            let tick = Tick::parse(frame)?;
            if self.known.has(&tick) {
                hub.pass(tick.header.seq);
            } else {
                hub.tick(now, &tick, connections);
            }
        }
        self.held.give_back();
        Ok(Turn::Busy)
    }
}

impl Held {
    /// Buffers all ticks on the ring. With `may_stay`, while earlier ticks are being replayed, ticks above
    /// the limit stay on the ring.
    fn take(&mut self, place: &mut RingCursor<impl Position>, may_stay: bool) -> crate::Result<Taken> {
        loop {
            if may_stay && self.frames.len() - self.at > MOST_HELD {
                return Ok(Taken::All);
            }
            let tick = match place.take()? {
                Next::Tick(tick) => tick,
                Next::Nothing => return Ok(Taken::All),
                Next::End => return Ok(Taken::End),
                Next::Lost(lost) => return Ok(Taken::Lost(lost)),
            };
            if tick.header.seq == Seq(1) && self.is_behind {
                return Err(another_plant());
            }
            if tick.header.seq == Seq(1) {
                // Ticks before it are of another plant, whose ring this one continues.
                self.frames.clear();
                (self.at, self.is_whole) = (0, true);
            }
            put(&mut self.frames, |out| tick.write(out));
            if self.frames.len() - self.at > MOST_HELD {
                let hint = "start the hub again when traffic is lower, or on a core of its own";
                let what = format!("{} MiB of ticks arrived before the images were read", MOST_HELD >> 20);
                return Err(Error::hinted(what, hint));
            }
        }
    }

    fn next(&mut self) -> Option<&[u8]> {
        let (length, rest) = self.frames.get(self.at..)?.split_first_chunk()?;
        let frame = rest.get(..u32::from_le_bytes(*length) as usize)?;
        self.at += 4 + frame.len();
        Some(frame)
    }

    /// Frees the memory of replayed ticks once they are the larger part.
    fn give_back(&mut self) {
        if self.at > self.frames.len() / 2 {
            self.frames.drain(..self.at);
            self.at = 0;
        }
    }
}

/// The last tick contained in the images: for each item number and domain, and for each channel.
#[derive(Debug, Default)]
struct Known {
    items: HashMap<ItemId, Vec<(Domain, Seq)>>,
    channels: HashMap<(u16, u16, Domain), Seq>,
}

impl Known {
    fn note(&mut self, tick: &Tick<'_>) {
        let (header, domain) = (&tick.header, domain(tick));
        if header.item == ItemId(0) {
            self.channels.insert((header.service, header.channel, domain), header.seq);
        } else {
            self.items.entry(header.item).or_default().push((domain, header.seq));
        }
    }

    /// Whether a tick is already contained in an image. The number of an ended item may belong to another
    /// item by then: the last tick of the former must not end the latter.
    fn has(&self, tick: &Tick<'_>) -> bool {
        let (header, domain) = (&tick.header, domain(tick));
        if header.item == ItemId(0) {
            let known = self.channels.get(&(header.service, header.channel, domain));
            return known.is_some_and(|seq| header.seq <= *seq);
        }
        let is_last = header.flags.contains(Flags::LAST);
        let images = self.items.get(&header.item).into_iter().flatten();
        images.into_iter().any(|(of, seq)| (*of == domain || is_last) && header.seq <= *seq)
    }
}

fn domain(tick: &Tick<'_>) -> Domain {
    MessageView::parse(tick.body).map_or(Domain(0), |message| message.domain())
}

#[cfg(test)]
mod tests {
    use tapeline_omm::State;
    use tapeline_omm::rwf::StatusHeader;
    use tapeline_plant::tick::{Header, Kind};

    use super::*;

    #[test]
    fn what_is_in_an_image_is_passed_by_and_the_end_of_who_had_its_number() {
        let tick = |domain: Domain, seq: u64, flags: Flags, check: &mut dyn FnMut(&Tick<'_>)| {
            let mut body = [0; 64];
            let status = StatusHeader { state: Some(State::OPEN_OK), ..StatusHeader::new(domain, 0) };
            let len = status.encode(&mut body).unwrap();
            let header = Header { kind: Kind::Status, flags, ..crate::ticks::header(5, seq) };
            check(&Tick { header, name: "A", body: &body[..len], source: &[] });
        };
        let mut known = Known::default();
        let (price, book, none) = (Domain::MARKET_PRICE, Domain::MARKET_BY_ORDER, Flags::default());
        tick(book, 102, none, &mut |tick| known.note(tick));
        let has = |domain, seq, flags| {
            let mut has = false;
            tick(domain, seq, flags, &mut |tick| has = known.has(tick));
            has
        };
        assert!(has(book, 102, none) && has(book, 90, none));
        assert!(has(price, 101, Flags::LAST), "of the item before");
        assert!(!has(book, 103, none) && !has(price, 100, none) && !has(book, 104, Flags::LAST));
    }
}
