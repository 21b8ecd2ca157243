//! The views: one for each kind of record, with all fields at the offsets of the `dbn` crate's own structures.
//!
//! Fields are read by offset, from bytes that need not be aligned. The crate's references to its structures are sound only if every earlier length
//! was right, which a damaged file does not guarantee (`docs/adr/0004-dbn.md`).

use std::mem::{offset_of, size_of};

use ::dbn::{rtype, v1, v2, v3};

use super::definition::{DefinitionV1, DefinitionV2, DefinitionV3};
use super::field::{DbnPrice, DbnText, Field, Flags, Letter, Value};
use crate::wire::chunk;

/// The size of the header of every record in bytes.
pub const HEADER_BYTES: usize = size_of::<::dbn::RecordHeader>();
/// Size in bytes of the send time of a gateway, in files that contain it.
pub(super) const TS_OUT_BYTES: usize = 8;

/// The header of every record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The kind of record.
    pub kind: RecordKind,
    /// The publisher: a venue within a dataset.
    pub publisher: u16,
    /// The publisher's number of the instrument, valid for at least a day.
    pub instrument: u32,
    /// Time of the event at the venue, ns since 1970 UTC.
    pub ts_event: u64,
}

impl Header {
    /// Returns the header of a record; `None` if the bytes are too short.
    #[inline(always)]
    #[must_use]
    pub fn of(record: &[u8]) -> Option<Self> {
        let header: &[u8; HEADER_BYTES] = record.first_chunk()?;
        Some(Self::read(header))
    }

    #[inline(always)]
    pub(super) fn read(header: &[u8; HEADER_BYTES]) -> Self {
        Self {
            kind: RecordKind(header[1]),
            publisher: u16::of(chunk::<2, 2, HEADER_BYTES>(header)),
            instrument: u32::of(chunk::<4, 4, HEADER_BYTES>(header)),
            ts_event: u64::of(chunk::<8, 8, HEADER_BYTES>(header)),
        }
    }
}

/// A kind of record. Any byte is valid.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordKind(pub u8);

impl RecordKind {
    /// A definition of an instrument.
    pub const DEFINITION: Self = Self(rtype::INSTRUMENT_DEF);
    /// A single order.
    pub const ORDER: Self = Self(rtype::MBO);
    /// A symbol of an instrument.
    pub const SYMBOL_MAPPING: Self = Self(rtype::SYMBOL_MAPPING);

