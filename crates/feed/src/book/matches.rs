//! The last trades by match number, in case one of them is broken.

use crate::itch::{Locate, MatchNumber};

use super::Print;

/// The sum of its stock that includes a trade, in addition to the total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum VolumePart {
    /// Executions of displayed orders.
    #[default]
    Displayed,
    /// Hidden trades.
    Hidden,
    /// Crosses.
    Cross,
}

/// A trade that counts as volume: 32 bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Match {
    number: MatchNumber,
    /// 0 for an empty entry.
    pub(super) shares: u64,
    pub(super) price: u32,
    pub(super) locate: Locate,
    pub(super) part: VolumePart,
}

/// Number of remembered trades: about the newest, because match numbers rise. 2 MB; on a busy day they span minutes, the time within which most
/// broken trades are broken.
const COUNT: usize = 1 << 16;

/// One trade for each value of the low bits of its number: a newer trade replaces an older one.
#[derive(Debug)]
pub(super) struct Matches(Box<[Match]>);

impl Matches {
    /// Creates an empty table; memory is allocated with the first trade.
    pub(super) fn new() -> Self {
        Self(Box::new([]))
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.0)
    }

    #[inline]
    pub(super) fn remember(&mut self, locate: Locate, print: &Print, part: VolumePart) {
        let at = print.match_number.0 as usize % COUNT;
        if self.0.is_empty() {
            self.0 = vec![Match::default(); COUNT].into();
        }
        self.0[at] =
            Match { number: print.match_number, shares: print.shares, price: print.price.0, locate, part };
    }

    /// Removes and returns a trade: it can be broken once.
    pub(super) fn forget(&mut self, number: MatchNumber) -> Option<Match> {
        let remembered = self.0.get_mut(number.0 as usize % COUNT)?;
        (remembered.shares != 0 && remembered.number == number).then(|| std::mem::take(remembered))
    }
}
