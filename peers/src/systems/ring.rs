//! Ours: Tapeline's ring.

use anyhow::Context;
use tapeline_ring::{Framing, Name, Options, Poll, Publisher, Start, Subscriber};

use super::slot::with_length;
use super::{Place, Scope, System};
use crate::measuring::{Receiver, Sender};
use crate::message::Message;
use crate::stage::{Role, Stage};

/// Frames that one look may give.
pub(super) const BATCH: u64 = 1024;

const fn system(name: &'static str, title: &'static str, settings: &'static str) -> System {
    System { name, title, peer: "ring", place: Place::Processes, scope: Scope::Ours, settings, run }
}

pub(crate) const PACKED: System = system(
    "ring",
    "Tapeline ring, packed, 1 MiB",
    "gated; frames packed to 8 bytes, length known at run time, claimed and written in place, read where they lie",
);
pub(crate) const LINES: System =
    system("ring-lines", "Tapeline ring, lines, 1 MiB", "the same with frames on cache lines of their own");
pub(crate) const FIXED: System = System {
    scope: Scope::Queue,
    ..system(
        "ring-fixed",
        "Tapeline ring, packed, 1 MiB, length fixed",
        "the first with a length known at compile time, as it is in queues of slots",
    )
};
pub(crate) const PACKED_MIDDLE: System =
    system("ring-8m", "Tapeline ring, packed, 8 MiB", "the first with a larger ring");
pub(crate) const PACKED_LARGE: System =
    system("ring-64m", "Tapeline ring, packed, 64 MiB", "the first with a larger ring");
pub(crate) const LINES_LARGE: System =
    system("ring-lines-64m", "Tapeline ring, lines, 64 MiB", "the second with a larger ring");

fn run(stage: &Stage) -> anyhow::Result<()> {
    if stage.case.system == FIXED.name {
        return with_length!(stage.case.metric.bytes(), run_fixed(stage));
    }
    let name = name(stage)?;
    match stage.role {
        Role::Receiver => stage.receive(Outlet(Subscriber::join(&name, Start::Oldest)?)),
        _ => stage.send(Inlet(Publisher::open(&name, &options(&stage.case.system))?)),
    }
}

fn run_fixed<const N: usize>(stage: &Stage) -> anyhow::Result<()> {
    let name = name(stage)?;
    match stage.role {
        Role::Receiver => stage.receive(FixedOutlet::<N>(Subscriber::join(&name, Start::Oldest)?)),
        _ => stage.send(FixedInlet::<N>(Publisher::open(&name, &Options::default())?)),
    }
}

pub(super) fn name(stage: &Stage) -> anyhow::Result<Name> {
    Name::new(&stage.case.id).context("the case's id is no name")
}

fn options(system: &str) -> Options {
    let capacity = match system.rsplit_once('-') {
        Some((_, "64m")) => 64 << 20,
        Some((_, "8m")) => 8 << 20,
        _ => 1 << 20,
    };
    let framing = if system.starts_with(LINES.name) { Framing::Lines } else { Framing::Packed };
    Options { capacity, framing, ..Options::default() }
}

pub(super) struct Inlet(pub(super) Publisher);

impl Sender for Inlet {
    #[inline]
    fn send(&mut self, message: &Message<'_>) -> bool {
        let Ok(mut claim) = self.0.claim(message.len()) else { return false };
        message.fill(&mut claim);
        claim.commit();
        true
    }
}

pub(super) struct Outlet(pub(super) Subscriber);

impl Receiver for Outlet {
    #[inline]
    fn receive(&mut self, mut each: impl FnMut(&[u8])) -> u64 {
        for count in 0..BATCH {
            let Poll::Frame(frame) = self.0.next() else { return count };
            each(&frame);
        }
        BATCH
    }
}

struct FixedInlet<const N: usize>(Publisher);

impl<const N: usize> Sender for FixedInlet<N> {
    #[inline]
    fn send(&mut self, message: &Message<'_>) -> bool {
        let Ok(mut claim) = self.0.claim(N) else { return false };
        if let Some(place) = claim.first_chunk_mut::<N>() {
            message.fill(place);
        }
        claim.commit();
        true
    }
}

struct FixedOutlet<const N: usize>(Subscriber);

impl<const N: usize> Receiver for FixedOutlet<N> {
    #[inline]
    fn receive(&mut self, mut each: impl FnMut(&[u8])) -> u64 {
        for count in 0..BATCH {
            let Poll::Frame(frame) = self.0.next() else { return count };
            // Of another length it would be missed, and counted as lost.
            if let Some(frame) = frame.first_chunk::<N>() {
                each(frame);
            }
        }
        BATCH
    }
}
