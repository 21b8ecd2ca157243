//! The name of one run of sequences: who numbers, and since when.

use std::fmt;
use std::str::FromStr;

use tapeline_feed::moldudp64::MoldSession;
use tapeline_measure::Nanos;

/// The version of the layout of datagrams and ticks; the first letter of every session.
const LAYOUT: u8 = b'1';
/// The maximum length of a plant's id in bytes; shorter ids are padded.
const ID_BYTES: usize = 3;
const PADDING: u8 = b'_';
/// Digits of an epoch, in the order of their values and of their bytes: later epochs are greater in both.
const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const EPOCH_DIGITS: usize = 6;
/// 2025-01-01 00:00 UTC in ns since 1970: epochs count from here.
const EPOCHS_BEGIN: u64 = 1_735_689_600_000_000_000;
/// The unit of an epoch: a plant takes longer to start, so two starts differ. Six digits last until 2043.
const EPOCH_NS: u64 = 10_000_000;

/// The id of a plant that numbers ticks: one to three letters or digits, such as `NY1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PlantId([u8; ID_BYTES]);

impl Default for PlantId {
    /// The id `0`.
    fn default() -> Self {
        Self([b'0', PADDING, PADDING])
    }
}

/// The text is not a plant's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a plant's id has one to three letters or digits")]
pub struct InvalidPlantId;

impl FromStr for PlantId {
    type Err = InvalidPlantId;

    fn from_str(text: &str) -> Result<Self, InvalidPlantId> {
        let bytes = text.as_bytes();
        let is_id = (1..=ID_BYTES).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_alphanumeric);
        if !is_id {
            return Err(InvalidPlantId);
        }
        let mut id = [PADDING; ID_BYTES];
        id[..bytes.len()].copy_from_slice(bytes);
        Ok(Self(id))
    }
}

impl PlantId {
    /// Returns the id with its padding.
    pub(super) const fn padded(self) -> [u8; ID_BYTES] {
        self.0
    }

    /// Reads a padded id.
    pub(super) fn from_padded(bytes: [u8; ID_BYTES]) -> Option<Self> {
        std::str::from_utf8(&bytes).ok()?.trim_end_matches(char::from(PADDING)).parse().ok()
    }
}

impl fmt::Display for PlantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.iter().filter(|byte| **byte != PADDING).map(|byte| char::from(*byte));
        text.into_iter().try_for_each(|letter| fmt::Write::write_char(f, letter))
    }
}

/// When a plant began to number: in units of 10 ms since 2025. A plant that goes on with the sequence of its journal keeps its epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

impl Epoch {
    /// The last epoch that a session's name can have.
    pub const LAST: Self = Self(62_u64.pow(EPOCH_DIGITS as u32) - 1);

    /// Returns the epoch that begins now.
    #[must_use]
    pub const fn at(now: Nanos) -> Self {
        Self(now.0.saturating_sub(EPOCHS_BEGIN) / EPOCH_NS)
    }
}

/// One run of sequences: the plant that numbers, and its epoch. Two sessions never share a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BridgeSession {
    /// The plant.
    pub plant: PlantId,
    /// Its epoch.
    pub epoch: Epoch,
}

impl BridgeSession {
    /// Returns the session's name in MoldUDP64: the layout's version, the plant's id, the epoch in six digits to base 62.
    #[must_use]
    pub fn to_mold(self) -> MoldSession {
        let mut name = [0; 10];
        name[0] = LAYOUT;
        name[1..=ID_BYTES].copy_from_slice(&self.plant.0);
        let mut rest = self.epoch.0;
        for digit in name[10 - EPOCH_DIGITS..].iter_mut().rev() {
            // Lossless: below 62.
            *digit = DIGITS[(rest % 62) as usize];
            rest /= 62;
        }
        MoldSession(name)
    }

    /// Reads a session's name; `None` if it is not a bridge's, or is of another version of the layout: see [`is_other_layout`](Self::is_other_layout).
    #[must_use]
    pub fn from_mold(session: MoldSession) -> Option<Self> {
        let [layout, id @ .., _, _, _, _, _, _] = session.0;
        let mut epoch = 0;
        for digit in &session.0[10 - EPOCH_DIGITS..] {
            epoch = epoch * 62 + DIGITS.iter().position(|known| known == digit)? as u64;
        }
        let text = std::str::from_utf8(&id).ok()?;
        let plant: PlantId = text.trim_end_matches(char::from(PADDING)).parse().ok()?;
        (layout == LAYOUT).then_some(Self { plant, epoch: Epoch(epoch) })
    }

    /// Returns `true` for a session that has the form of a bridge's, but of another version of the layout.
    #[must_use]
    pub fn is_other_layout(session: MoldSession) -> bool {
        let mut this = session;
        this.0[0] = LAYOUT;
        session.0[0] != LAYOUT && session.0[0].is_ascii_digit() && Self::from_mold(this).is_some()
    }
}

impl fmt::Display for BridgeSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_mold().fmt(f)
    }
}

impl FromStr for BridgeSession {
    type Err = InvalidPlantId;

    fn from_str(text: &str) -> Result<Self, InvalidPlantId> {
        let name = text.as_bytes().try_into().map_err(|_| InvalidPlantId)?;
        Self::from_mold(MoldSession(name)).ok_or(InvalidPlantId)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_read_as_it_was_written_and_later_ones_are_greater() {
        let plant: PlantId = "NY".parse().unwrap();
        let mut last = MoldSession([0; 10]);
        for epoch in [0, 1, 61, 62, 5_999_999_999, 62_u64.pow(6) - 1] {
            let session = BridgeSession { plant, epoch: Epoch(epoch) };
            assert_eq!(BridgeSession::from_mold(session.to_mold()), Some(session));
            assert_eq!(session.to_string().parse(), Ok(session));
            assert!(session.to_mold().0 > last.0);
            last = session.to_mold();
        }
        assert_eq!(&last.0, b"1NY_zzzzzz");
    }

    #[test]
    fn what_is_no_session_of_this_layout_is_refused() {
        for name in [b"1NY_00000!", b"1___000000", b"1N_Y000000", b"2NY_000000", b"AAPL200130"] {
            assert_eq!(BridgeSession::from_mold(MoldSession(*name)), None);
        }
        assert!(BridgeSession::is_other_layout(MoldSession(*b"2NY_000000")));
        assert!(!BridgeSession::is_other_layout(MoldSession(*b"AAPL200130")));
        for id in ["", "ABCD", "N-1", "É"] {
            assert_eq!(id.parse::<PlantId>(), Err(InvalidPlantId));
        }
    }

    #[test]
    fn an_epoch_counts_from_2025() {
        assert_eq!(Epoch::at(Nanos(EPOCHS_BEGIN + 25_000_000)), Epoch(2));
    }
}
