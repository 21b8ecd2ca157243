//! Making a ring, or continuing one.

use crate::atomics::Ordering;
use std::marker::PhantomData;

use super::stall::Stalls;
use super::{Options, PublisherOf};
use crate::discipline::Discipline;
use crate::frame::{self, EPOCH_MASK, Grain, TERMINATOR};
use crate::gate::{Boundaries, PARTS};
use crate::layout::{Framing, Policy, Shape};
use crate::lines::{HAS_BARRIER, LIVE};
use crate::memory::{Access, Memory};
use crate::segment::{Purpose, Segment};
use crate::{Error, Name, process, waiting};

/// Rounds for openers that race for one name: in each round another process must have created or removed it.
const ROUNDS: usize = 64;
/// Positions beyond this are invalid: no count reaches them.
const FAR: u64 = 1 << 62;

impl<D: Discipline> PublisherOf<D> {
    /// Creates the ring, or continues one whose publisher is gone: with the next epoch, from the last committed frame.
    /// Its subscribers keep their positions.
    ///
    /// # Errors
    /// [`Error::PublisherAlive`] if another publisher owns the ring; [`Error::OtherShape`] or
    /// [`Error::OtherPolicy`] if the ring exists with another shape or policy; [`Error::NoRoom`];
    /// [`Error::NoHugePages`]; [`Error::Foreign`], [`Error::Layout`] or [`Error::Damaged`] if the file of that name
    /// is no ring that this build can continue, or belongs to another user.
    pub fn open(name: &Name, options: &Options) -> Result<Self, Error> {
        let shape = Shape {
            page: rustix::param::page_size(),
            capacity: options.capacity,
            max_frame: options.longest_frame(),
            policy: D::POLICY,
            framing: options.framing,
            stall_limit_ns: match D::POLICY {
                Policy::Gated => u64::try_from(options.stall_limit.as_nanos()).unwrap_or(u64::MAX),
                Policy::Broadcast => 0,
            },
            huge_pages: options.huge_pages,
            created_ns: 0,
            creator_pid: std::process::id(),
        };
        shape.check()?;
        for _ in 0..ROUNDS {
            let opened = match Segment::open(name, Purpose::TakePart) {
                Ok(segment) => Self::take_over(segment, &shape, options)?,
                Err(Error::NotFound { .. }) => Self::create(name, shape, options)?,
                Err(error) => return Err(error),
            };
            if let Some(publisher) = opened {
                return Ok(publisher);
            }
        }
        Err(Error::system(&name.path(), "settle who opens", rustix::io::Errno::BUSY))
    }

    /// `Ok(None)`: another process took the name first.
    fn create(name: &Name, shape: Shape, options: &Options) -> Result<Option<Self>, Error> {
        let segment = Segment::create(name, shape, options.mode, options.group)?;
        // Nobody else can have the file open: it has no name.
        segment.lock_publisher()?;
        let memory = Memory::map(&segment, Access::Publisher)?;
        let publisher = Self::at(segment, memory, Boundaries::starting_at((0, 0)), 0, 0, 0, options);
        publisher.enter(1);
        if publisher.segment.publish_name()? { Ok(Some(publisher)) } else { Ok(None) }
    }

    /// `Ok(None)`: the ring lost its name before this publisher owned it.
    fn take_over(segment: Segment, wanted: &Shape, options: &Options) -> Result<Option<Self>, Error> {
        if !segment.lock_publisher()? {
            let pid = Memory::map(&segment, Access::Observer)?.publisher().status.pid.load(Ordering::Relaxed);
            return Err(Error::PublisherAlive { path: segment.path, pid });
        }
        if !segment.is_named()? {
            return Ok(None);
        }
        segment.check_owner()?;
        let there = segment.shape;
        if there.policy != wanted.policy {
            let (found, wanted) = (there.policy, wanted.policy);
            return Err(Error::OtherPolicy { path: segment.path, found, wanted });
        }
        for (what, found, wanted) in [
            ("a capacity of", there.capacity as u64, wanted.capacity as u64),
            ("a longest frame of", there.max_frame as u64, wanted.max_frame as u64),
            ("frames aligned to", there.framing.align() as u64, wanted.framing.align() as u64),
            ("a stall limit in ns of", there.stall_limit_ns, wanted.stall_limit_ns),
            ("huge pages (0 = no, 1 = yes) of", there.huge_pages.into(), wanted.huge_pages.into()),
        ] {
            if found != wanted {
                return Err(Error::OtherShape { path: segment.path, what, found, wanted });
            }
        }
        let memory = Memory::map(&segment, Access::Publisher)?;
        let (gate, end, frames, boundaries) = Self::recover(&segment, &memory)?;
        let epoch = memory.publisher().status.epoch.load(Ordering::Relaxed);
        let mut publisher = Self::at(segment, memory, boundaries, gate, end, frames, options);
        let tally = &publisher.memory.publisher().tally;
        publisher.full = tally.full.load(Ordering::Relaxed);
        publisher.reclaimed = tally.reclaimed.load(Ordering::Relaxed);
        publisher.stalls.continue_from(&publisher.memory);
        publisher.epoch = epoch.wrapping_add(1) & EPOCH_MASK;
        publisher.stamp = frame::stamp(publisher.epoch);
        // The dead publisher's cursor may be far behind; the gate must never pass it, so it is stored in any case.
        publisher.published = u64::MAX;
        publisher.publish_cursor();
        publisher.enter(publisher.epoch);
        Ok(Some(publisher))
    }

