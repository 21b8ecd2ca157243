//! What a plant and a witness say to one another, in datagrams of one length.
//!
//! ```text
//!  request and answer (80), little-endian:
//!  "tapelea1" (8)  kind or outcome (1)  plant's id, padded (3)  zero (4)  holder's name, padded with 0 (16)
//!  incarnation (8)  number (8)  epoch (8)  duration or time left in ns (8)  position: epoch (8)  last sequence (8)
//! ```
//! An answer repeats the plant, the incarnation and the number of its request. It is as long as the request: nobody is made to send more than was
//! sent to it.

use std::fmt;
use std::str::FromStr;

use crate::Seq;
use crate::bridge::{Epoch, PlantId};

/// The first bytes of a request and of an answer; another layout has another last digit.
pub const MAGIC: &[u8; 8] = b"tapelea1";
/// The length of a request, and of an answer, in bytes.
pub const LEASE_BYTES: usize = 80;
const NAME_BYTES: usize = 16;

/// The name of a plant among those that may hold a lease: 1 to 16 letters, digits, dots, dashes or underscores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct HolderName([u8; NAME_BYTES]);

/// The text is not a holder's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a name has 1 to 16 letters, digits, dots, dashes or underscores")]
pub struct InvalidHolderName;

impl FromStr for HolderName {
    type Err = InvalidHolderName;

    fn from_str(text: &str) -> Result<Self, InvalidHolderName> {
        let is_of_names = |byte: &u8| byte.is_ascii_alphanumeric() || b".-_".contains(byte);
        if !(1..=NAME_BYTES).contains(&text.len()) || !text.as_bytes().iter().all(is_of_names) {
            return Err(InvalidHolderName);
        }
        let mut name = [0; NAME_BYTES];
        name[..text.len()].copy_from_slice(text.as_bytes());
        Ok(Self(name))
    }
}

impl fmt::Display for HolderName {
    /// Writes the name; nothing for nobody, which is the default.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letters = self.0.iter().take_while(|byte| **byte != 0);
        letters.into_iter().try_for_each(|byte| fmt::Write::write_char(f, char::from(*byte)))
    }
}

/// The end of a journal: the epoch of its last tick, and that tick's sequence. The later one has all ticks of the earlier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct JournalEnd {
    /// The epoch in which the last tick was numbered; 0 for an empty journal.
    pub epoch: Epoch,
    /// The last tick.
    pub last: Seq,
}

/// What a plant wants of a witness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[non_exhaustive]
pub enum LeaseRequestKind {
    /// To know whether [`Ask`](Self::Ask) would be granted. Changes nothing.
    Look = 0,
    /// The lease, or its renewal.
    Ask = 1,
    /// The lease, whatever other plants had: an operator has decided that their ticks are lost.
    Take = 2,
    /// To give the lease back.
    Release = 3,
}

/// A request to a witness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseRequest {
    /// What is wanted.
    pub kind: LeaseRequestKind,
    /// The plant of which there are several.
    pub plant: PlantId,
    /// Which of them asks.
    pub holder: HolderName,
    /// A number that differs from start to start of a plant, so that two plants with one name are told apart.
    pub incarnation: u64,
    /// The number of the request: an answer is to this request only.
    pub number: u64,
    /// The epoch that would begin, or that is held.
    pub epoch: Epoch,
    /// How long the lease is wanted, in ns.
    pub duration_ns: u64,
    /// What the plant has: as candidate now, as leader some time ago.
    pub position: JournalEnd,
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[non_exhaustive]
pub enum LeaseOutcome {
    /// The lease would be granted, or was given back.
    Free = 0,
    /// The lease is granted, or renewed.
    Granted = 1,
    /// Another plant holds it, for the time that is left.
    Held = 2,
    /// The witness was started, and grants nothing for the time that is left.
    Waiting = 3,
    /// The epoch is not later than all that were granted.
    OlderEpoch = 4,
    /// The plant's journal ends before what the last leader had.
    Behind = 5,
    /// The witness grants no lease of this duration, or granted this one with another.
    InvalidDuration = 6,
    /// The witness knows as many plants as it may.
    Full = 7,
    /// The witness cannot write its file.
    Failed = 8,
}

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseAnswer {
    /// The outcome.
    pub outcome: LeaseOutcome,
    /// The plant of the request.
    pub plant: PlantId,
    /// Who holds the lease, or was granted it last.
    pub holder: HolderName,
    /// The incarnation that asked.
    pub incarnation: u64,
    /// The number of the request.
    pub number: u64,
    /// The latest epoch that was granted; 0 for none.
    pub epoch: Epoch,
    /// The time that the outcome lasts, in ns.
    pub left_ns: u64,
    /// What the last holder had, as far as it has said.
    pub position: JournalEnd,
}

/// The fields of both.
struct Fields {
    kind: u8,
    plant: PlantId,
    holder: HolderName,
    numbers: [u64; 6],
}

