//! The destinations of ticks.

use std::fmt;
use std::time::Duration;

use tapeline_measure::monotonic_ns;

/// Between two looks at a ring that has been full for a while.
const BETWEEN_LOOKS: Duration = Duration::from_micros(100);

/// The reason why a tick was not published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The plant is stopping, and no reader freed capacity in time.
    #[error("the plant was told to stop while a subscriber held the ring full")]
    Stopping,
    /// The plant's journal could not be written, and only durable ticks may be published.
    #[error("the journal could not be written, and the plant does not go on without it")]
    NotKept,
    /// The name of the plant's ring was removed, and the plant is set to stop in that case.
    #[error("the name of its ring was removed")]
    NameRemoved,
    /// The plant above numbers in another epoch: the ring of this plant ends, and another one begins.
    #[error("the plant above has begun another sequence")]
    Resequenced,
    /// The plant above has nothing that follows the ticks of this plant: the ring of this plant ends, and another one begins with images.
    #[error("the plant above has no ticks that follow those of this plant")]
    Unconnected,
    /// The plant above cannot be followed.
    #[error("the plant above cannot be followed")]
    Unfollowable,
    /// The lease under which this plant numbered is over: the ring of this plant ends, and it follows the other one.
    #[error("its lease is over: the other plant numbers, or nobody does")]
    LeaseLost,
    /// This plant has got the lease: its ring ends, and it numbers on another one.
    #[error("it has got the lease, and numbers from now on")]
    LeaseTaken,
    /// The tick exceeds the maximum size of the ring.
    #[error("a tick of {len} bytes is longer than the {max} bytes that the ring takes")]
    TooLong {
        /// Bytes of the tick.
        len: usize,
        /// The maximum in bytes.
        max: usize,
    },
}

/// A destination of ticks in order: the ring, or a substitute in a simulated plant.
pub trait Publish {
    /// Claims `len` bytes, lets `fill` write a tick into them, and makes visible as many as `fill` returns.
    ///
    /// # Errors
    /// [`Refused`]; then nothing is visible. A `fill` that claims to have written more than `len` is refused too.
    fn publish(&mut self, len: usize, fill: impl FnOnce(&mut [u8]) -> usize) -> Result<(), Refused>;

    /// Publishes ticks of these lengths in order: `fill` writes each of them completely, by its index. On a ring the ticks become visible
    /// together, in batches of up to half the ring; `fill` is also told how many of the batch it has written: the ring may have been full before
    /// the first.
    ///
    /// # Errors
    /// [`Refused`], and for [`Refused::TooLong`] nothing is visible.
    fn publish_together(
        &mut self,
        lens: &[usize],
        mut fill: impl FnMut(usize, usize, &mut [u8]),
    ) -> Result<(), Refused> {
        lens.iter().enumerate().try_for_each(|(at, len)| {
            self.publish(*len, |frame| {
                fill(at, 0, frame);
                *len
            })
        })
    }

    /// Announces that more ticks follow at once: until [`show`](Self::show), ticks may become visible a few at a time.
    fn hold(&mut self) {}

    /// Makes all ticks visible.
    fn show(&mut self) {}

    /// Wakes subscribers that sleep, where waking is put off while there is more to publish.
    fn flush(&mut self) {}
}

/// A callback that is called about ten times a second while the ring is full, with the time since it is full. `true` means to keep waiting.
pub type OnStall = Box<dyn FnMut(&mut tapeline_ring::Publisher, Duration) -> bool + Send>;

/// A publisher to a ring that waits while the ring is full: the ring loses nothing, so its slowest subscriber puts back pressure on the
/// plant. Counts the waits and their time, and asks the callback meanwhile whether to continue.
pub struct RingPublish {
    ring: tapeline_ring::Publisher,
    on_stall: OnStall,
    /// Number of further ticks that may be hidden; 0 while each tick is visible at once.
    together: u32,
    stalls: u64,
    stalled_ns: u64,
}

/// Number of ticks that become visible together while more follow at once. A subscriber that polls takes the publisher's cache lines once for all of
/// them. A tick takes about 0.1 µs, so the first of eight waits for less than a microsecond.
const TOGETHER: u32 = 8;

impl RingPublish {
    /// Creates a publisher to `ring`.
    #[must_use]
    pub fn new(ring: tapeline_ring::Publisher, on_stall: OnStall) -> Self {
        Self { ring, on_stall, together: 0, stalls: 0, stalled_ns: 0 }
    }

    /// Returns the number of ticks that had to wait for a full ring.
    #[must_use]
    pub fn stalls(&self) -> u64 {
        self.stalls
    }

    /// Returns the total time that ticks have waited for capacity, in ns.
    #[must_use]
    pub fn stalled_ns(&self) -> u64 {
        self.stalled_ns
    }

    /// Returns the ring.
    pub fn ring(&mut self) -> &mut tapeline_ring::Publisher {
        &mut self.ring
    }

    /// Whether ticks that take `bytes` on the ring can be published without waiting for any subscriber.
    #[must_use]
    pub fn has_room(&self, bytes: usize) -> bool {
        // The other half is more than the padding at the ring's end.
        self.ring.backlog_bytes() + bytes as u64 <= self.ring.capacity() as u64 / 2
    }

