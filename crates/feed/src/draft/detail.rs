//! Data of one message that is not in lasting fields: a broken trade, the state of an auction.

use tapeline_omm::{FieldListEncoder, Full, fid, rwf::Time};

use super::{Price, price, size, text, time};
use crate::digits::Digits;

/// The part of one message that is not in lasting fields. An image has it only if the image replaces that message's update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// A trade was broken.
    Broken(BrokenTrade),
    /// The state of an auction before it takes place.
    Auction(Auction),
}

/// A trade that was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrokenTrade {
    /// The trade's number at its exchange.
    pub id: u64,
    /// Its price and size; `None` if neither the message nor a remembered trade contains them.
    pub traded: Option<(Price, u64)>,
    /// The time at which the trade was broken: ns since midnight, GMT.
    pub at_ns: u64,
}

/// The side of the shares that an auction would leave unmatched. Source: the standard enumeration of field 4340.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ImbalanceSide(pub u16);

impl ImbalanceSide {
    /// No side is stated.
    pub const UNDEFINED: Self = Self(0);
    /// No shares would be left.
    pub const NONE: Self = Self(1);
    /// Shares to buy.
    pub const BUY: Self = Self(2);
    /// Shares to sell.
    pub const SELL: Self = Self(3);
    /// There are too few orders to determine the side.
    pub const INSUFFICIENT: Self = Self(4);
}

/// The distance of an auction's near price from the reference price. Source: the standard definition and enumeration of field 4342.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Variation(pub u16);

impl Variation {
    /// Returns the variation of a letter of ITCH 5.0 (`I`, price variation indicator): `L`, `1` to `9`, `A`, `B`, `C`; undefined for any other.
    #[must_use]
    pub const fn of(letter: u8) -> Self {
        Self(match letter {
            b'1'..=b'9' => (letter - b'0') as u16,
            b'L' => 10,
            b'A'..=b'C' => (letter - b'A') as u16 + 11,
            _ => 0,
        })
    }
}

/// The state of an auction before it takes place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Auction {
    /// The kind of auction, as the exchange's own letter; 0 if not stated.
    pub kind: u8,
    /// Shares that would match at the reference price.
    pub paired: u64,
    /// Shares that would not match.
    pub imbalance: u64,
    /// The side of the shares that would not match.
    pub side: ImbalanceSide,
    /// Price at which paired and imbalance shares are counted.
    pub reference: Option<Price>,
    /// Price at which all orders would clear.
    pub near: Option<Price>,
    /// Price at which the orders for the auction alone would clear.
    pub far: Option<Price>,
    /// Distance of the near price from the reference price.
    pub variation: Variation,
    /// Time of the auction: ns since midnight, GMT.
    pub due_ns: Option<u64>,
    /// Number of extensions.
    pub extensions: Option<u8>,
    /// Time of this state: ns since midnight, GMT.
    pub at_ns: u64,
}

/// The position of a detail's fields among those of a draft, so that all are in ascending order of their ids.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// After TRADE_ID.
    Indication,
    /// After HALT_REASN.
    Broken,
    /// After TRD_STATUS.
    Extensions,
    /// At the end.
    Times,
}

impl Detail {
    /// Writes the fields of one part.
    #[cold]
    pub(super) fn encode(&self, part: Part, fields: &mut FieldListEncoder<'_>) -> Result<(), Full> {
        match (self, part) {
            (Self::Auction(auction), Part::Indication) => {
                let kind = Some(auction.kind).filter(u8::is_ascii_graphic);
                text(fields, fid::INDAUCTYPE, kind.as_slice())?;
                price(fields, fid::IMB_PR_FR, auction.far)?;
                price(fields, fid::IMB_PR_NR, auction.near)?;
                price(fields, fid::IMB_PR_REF, auction.reference)?;
                size(fields, fid::IMB_PR_SH, Some((auction.paired, 0)))?;
                size(fields, fid::IMB_SH, Some((auction.imbalance, 0)))?;
                fields.enumeration(fid::IMB_SIDE, auction.side.0)?;
                fields.enumeration(fid::IMB_VA_IND, auction.variation.0)?;
                time(fields, fid::AUC_TIME, auction.due_ns)
            }
            (Self::Auction(auction), Part::Extensions) => {
                size(fields, fid::AUC_EX_NO, auction.extensions.map(|count| (u64::from(count), 0)))
            }
            (Self::Auction(auction), Part::Times) => {
                fields.time(fid::IMB_TIM_NS, Time::from_ns_of_day(auction.at_ns))
            }
            (Self::Broken(broken), Part::Broken) => {
                price(fields, fid::CAN_PRC, broken.traded.map(|(price, _)| price))?;
                match broken.traded {
                    Some((_, size)) => {
                        fields.int(fid::CAN_VOL, i64::try_from(size).unwrap_or(i64::MAX))?;
                    }
                    None => fields.blank(fid::CAN_VOL)?,
                }
                fields.rmtes(fid::CAN_TRD_ID, Digits::of(broken.id).as_bytes())
            }
            (Self::Broken(broken), Part::Times) => {
                fields.time(fid::CAN_TIM_NS, Time::from_ns_of_day(broken.at_ns))
            }
            _ => Ok(()),
        }
    }
}
