//! Every field of every message, summed: by the crate's views, and from records.

use std::hint::black_box;

use tapeline_feed::itch::framing::{FileFraming, Frames};
use tapeline_feed::itch::{
    Code, Decoder, ItchRecord, ItchText, Locate, MatchNumber, Message, OrderRef, Price4, Price8, decode,
};

/// A field as a number to be summed.
trait Number {
    fn number(self) -> u64;
}

macro_rules! numbers {
    ($($kind:ty),*) => {
        $(impl Number for $kind {
            #[inline(always)]
            fn number(self) -> u64 {
                u64::from(self.0)
            }
        })*
    };
}

numbers!(Code, Locate, MatchNumber, OrderRef, Price4, Price8);

impl Number for u16 {
    #[inline(always)]
    fn number(self) -> u64 {
        u64::from(self)
    }
}

impl Number for u32 {
    #[inline(always)]
    fn number(self) -> u64 {
        u64::from(self)
    }
}

impl Number for u64 {
    #[inline(always)]
    fn number(self) -> u64 {
        self
    }
}

impl Number for ItchText<8> {
    #[inline(always)]
    fn number(self) -> u64 {
        u64::from_be_bytes(self.0)
    }
}

impl Number for ItchText<4> {
    #[inline(always)]
    fn number(self) -> u64 {
        u64::from(u32::from_be_bytes(self.0))
    }
}

/// The sum of all fields of a message.
macro_rules! fields {
    ($message:expr, $($name:ident { $($field:ident),* })*) => {
        match $message {
            $(Message::$name(m) => {
                let prefix = m.locate().number().wrapping_add(m.tracking().number()).wrapping_add(m.ts_ns());
                prefix $(.wrapping_add(m.$field().number()))*
            })*
            // Short codes side by side are one number, as a record has them.
            Message::StockDirectory(m) => {
                let [class, kind] = m.issue_sub_type().0;
                let fourth = [m.round_lots_only().0, m.issue_classification().0, class, kind];
                let fifth = [m.authenticity().0, m.short_sale_threshold().0, m.ipo_flag().0, m.luld_tier().0];
                [
                    m.locate().number(),
                    m.tracking().number(),
                    m.ts_ns(),
                    m.stock().number(),
                    m.market_category().number(),
                    m.financial_status().number(),
                    m.round_lot().number(),
                    ItchText(fourth).number(),
                    ItchText(fifth).number(),
                    m.etp_flag().number(),
                    m.etp_leverage().number(),
                    m.inverse().number(),
                ]
                .into_iter()
                .fold(0, u64::wrapping_add)
            }
            Message::Unknown(_) => 0,
        }
    };
}

#[inline(always)]
fn every_field(message: Message<'_>) -> u64 {
    fields! { message,
        AddOrder { reference, side, shares, stock, price }
        OrderDelete { reference }
        OrderExecuted { reference, shares, match_number }
        OrderReplace { reference, new_reference, shares, price }
        OrderCancel { reference, shares }
        Trade { reference, side, shares, stock, price, match_number }
        AddOrderAttributed { reference, side, shares, stock, price, attribution }
        OrderExecutedWithPrice { reference, shares, match_number, printable, price }
        CrossTrade { shares, stock, price, match_number, cross }
        NetOrderImbalance { paired, imbalance, direction, stock, far, near, reference_price, cross, variation }
        SystemEvent { event }
        TradingAction { stock, state, reserved, reason }
        RegSho { stock, action }
        ParticipantPosition { mpid, stock, primary, mode, state }
        BreakerLevels { level_1, level_2, level_3 }
        BreakerStatus { level }
        IpoQuoting { stock, release_s, qualifier, price }
        AuctionCollar { stock, reference_price, upper, lower, extension }
        OperationalHalt { stock, market, action }
        BrokenTrade { match_number }
        RetailInterest { stock, interest }
        DirectListing { stock, eligible, min_price, max_price, near_price, near_time, lower, upper }
    }
}

#[inline(never)]
pub(crate) fn decode_all(file: &[u8]) -> u64 {
    let mut sum = 0_u64;
    for bytes in Frames::with(file, FileFraming::Length) {
        if let Ok(message) = decode(bytes) {
            sum = sum.wrapping_add(every_field(message));
        }
    }
    sum
}

/// Messages that are made records at once: a datagram's worth.
pub(crate) const BATCH: usize = 32;

/// The sum of all fields of a record, the type aside.
fn every_field_of(record: &ItchRecord) -> u64 {
    [
        record.ts_ns,
        record.reference,
        record.other,
        u64::from_be_bytes(record.stock),
        record.price.into(),
        record.shares.into(),
        record.third.into(),
        record.fourth.into(),
        record.fifth.into(),
        record.locate.into(),
        record.tracking.into(),
        record.code.into(),
        record.code_2.into(),
        record.code_3.into(),
        record.code_4.into(),
    ]
    .into_iter()
    .fold(0, u64::wrapping_add)
}

/// Makes records of all messages, a batch in place of the one before, and sums the last batch.
#[inline(always)]
fn records(file: &[u8], decoder: Decoder) -> u64 {
    let mut frames = Frames::with(file, FileFraming::Length);
    let mut records = [ItchRecord::default(); BATCH];
    let mut count = 0;
    loop {
        let filled = decoder.fill(&mut frames, &mut records);
        black_box(&mut records);
        count += filled as u64;
        if filled < BATCH {
            break;
        }
    }
    records.iter().fold(count, |sum, record| sum.wrapping_add(every_field_of(record)))
}

#[inline(never)]
pub(crate) fn portable(file: &[u8]) -> u64 {
    records(file, Decoder::portable())
}

#[inline(never)]
pub(crate) fn permuted(file: &[u8]) -> u64 {
    records(file, Decoder::new())
}

/// The sum of all fields of all records, for the check that they are those that the switch reads.
pub(crate) fn sum_of_records(file: &[u8], decoder: Decoder) -> u64 {
    Frames::with(file, FileFraming::Length)
        .map(|message| decoder.record(message))
        .filter(ItchRecord::is_whole)
        .fold(0, |sum, record| sum.wrapping_add(every_field_of(&record)))
}
