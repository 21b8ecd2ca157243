//! Price levels in the Open Message Model: entries of a market by price map.
//!
//! The key is the price without trailing zeros and the side's letter, such as `5214.25B` or `5214.5A`. A new level has ORDER_PRC, ORDER_SIDE,
//! NO_ORD (left out if the number of orders is not known), ACC_SIZE and LV_TIM_NS; a changed level has the last three; a deleted level has only its key.

use tapeline_omm::rwf::{DataType, MapAction, MapEncoder, MapHead, Time};
use tapeline_omm::{FieldListEncoder, Real, Refused, fid};

use super::LevelChange;
use crate::depth::Action;
use crate::draft::{self, Price};
use crate::itch::Side;

/// Returns the head of a market by price map, without summary data or hint.
#[must_use]
pub const fn head() -> MapHead<'static> {
    MapHead::new(DataType::BUFFER, DataType::FIELD_LIST)
}

impl LevelChange {
    /// Appends the change to a map.
    ///
    /// # Errors
    /// [`Refused::Full`] if it does not fit; the map is unchanged.
    pub fn encode(&self, map: &mut MapEncoder<'_>) -> Result<(), Refused> {
        let key = Key::of(self.level.price, self.level.side);
        let action = match self.action {
            Action::Add => MapAction::ADD,
            Action::Update => MapAction::UPDATE,
            Action::Delete => return map.delete(key.as_bytes()),
        };
        map.entry_in_place(action, key.as_bytes(), None, |room| {
            let (level, mut fields) = (&self.level, FieldListEncoder::new(room)?);
            if self.action == Action::Add {
                fields.real(fid::ORDER_PRC, Real::decimal(level.price.mantissa, level.price.decimals))?;
                fields.enumeration(fid::ORDER_SIDE, draft::side(level.side))?;
            }
            if level.orders > 0 {
                fields.uint(fid::NO_ORD, u64::from(level.orders))?;
            }
            fields.real(fid::ACC_SIZE, draft::quantity(level.size, level.size_decimals))?;
            fields.time(fid::LV_TIM_NS, Time::from_ns_of_day(self.at_ns))?;
            Ok(fields.finish())
        })
    }
}

/// A sign, 20 digits, a point, a leading zero and the side.
const MOST: usize = 24;

/// A level's key, written from its end.
struct Key {
    text: [u8; MOST],
    from: usize,
}

impl Key {
    fn of(price: Price, side: Side) -> Self {
        let mut key = Self { text: [0; MOST], from: MOST };
        key.push(match side {
            Side::Bid => b'B',
            Side::Ask => b'A',
        });
        let (mut number, mut decimals) = (price.mantissa.unsigned_abs(), price.decimals);
        while decimals > 0 && number % 10 == 0 {
            (number, decimals) = (number / 10, decimals - 1);
        }
        let is_whole = decimals == 0;
        loop {
            // A digit: lossless.
            key.push(b'0' + (number % 10) as u8);
            number /= 10;
            if decimals > 0 {
                decimals -= 1;
                if decimals == 0 && !is_whole {
                    key.push(b'.');
                    continue;
                }
            }
            if number == 0 && decimals == 0 {
                break;
            }
        }
        if price.mantissa < 0 {
            key.push(b'-');
        }
        key
    }

    fn push(&mut self, byte: u8) {
        if let Some(from) = self.from.checked_sub(1) {
            (self.from, self.text[from]) = (from, byte);
        }
    }

    fn as_bytes(&self) -> &[u8] {
        &self.text[self.from..]
    }
}

#[cfg(test)]
mod tests {
    use tapeline_omm::Dictionary;
    use tapeline_omm::rwf::Map;

    use super::super::Level;
    use super::*;

    #[test]
    fn keys_are_prices_as_people_write_them() {
        for (mantissa, decimals, shown) in [
            (5_214_250_000_000, 9, "5214.25B"),
            (3_720_000_000_000, 9, "3720B"),
            (0, 9, "0B"),
            (-12_500_000, 9, "-0.0125B"),
            (7, 0, "7B"),
            (100, 0, "100B"),
            (5, 14, "0.00000000000005B"),
            (i64::MIN, 9, "-9223372036.854775808B"),
            (i64::MIN, 0, "-9223372036854775808B"),
        ] {
            let key = Key::of(Price { mantissa, decimals }, Side::Bid);
            assert_eq!(std::str::from_utf8(key.as_bytes()), Ok(shown));
        }
    }

    #[test]
    fn entries_of_each_action() {
        let level = Level {
            side: Side::Ask,
            price: Price { mantissa: 3_720_500_000_000, decimals: 9 },
            size: 10,
            size_decimals: 0,
            orders: 8,
        };
        let change = |action| LevelChange { action, level, at_ns: 46_800_000_429_831 };
        let mut out = [0; 256];
        let mut map = MapEncoder::new(&mut out, &head()).unwrap();
        for action in [Action::Delete, Action::Add, Action::Update] {
            change(action).encode(&mut map).unwrap();
        }
        let len = map.finish();
        assert_eq!(
            Map::parse(&out[..len]).unwrap().render(Dictionary::builtin()).to_string(),
            "DELETE 3720.5A; \
             ADD 3720.5A ORDER_PRC=3720.500000000 ORDER_SIDE=ASK NO_ORD=8 ACC_SIZE=10 \
             LV_TIM_NS=13:00:00.000429831; \
             UPDATE 3720.5A NO_ORD=8 ACC_SIZE=10 LV_TIM_NS=13:00:00.000429831"
        );
    }
}
