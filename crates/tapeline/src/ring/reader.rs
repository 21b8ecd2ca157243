//! The reading loop of `ring sub`, and what it hands frames to.

use std::fmt::Write as _;
use std::io::Write;
use std::time::Duration;

use anyhow::Context;
use tapeline_measure::{Clock, Nanos};
use tapeline_ring::{Name, Poll, Position, Subscriber, Wait};

use super::failures;
use super::message::Note;
use super::subscribe::{How, Subscribe};
use super::tally::Tally;
use crate::failure::Hinted;
use crate::output::{self, Progress};
use crate::stop::Stop;

/// Frames between two looks at the clock, and empty polls between two.
const FRAMES_PER_LOOK: u64 = 4096;
const POLLS_PER_LOOK: u32 = 16_384;
/// How often the publisher's note, its life and the progress are looked at.
const UPKEEP_NS: u64 = 1_000_000_000;
/// The longest wait in the ring, so that a signal is heeded soon.
const NAP: Duration = Duration::from_millis(20);

/// What is done with what comes.
pub(super) trait Sink {
    /// Takes a frame.
    fn take(&mut self, position: Position, frame: &[u8], clock: &Clock) -> anyhow::Result<()>;

    /// The first frame of a publisher is about to be taken; `note` is the publisher's, where it is a `ring pub`.
    fn begin(&mut self, _now: Nanos, _note: Option<Note>) {}

    /// All frames that there were have been taken by now; called now and then.
    fn seen(&mut self, _now: Nanos) -> anyhow::Result<()> {
        Ok(())
    }

    /// Called about once a second.
    fn upkeep(&mut self, _now: Nanos) -> anyhow::Result<()> {
        Ok(())
    }
}

/// Prints frames.
pub(super) struct Raw<W: Write> {
    pub(super) out: W,
    pub(super) line: String,
}

impl<W: Write> Sink for Raw<W> {
    fn take(&mut self, position: Position, frame: &[u8], _clock: &Clock) -> anyhow::Result<()> {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        self.line.clear();
        // Cannot fail: it writes to memory.
        let _ = write!(self.line, "{} {} ", position, frame.len());
        for byte in frame {
            self.line.push(char::from(DIGITS[usize::from(byte >> 4)]));
            self.line.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
        self.line.push('\n');
        self.out.write_all(self.line.as_bytes()).context("cannot write to standard output")
    }

    fn seen(&mut self, _now: Nanos) -> anyhow::Result<()> {
        self.out.flush().context("cannot write to standard output")
    }
}

/// Checks and measures.
pub(super) struct Measured {
    pub(super) tally: Tally,
    pub(super) intervals: bool,
}

impl Sink for Measured {
    #[inline]
    fn take(&mut self, _position: Position, frame: &[u8], clock: &Clock) -> anyhow::Result<()> {
        self.tally.take(frame, clock);
        Ok(())
    }

    fn begin(&mut self, now: Nanos, note: Option<Note>) {
        self.tally.begin(now, note.is_none_or(|note| note.rate_hz > 0));
    }

    fn seen(&mut self, now: Nanos) -> anyhow::Result<()> {
        self.tally.seen(now);
        Ok(())
    }

    fn upkeep(&mut self, now: Nanos) -> anyhow::Result<()> {
        if self.intervals && self.tally.frames() > 0 {
            let line = self.tally.interval_line(now);
            output::print(&line)?;
        }
        Ok(())
    }
}

/// The reading loop's state.
pub(super) struct Reader<'a> {
    subscriber: Subscriber,
    clock: Clock,
    /// The publisher's, where it is a `ring pub`.
    note: Option<Note>,
    stop: &'a Stop,
    how: How,
    total: u64,
    end: Nanos,
    /// The publisher of the last frame; none has this number before the first.
    epoch: u32,
    taken: u64,
    /// Frames taken at the last look.
    looked_at: u64,
    upkeep_due: Nanos,
    polls: u32,
    progress: Progress,
    counts_messages: bool,
    /// Whether the last poll found nothing.
    dry: bool,
    /// Whether the publisher was found dead since the last frame, and that was said.
    orphaned: bool,
    /// Whether the ring has neither a publisher nor a name.
    forsaken: bool,
    name: &'a Name,
}

