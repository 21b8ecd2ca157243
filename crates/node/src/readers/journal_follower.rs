//! A plant's ring alongside its journal, for a reader of the journal: which ticks the journal will still get,
//! and when the plant has ended.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tapeline_measure::instant;
use tapeline_ring::{Error, Name, Start, Subscriber};

use crate::events::Events;
use crate::ticks::{self, Next};

/// A journal that is behind the ring for this long is reported: a disk's longest pauses are shorter.
const LONG: Duration = Duration::from_secs(1);

/// What the ring shows.
#[derive(Debug)]
pub struct JournalFollower {
    ring: Name,
    label: String,
    events: Events,
    /// The newest tick of the ring: the journal gets it, unless the plant dies or runs without its journal.
    pub newest: u64,
    /// The plant's process; `None` if there is none.
    plant: Option<OwnedFd>,
    /// The position on the ring was lost, and no tick has arrived since: there may be newer ones.
    is_lost: bool,
    has_ended: bool,
    /// The plant's process had exited at the last check.
    is_over: bool,
    /// The last tick of the journal, and the time, when its next tick was first missing.
    waiting: Option<(u64, Instant)>,
    has_said: bool,
}

/// What a reader at the journal's end can expect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// Nothing yet: the journal has everything that was published.
    Nothing,
    /// More of the journal, at once or when the plant has written it.
    More,
    /// Nothing more: the plant has ended. Published ticks that the journal does not have by now are missing.
    End,
}

impl JournalFollower {
    /// Follows the journal of the plant whose ring has already been joined.
    pub fn of(ring: Name, label: &str, events: &Events) -> Self {
        let plant = process_of(&ring);
        Self {
            ring,
            label: label.to_owned(),
            events: events.clone(),
            newest: 0,
            plant,
            is_lost: false,
            has_ended: false,
            is_over: false,
            waiting: None,
            has_said: false,
        }
    }

    /// Returns the tick up to which the journal must be read: the newest one, or the journal's end if newer
    /// ones may have been missed.
    pub const fn up_to(&self) -> u64 {
        if self.is_lost { u64::MAX } else { self.newest }
    }

    /// Whether the ring has ended.
    pub const fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Records a tick taken from the ring, which the journal will contain. The last tick counts, not the
    /// highest: a plant that continues the journal of a killed one starts at a lower number.
    pub const fn take(&mut self, seq: u64) {
        // A tick outside the sequence is in no journal.
        if seq > 0 {
            (self.newest, self.is_lost) = (seq, false);
        }
    }

    /// Skips the ticks on the ring, so that a long history does not block the plant. A lost position is taken
    /// again at the journal's end only: a reader that is behind for long makes the plant wait once.
    ///
    /// # Errors
    /// The ring contains something that is not a tick.
    pub fn pass(&mut self, ring: &mut Subscriber) -> crate::Result<()> {
        loop {
            match ticks::next(ring)? {
                Next::Tick(tick) => self.take(tick.header.seq.0),
                Next::Lost(_) => {
                    self.is_lost = true;
                    return Ok(());
                }
                Next::Nothing | Next::End => return Ok(()),
            }
        }
    }

    /// The journal has no more after tick `last` for now. Returns, from the ring, whether it will.
    ///
    /// # Errors
    /// The ring contains something that is not a tick.
    pub fn look(&mut self, ring: &mut Subscriber, last: u64) -> crate::Result<Expect> {
        loop {
            match ticks::next(ring)? {
                Next::Tick(tick) => self.take(tick.header.seq.0),
                Next::Nothing => break,
                Next::End => {
                    self.has_ended = true;
                    break;
                }
                // Nothing is lost by that: the ticks are in the journal.
                Next::Lost(_) => {
                    self.is_lost = true;
                    match Subscriber::join_as(&self.ring, Start::Newest, &self.label) {
                        Ok(again) => (*ring, self.plant) = (again, process_of(&self.ring)),
                        // The plant has ended since, and its ring was removed.
                        Err(Error::NotFound { .. }) => {
                            self.has_ended = true;
                            break;
                        }
                        Err(error) => return Err(error.into()),
                    }
                }
            }
        }
        let is_behind = self.newest > last;
        if !self.has_ended {
            if is_behind {
                self.say(last);
                return Ok(Expect::More);
            }
            (self.waiting, self.has_said) = (None, false);
            return Ok(Expect::Nothing);
        }
        // A slow disk takes time.
        if (is_behind || self.is_lost) && !self.is_over {
            // Its last writes are read once more.
            self.is_over = self.plant.as_ref().is_none_or(has_exited);
            return Ok(Expect::More);
        }
        Ok(Expect::End)
    }

    /// Reports, once until the journal has caught up, that it gets nothing new while the plant continues.
    fn say(&mut self, last: u64) {
        let since = match self.waiting {
            Some((at, since)) if at == last => since,
            _ => self.waiting.insert((last, instant())).1,
        };
        if self.has_said || since.elapsed() < LONG {
            return;
        }
        self.has_said = true;
        self.events.warning(format_args!(
            "the journal has nothing behind tick {last}, but the plant is already at {}: the plant may run without its journal \
             (on_failure = \"continue\"), or its disk is slow; waiting",
            self.newest
        ));
    }
}

/// The process that publishes to a ring; `None` if there is none.
fn process_of(ring: &Name) -> Option<OwnedFd> {
    let ring = tapeline_ring::inspect(ring).ok()?;
    pidfd_open(Pid::from_raw(ring.publisher.pid as i32)?, PidfdFlags::empty()).ok()
}

/// Whether a process has exited, even if its parent has not waited for it yet.
fn has_exited(process: &OwnedFd) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    // If the check fails, the process is assumed to exist and is checked again later.
    poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready > 0)
}
