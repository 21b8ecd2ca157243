//! Ids of the fields that Tapeline publishes.
//!
//! Numbers, names and types are those of the standard field dictionary; `dictionary/tapeline.dictionary` in this crate
//! describes the content of each field. A test keeps the two files in step.

use std::fmt;

/// Id of a field. A dictionary maps the id to the field's name and type.
///
/// Positive ids belong to the standard dictionary; negative ids are free for a site's own fields.
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

        /// All constants of this module with their names, in ascending order of id.
        pub const ALL: &[(&str, Fid)] = &[$((stringify!($name), $name)),*];
    };
}

fids! {
    /// Price of the last trade. REAL.
    TRDPRC_1 = 6;
    /// Currency of the prices. ENUM.
    CURRENCY = 15;
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
    /// Number of decimals of the prices. ENUM.
    TRD_UNITS = 53;
    /// Number of trades today. REAL.
    NUM_MOVES = 77;
    /// Shares of the last trade. REAL.
    TRDVOL_1 = 178;
    /// Order id: the key of a market by order map. RMTES string.
    ORDER_ID = 3426;
    /// Price of the order. REAL.
    ORDER_PRC = 3427;
    /// Side of the order. ENUM.
    ORDER_SIDE = 3428;
    /// Remaining shares of the order. REAL.
    ORDER_SIZE = 3429;
    /// Number of orders at a price level. UINT.
    NO_ORD = 3430;
    /// Market maker that owns the order. RMTES string.
    MMID = 3435;
    /// Id of the last trade at its exchange. RMTES string.
    TRADE_ID = 3900;
    /// Auction that an indication belongs to, as the exchange's own letter. RMTES string.
    INDAUCTYPE = 3914;
    /// Price at which the orders for the auction alone would clear. REAL.
    IMB_PR_FR = 4334;
    /// Price at which all orders would clear. REAL.
    IMB_PR_NR = 4335;
    /// Price at which paired and imbalance shares are counted. REAL.
    IMB_PR_REF = 4336;
    /// Shares that would match in the auction. REAL.
    IMB_PR_SH = 4337;
    /// Shares that would not match in the auction. REAL.
    IMB_SH = 4338;
    /// Side of the shares that would not match. ENUM.
    IMB_SIDE = 4340;
    /// Distance of the near price from the current reference price. ENUM.
    IMB_VA_IND = 4342;
    /// Total size of all orders at a price level. REAL.
    ACC_SIZE = 4356;
    /// Venue of the best bid. RMTES string.
    BID_SRC = 4451;
    /// Venue of the best ask. RMTES string.
    ASK_SRC = 4452;
    /// Time at which the auction is due. TIME.
    AUC_TIME = 6262;
    /// Sale conditions of the last trade, in the exchange's own letters. RMTES string.
    COND_N = 6372;
    /// State of the book: best bid and ask apart, equal or crossed. ENUM.
    BOOK_STATE = 6516;
    /// Reason for the trading halt. RMTES string.
    HALT_REASN = 6517;
    /// Price of the broken trade. REAL.
    CAN_PRC = 6583;
    /// Shares of the broken trade. INT.
    CAN_VOL = 6584;
    /// Id of the broken trade. RMTES string.
    CAN_TRD_ID = 6587;
    /// Trading status of the instrument. ENUM.
    TRD_STATUS = 6614;
    /// Number of extensions of the auction. REAL.
    AUC_EX_NO = 10339;
    /// Side of the aggressor in the last trade. ENUM.
    AGGRS_SID1 = 12770;
    /// Time of day of the last quote, to the nanosecond. TIME.
    QUOTIM_NS = 14265;
    /// Time of day of the last trade, to the nanosecond. TIME.
    SALTIM_NS = 14266;
    /// Time of day of the price level's last change, to the nanosecond. TIME.
    LV_TIM_NS = 14268;
    /// Time of day from which the order's priority counts, to the nanosecond. TIME.
    PR_TIM_NS = 14275;
    /// Time of day of the order's last change, to the nanosecond. TIME.
    OR_TIM_NS = 14276;
    /// Time of day at which the trade was broken, to the nanosecond. TIME.
    CAN_TIM_NS = 14277;
    /// Time of day of the auction's last indication, to the nanosecond. TIME.
    IMB_TIM_NS = 14313;
}
