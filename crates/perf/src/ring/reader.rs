//! The reading loop of `ring sub`, and the sinks that receive its frames.

use std::fmt::Write as _;
use std::hint::black_box;
use std::io::Write;
use std::time::Duration;

use anyhow::Context;
use data_encoding::HEXLOWER;
use tapeline_console::failure::Hinted;
use tapeline_console::output::{self, Progress};
use tapeline_console::stop::Stop;
use tapeline_measure::{Clock, Nanos, Ticks, ticks_ordered};
use tapeline_ring::{Position, SubscriberOf, Wait};

use super::failures;
use super::message::{Note, Topic};
use super::source::{Look, Readable};
use super::subscribe::{How, Subscribe};
use super::talk::Level;
use super::tally::ReaderTally;
use super::warm_up::spin;

/// Frames between two clock checks, and empty polls between two.
const FRAMES_PER_LOOK: u64 = 4096;
const POLLS_PER_LOOK: u32 = 16_384;
/// Interval between checks of the publisher's note, the publisher's life and the progress.
const UPKEEP_NS: u64 = 1_000_000_000;
/// A batch ends at this many bytes, even if it has fewer frames than requested.
const BATCH_BYTES: usize = 1 << 20;
/// The longest wait in the ring, so that a signal is handled soon.
const NAP: Duration = Duration::from_millis(20);

/// Receives the frames that the loop reads.
pub(super) trait Sink {
    /// Takes a frame: `true` if the frame counts, `false` if it belongs to a warm-up. `received` is the time of
    /// arrival, if already known.
    fn take(
        &mut self,
        position: Position,
        frame: &[u8],
        received: Option<Ticks>,
        clock: &Clock,
    ) -> anyhow::Result<bool>;

    /// Called before a publisher's first frame is taken; `note` is the publisher's note, if the publisher is a
    /// `ring pub`.
    fn begin(&mut self, _now: Nanos, _note: Option<Note>) {}

    /// The ring reported this many lost frames at this point.
    fn lost(&mut self, _frames: u64) {}

    /// The publisher evicted this subscriber: no more frames follow.
    fn evicted(&mut self) {}

    /// Every available frame has been read.
    #[inline]
    fn caught_up(&mut self) {}

    /// Every frame taken so far had arrived by now; called from time to time.
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
    /// Whether frames were lost, or the publisher evicted this subscriber.
    pub(super) lossy: bool,
}

impl<W: Write> Sink for Raw<W> {
    fn take(
        &mut self,
        position: Position,
        frame: &[u8],
        _received: Option<Ticks>,
        _clock: &Clock,
    ) -> anyhow::Result<bool> {
        self.line.clear();
        // Cannot fail: the target is in memory.
        let _ = write!(self.line, "{} {} ", position, frame.len());
        HEXLOWER.encode_append(frame, &mut self.line);
        self.line.push('\n');
        self.out.write_all(self.line.as_bytes()).context("cannot write to standard output")?;
        Ok(true)
    }

    fn lost(&mut self, frames: u64) {
        self.lossy = true;
        // As a comment, in the order of the frames.
        let _ = writeln!(self.out, "# lost {frames} frames");
    }

    fn evicted(&mut self) {
        self.lossy = true;
    }

    fn seen(&mut self, _now: Nanos) -> anyhow::Result<()> {
        self.out.flush().context("cannot write to standard output")
    }
}

/// Checks and measures messages, or only counts them: the minimum work per message that still proves that no message is
/// missing.
pub(super) struct Measured<const COUNTS_ONLY: bool> {
    pub(super) tally: ReaderTally,
    pub(super) intervals: bool,
}

impl<const COUNTS_ONLY: bool> Sink for Measured<COUNTS_ONLY> {
    #[inline]
    fn take(
        &mut self,
        _position: Position,
        frame: &[u8],
        received: Option<Ticks>,
        clock: &Clock,
    ) -> anyhow::Result<bool> {
        Ok(if COUNTS_ONLY { self.tally.count(frame, clock) } else { self.tally.take(frame, received, clock) })
    }

