//! Messages of all types as records of one size, with their numbers in the machine's own byte order.
//!
//! A consumer that reads nearly every field, such as a book, spends more time on the branch on the type than on the bytes: processors mispredict
//! that branch every other time. An [`ItchRecord`] has one place for each kind of field in any type, so its reader needs no branch. If the processor can
//! permute bytes (AVX-512 VBMI: Intel from Ice Lake on, AMD from Zen 4 on), decoding needs none either: the type selects a row of a table with the
//! source of each byte. On other processors a [`Decoder`] branches on the type once. Both ways give the same records (`tests/records.rs`).

use super::message_type::MessageType;
use super::{MalformedItchMessage, PREFIX_BYTES};
use crate::processor::{Permutation, prefetch_ahead};
use crate::wire::{BIG, Plain, Wire, chunk};

/// The size of a record in bytes: a cache line.
pub const RECORD_BYTES: usize = 64;

/// A decoded message. A field that its type does not have is 0.
///
/// | type | `reference` | `other` | `stock` | `price` | `shares` | `third` | `fourth` | `fifth` | `code`, `code_2`… |
/// |---|---|---|---|---|---|---|---|---|---|
/// | `A` `F` | order | | stock | price | shares | | | attribution (`F`) | side |
/// | `E` | order | match | | | shares | | | | |
/// | `C` | order | match | | price | shares | | | | printable |
/// | `X`, `D` | order | | | | shares (`X`) | | | | |
/// | `U` | old order | new order | | price | shares | | | | |
/// | `P` | order | match | stock | price | shares | | | | side |
/// | `Q` | shares | match | stock | price | | | | | cross |
/// | `B` | | match | | | | | | | |
/// | `I` | paired | imbalance | stock | reference | | far | near | | direction, cross, variation |
/// | `R` | | | stock | | round lot | leverage | bytes 25–28 | bytes 29–32 | category, financial status, ETP, inverse |
/// | `H` | | | stock | | | | | reason | state, reserved |
/// | `Y` `N` `S` `W` | | | stock (`Y` `N`) | | | | | | action, interest, event, level |
/// | `L` | | | stock | | | | | participant | primary, mode, state |
/// | `V` | level 1 | level 2 | level 3 | | | | | | |
/// | `K` | | | stock | price | | release, s | | | qualifier |
/// | `J` | | | stock | reference | | upper | lower | extension | |
/// | `h` | | | stock | | | | | | market, action |
/// | `O` | near time | | stock | near | lower collar | lowest | highest | upper collar | eligible |
///
/// Short texts in `fourth` and `fifth` are big-endian numbers: `to_be_bytes` returns the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct ItchRecord {
    /// Nanoseconds since midnight in New York.
    pub ts_ns: u64,
    /// The order, or the first number of eight bytes.
    pub reference: u64,
    /// The new order or the match, or the second number of eight bytes.
    pub other: u64,
    /// The stock's symbol as received.
    pub stock: [u8; 8],
    /// The price of an order or a trade, otherwise the first price.
    pub price: u32,
    /// Shares.
    pub shares: u32,
    /// A third number of four bytes.
    pub third: u32,
    /// A fourth number of four bytes.
    pub fourth: u32,
    /// A fifth number, or a text of four bytes.
    pub fifth: u32,
    /// The day's number of the stock.
    pub locate: u16,
    /// The tracking number.
    pub tracking: u16,
    /// The message's first byte: its type.
    pub kind: u8,
    /// The first code of one letter.
    pub code: u8,
    /// The second code.
    pub code_2: u8,
    /// The third code.
    pub code_3: u8,
    /// The fourth code.
    pub code_4: u8,
    /// Always 0.
    pub spare: [u8; 2],
    /// The flags of the message: [`KNOWN`](Self::KNOWN), [`SHORT`](Self::SHORT), [`LONGER`](Self::LONGER).
    pub flags: u8,
}

impl ItchRecord {
    /// The type is one of ITCH 5.0. Without this flag, a message of eleven bytes or more has only its prefix.
    pub const KNOWN: u8 = 1;
    /// The message is shorter than its type (or empty): only `kind` is set.
    pub const SHORT: u8 = 2;
    /// The message has bytes after its known fields.
    pub const LONGER: u8 = 4;