    /// Returns the name of the kind in the format's schemas; `None` for an unknown kind.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        Some(match self.0 {
            rtype::MBP_0 => "mbp-0/trades",
            rtype::MBP_1 => "mbp-1/tbbo",
            rtype::MBP_10 => "mbp-10",
            rtype::OHLCV_DEPRECATED => "ohlcv",
            rtype::OHLCV_1S => "ohlcv-1s",
            rtype::OHLCV_1M => "ohlcv-1m",
            rtype::OHLCV_1H => "ohlcv-1h",
            rtype::OHLCV_1D => "ohlcv-1d",
            rtype::OHLCV_EOD => "ohlcv-eod",
            rtype::STATUS => "status",
            rtype::INSTRUMENT_DEF => "definition",
            rtype::IMBALANCE => "imbalance",
            rtype::ERROR => "error",
            rtype::SYMBOL_MAPPING => "symbol-mapping",
            rtype::SYSTEM => "system",
            rtype::STATISTICS => "statistics",
            rtype::MBO => "mbo",
            rtype::CMBP_1 => "cmbp-1",
            rtype::CBBO_1S => "cbbo-1s",
            rtype::CBBO_1M => "cbbo-1m",
            rtype::TCBBO => "tcbbo",
            rtype::BBO_1S => "bbo-1s",
            rtype::BBO_1M => "bbo-1m",
            _ => return None,
        })
    }

    /// Returns `true` if such records contain a quote, an order, a trade or a trading state, which a plant publishes. Definitions and symbol
    /// mappings only contain names; bars, statistics and imbalances are not published.
    #[must_use]
    pub const fn is_published(self) -> bool {
        matches!(
            self.0,
            rtype::MBP_0
                | rtype::MBP_1
                | rtype::MBP_10
                | rtype::STATUS
                | rtype::MBO
                | rtype::CMBP_1
                | rtype::CBBO_1S
                | rtype::CBBO_1M
                | rtype::TCBBO
                | rtype::BBO_1S
                | rtype::BBO_1M
        )
    }

    /// Returns `true` if such records contain data of an instrument that are neither published nor its name: a bar, a statistic, an imbalance.
    #[must_use]
    pub const fn is_unused(self) -> bool {
        self.is_bar() || matches!(self.0, rtype::IMBALANCE | rtype::STATISTICS)
    }

    const fn is_bar(self) -> bool {
        matches!(
            self.0,
            rtype::OHLCV_DEPRECATED
                | rtype::OHLCV_1S
                | rtype::OHLCV_1M
                | rtype::OHLCV_1H
                | rtype::OHLCV_1D
                | rtype::OHLCV_EOD
        )
    }

    /// Returns the names of all kinds with [published](Self::is_published) data.
    pub fn published() -> impl Iterator<Item = &'static str> {
        (0..=u8::MAX).map(Self).filter(|kind| kind.is_published()).filter_map(Self::name)
    }

    /// Returns the lengths of such records in versions 1, 2 and 3 in bytes, without the gateway's time; `None` for an unknown kind.
    #[must_use]
    pub const fn lengths(self) -> Option<[usize; 3]> {
        Some(match self.0 {
            rtype::MBP_0 => [Trade::LENGTH; 3],
            rtype::MBP_1 => [Mbp1::LENGTH; 3],
            rtype::MBP_10 => [Mbp10::LENGTH; 3],
            _ if self.is_bar() => [Ohlcv::LENGTH; 3],
            rtype::STATUS => [Status::LENGTH; 3],
            rtype::INSTRUMENT_DEF => [DefinitionV1::LENGTH, DefinitionV2::LENGTH, DefinitionV3::LENGTH],
            rtype::IMBALANCE => [Imbalance::LENGTH; 3],
            rtype::ERROR => [ErrorV1::LENGTH, Error::LENGTH, Error::LENGTH],
            rtype::SYMBOL_MAPPING => [MappingV1::LENGTH, Mapping::LENGTH, Mapping::LENGTH],
            rtype::SYSTEM => [SystemV1::LENGTH, System::LENGTH, System::LENGTH],
            rtype::STATISTICS => [StatisticV1::LENGTH, StatisticV1::LENGTH, Statistic::LENGTH],
            rtype::MBO => [Mbo::LENGTH; 3],
            rtype::CMBP_1 | rtype::TCBBO => [Cmbp1::LENGTH; 3],
            rtype::CBBO_1S | rtype::CBBO_1M => [Cbbo::LENGTH; 3],
            rtype::BBO_1S | rtype::BBO_1M => [Bbo::LENGTH; 3],
            _ => return None,
        })
    }

    /// Returns `true` if some version has such records of this length, with or without a gateway's time.
    #[must_use]
    pub(super) fn may_have(self, length: usize) -> bool {
        self.lengths().is_some_and(|lengths| {
            lengths.contains(&length) || lengths.contains(&length.saturating_sub(TS_OUT_BYTES))
        })
    }
}

/// The reason why bytes are not a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MalformedRecord {
    /// The bytes are shorter than a header.
    #[error("a record of {length} bytes; every record has a header of 16")]
    Short {
        /// The actual number of bytes.
        length: usize,
    },
    /// The length in the header differs from the number of bytes.
    #[error("a record of {length} bytes says that it has {said}")]
    Said {
        /// The actual number of bytes.
        length: usize,
        /// The number in the header.
        said: usize,
    },
    /// No version has a record of this kind and length.
    #[error("a record of kind {} ({:#04x}) with {length} bytes; {} are expected", .kind.name().unwrap_or("unknown"), .kind.0, expected(*.kind))]
    Length {
        /// The kind.
        kind: RecordKind,
        /// The actual number of bytes.
        length: usize,
    },
}