    fn begin(&mut self, now: Nanos, note: Option<Note>) {
        self.tally.begin(now, note.is_none_or(|note| note.rate_hz > 0));
    }

    fn lost(&mut self, frames: u64) {
        self.tally.found.passed += frames;
    }

    fn evicted(&mut self) {
        self.tally.found.evicted = true;
    }

    #[inline]
    fn caught_up(&mut self) {
        self.tally.caught_up();
    }

    fn seen(&mut self, now: Nanos) -> anyhow::Result<()> {
        self.tally.seen(now);
        Ok(())
    }

    fn upkeep(&mut self, now: Nanos) -> anyhow::Result<()> {
        if self.intervals && self.tally.frames > 0 {
            output::print(&self.tally.interval_line(now))?;
        }
        Ok(())
    }
}

/// The reading loop's state.
pub(super) struct Reader<'a, D: Readable> {
    subscriber: SubscriberOf<D>,
    clock: Clock,
    /// The publisher's note, if the publisher is a `ring pub`.
    note: Option<Note>,
    stop: &'a Stop,
    options: &'a Subscribe,
    how: How,
    total: u64,
    end: Nanos,
    /// The publisher of the last frame; before the first frame, a number that no publisher has.
    epoch: u32,
    /// Frames that count, and frames of all kinds.
    taken: u64,
    frames: u64,
    /// Frames at the last check.
    looked_at: u64,
    upkeep_due: Nanos,
    polls: u32,
    progress: Progress,
    /// Whether the last poll found nothing.
    dry: bool,
    /// Whether the publisher was found dead since the last frame, and this was reported.
    orphaned: bool,
    /// Whether the ring has neither a publisher nor a name.
    forsaken: bool,
    /// The buffer that each frame is copied to, if frames are copied.
    copy: Option<Box<[u8]>>,
    batch: Option<Batch>,
    spin: u32,
}