    /// Returns `true` if the type is known and the message has all its fields.
    #[inline(always)]
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.flags & (Self::KNOWN | Self::SHORT) == Self::KNOWN
    }

    /// Checks the length of the message that this record was decoded from, `length` bytes.
    ///
    /// # Errors
    /// As [`decode`](super::decode).
    #[inline]
    pub const fn check(&self, length: usize) -> Result<(), MalformedItchMessage> {
        if self.flags & Self::SHORT == 0 {
            return Ok(());
        }
        match MessageType::of(self.kind) {
            Some(kind) if length > 0 => Err(MalformedItchMessage::Short { kind, length }),
            _ => Err(MalformedItchMessage::Empty),
        }
    }

    /// Returns the record of a message of zero bytes.
    #[inline(always)]
    pub(crate) fn of_nothing() -> Self {
        Self { flags: Self::SHORT, ..Self::default() }
    }

    /// Returns the fields common to all types, for a message with all bytes of its type.
    #[inline(always)]
    fn prefix<const L: usize>(message: &[u8; L], flags: u8) -> Self {
        Self {
            ts_ns: u64::from_be_bytes(chunk::<3, 8, L>(message)) & 0x0000_FFFF_FFFF_FFFF,
            locate: u16::from_be_bytes(chunk::<1, 2, L>(message)),
            tracking: u16::from_be_bytes(chunk::<3, 2, L>(message)),
            kind: message[0],
            flags,
            ..Self::default()
        }
    }
}

const _: () = assert!(size_of::<ItchRecord>() == RECORD_BYTES);

/// The layout of one type: the source of each byte of a record.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    /// For each byte of a record, the offset in the message.
    pub(crate) from: [u8; RECORD_BYTES],
    /// A bit for each byte of a record that comes from the message; the others are 0.
    pub(crate) taken: u64,
    /// The minimum size of the message in bytes.
    pub(crate) length: usize,
    /// [`ItchRecord::KNOWN`] or 0.
    pub(crate) known: u8,
}

impl Row {
    const NONE: Self = Self { from: [0; RECORD_BYTES], taken: 0, length: PREFIX_BYTES, known: 0 };

    /// Adds a field of `bytes` bytes: a number changes its byte order, a text does not.
    const fn with(mut self, to: usize, at: usize, bytes: usize, is_number: bool) -> Self {
        let mut k = 0;
        while k < bytes {
            // The lowest byte of a little-endian machine is the last one on the wire.
            let source =
                if is_number && cfg!(target_endian = "little") { at + bytes - 1 - k } else { at + k };
            self.from[to + k] = source as u8;
            self.taken |= 1 << (to + k);
            k += 1;
        }
        self
    }

    const PREFIX: Self = Self::NONE
        .with(std::mem::offset_of!(ItchRecord, kind), 0, 1, true)
        .with(std::mem::offset_of!(ItchRecord, locate), 1, 2, true)
        .with(std::mem::offset_of!(ItchRecord, tracking), 3, 2, true)
        .with(std::mem::offset_of!(ItchRecord, ts_ns), 5, 6, true);
}

/// Declares the layout of each type, once for both ways of decoding.
macro_rules! layouts {
    ($($kind:ident { $($field:ident: $type:ty = $at:literal,)* })*) => {
        /// The layout for each first byte.
        pub(crate) const ROWS: [Row; 256] = {
            let mut rows = [Row::PREFIX; 256];
            $(
                rows[MessageType::$kind as usize] = Row {
                    length: MessageType::$kind.length(),
                    known: ItchRecord::KNOWN,
                    ..Row::PREFIX
                }$(.with(
                    std::mem::offset_of!(ItchRecord, $field),
                    $at,
                    size_of::<$type>(),
                    <$type as Plain<{ size_of::<$type>() }>>::IS_NUMBER,
                ))*;
            )*
            rows
        };

        /// One branch on the type, then fixed offsets of an array of known length. Writes in place: a returned record would be copied once more.
        #[inline(always)]
        fn read(bytes: &[u8], record: &mut ItchRecord) {
            let Some(letter) = bytes.first() else {
                *record = ItchRecord::of_nothing();
                return;
            };
            match *letter {
                $(letter if letter == MessageType::$kind as u8 => {
                    const LENGTH: usize = MessageType::$kind.length();
                    let Some(message) = bytes.first_chunk::<LENGTH>() else {
                        *record = short(letter);
                        return;
                    };
                    let longer = if bytes.len() > LENGTH { ItchRecord::LONGER } else { 0 };
                    *record = ItchRecord {
                        $($field: <$type>::read::<BIG>(chunk::<$at, { size_of::<$type>() }, LENGTH>(message)),)*
                        ..ItchRecord::prefix(message, ItchRecord::KNOWN | longer)
                    };
                })*
                letter => *record = unknown(letter, bytes),
            }
        }
    };
}

#[cold]
fn short(kind: u8) -> ItchRecord {
    ItchRecord { kind, flags: ItchRecord::KNOWN | ItchRecord::SHORT, ..ItchRecord::default() }
}

#[cold]
fn unknown(kind: u8, bytes: &[u8]) -> ItchRecord {
    match bytes.first_chunk::<PREFIX_BYTES>() {
        Some(message) => ItchRecord::prefix(message, 0),
        None => ItchRecord { kind, ..ItchRecord::default() },
    }
}