impl<'a> Reader<'a> {
    pub(super) fn new(subscriber: Subscriber, options: &'a Subscribe, stop: &'a Stop) -> Self {
        let note = read_note(&subscriber);
        let clock = note.map_or_else(Clock::calibrate, |note| Clock::with(note.calibration));
        let now = clock.now();
        let time =
            options.seconds.map_or(u64::MAX, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        let progress = match (options.messages, options.seconds) {
            (Some(messages), _) => Progress::counting("reading", "messages", Some(messages)),
            (None, Some(time)) => Progress::over("reading", time),
            (None, None) => Progress::counting("reading", "messages", None),
        };
        Self {
            subscriber,
            clock,
            note,
            stop,
            how: options.wait,
            total: options.messages.unwrap_or(u64::MAX),
            end: Nanos(now.0.saturating_add(time)),
            epoch: u32::MAX,
            taken: 0,
            looked_at: 0,
            upkeep_due: now + UPKEEP_NS,
            polls: 0,
            progress,
            counts_messages: options.messages.is_some() || options.seconds.is_none(),
            dry: false,
            orphaned: false,
            forsaken: false,
            name: &options.name,
        }
    }

    /// Reads until there is a reason to end. Gives the sink back, and the publisher's last note.
    pub(super) fn read<S: Sink>(mut self, mut sink: S) -> anyhow::Result<(S, Option<Note>)> {
        while self.taken < self.total {
            match self.subscriber.next() {
                Poll::Frame(frame) if frame.epoch() == self.epoch => {
                    sink.take(frame.position(), &frame, &self.clock)?;
                    self.dry = false;
                    self.taken += 1;
                    if self.taken.is_multiple_of(FRAMES_PER_LOOK) && self.look(&mut sink)? {
                        break;
                    }
                }
                // The first of a publisher: from here on its note is the one that counts.
                Poll::Frame(frame) => {
                    let (epoch, position, bytes) = (frame.epoch(), frame.position(), frame.to_vec());
                    self.follow_publisher(epoch, &mut sink);
                    sink.take(position, &bytes, &self.clock)?;
                    self.dry = false;
                    self.taken += 1;
                }
                // Empty after it was found that nothing more can come.
                Poll::Empty if self.forsaken => break,
                Poll::Empty => {
                    self.dry = true;
                    if self.idle(&mut sink)? {
                        break;
                    }
                }
                Poll::Ended => break,
                Poll::Damaged { position } => {
                    let what = format!(
                        "ring {} is damaged at position {position}: no frame stands there",
                        self.name
                    );
                    let hint =
                        "something other than its publisher has written into it; start the publisher anew";
                    return Err(Hinted::new(what, hint).into());
                }
                _ => break,
            }
        }
        if self.taken != self.looked_at {
            sink.seen(self.clock.now())?;
        }
        // The last one says how the run ended; a ring that was never one of `ring pub` has none.
        let note = read_note(&self.subscriber).or(self.note);
        Ok((sink, note))
    }

    /// Waits for the next frame. `true`: it is time to end.
    #[inline]
    fn idle(&mut self, sink: &mut impl Sink) -> anyhow::Result<bool> {
        let wait = match self.how {
            How::Spin | How::Pause => {
                if self.how == How::Pause {
                    std::hint::spin_loop();
                }
                self.polls += 1;
                if self.polls < POLLS_PER_LOOK {
                    return Ok(false);
                }
                self.polls = 0;
                return self.look(sink);
            }
            How::Yield => Wait::Yield,
            How::Park => Wait::Park,
            How::Adaptive => Wait::Adaptive,
        };
        if self.subscriber.wait(wait, NAP) { Ok(false) } else { self.look(sink) }
    }

    /// What is to be done now and then; whether it is time to end.
    #[cold]
    fn look(&mut self, sink: &mut impl Sink) -> anyhow::Result<bool> {
        let now = self.clock.now();
        if self.taken != self.looked_at {
            self.looked_at = self.taken;
            self.orphaned = false;
            sink.seen(now)?;
        }
        if now >= self.upkeep_due {
            self.upkeep_due = now + UPKEEP_NS;
            self.follow_clock();
            sink.upkeep(now)?;
            if self.counts_messages {
                self.progress.set(self.taken);
            } else {
                self.progress.set_elapsed();
            }
            if self.dry && !self.subscriber.publisher_alive().map_err(failures::told)? {
                self.look_for_successor()?;
            }
        }
        Ok(now >= self.end || self.stop.requested())
    }

    /// Another publisher, or the first one, has begun: its clock is the one that its stamps are of.
    #[cold]
    fn follow_publisher(&mut self, epoch: u32, sink: &mut impl Sink) {
        self.epoch = epoch;
        self.note = read_note(&self.subscriber);
        if let Some(note) = self.note {
            self.clock = Clock::with(note.calibration);
        }
        sink.begin(self.clock.now(), self.note);
    }

    /// The publisher recalibrates once a second, and so does who reads its stamps; otherwise the clock is our own.
    fn follow_clock(&mut self) {
        match read_note(&self.subscriber) {
            Some(note) => {
                self.note = Some(note);
                self.clock = Clock::with(note.calibration);
            }
            None => {
                self.clock.recalibrate();
            }
        }
    }

    /// All has been read, and there is no publisher. Either it has just ended the ring, which `next` will say; or it has
    /// died, and another may continue the ring as long as it has its name.
    fn look_for_successor(&mut self) -> anyhow::Result<()> {
        self.forsaken = !self.subscriber.is_named().map_err(failures::told)?;
        if !self.forsaken && !std::mem::replace(&mut self.orphaned, true) {
            let name = self.name;
            self.progress
                .say(&format!("the publisher of ring {name} died; waiting for another (Ctrl-C ends)"));
        }
        Ok(())
    }
}

fn read_note(subscriber: &Subscriber) -> Option<Note> {
    subscriber.note().and_then(Note::from_words)
}
