//! A hub that comes late: what has left the ring comes from who keeps the images, and what comes meanwhile waits.

use std::collections::HashMap;
use std::time::Duration;

use tapeline_hub::{Hub, Outlets};
use tapeline_measure::Clock;
use tapeline_omm::rwf::{Domain, MessageView};
use tapeline_plant::tick::{Flags, Tick};
use tapeline_plant::{ItemId, Seq};
use tapeline_ring::{Name, Subscriber, Wait};

use super::super::keeper::{Asked, Came, put};
use super::super::ticks::{self, Next};
use crate::failure::Hinted;
use crate::stop::Stop;

/// Bytes of ticks that wait while images are read, at most: seconds of a busy day's.
const MOST_HELD: usize = 512 << 20;

/// For how long nothing may come: several hubs have their turns.
const PATIENCE_NS: i64 = 30_000_000_000;
/// How long to sleep while nothing comes.
const NAP: Duration = Duration::from_micros(200);
/// Images that are read before the ring is looked at again.
const IMAGES: usize = 256;

/// What a late hub has to begin with.
pub(super) struct CatchingUp {
    held: Held,
    asked: Option<Asked>,
}

/// Ticks that wait, in their order.
#[derive(Default)]
struct Held {
    /// Each with its length in front.
    frames: Vec<u8>,
    /// The plant's first is among them, and none before it.
    is_whole: bool,
}

impl CatchingUp {
    /// Looks at what the ring still holds, and asks for the rest.
    pub(super) fn begin(ring: &Name, subscriber: &mut Subscriber) -> anyhow::Result<Self> {
        let mut held = Held::default();
        held.take(subscriber)?;
        let is_all = held.is_whole || held.frames.is_empty();
        let asked = if is_all { None } else { Asked::of(ring)? };
        if !is_all && asked.is_none() {
            anstream::eprintln!(
                "warning: the ring no longer holds the plant's first ticks, and the plant keeps no images: items whose image is \
                 gone are suspect until their next one\nhint: images = \"1GiB\" in the plant's [plant] keeps them"
            );
        }
        Ok(Self { held, asked })
    }

    /// Whether items may be there of which nothing is known here.
    pub(super) const fn lacks_images(&self) -> bool {
        !self.held.is_whole && self.asked.is_none()
    }

    /// Has the hub know all that is to be known: how many images came from elsewhere.
    pub(super) fn finish(
        mut self,
        subscriber: &mut Subscriber,
        hub: &mut Hub,
        outlets: &mut impl Outlets,
        (clock, stop): (&Clock, &Stop),
    ) -> anyhow::Result<usize> {
        let mut known = Known::default();
        if let Some(asked) = &mut self.asked {
            let mut heard = clock.now();
            for turn in 0.. {
                let has_come = match asked.next()? {
                    Came::Tick(tick) => {
                        known.note(&tick);
                        hub.image(clock.now(), &tick, outlets);
                        true
                    }
                    Came::Nothing => false,
                    Came::End => break,
                };
                // The plant is not to wait for this.
                if !has_come || turn % IMAGES == 0 {
                    self.held.take(subscriber)?;
                }
                if has_come {
                    heard = clock.now();
                } else if clock.now().since(heard) >= PATIENCE_NS {
                    let hint = "another hub may be reading them, or the plant hangs: `tapeline stat` says since when";
                    return Err(Hinted::new("the plant does not give its images", hint).into());
                } else if stop.requested() {
                    return Ok(0);
                } else {
                    subscriber.wait(Wait::Park, NAP);
                }
            }
            // What is in an image was on the ring before the image was made: all of that is here now.
            self.held.take(subscriber)?;
        }
        let mut frames = self.held.frames.as_slice();
        while let Some((length, rest)) = frames.split_first_chunk() {
            let (frame, rest) = rest.split_at(u32::from_le_bytes(*length) as usize);
            frames = rest;
            let tick = Tick::parse(frame)?;
            if known.has(&tick) {
                hub.pass(tick.header.seq);
            } else {
                hub.tick(clock.now(), &tick, outlets);
            }
        }
        Ok(known.items.len())
    }
}

impl Held {
    /// Takes all that the ring has.
    fn take(&mut self, subscriber: &mut Subscriber) -> anyhow::Result<()> {
        loop {
            let tick = match ticks::next(subscriber)? {
                Next::Tick(tick) => tick,
                Next::Nothing | Next::End => return Ok(()),
                Next::Lost(lost) => return Err(lost.of("this hub")),
            };
            if tick.header.seq == Seq(1) {
                // What stands before it another plant published, whose ring this one goes on with.
                self.frames.clear();
                self.is_whole = true;
            }
            put(&mut self.frames, |out| tick.write(out));
            if self.frames.len() > MOST_HELD {
                let hint = "start it again while less comes, or on a core of its own";
                let what = format!("{} MiB of ticks came before the images were read", MOST_HELD >> 20);
                return Err(Hinted::new(what, hint).into());
            }
        }
    }
}

/// Up to which tick what is known: of an item's number in each domain, and of each channel.
#[derive(Default)]
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
    use tapeline_measure::Nanos;
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