layouts! {
    AddOrder { reference: u64 = 11, code: u8 = 19, shares: u32 = 20, stock: [u8; 8] = 24, price: u32 = 32, }
    OrderDelete { reference: u64 = 11, }
    OrderExecuted { reference: u64 = 11, shares: u32 = 19, other: u64 = 23, }
    OrderReplace { reference: u64 = 11, other: u64 = 19, shares: u32 = 27, price: u32 = 31, }
    OrderCancel { reference: u64 = 11, shares: u32 = 19, }
    AddOrderAttributed {
        reference: u64 = 11, code: u8 = 19, shares: u32 = 20, stock: [u8; 8] = 24, price: u32 = 32, fifth: u32 = 36,
    }
    Trade {
        reference: u64 = 11, code: u8 = 19, shares: u32 = 20, stock: [u8; 8] = 24, price: u32 = 32, other: u64 = 36,
    }
    OrderExecutedWithPrice { reference: u64 = 11, shares: u32 = 19, other: u64 = 23, code: u8 = 31, price: u32 = 32, }
    CrossTrade { reference: u64 = 11, stock: [u8; 8] = 19, price: u32 = 27, other: u64 = 31, code: u8 = 39, }
    BrokenTrade { other: u64 = 11, }
    NetOrderImbalance {
        reference: u64 = 11, other: u64 = 19, code: u8 = 27, stock: [u8; 8] = 28, third: u32 = 36, fourth: u32 = 40,
        price: u32 = 44, code_2: u8 = 48, code_3: u8 = 49,
    }
    SystemEvent { code: u8 = 11, }
    StockDirectory {
        stock: [u8; 8] = 11, code: u8 = 19, code_2: u8 = 20, shares: u32 = 21, fourth: u32 = 25, fifth: u32 = 29,
        code_3: u8 = 33, third: u32 = 34, code_4: u8 = 38,
    }
    TradingAction { stock: [u8; 8] = 11, code: u8 = 19, code_2: u8 = 20, fifth: u32 = 21, }
    RegSho { stock: [u8; 8] = 11, code: u8 = 19, }
    ParticipantPosition { fifth: u32 = 11, stock: [u8; 8] = 15, code: u8 = 23, code_2: u8 = 24, code_3: u8 = 25, }
    BreakerLevels { reference: u64 = 11, other: u64 = 19, stock: [u8; 8] = 27, }
    BreakerStatus { code: u8 = 11, }
    IpoQuoting { stock: [u8; 8] = 11, third: u32 = 19, code: u8 = 23, price: u32 = 24, }
    AuctionCollar { stock: [u8; 8] = 11, price: u32 = 19, third: u32 = 23, fourth: u32 = 27, fifth: u32 = 31, }
    OperationalHalt { stock: [u8; 8] = 11, code: u8 = 19, code_2: u8 = 20, }
    RetailInterest { stock: [u8; 8] = 11, code: u8 = 19, }
    DirectListing {
        stock: [u8; 8] = 11, code: u8 = 19, third: u32 = 20, fourth: u32 = 24, price: u32 = 28, reference: u64 = 32,
        shares: u32 = 40, fifth: u32 = 44,
    }
}

/// A decoder of messages to records that uses the fastest way on this processor.
#[derive(Clone, Copy, Debug)]
pub struct Decoder {
    permutation: Option<Permutation>,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Decoder {
    /// Creates the fastest decoder for this processor; the test costs one load.
    #[must_use]
    pub fn new() -> Self {
        Self { permutation: Permutation::detect() }
    }

    /// Creates the decoder for any processor.
    #[must_use]
    pub const fn portable() -> Self {
        Self { permutation: None }
    }

    /// Returns `true` if the decoder permutes bytes instead of branching on the type.
    #[must_use]
    pub const fn is_permuting(&self) -> bool {
        self.permutation.is_some()
    }

    /// Returns the record of one message without framing. Never fails: see [`ItchRecord::flags`].
    #[inline]
    #[must_use]
    pub fn record(&self, bytes: &[u8]) -> ItchRecord {
        let mut record = ItchRecord::default();
        match self.permutation {
            Some(permutation) => permutation.record(bytes, &mut record),
            None => read(bytes, &mut record),
        }
        record
    }

    /// Fills `records` from `messages` until either ends; returns the number of filled records.
    ///
    /// Use it for one datagram at a time, and keep `records` within the first-level cache; 32 are enough.
    #[inline]
    pub fn fill<'a>(&self, messages: impl Iterator<Item = &'a [u8]>, records: &mut [ItchRecord]) -> usize {
        match self.permutation {
            Some(permutation) => permutation.fill(messages, records),
            None => read_all(messages, records),
        }
    }
}

#[inline(never)]
fn read_all<'a>(mut messages: impl Iterator<Item = &'a [u8]>, records: &mut [ItchRecord]) -> usize {
    let mut count = 0;
    for record in records {
        let Some(message) = messages.next() else { break };
        prefetch_ahead(message);
        read(message, record);
        count += 1;
    }
    count
}
