//! The content of each place of the stream. It follows from a seed and the place alone, so that every process knows
//! it without communication, and a reader finds a frame that is wrong in any bit.

/// Frames of one block. Each block starts with a frame that contains its own number, so that a joiner finds its
/// place.
const BLOCK: u64 = 16;
/// The least length of a frame that contains its number, as its second word.
const NUMBERED: usize = 16;
/// The most frames of a batch; together they take less than a quarter of the ring.
const BATCH: u64 = 8;

/// Pseudorandom numbers from a seed (SplitMix64: Steele, Lea, Flood, "Fast Splittable Pseudorandom Number
/// Generators", 2014).
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `end`, which is small.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.roll() % end
    }

    pub(crate) fn one_in(&mut self, chances: u64) -> bool {
        self.below(chances) == 0
    }
}

/// SplitMix64's last step: every bit of the result depends on every bit of the number.
pub(crate) fn mix(mut number: u64) -> u64 {
    number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// How a publisher writes the next frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// Copied in.
    Publish,
    /// Claimed and written in place.
    Fill,
    /// Claimed this many bytes longer, and cut.
    Shorten(usize),
    /// Ended hidden, then shown.
    Hide,
    /// Several frames that become visible together.
    Batch(u64),
}

impl Act {
    pub(crate) fn frames(self) -> u64 {
        if let Self::Batch(frames) = self { frames } else { 1 }
    }
}

/// The stream of one ring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Script {
    seed: u64,
    /// The longest frame of the ring.
    longest: usize,
    /// The longest frame that fits a batch.
    longest_in_batch: usize,
}

impl Script {
    pub(crate) fn new(seed: u64, capacity: usize, longest: usize) -> Self {
        // Space for a header and for lines of 64 bytes.
        Self { seed, longest, longest_in_batch: capacity / 4 / BATCH as usize - 64 }
    }

    fn dice(&self, number: u64) -> Dice {
        Dice::new(mix(self.seed ^ mix(number)))
    }

    /// The length of frame `number`: usually short, now and then anything up to the ring's longest frame.
    pub(crate) fn len(&self, number: u64) -> usize {
        let mut dice = self.dice(number);
        let within = |dice: &mut Dice, least: usize, most: usize| {
            least + dice.below((most.saturating_sub(least) + 1) as u64) as usize
        };
        let starts_block = number.is_multiple_of(BLOCK);
        let most = if starts_block { self.longest } else { self.longest_in_batch };
        let least = if starts_block { NUMBERED } else { 0 };
        match dice.below(16) {
            0 => least,
            1 => within(&mut dice, least, most.min(NUMBERED)),
            2 => within(&mut dice, least, most),
            3 => most,
            _ => within(&mut dice, least, most.min(200)),
        }
    }

    /// The act that starts at frame `number`; `None` where the frame is inside a batch.
    pub(crate) fn act_at(&self, number: u64) -> Option<Act> {
        let block = number - number % BLOCK;
        let mut dice = self.dice(!block);
        let mut at = block;
        while at <= number {
            let left = block + BLOCK - at;
            // A block's first frame may be too long for a batch.
            let act = match dice.below(7) {
                0 | 1 => Act::Publish,
                2 => Act::Fill,
                3 => Act::Hide,
                4 => Act::Shorten(dice.below(100) as usize),
                _ if at == block => Act::Publish,
                _ => Act::Batch(1 + dice.below(BATCH.min(left))),
            };
            if at == number {
                return Some(act);
            }
            at += act.frames();
        }
        None
    }

    /// The word of frame `number` that starts at byte 8 × `at`.
    fn word(&self, number: u64, at: usize) -> u64 {
        if at == 1 {
            number
        } else {
            mix(self.seed ^ number).wrapping_add((at as u64).wrapping_mul(0x0101_0101_0101_0107))
        }
    }

    /// Writes frame `number`, whose length is that of `room`.
    pub(crate) fn write(&self, number: u64, room: &mut [u8]) {
        for (at, chunk) in room.chunks_mut(8).enumerate() {
            chunk.copy_from_slice(&self.word(number, at).to_le_bytes()[..chunk.len()]);
        }
    }

    /// Compares `bytes` with frame `number`; the error says what is wrong.
    pub(crate) fn check(&self, number: u64, bytes: &[u8]) -> Result<(), String> {
        if bytes.len() != self.len(number) {
            return Err(format!("frame {number} has {} bytes, expected {}", bytes.len(), self.len(number)));
        }
        for (at, chunk) in bytes.chunks(8).enumerate() {
            let expected = &self.word(number, at).to_le_bytes()[..chunk.len()];
            if chunk != expected {
                return Err(format!(
                    "frame {number} has {chunk:02x?} at byte {}, expected {expected:02x?}",
                    at * 8
                ));
            }
        }
        Ok(())
    }

    /// The number of a frame that contains one.
    pub(crate) fn number_of(&self, bytes: &[u8]) -> Option<u64> {
        bytes.get(8..NUMBERED)?.try_into().ok().map(u64::from_le_bytes)
    }

    /// The bytes of an aborted claim: words that a reader would take for frames if it ever saw them.
    pub(crate) fn mislead(room: &mut [u8], dice: &mut Dice) {
        for chunk in room.chunks_mut(8) {
            // A header of a frame of 0 to 199 bytes, of one of the first epochs (`frame.rs`).
            let word = dice.below(200) | 1 << 32 | dice.below(4) << 40;
            chunk.copy_from_slice(&word.to_le_bytes()[..chunk.len()]);
        }
    }
}

#[test]
fn acts_cover_the_stream_without_a_hole() {
    let script = Script::new(7, 1 << 16, 1 << 14);
    let mut next = 0;
    let mut batches = 0;
    for number in 0..10_000 {
        match script.act_at(number) {
            Some(act) => {
                assert_eq!(number, next);
                next += act.frames();
                batches += u64::from(act.frames() > 1);
            }
            None => assert!(number < next),
        }
    }
    assert!(batches > 500);
}

#[test]
fn a_wrong_bit_is_found() {
    let script = Script::new(9, 1 << 16, 1 << 14);
    for number in 0..2_000 {
        let mut bytes = vec![0; script.len(number)];
        script.write(number, &mut bytes);
        assert_eq!(script.check(number, &bytes), Ok(()));
        assert!(script.number_of(&bytes).is_none_or(|found| found == number));
        if let Some(place) = (number as usize * 31).checked_rem(bytes.len()) {
            bytes[place] ^= 1 << (number % 8);
            assert!(script.check(number, &bytes).is_err());
        }
    }
}