impl<'a, D: Readable> Reader<'a, D> {
    pub(super) fn new(subscriber: SubscriberOf<D>, options: &'a Subscribe, stop: &'a Stop) -> Self {
        let note = read_note(&subscriber);
        let clock = note.map_or_else(Clock::calibrate, |note| Clock::with(note.calibration));
        let now = clock.now();
        let time =
            options.seconds.map_or(u64::MAX, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        let progress = Progress::towards("reading", "messages", options.messages, options.seconds);
        Self {
            clock,
            note,
            stop,
            options,
            how: options.wait,
            total: options.messages.unwrap_or(u64::MAX),
            end: Nanos(now.0.saturating_add(time)),
            epoch: u32::MAX,
            taken: 0,
            frames: 0,
            looked_at: 0,
            upkeep_due: now + UPKEEP_NS,
            polls: 0,
            progress,
            dry: false,
            orphaned: false,
            forsaken: false,
            copy: options.copy.then(|| vec![0; subscriber.max_frame()].into_boxed_slice()),
            batch: options.batch.map(Batch::of),
            spin: options.spin,
            subscriber,
        }
    }

    /// Reads until there is a reason to end. Returns the sink and the publisher's last note.
    pub(super) fn read<S: Sink>(mut self, mut sink: S) -> anyhow::Result<(S, Option<Note>)> {
        while self.taken < self.total {
            match D::look(&mut self.subscriber) {
                Look::Frame(frame) if frame.epoch() == self.epoch => {
                    self.dry = false;
                    if let Some(batch) = &mut self.batch {
                        batch.add(frame.position(), &frame);
                        if batch.is_full() && self.take_batch(&mut sink)? {
                            break;
                        }
                        continue;
                    }
                    let counts = match &mut self.copy {
                        None => sink.take(frame.position(), &frame, None, &self.clock)?,
                        Some(copy) => sink.take(frame.position(), copied(&frame, copy), None, &self.clock)?,
                    };
                    spin(self.spin);
                    self.taken += u64::from(counts);
                    self.frames += 1;
                    if self.frames.is_multiple_of(FRAMES_PER_LOOK) && self.look(&mut sink)? {
                        break;
                    }
                }
                // A publisher's first frame: from here on, its note applies.
                Look::Frame(frame) => {
                    let (epoch, position, bytes) = (frame.epoch(), frame.position(), frame.to_vec());
                    self.take_batch(&mut sink)?;
                    self.follow_publisher(epoch, &mut sink)?;
                    self.taken += u64::from(sink.take(position, &bytes, None, &self.clock)?);
                    self.dry = false;
                    self.frames += 1;
                }
                // Empty, and it is known that no more frames can come.
                Look::Empty if self.forsaken => break,
                Look::Empty => {
                    if !self.dry {
                        self.dry = true;
                        if self.take_batch(&mut sink)? {
                            break;
                        }
                        sink.caught_up();
                    }
                    if self.idle(&mut sink)? {
                        break;
                    }
                }
                Look::Ended => break,
                Look::Lost { frames } => {
                    self.take_batch(&mut sink)?;
                    sink.lost(frames);
                    if self.look(&mut sink)? {
                        break;
                    }
                }
                Look::Evicted { position } => {
                    self.tell_evicted(position);
                    sink.evicted();
                    break;
                }
                Look::Damaged { position } => return Err(self.damaged(position)),
            }
        }
        self.take_batch(&mut sink)?;
        if self.frames != self.looked_at {
            sink.seen(self.clock.now())?;
        }
        // The last note says how the run ended; a ring that `ring pub` never used has none.
        let note = read_note(&self.subscriber).or(self.note);
        Ok((sink, note))
    }

    /// Reports that the publisher evicted this subscriber.
    #[cold]
    fn tell_evicted(&self, position: Position) {
        let text = format!(
            "ring {} has evicted this subscriber at position {position}: it held the full ring for longer than {:?}",
            self.options.name,
            self.subscriber.stall_limit(),
        );
        self.progress.apart(|| self.options.log_level.say(Level::Error, &text));
    }

    /// The error for a position at which a frame is expected but missing.
    #[cold]
    fn damaged(&self, position: Position) -> anyhow::Error {
        let what = format!("ring {} is damaged at position {position}: there is no frame", self.options.name);
        let hint = "something other than its publisher has written into it; restart the publisher";
        Hinted::new(what, hint).into()
    }

    /// Passes on the frames that were read ahead, all received now. `true`: it is time to end.
    fn take_batch(&mut self, sink: &mut impl Sink) -> anyhow::Result<bool> {
        let Some(batch) = self.batch.take_if(|batch| !batch.frames.is_empty()) else { return Ok(false) };
        let received = ticks_ordered();
        let mut over = false;
        for &(position, start, end) in &batch.frames {
            if self.taken >= self.total {
                over = true;
                break;
            }
            let frame = &batch.bytes[start..end];
            self.taken += u64::from(sink.take(position, frame, Some(received), &self.clock)?);
            spin(self.spin);
            self.frames += 1;
        }
        self.batch = Some(batch.cleared());
        // About as many frames between two checks as without batches.
        over |= self.frames - self.looked_at >= FRAMES_PER_LOOK && self.look(sink)?;
        Ok(over)
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

    /// Does the periodic work; returns whether it is time to end.
    #[cold]
    fn look(&mut self, sink: &mut impl Sink) -> anyhow::Result<bool> {
        let now = self.clock.now();
        if self.frames != self.looked_at {
            self.looked_at = self.frames;
            self.orphaned = false;
            sink.seen(now)?;
        }
        if now >= self.upkeep_due {
            self.upkeep_due = now + UPKEEP_NS;
            self.follow_clock();
            sink.upkeep(now)?;
            self.progress.set(self.taken);
            if self.dry && !self.subscriber.publisher_alive().map_err(failures::with_hint)? {
                self.look_for_successor()?;
            }
        }
        Ok(now >= self.end || self.stop.requested())
    }

    /// Starts to follow a new publisher, or the first one: its stamps are times of its own clock.
    #[cold]
    fn follow_publisher(&mut self, epoch: u32, sink: &mut impl Sink) -> anyhow::Result<()> {
        self.epoch = epoch;
        self.note = read_note(&self.subscriber);
        if let Some(note) = self.note {
            self.clock = Clock::with(note.calibration);
        }
        self.check_topic()?;
        sink.begin(self.clock.now(), self.note);
        Ok(())
    }

    fn check_topic(&self) -> anyhow::Result<()> {
        let Some(wanted) = self.options.topic else { return Ok(()) };
        let found = self.note.map(|note| note.topic).unwrap_or_default();
        if found == wanted {
            return Ok(());
        }
        let said =
            |topic: Topic| topic.text().map_or("no topic".to_owned(), |text| format!("topic '{text}'"));
        let what =
            format!("ring {} carries {}, and {} was asked for", self.options.name, said(found), said(wanted));
        Err(Hinted::new(what, "leave out --topic to read it anyway, or name another ring").into())
    }

    /// The publisher recalibrates once a second, so a reader of its stamps does the same; otherwise the clock is
    /// our own.
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

    /// Everything has been read, and there is no publisher. Either the publisher has just ended the ring, which
    /// `next` will report, or it has died; another publisher may continue the ring while the ring has its name.
    fn look_for_successor(&mut self) -> anyhow::Result<()> {
        self.forsaken = !self.subscriber.is_named().map_err(failures::with_hint)?;
        if !self.forsaken && !std::mem::replace(&mut self.orphaned, true) {
            let name = &self.options.name;
            let text = format!("the publisher of ring {name} died; waiting for another (Ctrl-C ends)");
            self.progress.apart(|| self.options.log_level.say(Level::Warning, &text));
        }
        Ok(())
    }
}

fn read_note<D: Readable>(subscriber: &SubscriberOf<D>) -> Option<Note> {
    subscriber.note().and_then(Note::from_words)
}

/// Frames read ahead of their processing: copied out of the ring, which no longer has to retain them.
struct Batch {
    most: usize,
    /// The position of each frame in the ring, and its range in `bytes`.
    frames: Vec<(Position, usize, usize)>,
    bytes: Vec<u8>,
}

impl Batch {
    fn of(frames: usize) -> Self {
        Self { most: frames, frames: Vec::with_capacity(frames), bytes: Vec::new() }
    }

    #[inline]
    fn add(&mut self, position: Position, frame: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(frame);
        self.frames.push((position, start, self.bytes.len()));
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.frames.len() >= self.most || self.bytes.len() >= BATCH_BYTES
    }

    fn cleared(mut self) -> Self {
        self.frames.clear();
        self.bytes.clear();
        self
    }
}

/// Copies a frame out of the ring, short frames in moves of eight bytes: a call of `memcpy` costs some nanoseconds.
/// The compiler cannot remove the copy although nothing uses it.
#[inline]
fn copied<'a>(frame: &[u8], into: &'a mut [u8]) -> &'a [u8] {
    const SHORT: usize = 64;
    let copy = &mut into[..frame.len()];
    if frame.len() <= SHORT {
        let ((from, from_tail), (to, to_tail)) = (frame.as_chunks::<8>(), copy.as_chunks_mut::<8>());
        for (to, from) in to.iter_mut().zip(from) {
            *to = *from;
        }
        for (to, from) in to_tail.iter_mut().zip(from_tail) {
            *to = *from;
        }
    } else {
        copy.copy_from_slice(frame);
    }
    black_box(copy)
}
