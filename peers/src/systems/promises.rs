//! Tapeline's ring with one promise left out at a time, to show what each promise costs.
//!
//! These systems are no offers: each of them is compared with `ring` only.

use tapeline_ring::{Name, Options, Poll, Publisher, Start, Subscriber, broadcast};

use super::ring::{BATCH, Inlet, Outlet, name};
use super::{Place, Scope, System};
use crate::measuring::{Receiver, Sender};
use crate::message::Message;
use crate::stage::{Role, Stage};

/// Frames that become visible together in [`SHOWN`].
const SHOWN_TOGETHER: u32 = 16;

const fn system(name: &'static str, title: &'static str, place: Place, settings: &'static str) -> System {
    System { name, title, peer: "promises", place, scope: Scope::Promise, settings, run }
}

/// Without: a process for each end.
pub(crate) const THREADS: System = system(
    "ring-threads",
    "Tapeline ring, ends in threads",
    Place::Threads,
    "`ring` with both ends in threads of one process",
);
/// Without: each message visible on its own.
pub(crate) const SHOWN: System = system(
    "ring-shown",
    "Tapeline ring, 16 shown together",
    Place::Processes,
    "`ring` whose sender shows 16 frames at a time",
);
/// Without: nothing is dropped.
pub(crate) const LOSSY: System = system(
    "ring-lossy",
    "Tapeline ring, broadcast",
    Place::Processes,
    "a broadcast ring of 1 MiB: the sender overwrites what is not read yet, a receiver copies each frame and checks the copy",
);

fn run(stage: &Stage) -> anyhow::Result<()> {
    let name = name(stage)?;
    let options = Options::default();
    if stage.case.system == THREADS.name {
        let publisher = Publisher::open(&name, &options)?;
        return stage.pair(Inlet(publisher), Outlet(Subscriber::join(&name, Start::Oldest)?));
    }
    match (stage.role, stage.case.system == SHOWN.name) {
        (Role::Receiver, true) => stage.receive(Outlet(Subscriber::join(&name, Start::Oldest)?)),
        (Role::Receiver, false) => stage.receive(LossyOutlet::join(&name)?),
        (_, true) => stage.send(ShownInlet { publisher: Publisher::open(&name, &options)?, hidden: 0 }),
        (_, false) => stage.send(LossyInlet(broadcast::Publisher::open(&name, &options)?)),
    }
}

struct ShownInlet {
    publisher: Publisher,
    hidden: u32,
}

impl Sender for ShownInlet {
    #[inline]
    fn send(&mut self, message: &Message<'_>) -> bool {
        let Ok(mut claim) = self.publisher.claim(message.len()) else { return false };
        message.fill(&mut claim);
        let is_hidden = claim.hide_prefix(message.len()).is_ok();
        self.hidden += 1;
        if self.hidden == SHOWN_TOGETHER {
            self.flush();
        }
        is_hidden
    }

    fn flush(&mut self) {
        self.publisher.show();
        self.hidden = 0;
    }
}

struct LossyInlet(broadcast::Publisher);

impl Sender for LossyInlet {
    #[inline]
    fn send(&mut self, message: &Message<'_>) -> bool {
        let Ok(mut claim) = self.0.claim(message.len()) else { return false };
        message.fill(&mut claim);
        claim.commit();
        true
    }
}

struct LossyOutlet(broadcast::Subscriber);

impl LossyOutlet {
    fn join(name: &Name) -> anyhow::Result<Self> {
        Ok(Self(broadcast::Subscriber::join(name, Start::Oldest)?))
    }
}

impl Receiver for LossyOutlet {
    #[inline]
    fn receive(&mut self, mut each: impl FnMut(&[u8])) -> u64 {
        for count in 0..BATCH {
            match self.0.next() {
                broadcast::BroadcastPoll::Frame(frame) => each(&frame),
                broadcast::BroadcastPoll::Lost { .. } => {}
                _ => return count,
            }
        }
        BATCH
    }
}

/// The cache lines of the ring's segment that each end writes while 32-byte messages pass: counted, not timed.
///
/// One thread plays the sender and all receivers in turns of 64 messages, once around a ring of 1 MiB, and compares the segment
/// before and after each turn.
pub(crate) fn lines_written(receivers: usize) -> anyhow::Result<LinesWritten> {
    let name = Name::new(&format!("peers-lines-{}-{receivers}", std::process::id()))?;
    let mut publisher = Publisher::open(&name, &Options::default())?;
    let mut subscribers = Vec::new();
    for _ in 0..receivers {
        subscribers.push(Subscriber::join(&name, Start::Newest)?);
    }
    let capacity = publisher.capacity();
    let mut written = LinesWritten { receivers, ..LinesWritten::default() };
    let mut before = std::fs::read(name.path())?;
    while written.messages < (capacity / FRAME_BYTES) as u64 {
        for number in 0..TURN {
            let body = [(written.messages + number) as u8 | 1; 32];
            publisher.publish(&body)?;
        }
        written.messages += TURN;
        let after = std::fs::read(name.path())?;
        written.by_sender += changed(&before, &after);
        before = after;
        for subscriber in &mut subscribers {
            while let Poll::Frame(frame) = subscriber.next() {
                std::hint::black_box(&*frame);
            }
        }
        let after = std::fs::read(name.path())?;
        written.by_receivers += changed(&before, &after);
        before = after;
    }
    Ok(written)
}

/// Messages of a turn, and bytes of a frame with its header.
const TURN: u64 = 64;
const FRAME_BYTES: usize = 40;

/// What [`lines_written`] counts.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct LinesWritten {
    pub(crate) receivers: usize,
    pub(crate) messages: u64,
    pub(crate) by_sender: u64,
    pub(crate) by_receivers: u64,
}

/// Lines of 64 bytes that differ.
fn changed(before: &[u8], after: &[u8]) -> u64 {
    before.chunks(64).zip(after.chunks(64)).filter(|(before, after)| before != after).count() as u64
}