    /// Ends publishing: subscribers read the remaining ticks and then get the end.
    ///
    /// # Errors
    /// If the ring's name cannot be removed.
    pub fn close(self) -> Result<(), tapeline_ring::Error> {
        self.ring.close()
    }

    /// Polls until `claim` succeeds, and yields the core so that a subscriber on it can free capacity. A subscriber that takes longer than a
    /// scheduler's turn is looked at 10,000 times a second, so that waiting for it takes no core.
    #[cold]
    fn wait_for_room(
        &mut self,
        claim: impl Fn(&mut tapeline_ring::Publisher) -> Result<(), tapeline_ring::Refused>,
        len: usize,
    ) -> Result<(), Refused> {
        self.stalls += 1;
        let begun = monotonic_ns();
        let mut asked = begun;
        let outcome = loop {
            match claim(&mut self.ring) {
                Ok(()) => break Ok(()),
                Err(tapeline_ring::Refused::TooLong) => break Err(self.too_long(len)),
                Err(tapeline_ring::Refused::Full) if asked == begun => std::thread::yield_now(),
                Err(tapeline_ring::Refused::Full) => std::thread::sleep(BETWEEN_LOOKS),
            }
            let now = monotonic_ns();
            if now - asked >= 100_000_000 {
                asked = now;
                if !(self.on_stall)(&mut self.ring, Duration::from_nanos(now - begun)) {
                    break Err(Refused::Stopping);
                }
            }
        };
        self.stalled_ns += monotonic_ns() - begun;
        outcome
    }

    fn too_long(&self, len: usize) -> Refused {
        Refused::TooLong { len, max: self.ring.max_frame() }
    }
}

impl Publish for RingPublish {
    fn flush(&mut self) {
        self.ring.flush();
    }

    #[inline]
    fn hold(&mut self) {
        self.together = TOGETHER;
    }

    #[inline]
    fn show(&mut self) {
        self.together = 0;
        self.ring.show();
    }

    #[inline]
    fn publish(&mut self, len: usize, fill: impl FnOnce(&mut [u8]) -> usize) -> Result<(), Refused> {
        let mut hides = self.together > 0;
        let mut claim = match self.ring.claim(len) {
            Ok(claim) => claim,
            Err(_) => {
                hides = false;
                // Free capacity stays free until it is used: there is no other publisher.
                self.wait_for_room(|ring| ring.claim(len).map(|_| ()), len)?;
                match self.ring.claim(len) {
                    Ok(claim) => claim,
                    Err(_) => return Err(self.too_long(len)),
                }
            }
        };
        let filled = fill(&mut claim);
        let done = if hides { claim.hide_prefix(filled) } else { claim.commit_prefix(filled) };
        done.map_err(|_| Refused::TooLong { len: filled, max: len })?;
        if hides {
            self.together -= 1;
            if self.together == 0 {
                self.ring.show();
                self.together = TOGETHER;
            }
        }
        Ok(())
    }

    /// Publishes in one batch, or in several if the ticks take more than half of the ring.
    fn publish_together(
        &mut self,
        lens: &[usize],
        mut fill: impl FnMut(usize, usize, &mut [u8]),
    ) -> Result<(), Refused> {
        if let Some(len) = lens.iter().find(|len| **len > self.ring.max_frame()) {
            return Err(self.too_long(*len));
        }
        // The other half contains ticks that subscribers have not read yet.
        let most = self.ring.capacity() / 2;
        let mut from = 0;
        while from < lens.len() {
            let mut bytes = 0;
            let fits = |len: &&usize| {
                bytes += **len + FRAME_BYTES;
                bytes <= most
            };
            let count = lens[from..].iter().take_while(fits).count().max(1);
            let batch = &lens[from..from + count];
            if claim_all(&mut self.ring, batch, |_, _| {}).is_err() {
                let longest = batch.iter().copied().max().unwrap_or(0);
                self.wait_for_room(|ring| claim_all(ring, batch, |_, _| {}).map(|_| ()), longest)?;
            }
            // Free capacity stays free until it is used.
            let Ok(claimed) = claim_all(&mut self.ring, batch, |at, frame| fill(from + at, at, frame)) else {
                return Err(Refused::Stopping);
            };
            claimed.commit();
            from += count;
        }
        Ok(())
    }
}

/// Maximum overhead of a frame in the ring in bytes: its header, and the padding of its last word.
pub(crate) const FRAME_BYTES: usize = 16;

/// Claims frames of these lengths, to be committed together.
fn claim_all<'r>(
    ring: &'r mut tapeline_ring::Publisher,
    lens: &[usize],
    mut fill: impl FnMut(usize, &mut [u8]),
) -> Result<tapeline_ring::Batch<'r>, tapeline_ring::Refused> {
    let mut batch = ring.claim_batch();
    for (at, len) in lens.iter().enumerate() {
        fill(at, batch.claim(*len)?);
    }
    Ok(batch)
}

impl fmt::Debug for RingPublish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RingPublish").field("stalls", &self.stalls).finish_non_exhaustive()
    }
}