/// Returns the valid lengths of a kind, in words.
pub(super) fn expected(kind: RecordKind) -> String {
    let mut lengths = kind.lengths().unwrap_or_default().to_vec();
    lengths.dedup();
    lengths.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
}

/// Declares the views. The offsets are those of the crate's structures; the type of each field is ours.
macro_rules! records {
    ($( $(#[$about:meta])* $name:ident: $layout:ty { $( $field:ident: $kind:ty, )* } )*) => {
        $(
            $(#[$about])*
            #[repr(transparent)]
            #[derive(Clone, Copy, PartialEq, Eq)]
            pub struct $name<'a>(&'a [u8; size_of::<$layout>()]);

            impl<'a> $name<'a> {
                /// The size of the record in bytes, without a gateway's time.
                pub const LENGTH: usize = size_of::<$layout>();

                /// Returns the view, if the number of bytes is that of such a record, with or without a gateway's time.
                #[inline(always)]
                pub(super) fn of(bytes: &'a [u8]) -> Option<Self> {
                    let fits = bytes.len() == Self::LENGTH || bytes.len() == Self::LENGTH + TS_OUT_BYTES;
                    if fits { bytes.first_chunk().map(Self) } else { None }
                }

                /// Returns the header of the record.
                #[inline(always)]
                #[must_use]
                pub fn header(self) -> Header {
                    Header::read(&chunk::<0, HEADER_BYTES, { size_of::<$layout>() }>(self.0))
                }

                $(
                    #[doc = concat!("The field `", stringify!($field), "`.")]
                    #[inline(always)]
                    #[must_use]
                    pub fn $field(self) -> $kind {
                        Field::of(chunk::<{ offset_of!($layout, $field) }, _, { size_of::<$layout>() }>(self.0))
                    }
                )*

                /// Passes every field except the levels to `see`, by name.
                pub(super) fn each(self, see: &mut dyn FnMut(&str, Value<'_>)) {
                    $( see(stringify!($field), Field::value(&self.$field())); )*
                }
            }

            impl std::fmt::Debug for $name<'_> {
                fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.debug_struct(stringify!($name))
                        .field("header", &self.header())
                        $(.field(stringify!($field), &self.$field()))*
                        .finish()
                }
            }
        )*
    };
}
pub(super) use records;

records! {
    /// A change of an order.
    Mbo: ::dbn::MboMsg {
        order_id: u64, price: DbnPrice, size: u32, flags: Flags, channel_id: u8, action: Letter, side: Letter,
        ts_recv: u64, ts_in_delta: i32, sequence: u32,
    }
    /// A trade.
    Trade: ::dbn::TradeMsg {
        price: DbnPrice, size: u32, action: Letter, side: Letter, flags: Flags, depth: u8, ts_recv: u64, ts_in_delta: i32,
        sequence: u32,
    }
    /// A change of the top of book, or a trade with the top of book.
    Mbp1: ::dbn::Mbp1Msg {
        price: DbnPrice, size: u32, action: Letter, side: Letter, flags: Flags, depth: u8, ts_recv: u64, ts_in_delta: i32,
        sequence: u32,
    }
    /// A change of the ten best levels.
    Mbp10: ::dbn::Mbp10Msg {
        price: DbnPrice, size: u32, action: Letter, side: Letter, flags: Flags, depth: u8, ts_recv: u64, ts_in_delta: i32,
        sequence: u32,
    }
    /// The top of book at the end of a second or minute, with the last trade.
    Bbo: ::dbn::BboMsg {
        price: DbnPrice, size: u32, side: Letter, flags: Flags, ts_recv: u64, sequence: u32,
    }
    /// A change of the best quote over several venues.
    Cmbp1: ::dbn::Cmbp1Msg {
        price: DbnPrice, size: u32, action: Letter, side: Letter, flags: Flags, ts_recv: u64, ts_in_delta: i32,
    }
    /// The best quote over several venues at the end of a second or minute.
    Cbbo: ::dbn::CbboMsg {
        price: DbnPrice, size: u32, side: Letter, flags: Flags, ts_recv: u64,
    }
    /// A bar.
    Ohlcv: ::dbn::OhlcvMsg {
        open: DbnPrice, high: DbnPrice, low: DbnPrice, close: DbnPrice, volume: u64,
    }
    /// A trading state.
    Status: ::dbn::StatusMsg {
        ts_recv: u64, action: u16, reason: u16, trading_event: u16, is_trading: Letter, is_quoting: Letter,
        is_short_sell_restricted: Letter,
    }
    /// An imbalance before an auction.
    Imbalance: ::dbn::ImbalanceMsg {
        ts_recv: u64, ref_price: DbnPrice, auction_time: u64, cont_book_clr_price: DbnPrice, auct_interest_clr_price: DbnPrice,
        ssr_filling_price: DbnPrice, ind_match_price: DbnPrice, upper_collar: DbnPrice, lower_collar: DbnPrice, paired_qty: u32,
        total_imbalance_qty: u32, market_imbalance_qty: u32, unpaired_qty: u32, auction_type: Letter, side: Letter,
        auction_status: u8, freeze_status: u8, num_extensions: u8, unpaired_side: Letter, significant_imbalance: Letter,
    }
    /// A statistic, versions 1 and 2.
    StatisticV1: v1::StatMsg {
        ts_recv: u64, ts_ref: u64, price: DbnPrice, quantity: i32, sequence: u32, ts_in_delta: i32, stat_type: u16,
        channel_id: u16, update_action: u8, stat_flags: u8,
    }
    /// A statistic.
    Statistic: v3::StatMsg {
        ts_recv: u64, ts_ref: u64, price: DbnPrice, quantity: i64, sequence: u32, ts_in_delta: i32, stat_type: u16,
        channel_id: u16, update_action: u8, stat_flags: u8,
    }
    /// A symbol of an instrument, version 1.
    MappingV1: v1::SymbolMappingMsg {
        stype_in_symbol: DbnText<22>, stype_out_symbol: DbnText<22>, start_ts: u64, end_ts: u64,
    }
    /// A symbol of an instrument.
    Mapping: v2::SymbolMappingMsg {
        stype_in: u8, stype_in_symbol: DbnText<71>, stype_out: u8, stype_out_symbol: DbnText<71>, start_ts: u64, end_ts: u64,
    }
    /// A gateway's error, version 1.
    ErrorV1: v1::ErrorMsg { err: DbnText<64>, }
    /// A gateway's error.
    Error: v2::ErrorMsg { err: DbnText<302>, code: u8, is_last: u8, }
    /// A gateway's message, version 1.
    SystemV1: v1::SystemMsg { msg: DbnText<64>, }
    /// A gateway's message.
    System: v3::SystemMsg { msg: DbnText<303>, code: u8, }
}

/// One price level of both sides. On consolidated records the counts are the publishers with the best price.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DbnLevel {
    /// Bid price.
    pub bid_px: DbnPrice,
    /// Ask price.
    pub ask_px: DbnPrice,
    /// Bid size.
    pub bid_sz: u32,
    /// Ask size.
    pub ask_sz: u32,
    /// Number of orders of the bid, or its publisher.
    pub bid_ct: u32,
    /// Number of orders of the ask, or its publisher.
    pub ask_ct: u32,
}

