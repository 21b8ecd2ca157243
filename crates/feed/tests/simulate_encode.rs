//! What the encoder writes, the decoder reads: every type, every field in the specification's order, many values.

use std::fmt::Debug;

use tapeline_feed::itch::encode::{self, PrefixFields};
use tapeline_feed::itch::{self, Code, ItchText, MatchNumber, MessageType, OrderRef, Price4, Price8};

/// A stream of odd values (xorshift64).
struct Values(u64);

impl Values {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// A field as the encoder takes it, and as it is on the wire.
trait Any {
    fn any(values: &mut Values) -> Self;
    fn wire(&self) -> Vec<u8>;
}

macro_rules! any {
    ($($number:ty),*) => {
        $(impl Any for $number {
            fn any(values: &mut Values) -> Self {
                values.next() as Self
            }

            fn wire(&self) -> Vec<u8> {
                self.to_be_bytes().to_vec()
            }
        })*
    };
}

any!(u8, u32, u64);

impl<const N: usize> Any for [u8; N] {
    fn any(values: &mut Values) -> Self {
        std::array::from_fn(|_| values.next() as u8)
    }

    fn wire(&self) -> Vec<u8> {
        self.to_vec()
    }
}

/// A field as the decoder gives it, brought back to what the encoder took.
trait Plain<T> {
    fn plain(self) -> T;
}

macro_rules! plain {
    ($($name:ty => $plain:ty),*) => {
        $(impl Plain<$plain> for $name {
            fn plain(self) -> $plain {
                self.0
            }
        })*
    };
}

plain!(Code => u8, OrderRef => u64, MatchNumber => u64, Price4 => u32, Price8 => u64);

impl<const N: usize> Plain<[u8; N]> for ItchText<N> {
    fn plain(self) -> [u8; N] {
        self.0
    }
}

impl Plain<Self> for u32 {
    fn plain(self) -> Self {
        self
    }
}

impl Plain<Self> for u64 {
    fn plain(self) -> Self {
        self
    }
}

fn same<T: PartialEq + Debug>(written: T, read: impl Plain<T>, what: &str) {
    assert_eq!(read.plain(), written, "{what}");
}

macro_rules! round_trip {
    ($values:ident, $seen:ident: $( $name:ident { $($field:ident),* } )*) => {
        $(
            let prefix = PrefixFields {
                locate: $values.next() as u16,
                tracking: $values.next() as u16,
                ts_ns: $values.next() >> 16,
            };
            // A field that this list leaves out does not compile.
            let written = encode::$name { $($field: Any::any(&mut $values)),* };
            let mut bytes = [0xEE; encode::LONGEST];
            let length = written.encode(prefix, &mut bytes).unwrap();
            assert_eq!((length, bytes[0]), (encode::$name::LENGTH, encode::$name::TYPE));
            assert_eq!(MessageType::$name.letter(), encode::$name::TYPE);
            assert!(bytes[length..].iter().all(|byte| *byte == 0xEE), "wrote beyond its length");
            assert_eq!(bytes[encode::PREFIX_LENGTH..length], [$(written.$field.wire()),*].concat(), stringify!($name));
            let itch::Message::$name(read) = itch::decode(&bytes[..length]).unwrap() else {
                panic!("{} came back as another type", stringify!($name));
            };
            assert_eq!((read.locate().0, read.tracking(), read.ts_ns()), (prefix.locate, prefix.tracking, prefix.ts_ns));
            $( same(written.$field, read.$field(), concat!(stringify!($name), ".", stringify!($field))); )*
            assert!(itch::decode(&bytes[..length - 1]).is_err());
            assert_eq!(written.encode(prefix, &mut [0; encode::LONGEST][..length - 1]), None);
            $seen.push(MessageType::$name);
        )*
    };
}

#[test]
fn every_message_survives_the_round_trip() {
    let mut values = Values(0x9E37_79B9_7F4A_7C15);
    for _ in 0..500 {
        let mut seen = Vec::new();
        round_trip! { values, seen:
            SystemEvent { event }
            StockDirectory {
                stock, market_category, financial_status, round_lot, round_lots_only, issue_classification,
                issue_sub_type, authenticity, short_sale_threshold, ipo_flag, luld_tier, etp_flag, etp_leverage,
                inverse
            }
            TradingAction { stock, state, reserved, reason }
            RegSho { stock, action }
            ParticipantPosition { mpid, stock, primary, mode, state }
            BreakerLevels { level_1, level_2, level_3 }
            BreakerStatus { level }
            IpoQuoting { stock, release_s, qualifier, price }
            AuctionCollar { stock, reference_price, upper, lower, extension }
            OperationalHalt { stock, market, action }
            AddOrder { reference, side, shares, stock, price }
            AddOrderAttributed { reference, side, shares, stock, price, attribution }
            OrderExecuted { reference, shares, match_number }
            OrderExecutedWithPrice { reference, shares, match_number, printable, price }
            OrderCancel { reference, shares }
            OrderDelete { reference }
            OrderReplace { reference, new_reference, shares, price }
            Trade { reference, side, shares, stock, price, match_number }
            CrossTrade { shares, stock, price, match_number, cross }
            BrokenTrade { match_number }
            NetOrderImbalance { paired, imbalance, direction, stock, far, near, reference_price, cross, variation }
            RetailInterest { stock, interest }
            DirectListing { stock, eligible, min_price, max_price, near_price, near_time, lower, upper }
        }
        assert_eq!(seen, MessageType::ALL);
    }
}
