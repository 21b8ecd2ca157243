//! A plant's ring beside its journal, for who reads the journal: what that is still to have, and when the plant has ended.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tapeline_measure::instant;
use tapeline_ring::{Error, Name, Start, Subscriber};

use crate::events::Events;
use crate::ticks::{self, Next};

/// A journal that has had nothing new for so long, while the ring has, is spoken of: a disk's longest pauses are shorter.
const LONG: Duration = Duration::from_secs(1);

/// What is known by the ring.
#[derive(Debug)]
pub struct JournalFollower {
    ring: Name,
    label: String,
    events: Events,
    /// The newest tick of the ring: the journal will have it, unless the plant dies, or is without its journal.
    newest: u64,
    /// The plant's process; `None` once it is gone.
    plant: Option<OwnedFd>,
    /// A place on the ring was lost, and no tick has come since: there may be newer ones.
    is_lost: bool,
    /// The ring has ended.
    has_ended: bool,
    /// The plant was gone when it was last looked for.
    is_over: bool,
    /// The last tick that the journal had when it was first asked in vain for the next one, and when that was.
    waiting: Option<(u64, Instant)>,
    has_said: bool,
}

/// What a reader that has come to the journal's end can expect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// Nothing, for now: it has all that was published.
    Nothing,
    /// More of the journal, at once or when the plant has it again.
    More,
    /// Nothing more: the plant has ended. What the journal does not have by now of what was published is missing.
    End,
}

impl JournalFollower {
    /// Beside the journal of the plant whose ring has been joined already.
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

    /// The newest tick that was passed by.
    pub const fn newest(&self) -> u64 {
        self.newest
    }

    /// Up to which tick the journal is to be read: that of the newest one, or to its end where newer ones may have been passed by unseen.
    pub const fn up_to(&self) -> u64 {
        if self.is_lost { u64::MAX } else { self.newest }
    }

    /// Whether the ring has come to its end.
    pub const fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// A tick was taken from the ring, and is to come from the journal. Not the highest one ever counts: a plant that goes on behind a
    /// killed one's journal begins further down.
    pub const fn take(&mut self, seq: u64) {
        (self.newest, self.is_lost) = (seq, false);
    }

    /// Passes over what is on the ring, so that a long history does not hold up the plant. A place that is lost is taken anew at the
    /// journal's end, and not before: whoever is behind for long is waited for once.
    ///
    /// # Errors
    /// There is something else than ticks.
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

    /// The journal has no more behind tick `last` for now: whether it will, by what is on the ring.
    ///
    /// # Errors
    /// There is something else than ticks.
    pub fn look(&mut self, ring: &mut Subscriber, last: u64) -> crate::Result<Expect> {
        loop {
            match ticks::next(ring)? {
                Next::Tick(tick) => self.take(tick.header.seq.0),
                Next::Nothing => break,
                Next::End => {
                    self.has_ended = true;
                    break;
                }
                // Nothing is lost by that: it is in the journal.
                Next::Lost(_) => {
                    self.is_lost = true;
                    match Subscriber::join_as(&self.ring, Start::Newest, &self.label) {
                        Ok(again) => (*ring, self.plant) = (again, process_of(&self.ring)),
                        // The plant has ended since, and its ring went with it.
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
        // A slow disk takes its time.
        if (is_behind || self.is_lost) && !self.is_over {
            // What it wrote last is read once more.
            self.is_over = self.plant.as_ref().is_none_or(has_exited);
            return Ok(Expect::More);
        }
        Ok(Expect::End)
    }

    /// Says, once until it is level again, that the journal stands still while the plant goes on.
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

/// Whether a process has exited, also where nobody has waited for it yet.
fn has_exited(process: &OwnedFd) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    // What cannot be asked is taken for there still, and asked again.
    poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready > 0)
}
