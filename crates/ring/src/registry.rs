//! The rings of this machine, as observers see them.

use crate::atomics::Ordering;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::frame::{self, Grain, Position};
use crate::layout::{Framing, Policy};
use crate::lines::{ENDED, EVICTED, LIVE, SLOTS, order_word};
use crate::memory::{Access, Memory};
use crate::name::{DIRECTORY, PREFIX};
use crate::segment::{self, Purpose, Segment};
use crate::{Error, Name};

/// A file with a ring's name.
#[derive(Debug)]
pub struct Entry {
    /// The ring's name.
    pub name: Name,
    /// The ring's snapshot, or why it cannot be inspected.
    pub ring: Result<Snapshot, Error>,
}

/// A ring at one moment. The ring keeps changing during the inspection, so related numbers can be a few frames apart.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Snapshot {
    /// The segment's path.
    pub path: PathBuf,
    /// Size of the data area in bytes.
    pub capacity: usize,
    /// The longest frame in bytes.
    pub max_frame: usize,
    /// Shared memory that the ring takes, in bytes.
    pub file_bytes: u64,
    /// Permission bits of the segment.
    pub mode: u32,
    /// Creation time, in ns since 1970 UTC.
    pub created_ns: u64,
    /// What happens when a subscriber is slow.
    pub policy: Policy,
    /// How frames are placed in the data area.
    pub framing: Framing,
    /// How long a live subscriber may block the full ring; zero means no limit.
    pub stall_limit: Duration,
    /// `true` if huge pages were requested for the frames.
    pub huge_pages: bool,
    /// The current or last publisher.
    pub publisher: PublisherView,
    /// The oldest position from which all frames are intact.
    pub oldest: Position,
    /// Registered subscribers, by slot.
    pub subscribers: Vec<SubscriberView>,
}

/// A publisher, as seen from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PublisherView {
    /// Process id.
    pub pid: u32,
    /// Start time of the process, in clock ticks since boot.
    pub start_ticks: u64,
    /// `true` if the publisher lives, according to its lock.
    pub alive: bool,
    /// `true` if the publisher has ended the ring.
    pub ended: bool,
    /// Number of publishers that the ring has had (modulo 2²⁴).
    pub epoch: u32,
    /// The position behind the newest frame.
    pub position: Position,
    /// Frames committed to the ring by all its publishers.
    pub frames: u64,
    /// Claims refused because the ring was full, as last stored.
    pub full: u64,
    /// Dead subscribers that no longer block the ring.
    pub reclaimed: u64,
    /// Live subscribers evicted because they stalled for longer than the limit.
    pub evicted: u64,
}

/// A subscriber, as seen from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SubscriberView {
    /// Slot in the table of subscribers.
    pub slot: usize,
    /// Process id.
    pub pid: u32,
    /// Start time of the process, in clock ticks since boot.
    pub start_ticks: u64,
    /// `true` if the subscriber lives, according to its lock. A dead one blocks the ring until its space is needed.
    pub alive: bool,
    /// `true` if the subscriber was evicted and no longer blocks the ring.
    pub evicted: bool,
    /// `true` if the subscriber sleeps until a frame comes.
    pub parked: bool,
    /// The subscriber's label.
    pub label: String,
    /// The position up to which it has released frames; stored once per eighth of the ring and when it has read all.
    pub position: Position,
    /// Bytes between `position` and the newest frame.
    pub lag_bytes: u64,
}