/// Bytes of a level.
const LEVEL_BYTES: usize = size_of::<::dbn::BidAskPair>();

impl DbnLevel {
    #[inline(always)]
    fn of(bytes: &[u8; LEVEL_BYTES], consolidated: bool) -> Self {
        let count = |wide, narrow: u16| if consolidated { u32::from(narrow) } else { wide };
        Self {
            bid_px: Field::of(chunk::<{ offset_of!(::dbn::BidAskPair, bid_px) }, _, _>(bytes)),
            ask_px: Field::of(chunk::<{ offset_of!(::dbn::BidAskPair, ask_px) }, _, _>(bytes)),
            bid_sz: Field::of(chunk::<{ offset_of!(::dbn::BidAskPair, bid_sz) }, _, _>(bytes)),
            ask_sz: Field::of(chunk::<{ offset_of!(::dbn::BidAskPair, ask_sz) }, _, _>(bytes)),
            bid_ct: count(
                Field::of(chunk::<{ offset_of!(::dbn::BidAskPair, bid_ct) }, _, _>(bytes)),
                Field::of(chunk::<{ offset_of!(::dbn::ConsolidatedBidAskPair, bid_pb) }, _, _>(bytes)),
            ),
            ask_ct: count(
                Field::of(chunk::<{ offset_of!(::dbn::BidAskPair, ask_ct) }, _, _>(bytes)),
                Field::of(chunk::<{ offset_of!(::dbn::ConsolidatedBidAskPair, ask_pb) }, _, _>(bytes)),
            ),
        }
    }

