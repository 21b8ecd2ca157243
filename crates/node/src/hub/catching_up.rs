//! A hub that comes late, or has lost its place: what has left the ring comes from who keeps the images, and what comes meanwhile waits.

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

/// Bytes of ticks that wait while images are read, at most: seconds of a busy day's.
const MOST_HELD: usize = 512 << 20;

/// For how long nothing may come: several hubs have their turns.
const PATIENCE_NS: i64 = 30_000_000_000;
/// Images that are read before the ring is looked at again, and ticks that are given on before anything else is.
const IMAGES: usize = 256;
const REPLAYED: usize = 256;

/// What a late hub has to begin with, or one that lost its place to begin anew.
#[derive(Debug)]
pub(super) struct CatchingUp {
    held: Held,
    asked: Option<ImageReader>,
    known: Known,
    /// When images came last.
    heard: Option<Nanos>,
    /// All have.
    has_all: bool,
}

/// Ticks that wait, in their order.
#[derive(Debug, Default)]
struct Held {
    /// Each with its length in front.
    frames: Vec<u8>,
    /// Of those, what was given to the hub.
    at: usize,
    /// The plant's first is among them, and none before it.
    is_whole: bool,
    /// They are behind others that the hub has had.
    is_behind: bool,
}

/// What became of a look.
pub(super) enum Turn {
    /// Something came.
    Busy,
    /// Nothing, for now.
    Nothing,
    /// The hub knows all that can be known.
    Done,
    /// The place on the ring is lost, and with it the ticks behind those that wait.
    Lost(Lost),
}

/// What the ring had.
enum Taken {
    All,
    /// And there will be no more.
    End,
    Lost(Lost),
}

impl CatchingUp {
    /// Looks at what the ring still holds, and asks for the rest.
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

    /// The ring no longer has what was in front of this tick. Images are to be [asked](Self::ask) for.
    pub(super) fn behind(tick: &Tick<'_>) -> Self {
        let mut held = Held { is_behind: true, ..Held::default() };
        put(&mut held.frames, |out| tick.write(out));
        Self { held, asked: None, known: Known::default(), heard: None, has_all: false }
    }

    /// Asks for images: whether anybody keeps them.
    pub(super) fn ask(&mut self, ticks: &impl Position) -> crate::Result<bool> {
        self.asked = ticks.images()?;
        Ok(self.asked.is_some())
    }

    /// Whether items may be there of which nothing is known here.
    pub(super) const fn lacks_images(&self) -> bool {
        !self.held.is_whole && self.asked.is_none()
    }

    /// How many images came from elsewhere, if all of them did.
    pub(super) fn images(&self) -> Option<usize> {
        self.has_all.then_some(self.known.items.len())
    }

    /// Whether images are waited for.
    pub(super) const fn is_asking(&self) -> bool {
        self.asked.is_some()
    }

    /// No more of them are.
    pub(super) fn give_up(&mut self) {
        self.asked = None;
    }

    /// Gives the hub some of what is there.
    ///
    /// # Errors
    /// There are no images to be had after all, or too much comes meanwhile.
    pub(super) fn turn(
        &mut self,
        now: Nanos,
        place: &mut RingCursor<impl Position>,
        hub: &mut Hub,
        connections: &mut impl Connections,
    ) -> crate::Result<Turn> {
        // The plant is not to wait for this.
        let taken = self.held.take(place, self.asked.is_none())?;
        if let Taken::Lost(lost) = taken {
            return Ok(Turn::Lost(lost));
        }
        if matches!(taken, Taken::End) {
            // Who keeps images ends as well.
            self.give_up();
        }
        let Some(asked) = &mut self.asked else { return self.replay(now, hub, connections) };
        for came in 0..IMAGES {
            match asked.next()? {
                Came::Tick(tick) => {
                    if place.gate.as_ref().is_some_and(|gate| !gate.lets_out(tick.header.seq)) {
                        // It will never be on disk: the plant ends.
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
                    // What is in an image was on the ring before the image was made: all of that is there with the next look.
                    (self.asked, self.has_all) = (None, true);
                    break;
                }
            }
        }
        Ok(Turn::Busy)
    }

    /// Gives the hub ticks that wait, without those that are in images.
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
    /// Takes all that the ring has; where that is too much, and those in front are given on, it may stay there.
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
                // What stands before it another plant published, whose ring this one goes on with.
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

    /// The next of them.
    fn next(&mut self) -> Option<&[u8]> {
        let (length, rest) = self.frames.get(self.at..)?.split_first_chunk()?;
        let frame = rest.get(..u32::from_le_bytes(*length) as usize)?;
        self.at += 4 + frame.len();
        Some(frame)
    }

    /// Gives the room back of those that are gone, once that is most of it.
    fn give_back(&mut self) {
        if self.at > self.frames.len() / 2 {
            self.frames.drain(..self.at);
            self.at = 0;
        }
    }
}

/// Up to which tick what is known: of an item's number in each domain, and of each channel.
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

    /// Whether a tick is in an image already. The number of an item that is over may be another's by then: its last tick does not
    /// end the one that has the number now.
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
            let (never, item) = (Nanos(0), ItemId(5));
            let header = Header {
                seq: Seq(seq),
                feed_seq: 0,
                event: never,
                wire: never,
                decoded: never,
                sequenced: never,
                item,
                service: 7,
                channel: 0,
                kind: Kind::Status,
                flags,
                source_type: 0,
                state: tapeline_plant::State::default(),
            };
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
