//! A plant's ring, read tick by tick: what is on it, and what there is to say where it cannot be read.

use std::time::Duration;

use tapeline_plant::tick::Tick;
use tapeline_ring::{Poll, Subscriber};

use crate::Error;
use crate::error::Context;

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