    fn each(self, number: usize, consolidated: bool, see: &mut dyn FnMut(&str, Value<'_>)) {
        let count = if consolidated { "pb" } else { "ct" };
        for (name, value) in [
            ("bid_px", i128::from(self.bid_px.0)),
            ("ask_px", i128::from(self.ask_px.0)),
            ("bid_sz", i128::from(self.bid_sz)),
            ("ask_sz", i128::from(self.ask_sz)),
            (&format!("bid_{count}"), i128::from(self.bid_ct)),
            (&format!("ask_{count}"), i128::from(self.ask_ct)),
        ] {
            see(&format!("{name}_{number:02}"), Value::Number(value));
        }
    }
}

macro_rules! levels {
    ($($name:ident: $layout:ty, $count:literal, $consolidated:literal;)*) => {
        $(impl $name<'_> {
            /// Returns the levels, best first.
            #[inline(always)]
            #[must_use]
            pub fn levels(self) -> [DbnLevel; $count] {
                const AT: usize = offset_of!($layout, levels);
                const { assert!(AT + $count * LEVEL_BYTES == size_of::<$layout>()) };
                let (levels, _) = self.0[AT..].as_chunks::<LEVEL_BYTES>();
                let mut all = [DbnLevel::default(); $count];
                for (level, bytes) in all.iter_mut().zip(levels) {
                    *level = DbnLevel::of(bytes, $consolidated);
                }
                all
            }

            fn each_level(self, see: &mut dyn FnMut(&str, Value<'_>)) {
                for (number, level) in self.levels().into_iter().enumerate() {
                    level.each(number, $consolidated, see);
                }
            }
        })*
    };
}

levels! {
    Mbp1: ::dbn::Mbp1Msg, 1, false;
    Mbp10: ::dbn::Mbp10Msg, 10, false;
    Bbo: ::dbn::BboMsg, 1, false;
    Cmbp1: ::dbn::Cmbp1Msg, 1, true;
    Cbbo: ::dbn::CbboMsg, 1, true;
}

/// A record of an unknown kind: only its header can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownRecord<'a>(pub &'a [u8]);

macro_rules! record_enum {
    ($($name:ident)*; received: $($received:ident)*; leveled: $($leveled:ident)*) => {
        /// A record: a view over received bytes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "each is named after its view")]
        pub enum DbnRecord<'a> {
            $( $name($name<'a>), )*
            $( $received($received<'a>), )*
            $( $leveled($leveled<'a>), )*
            Unknown(UnknownRecord<'a>),
        }

        impl DbnRecord<'_> {
            /// Passes every field after the header to `see` by its name in the format, in no particular order.
            pub fn fields(&self, see: &mut dyn FnMut(&str, Value<'_>)) {
                match self {
                    $( Self::$name(record) => record.each(see), )*
                    $( Self::$received(record) => record.each(see), )*
                    $( Self::$leveled(record) => {
                        record.each(see);
                        record.each_level(see);
                    } )*
                    Self::Unknown(_) => {}
                }
            }

            /// Returns the receive time at the publisher; undefined for a record without one.
            fn ts_recv(&self) -> u64 {
                match self {
                    $( Self::$received(record) => record.ts_recv(), )*
                    $( Self::$leveled(record) => record.ts_recv(), )*
                    _ => ::dbn::UNDEF_TIMESTAMP,
                }
            }
        }
    };
}

record_enum! {
    Ohlcv MappingV1 Mapping ErrorV1 Error SystemV1 System;
    received: Mbo Trade Status Imbalance StatisticV1 Statistic DefinitionV1 DefinitionV2 DefinitionV3;
    leveled: Mbp1 Mbp10 Bbo Cmbp1 Cbbo
}

/// Returns the time of a record, ns since 1970 UTC: the receive time at its publisher, otherwise the event time; `None` if the record contains
/// neither.
#[must_use]
pub fn recorded_ns(bytes: &[u8]) -> Option<u64> {
    let received = decode(bytes).ok()?.ts_recv();
    [received, Header::of(bytes)?.ts_event].into_iter().find(|ns| *ns != ::dbn::UNDEF_TIMESTAMP)
}

/// Decodes a record: exactly the bytes that its header announces.
///
/// Costs a test of kind and length. The lengths of a kind identify its version and the presence of a gateway's time, so nothing else about the file
/// is needed.
///
/// # Errors
/// [`MalformedRecord`] if the length is not that of the header or not one of the kind.
#[inline(always)]
pub fn decode(bytes: &[u8]) -> Result<DbnRecord<'_>, MalformedRecord> {
    let Some(header) = bytes.first_chunk::<HEADER_BYTES>() else {
        return Err(MalformedRecord::Short { length: bytes.len() });
    };
    if usize::from(header[0]) * 4 != bytes.len() {
        return Err(MalformedRecord::Said { length: bytes.len(), said: usize::from(header[0]) * 4 });
    }
    let record = match header[1] {
        rtype::MBO => Mbo::of(bytes).map(DbnRecord::Mbo),
        rtype::MBP_0 => Trade::of(bytes).map(DbnRecord::Trade),
        rtype::MBP_1 => Mbp1::of(bytes).map(DbnRecord::Mbp1),
        _ => return rarer(RecordKind(header[1]), bytes),
    };
    record.ok_or(MalformedRecord::Length { kind: RecordKind(header[1]), length: bytes.len() })
}

fn rarer(kind: RecordKind, bytes: &[u8]) -> Result<DbnRecord<'_>, MalformedRecord> {
    /// The first of these views that has the length.
    macro_rules! first {
        ($($view:ident)*) => {
            None$(.or_else(|| $view::of(bytes).map(DbnRecord::$view)))*
        };
    }
    let record = match kind.0 {
        rtype::MBP_10 => first!(Mbp10),
        rtype::STATUS => first!(Status),
        rtype::INSTRUMENT_DEF => first!(DefinitionV1 DefinitionV2 DefinitionV3),
        rtype::IMBALANCE => first!(Imbalance),
        rtype::ERROR => first!(ErrorV1 Error),
        rtype::SYMBOL_MAPPING => first!(MappingV1 Mapping),
        rtype::SYSTEM => first!(SystemV1 System),
        rtype::STATISTICS => first!(StatisticV1 Statistic),
        rtype::CMBP_1 | rtype::TCBBO => first!(Cmbp1),
        rtype::CBBO_1S | rtype::CBBO_1M => first!(Cbbo),
        rtype::BBO_1S | rtype::BBO_1M => first!(Bbo),
        _ if kind.is_bar() => first!(Ohlcv),
        _ => return Ok(DbnRecord::Unknown(UnknownRecord(bytes))),
    };
    record.ok_or(MalformedRecord::Length { kind, length: bytes.len() })
}
