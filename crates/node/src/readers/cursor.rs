//! A reader's position on the plant's ring: it reads tick by tick, and rejoins after the position was lost.

use tapeline_measure::figures::thousands;
use tapeline_plant::Seq;
use tapeline_plant::tick::Tick;

use crate::Error;
use crate::events::Events;
use crate::journal::Gate;
use crate::ticks::{Next, OnRing, Position};

/// A reader's position in a plant's ticks.
#[derive(Debug)]
pub(crate) struct RingCursor<T = OnRing> {
    pub(crate) ticks: T,
    /// The epoch of the plant: see [`Position::epoch`].
    epoch: u32,
    /// The reader's name, in the ring's registry and in warnings.
    pub(crate) reader: &'static str,
    /// Holds ticks back until they are durable.
    pub(crate) gate: Option<Gate>,
    /// Whether the next tick was held back at the last look.
    pub(crate) is_held: bool,
    /// Times that the position was lost and the reader rejoined.
    pub(crate) rejoined: u64,
    pub(crate) events: Events,
}

/// The next entry of the ring.
pub(crate) enum Read<'a> {
    /// The next tick of the sequence, or one outside it.
    Tick(Tick<'a>),
    /// The tick was already taken before the reader rejoined: releases lag behind reads.
    Again,
    /// The ring no longer has the ticks before this one, which is the first after the gap.
    Behind(Tick<'a>),
    Nothing,
    /// The plant has ended, and everything was read.
    End,
    /// The plant continued without this reader.
    Lost,
}

impl<T: Position> RingCursor<T> {
    /// Starts at this position, behind `gate` if ticks must be durable first.
    pub(crate) fn new(reader: &'static str, ticks: T, gate: Option<Gate>, events: &Events) -> Self {
        let epoch = ticks.epoch();
        let cursor = Self { ticks, epoch, reader, gate, is_held: false, rejoined: 0, events: events.clone() };
        cursor.hold_back();
        cursor
    }

    /// Passes this reader's place on the ring to the gate.
    fn hold_back(&self) {
        if let (Some(gate), Some(seat)) = (&self.gate, self.ticks.seat()) {
            gate.holds_back(seat);
        }
    }

    /// Takes the next tick. `awaited` is its expected sequence number; 0 accepts any.
    ///
    /// # Errors
    /// Another plant continues with the ring, or the ring contains something that is not a tick.
    #[inline(always)]
    pub(crate) fn next(&mut self, awaited: Seq) -> crate::Result<Read<'_>> {
        // Checked before the tick: if another plant follows later, the next look detects it.
        let is_ours = self.ticks.epoch() == self.epoch;
        let has_rejoined = self.rejoined > 0;
        let tick = match self.take()? {
            Next::Tick(tick) => tick,
            Next::Nothing => return Ok(Read::Nothing),
            Next::End => return Ok(Read::End),
            Next::Lost(_) => return Ok(Read::Lost),
        };
        let seq = tick.header.seq;
        if seq < awaited && !seq.is_outside() {
            // The sequence of another plant starts with 1.
            return if has_rejoined && is_ours { Ok(Read::Again) } else { Err(another_plant()) };
        }
        // Before its first tick a hub awaits any, and has lost the plant's first ones all the same.
        let is_behind = has_rejoined && seq > awaited.max(Seq(1));
        Ok(if is_behind { Read::Behind(tick) } else { Read::Tick(tick) })
    }

    /// Takes the next tick, whatever its sequence number; nothing while it is held back.
    ///
    /// # Errors
    /// The ring contains something that is not a tick.
    #[inline(always)]
    pub(crate) fn take(&mut self) -> crate::Result<Next<'_>> {
        let Some(gate) = &self.gate else { return self.ticks.next() };
        let next = gate.next(&mut self.ticks)?;
        self.is_held = next.is_none();
        Ok(next.unwrap_or(Next::Nothing))
    }

    /// Rejoins the ring at its oldest tick after the position was lost.
    ///
    /// # Errors
    /// The ring belongs to another plant now.
    pub(crate) fn rejoin(&mut self) -> crate::Result<()> {
        self.events.warning(format_args!(
            "{} has read nothing for the plant's stall_limit and was evicted from the ring {}: \
             it continues with what the ring still holds",
            self.reader,
            self.ticks.ring()
        ));
        // Another plant numbers its ticks and items from 1 again, and they would be taken for the earlier
        // ones.
        if !self.ticks.rejoin(self.reader)? || self.ticks.epoch() != self.epoch {
            return Err(another_plant());
        }
        self.hold_back();
        self.rejoined += 1;
        Ok(())
    }
}

/// The text in reports about a reader's lost positions and missed ticks; empty if there were none.
pub fn losses(rejoined: u64, missing: u64) -> String {
    if rejoined == 0 {
        return String::new();
    }
    let (times, missing) = (thousands(rejoined), thousands(missing));
    format!("; was evicted from the ring {times} times, and missed {missing} ticks")
}

