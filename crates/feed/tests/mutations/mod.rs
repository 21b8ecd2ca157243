//! Changes to inputs, from a seed: what `cargo test` gives decoders instead of a fuzzer's guidance.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that cannot go on should stop, and say at what"
)]

use std::path::Path;

/// What is put in place of numbers.
const EDGES: [u64; 10] = [0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFF_FFFF, u64::MAX];

/// Longer inputs are not made.
const LONGEST: usize = 4_096;

/// Calls `check` with every input of a corpus, and with so many changed ones. If it panics, the input is printed.
pub(crate) fn each(corpus: &Path, count: u32, check: impl Fn(&[u8])) {
    let mut files: Vec<_> = std::fs::read_dir(corpus)
        .unwrap_or_else(|error| panic!("{}: {error}", corpus.display()))
        .map(|file| file.unwrap().path())
        .collect();
    files.sort_unstable();
    let inputs: Vec<Vec<u8>> = files.iter().map(|file| std::fs::read(file).unwrap()).collect();
    assert!(!inputs.is_empty(), "{} is empty", corpus.display());
    for (input, file) in inputs.iter().zip(&files) {
        let _shown = Shown { input, what: &file.display().to_string() };
        check(input);
    }
    let mut dice = Dice(0x5EED);
    for number in 0..count {
        let mut input = inputs[dice.below(inputs.len())].clone();
        for _ in 0..1 + dice.below(6) {
            change(&mut input, &inputs, &mut dice);
        }
        input.truncate(LONGEST);
        let _shown =
            Shown { input: &input, what: &format!("input {number}, changed from {}", corpus.display()) };
        check(&input);
    }
}

/// Prints the input if it is dropped while the test panics.
struct Shown<'a> {
    input: &'a [u8],
    what: &'a str,
}

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let digits: String = self.input.iter().map(|byte| format!("{byte:02x}")).collect();
            eprintln!("{}: {digits}", self.what);
        }
    }
}

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.word() % bound.max(1) as u64) as usize
    }
}

fn change(input: &mut Vec<u8>, others: &[Vec<u8>], dice: &mut Dice) {
    let at = dice.below(input.len());
    match dice.below(9) {
        0 if !input.is_empty() => input[at] ^= 1 << dice.below(8),
        1 if !input.is_empty() => input[at] = dice.word() as u8,
        // A number of 1, 2, 4 or 8 bytes, in either order.
        2 | 3 => {
            let width = 1 << dice.below(4);
            let number = EDGES[dice.below(EDGES.len())].wrapping_add(dice.below(3) as u64).wrapping_sub(1);
            let bytes =
                if dice.below(2) == 0 { number.to_le_bytes() } else { number.swap_bytes().to_le_bytes() };
            let bytes = if dice.below(2) == 0 { &bytes[..width] } else { &bytes[8 - width..] };
            if let Some(place) = input.get_mut(at..at + width) {
                place.copy_from_slice(bytes);
            }
        }
        4 => input.truncate(at),
        5 => {
            let to = at + dice.below(20).min(input.len() - at);
            input.drain(at..to);
        }
        6 => {
            let new: Vec<u8> = (0..dice.below(20)).map(|_| dice.word() as u8).collect();
            input.splice(at..at, new);
        }
        // Once more, or a piece of another input.
        7 => {
            let piece = input[at..at + dice.below(60).min(input.len() - at)].to_vec();
            input.splice(at..at, piece);
        }
        _ => {
            let other = &others[dice.below(others.len())];
            let from = dice.below(other.len());
            let piece = &other[from..from + dice.below(100).min(other.len() - from)];
            input.splice(at..at, piece.iter().copied());
        }
    }
}