impl Fields {
    fn encode(&self) -> [u8; LEASE_BYTES] {
        let mut bytes = [0; LEASE_BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8] = self.kind;
        bytes[9..12].copy_from_slice(&self.plant.padded());
        bytes[16..32].copy_from_slice(&self.holder.0);
        for (place, number) in bytes[32..].chunks_exact_mut(8).zip(self.numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; LEASE_BYTES] = bytes.try_into().ok()?;
        let number = |at: usize| bytes[at..].first_chunk().map_or(0, |number| u64::from_le_bytes(*number));
        let plant = PlantId::from_padded(*bytes[9..].first_chunk()?)?;
        let name = std::str::from_utf8(&bytes[16..32]).ok()?.trim_end_matches('\0');
        let holder = if name.is_empty() { HolderName::default() } else { name.parse().ok()? };
        let numbers: [u64; 6] = std::array::from_fn(|at| number(32 + 8 * at));
        let are_epochs = numbers[2].max(numbers[4]) <= Epoch::LAST.0;
        (bytes.starts_with(MAGIC) && are_epochs).then_some(Self { kind: bytes[8], plant, holder, numbers })
    }
}

impl LeaseRequest {
    /// Returns the request's bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; LEASE_BYTES] {
        let Self { kind, plant, holder, incarnation, number, epoch, duration_ns, position } = *self;
        let numbers = [incarnation, number, epoch.0, duration_ns, position.epoch.0, position.last.0];
        Fields { kind: kind as u8, plant, holder, numbers }.encode()
    }

    /// Reads a request; `None` for anything else.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let Fields { kind, plant, holder, numbers } = Fields::decode(bytes)?;
        let kind = match kind {
            0 => LeaseRequestKind::Look,
            1 => LeaseRequestKind::Ask,
            2 => LeaseRequestKind::Take,
            3 => LeaseRequestKind::Release,
            _ => return None,
        };
        let [incarnation, number, epoch, duration_ns, of_epoch, last] = numbers;
        let position = JournalEnd { epoch: Epoch(of_epoch), last: Seq(last) };
        let is_somebody = holder != HolderName::default();
        let epoch = Epoch(epoch);
        is_somebody.then_some(Self { kind, plant, holder, incarnation, number, epoch, duration_ns, position })
    }
}

impl LeaseAnswer {
    /// Returns the answer's bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; LEASE_BYTES] {
        let Self { outcome, plant, holder, incarnation, number, epoch, left_ns, position } = *self;
        let numbers = [incarnation, number, epoch.0, left_ns, position.epoch.0, position.last.0];
        Fields { kind: outcome as u8, plant, holder, numbers }.encode()
    }

    /// Reads an answer; `None` for anything else.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let Fields { kind, plant, holder, numbers } = Fields::decode(bytes)?;
        let outcome = match kind {
            0 => LeaseOutcome::Free,
            1 => LeaseOutcome::Granted,
            2 => LeaseOutcome::Held,
            3 => LeaseOutcome::Waiting,
            4 => LeaseOutcome::OlderEpoch,
            5 => LeaseOutcome::Behind,
            6 => LeaseOutcome::InvalidDuration,
            7 => LeaseOutcome::Full,
            8 => LeaseOutcome::Failed,
            _ => return None,
        };
        let [incarnation, number, epoch, left_ns, of_epoch, last] = numbers;
        let position = JournalEnd { epoch: Epoch(of_epoch), last: Seq(last) };
        Some(Self { outcome, plant, holder, incarnation, number, epoch: Epoch(epoch), left_ns, position })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_as_they_were_written() {
        let (plant, holder) = ("NY1".parse().unwrap(), "host-a.1".parse().unwrap());
        let position = JournalEnd { epoch: Epoch(5), last: Seq(6) };
        let request = LeaseRequest {
            kind: LeaseRequestKind::Look,
            plant,
            holder,
            incarnation: 1,
            number: 2,
            epoch: Epoch(3),
            duration_ns: 4,
            position,
        };
        for kind in [LeaseRequestKind::Look, LeaseRequestKind::Take, LeaseRequestKind::Release] {
            let request = LeaseRequest { kind, ..request };
            assert_eq!(LeaseRequest::decode(&request.encode()), Some(request));
        }
        let bytes = request.encode();
        assert_eq!(&bytes[..32], b"tapelea1\0NY1\0\0\0\0host-a.1\0\0\0\0\0\0\0\0");
        assert_eq!(&bytes[32..48], &[1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
        for outcome in 0..9 {
            let mut bytes = request.encode();
            bytes[8] = outcome;
            let answer = LeaseAnswer::decode(&bytes).unwrap();
            assert_eq!((answer.outcome as u8, answer.encode()), (outcome, bytes));
        }
        for cut in 0..LEASE_BYTES {
            assert_eq!(LeaseRequest::decode(&bytes[..cut]), None);
        }
        for (at, byte) in [(0, b'T'), (7, b'2'), (8, 9), (9, b'-'), (17, 0), (18, b' ')] {
            let mut damaged = bytes;
            damaged[at] = byte;
            assert_eq!(LeaseRequest::decode(&damaged), None, "{at}");
            assert_eq!(LeaseAnswer::decode(&damaged), None, "{at}");
        }
        let nobody = LeaseRequest { holder: HolderName::default(), ..request }.encode();
        assert_eq!(LeaseRequest::decode(&nobody), None);
        assert!(LeaseAnswer::decode(&nobody).is_some_and(|answer| answer.holder.to_string().is_empty()));
    }

    #[test]
    fn the_later_of_two_positions_has_more() {
        let at = |epoch, last| JournalEnd { epoch: Epoch(epoch), last: Seq(last) };
        assert!(at(2, 5) > at(1, 9) && at(2, 6) > at(2, 5) && at(1, 1) > JournalEnd::default());
        for name in ["", "seventeen-letters", "a b", "é"] {
            assert_eq!(name.parse::<HolderName>(), Err(InvalidHolderName));
        }
    }
}
