//! The last trades by their match numbers, since one of them may be broken.

use crate::itch::{Locate, MatchNumber};

use super::Print;

/// Which sum of its stock a trade is part of, beside all that was traded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Part {
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
    /// 0 where nothing is remembered.
    pub(super) shares: u64,
    pub(super) price: u32,
    pub(super) locate: Locate,
    pub(super) part: Part,
}

/// So many trades are remembered: the newest at least, since match numbers rise. 2 MB; on a busy day that is minutes,
/// within which most broken trades are broken.
const COUNT: usize = 1 << 16;

/// A trade for each of the possible last bits of its number: a newer one takes an older one's place.
#[derive(Debug)]
pub(super) struct Matches(Box<[Match]>);

impl Matches {
    /// Nothing; takes its memory with the first trade.
    pub(super) fn new() -> Self {
        Self(Box::new([]))
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.0)
    }

    #[inline]
    pub(super) fn remember(&mut self, locate: Locate, print: &Print, part: Part) {
        let at = print.match_number.0 as usize % COUNT;
        if self.0.is_empty() {
            self.0 = vec![Match::default(); COUNT].into();
        }
        self.0[at] =
            Match { number: print.match_number, shares: print.shares, price: print.price.0, locate, part };
    }

    /// Gives a trade, and forgets it: it can be broken once.
    pub(super) fn forget(&mut self, number: MatchNumber) -> Option<Match> {
        let remembered = self.0.get_mut(number.0 as usize % COUNT)?;
        (remembered.shares != 0 && remembered.number == number).then(|| std::mem::take(remembered))
    }
}
