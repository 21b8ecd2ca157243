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
    /// Price of the last trade. REAL.
    TRDPRC_1 = 6;
    /// What prices are in. ENUM.
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
    /// How many decimals prices have. ENUM.
    TRD_UNITS = 53;
    /// Trades of the day. REAL.
    NUM_MOVES = 77;
    /// Shares of the last trade. REAL.
    TRDVOL_1 = 178;
    /// The order's number: the key of a market by order map. RMTES string.
    ORDER_ID = 3426;
    /// The order's price. REAL.
    ORDER_PRC = 3427;
    /// The order's side. ENUM.
    ORDER_SIDE = 3428;
    /// Shares that are left of the order. REAL.
    ORDER_SIZE = 3429;
    /// How many orders there are at a price level. UINT.
    NO_ORD = 3430;
    /// Whose order it is. RMTES string.
    MMID = 3435;
    /// The last trade's number at its exchange. RMTES string.
    TRADE_ID = 3900;
    /// Which auction an indication is of, as the exchange's own letter. RMTES string.
    INDAUCTYPE = 3914;
    /// Price at which the orders for the auction alone would clear. REAL.
    IMB_PR_FR = 4334;
    /// Price at which all orders would clear. REAL.
    IMB_PR_NR = 4335;
    /// Price at which paired and imbalance shares are counted. REAL.
    IMB_PR_REF = 4336;
    /// Shares that would match in the auction. REAL.
    IMB_PR_SH = 4337;
    /// Shares that would not. REAL.
    IMB_SH = 4338;
    /// The side of those that would not. ENUM.
    IMB_SIDE = 4340;
    /// How far the near price is from the nearest best bid or ask. ENUM.
    IMB_VA_IND = 4342;
    /// Size of all orders of a price level. REAL.
    ACC_SIZE = 4356;
    /// Which venue the best bid is from. RMTES string.
    BID_SRC = 4451;
    /// Which venue the best ask is from. RMTES string.
    ASK_SRC = 4452;
    /// When the auction is due. TIME.
    AUC_TIME = 6262;
    /// The last trade's sale conditions, in the exchange's own letters. RMTES string.
    COND_N = 6372;
    /// Whether best bid and ask are apart, equal or crossed. ENUM.
    BOOK_STATE = 6516;
    /// Why trading is halted. RMTES string.
    HALT_REASN = 6517;
    /// Price of the trade that was broken. REAL.
    CAN_PRC = 6583;
    /// Shares of the trade that was broken. INT.
    CAN_VOL = 6584;
    /// The number of the trade that was broken. RMTES string.
    CAN_TRD_ID = 6587;
    /// Whether the instrument trades. ENUM.
    TRD_STATUS = 6614;
    /// How often the auction was extended. REAL.
    AUC_EX_NO = 10339;
    /// Which side the last trade's aggressor was on. ENUM.
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