pub(crate) fn another_plant() -> Error {
    let hint = "start this process again: it then reads the new plant's ring";
    Error::hinted("another plant now publishes the ring", hint)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tapeline_ring::{Name, Options, Publisher, Refused, Start, Subscriber};

    use super::*;
    use crate::ticks;

    const LIMIT: Duration = Duration::from_nanos(1);

    fn open(name: &Name, keep: bool) -> Publisher {
        let options = Options { capacity: 1 << 16, stall_limit: LIMIT, keep, ..Options::default() };
        Publisher::open(name, &options).unwrap()
    }

    fn publish(publisher: &mut Publisher, seqs: std::ops::RangeInclusive<u64>) {
        for seq in seqs {
            let frame = ticks::frame(seq);
            while publisher.publish(&frame) == Err(Refused::Full) {
                std::thread::yield_now();
            }
        }
    }

    /// A hub that has read so many ticks of a ring which then continues without it, ready to rejoin.
    fn lost_after(read: u64, name: &str, keep: bool) -> (RingCursor, Publisher) {
        let name: Name = format!("test-{name}-{}", std::process::id()).parse().unwrap();
        let mut publisher = open(&name, keep);
        let subscriber = Subscriber::join_as(&name, Start::Newest, "hub").unwrap();
        let mut place = RingCursor::new("hub", OnRing { ring: name, subscriber }, None, &Events::default());
        publish(&mut publisher, 1..=read);
        for seq in 1..=read {
            assert!(matches!(place.next(Seq(seq)).unwrap(), Read::Tick(tick) if tick.header.seq == Seq(seq)));
        }
        publish(&mut publisher, read + 1..=3_000);
        assert!(matches!(place.next(Seq(read + 1)).unwrap(), Read::Lost));
        (place, publisher)
    }

    fn lost(name: &str, keep: bool) -> (RingCursor, Publisher) {
        lost_after(3, name, keep)
    }

    fn rejoin(place: &mut RingCursor) -> crate::Result<()> {
        let Read::Lost = place.next(Seq(4))? else { panic!("it has its place") };
        place.rejoin()
    }

    #[test]
    fn behind_a_gap_no_tick_is_taken_twice_and_the_first_is_known() {
        let (mut place, publisher) = lost("seated-again", false);
        rejoin(&mut place).unwrap();
        let Read::Behind(first) = place.next(Seq(4)).unwrap() else { panic!("no gap") };
        let first = first.header.seq;
        assert!(first > Seq(4) && first < Seq(3_000), "{first:?}");
        // Ten of the next ticks were already taken before the reader rejoined.
        let awaited = Seq(first.0 + 11);
        for _ in 0..10 {
            assert!(matches!(place.next(awaited).unwrap(), Read::Again));
        }
        assert!(matches!(place.next(awaited).unwrap(), Read::Tick(tick) if tick.header.seq == awaited));
        publisher.close().unwrap();
    }

    #[test]
    fn a_position_lost_before_the_first_tick_is_a_gap() {
        let (mut place, publisher) = lost_after(0, "seated-first", false);
        rejoin(&mut place).unwrap();
        // As a hub awaits it that has taken no tick yet.
        assert!(matches!(place.next(Seq(0)).unwrap(), Read::Behind(tick) if tick.header.seq > Seq(1)));
        publisher.close().unwrap();
    }

    #[test]
    fn another_plants_ring_is_not_gone_on_with() {
        let (mut place, publisher) = lost("seated-other", false);
        let name = place.ticks.ring.clone();
        drop(publisher);
        let mut publisher = open(&name, false);
        publish(&mut publisher, 1..=3_000);
        let error = rejoin(&mut place).unwrap_err();
        assert!(error.to_string().contains("another plant"), "{error}");
        publisher.close().unwrap();
    }

    #[test]
    fn nor_is_it_where_that_takes_the_ring_over_meanwhile() {
        let (mut place, publisher) = lost("seated-meanwhile", true);
        rejoin(&mut place).unwrap();
        let (mut plant, mut awaited) = (Some(publisher), Seq(4));
        let error = loop {
            match place.next(awaited) {
                Ok(Read::Behind(tick) | Read::Tick(tick)) => awaited = Seq(tick.header.seq.0 + 1),
                Ok(Read::Nothing) => drop(plant.take()),
                Ok(_) => {
                    let mut next = open(&place.ticks.ring, false);
                    publish(&mut next, 1..=1);
                    plant = Some(next);
                }
                Err(error) => break error,
            }
        };
        assert_eq!(awaited, Seq(3_001));
        assert!(error.to_string().contains("another plant"), "{error}");
        plant.unwrap().close().unwrap();
    }
}