    /// Finds the true end of the frames that an earlier publisher committed. Frames that were claimed and not
    /// committed are behind a header of zero, and stay invisible.
    fn recover(segment: &Segment, memory: &Memory) -> Result<(u64, u64, u64, Boundaries), Error> {
        let damaged = |why: String| Error::Damaged { path: segment.path.clone(), why };
        let lines = memory.publisher();
        let gate = lines.gate.position.load(Ordering::Acquire);
        let cursor = lines.cursor.position.load(Ordering::Acquire);
        let (capacity, max_frame) = (segment.shape.capacity, segment.shape.max_frame);
        let grain = Grain::of(segment.shape.framing);
        let aligned = grain.is_boundary(gate) && grain.is_boundary(cursor);
        if !aligned || gate > cursor || cursor - gate > capacity as u64 || cursor > FAR {
            return Err(damaged(format!("its gate is {gate} and its cursor {cursor}")));
        }
        let Some(mut frames) = lines.cursor.frames_at(cursor) else {
            return Err(damaged(format!("its cursor is {cursor}, and it counts no frames there")));
        };
        let mut boundaries = Boundaries::starting_at((gate, 0));
        let mut mark = gate + (capacity / PARTS) as u64;
        // Frames since the gate; the number before the gate follows from the count at the cursor.
        let (mut walked, mut before) = (0u64, None);
        let end = frame::walk(memory, gate, (grain, max_frame), capacity, |position| {
            if position >= mark {
                boundaries.remember((position, walked));
                mark = position + (capacity / PARTS) as u64;
            }
            if position >= cursor {
                before.get_or_insert(frames.wrapping_sub(walked));
                frames = frames.wrapping_add(1);
            }
            walked += 1;
        })
        .map_err(|broken| {
            damaged(format!("expected a frame at position {}, found {:016x}", broken.position, broken.header))
        })?;
        if end < cursor || end - gate > capacity as u64 - TERMINATOR {
            return Err(damaged(format!(
                "its frames end at {end}, its gate is {gate} and its cursor {cursor}"
            )));
        }
        boundaries.count_from(before.unwrap_or(frames.wrapping_sub(walked)));
        Ok((gate, end, frames, boundaries))
    }

    fn at(
        segment: Segment,
        memory: Memory,
        boundaries: Boundaries,
        gate: u64,
        position: u64,
        frames: u64,
        options: &Options,
    ) -> Self {
        let (capacity, max_frame) = (segment.shape.capacity as u64, segment.shape.max_frame);
        Self {
            memory,
            position,
            // Nothing is allowed before the first scan of the subscribers.
            soft_limit: 0,
            stamp: frame::stamp(1),
            max_frame,
            grain: Grain::of(segment.shape.framing),
            lines: segment.shape.framing == Framing::Lines,
            // The only known zeros: new memory is zero, and so is the word where an earlier publisher's frames end.
            cleared: position + Framing::Lines.align() as u64,
            claimed: position,
            frames,
            hidden: (0, 0),
            limit: 0,
            mark: position + capacity / PARTS as u64,
            gate,
            published: position,
            capacity,
            boundaries,
            epoch: 1,
            full: 0,
            reclaimed: 0,
            stalls: Stalls::new(segment.shape.stall_limit_ns),
            liveness_looked_at: None,
            keep: options.keep,
            wake_on_commit: options.wake_on_commit,
            closed: false,
            segment,
            discipline: PhantomData,
        }
    }

    /// Stores the publisher's identity.
    fn enter(&self, epoch: u32) {
        let status = &self.memory.publisher().status;
        status.pid.store(std::process::id(), Ordering::Relaxed);
        status.start_ticks.store(process::start_ticks(), Ordering::Relaxed);
        status.flags.store(if waiting::join_barrier() { HAS_BARRIER } else { 0 }, Ordering::Relaxed);
        status.epoch.store(epoch, Ordering::Relaxed);
        // Release: a reader that sees the ring live sees its publisher's identity.
        status.state.store(LIVE, Ordering::Release);
    }
}