/// Returns all rings of this machine, by name, including those that cannot be read.
///
/// # Errors
/// If the directory of shared memory cannot be read.
pub fn list() -> Result<Vec<Entry>, Error> {
    let system = |source: io::Error| Error::System { path: DIRECTORY.into(), what: "list", source };
    let mut entries = Vec::new();
    for file in fs::read_dir(DIRECTORY).map_err(system)? {
        let file = file.map_err(system)?.file_name();
        let Some(name) = file.to_str().and_then(|file| file.strip_prefix(PREFIX)) else { continue };
        let Ok(name) = Name::new(name) else { continue };
        match inspect(&name) {
            // Removed since the directory was read.
            Err(Error::NotFound { .. }) => {}
            ring => entries.push(Entry { name, ring }),
        }
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(entries)
}

/// Inspects a ring without changing anything.
///
/// # Errors
/// [`Error::NotFound`]; [`Error::Foreign`], [`Error::Layout`] or [`Error::Damaged`] if it is no ring that this
/// build can read; the system's errors, for instance when the ring belongs to another user.
pub fn inspect(name: &Name) -> Result<Snapshot, Error> {
    let segment = Segment::open(name, Purpose::Observe)?;
    let memory = Memory::map(&segment, Access::Observer)?;
    let (position, frames) = newest(&segment, &memory);
    let lines = memory.publisher();
    let status = &lines.status;
    // Acquire: the state is seen with its publisher's identity.
    let state = status.state.load(Ordering::Acquire);
    if state != LIVE && state != ENDED {
        let why = format!("its state is {state}, expected {LIVE} (live) or {ENDED} (ended)");
        return Err(Error::Damaged { path: segment.path, why });
    }
    let publisher = PublisherView {
        pid: status.pid.load(Ordering::Relaxed),
        start_ticks: status.start_ticks.load(Ordering::Relaxed),
        alive: segment.publisher_is_alive()?,
        ended: state == ENDED,
        epoch: status.epoch.load(Ordering::Relaxed),
        position: Position(position),
        frames,
        full: lines.tally.full.load(Ordering::Relaxed),
        reclaimed: lines.tally.reclaimed.load(Ordering::Relaxed),
        evicted: lines.tally.evicted.load(Ordering::Relaxed),
    };
    let table = memory.subscribers();
    let members = table.members.slots.load(Ordering::Acquire);
    let parked = table.waiters.parked.load(Ordering::Relaxed);
    let mut subscribers = Vec::new();
    for slot in (0..SLOTS).filter(|slot| members >> slot & 1 == 1) {
        let place = &table.slots[slot];
        let released = place.progress.position.load(Ordering::Acquire);
        subscribers.push(SubscriberView {
            slot,
            pid: place.identity.pid.load(Ordering::Relaxed),
            start_ticks: place.identity.start_ticks.load(Ordering::Relaxed),
            alive: segment.slot_is_alive(slot)?,
            evicted: lines.orders[slot].word.load(Ordering::Relaxed)
                == order_word(place.identity.ticket.load(Ordering::Relaxed), EVICTED),
            parked: parked >> slot & 1 == 1,
            label: place.identity.label(),
            position: Position(released),
            lag_bytes: position.saturating_sub(released),
        });
    }
    Ok(Snapshot {
        capacity: segment.shape.capacity,
        max_frame: segment.shape.max_frame,
        file_bytes: segment.shape.file_bytes(),
        mode: segment.mode()?,
        created_ns: segment.shape.created_ns,
        policy: segment.shape.policy,
        framing: segment.shape.framing,
        stall_limit: Duration::from_nanos(segment.shape.stall_limit_ns),
        huge_pages: segment.shape.huge_pages,
        publisher,
        oldest: Position(lines.gate.position.load(Ordering::Acquire)),
        subscribers,
        path: segment.path,
    })
}

/// The position behind the newest frame and the number of frames before it: starts at the cursor and walks over the
/// frames that it does not cover yet. The publisher may overwrite them meanwhile, so the walk counts only if the
/// cursor has not moved: it moves before the publisher comes around to it.
fn newest(segment: &Segment, memory: &Memory) -> (u64, u64) {
    const TRIES: usize = 8;
    let cursor = &memory.publisher().cursor;
    let most = segment.shape.capacity;
    let frames_of = (Grain::of(segment.shape.framing), segment.shape.max_frame);
    for _ in 0..TRIES {
        let start = cursor.position.load(Ordering::Acquire);
        if start > 1 << 62 {
            break;
        }
        let Some(mut frames) = cursor.frames_at(start) else { continue };
        let end = frame::walk(memory, start, frames_of, most, |_| frames = frames.wrapping_add(1));
        if let Ok(end) = end
            && cursor.position.load(Ordering::Acquire) == start
        {
            return (end, frames);
        }
    }
    let position = cursor.position.load(Ordering::Acquire);
    (position, cursor.frames_at(position).unwrap_or(0))
}

/// Removes a ring's name; its memory is freed once no process has it open. Current subscribers drain the ring.
///
/// # Errors
/// [`Error::PublisherAlive`] unless `force`; with `force`, any file of that name is removed. [`Error::NotFound`];
/// errors of opening, unless `force`.
pub fn remove(name: &Name, force: bool) -> Result<(), Error> {
    let purpose = if force { Purpose::Observe } else { Purpose::TakePart };
    match Segment::open(name, purpose) {
        Ok(segment) => {
            // Locked until the name is gone: a publisher that comes now is refused, and does not get a ring that
            // nobody finds.
            if !force && !segment.lock_publisher()? {
                let pid =
                    Memory::map(&segment, Access::Observer)?.publisher().status.pid.load(Ordering::Relaxed);
                return Err(Error::PublisherAlive { path: segment.path, pid });
            }
            let removed = segment.unlink();
            if !force {
                segment.unlock_publisher()?;
            }
            removed
        }
        Err(error @ Error::NotFound { .. }) => Err(error),
        Err(_) if force => segment::unlink(&name.path()),
        Err(error) => Err(error),
    }
}
