//! Orders in the Open Message Model: entries of a market by order map.
//!
//! The key is the order's number in digits (field ORDER_ID). A new order has ORDER_PRC, ORDER_SIDE, ORDER_SIZE, MMID if it is known, and PR_TIM_NS;
//! a changed order has ORDER_SIZE and OR_TIM_NS; a deleted order has only its key.

use tapeline_omm::rwf::{DataType, MapAction, MapEncoder, MapHead, Time};
use tapeline_omm::{FieldListEncoder, Full, Real, Refused, fid};

use super::{Action, Order, OrderChange};
use crate::digits::Digits;
use crate::draft::{self, Reason, TradingStatus};

/// Returns the head of a market by order map, without summary data or hint.
#[must_use]
pub const fn head() -> MapHead<'static> {
    MapHead { key_fid: Some(fid::ORDER_ID), ..MapHead::new(DataType::BUFFER, DataType::FIELD_LIST) }
}

/// The common data of an instrument's orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrdersSummary {
    /// Number of the currency in ISO 4217, such as 840 for dollars of the United States.
    pub currency: u16,
    /// Decimals of the prices, 0 to 7.
    pub decimals: u8,
    /// The trading status.
    pub status: TradingStatus,
    /// The reason of a halt.
    pub reason: Reason,
}

impl OrdersSummary {
    /// Writes the summary: CURRENCY, TRD_UNITS, HALT_REASN, TRD_STATUS.
    ///
    /// # Errors
    /// [`Full`]: the buffer is too short.
    pub fn encode(&self, fields: &mut FieldListEncoder<'_>) -> Result<(), Full> {
        fields.enumeration(fid::CURRENCY, self.currency)?;
        fields.enumeration(fid::TRD_UNITS, u16::from(self.decimals))?;
        draft::text(fields, fid::HALT_REASN, self.reason.as_str().as_bytes())?;
        fields.enumeration(fid::TRD_STATUS, self.status.0)
    }
}

impl Order {
    /// Appends the order to an image.
    ///
    /// # Errors
    /// [`Refused::Full`] if it does not fit; the map is unchanged.
    pub fn encode(&self, map: &mut MapEncoder<'_>) -> Result<(), Refused> {
        map.entry_in_place(MapAction::ADD, Digits::of(self.reference).as_bytes(), None, |room| {
            let mut fields = FieldListEncoder::new(room)?;
            fields.real(fid::ORDER_PRC, Real::decimal(self.price.mantissa, self.price.decimals))?;
            fields.enumeration(fid::ORDER_SIDE, draft::side(self.side))?;
            fields.real(fid::ORDER_SIZE, draft::whole(self.size))?;
            if !self.attribution.as_str().is_empty() {
                fields.rmtes(fid::MMID, self.attribution.as_str().as_bytes())?;
            }
            fields.time(fid::PR_TIM_NS, Time::from_ns_of_day(self.priority_ns))?;
            Ok(fields.finish())
        })
    }
}

impl OrderChange {
    /// Appends the change to an update.
    ///
    /// # Errors
    /// [`Refused::Full`] if it does not fit; the map is unchanged.
    pub fn encode(&self, map: &mut MapEncoder<'_>) -> Result<(), Refused> {
        match self.action {
            Action::Add => self.order.encode(map),
            Action::Delete => map.delete(Digits::of(self.order.reference).as_bytes()),
            Action::Update => {
                let key = Digits::of(self.order.reference);
                map.entry_in_place(MapAction::UPDATE, key.as_bytes(), None, |room| {
                    let mut fields = FieldListEncoder::new(room)?;
                    fields.real(fid::ORDER_SIZE, draft::whole(self.order.size))?;
                    fields.time(fid::OR_TIM_NS, Time::from_ns_of_day(self.at_ns))?;
                    Ok(fields.finish())
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tapeline_omm::Dictionary;
    use tapeline_omm::rwf::Map;

    use super::super::Attribution;
    use super::*;
    use crate::draft::Price;
    use crate::itch::Side;

    #[test]
    fn entries_of_each_action() {
        let order = Order {
            reference: 18_446_744_073_709_551_615,
            side: Side::Ask,
            price: Price { mantissa: 1_234_500, decimals: 4 },
            size: 70,
            priority_ns: 52_200_000_000_001,
            attribution: Attribution::new("GSCO"),
        };
        let change = |action, at_ns| OrderChange { action, order, at_ns };
        let summary = OrdersSummary {
            currency: 840,
            decimals: 4,
            status: TradingStatus::NORMAL,
            reason: Reason::default(),
        };
        let mut out = [0; 256];
        let mut map = MapEncoder::with_summary(&mut out, &head(), |room| {
            let mut fields = FieldListEncoder::new(room)?;
            summary.encode(&mut fields)?;
            Ok(fields.finish())
        })
        .unwrap();
        change(Action::Delete, 0).encode(&mut map).unwrap();
        change(Action::Add, 0).encode(&mut map).unwrap();
        change(Action::Update, 52_200_000_000_002).encode(&mut map).unwrap();
        let len = map.finish();
        let map = Map::parse(&out[..len]).unwrap();
        assert_eq!(map.head().key_fid, Some(fid::ORDER_ID));
        assert_eq!(
            map.render(Dictionary::builtin()).to_string(),
            "[CURRENCY=USD TRD_UNITS=4DP HALT_REASN= TRD_STATUS=N] DELETE 18446744073709551615; \
             ADD 18446744073709551615 ORDER_PRC=123.4500 ORDER_SIDE=ASK ORDER_SIZE=70 MMID=GSCO \
             PR_TIM_NS=14:30:00.000000001; \
             UPDATE 18446744073709551615 ORDER_SIZE=70 OR_TIM_NS=14:30:00.000000002"
        );
    }
}
