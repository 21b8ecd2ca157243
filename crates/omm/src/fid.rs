//! Ids of the fields that Tapeline publishes.
//!
//! Numbers, names and types are those of the standard field dictionary; `dictionary/tapeline.dictionary` in this
//! crate says what each one holds. A test keeps the two in step.

use std::fmt;

/// The id of a field: what a value in a field list means is looked up under this number.
///
/// Positive ids belong to the standard dictionary, negative ones are free for a site's own.
#[repr(transparent)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fid(pub i16);

impl fmt::Display for Fid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

macro_rules! fids {
    ($($(#[$doc:meta])* $name:ident = $number:literal;)*) => {
        $($(#[$doc])* pub const $name: Fid = Fid($number);)*

        /// Every constant of this module with its name, in ascending order of ids.
        pub const ALL: &[(&str, Fid)] = &[$((stringify!($name), $name)),*];
    };
}

fids! {
    /// Permission number of the record. UINT.
    PROD_PERM = 1;
    /// Name for people. RMTES string.
    DSPLY_NAME = 3;
    /// Price of the last trade. REAL.
    TRDPRC_1 = 6;
    /// Last trade price less the previous close. REAL.
    NETCHNG_1 = 11;
    /// Highest trade of the day. REAL.
    HIGH_1 = 12;
    /// Lowest trade of the day. REAL.
    LOW_1 = 13;
    /// Currency. ENUM.
    CURRENCY = 15;
    /// Date of the last trade. DATE.
    TRADE_DATE = 16;
    /// Date of the last change. DATE.
    ACTIV_DATE = 17;
    /// First trade of the day. REAL.
    OPEN_PRC = 19;
    /// Previous close. REAL.
    HST_CLOSE = 21;
    /// Best bid. REAL.
    BID = 22;
    /// Best ask. REAL.
    ASK = 25;
    /// Shares at the best bid. REAL.
    BIDSIZE = 30;
    /// Shares at the best ask. REAL.
    ASKSIZE = 31;
    /// Shares traded today. REAL.
    ACVOL_1 = 32;
    /// Shares in a round lot. REAL.
    LOT_SIZE = 55;
    /// Trades of the day. REAL.
    NUM_MOVES = 77;
    /// Shares of the last trade. REAL.
    TRDVOL_1 = 178;
    /// Kind of record. UINT.
    RECORDTYPE = 259;
    /// Sequence number of the source. REAL.
    SEQNUM = 1021;
    /// Exchange. ENUM.
    RDN_EXCHD2 = 1709;
    /// Date of the last quote. DATE.
    QUOTE_DATE = 3386;
    /// Average price of the day, weighted by shares. REAL.
    VWAP = 3404;
    /// Name at the source. RMTES string.
    PROV_SYMB = 3422;
    /// Order number. RMTES string.
    ORDER_ID = 3426;
    /// Price of an order or a level. REAL.
    ORDER_PRC = 3427;
    /// Side of an order or a level: 1 bid, 2 ask. ENUM.
    ORDER_SIDE = 3428;
    /// Shares of an order or a level. REAL.
    ORDER_SIZE = 3429;
    /// Orders at a level. UINT.
    NO_ORD = 3430;
    /// Time of the last trade, milliseconds of the day. UINT.
    SALTIM_MS = 3854;
    /// Time of the last quote, milliseconds of the day. UINT.
    QUOTIM_MS = 3855;
    /// Number of the last trade at the source. RMTES string.
    TRADE_ID = 3900;
    /// State of the market. RMTES string.
    MKT_STATUS = 3915;
    /// Time of the last change, milliseconds of the day. UINT.
    TIMACT_MS = 4148;
    /// Why trading is halted. RMTES string.
    HALT_REASN = 6517;
    /// Market identifier code of ISO 10383. RMTES string.
    MIC_CODE = 6589;
    /// Whether the instrument trades. ENUM.
    TRD_STATUS = 6614;
    /// Phase of trading. ENUM.
    INST_PHASE = 8927;
    /// Time of the last quote, nanoseconds. TIME.
    QUOTIM_NS = 14265;
    /// Time of the last trade, nanoseconds. TIME.
    SALTIM_NS = 14266;
    /// Time of a level's last change, nanoseconds. TIME.
    LV_TIM_NS = 14268;
    /// Time of the last change, nanoseconds. TIME.
    TIMACT_NS = 14269;
    /// Time of an order's last change, nanoseconds. TIME.
    OR_TIM_NS = 14276;
}
