//! Simulated content of a provider's items: quotes, trades and order books.
//!
//! All content follows from an item's name and its number of changes, so that every consumer gets the same data and a
//! test knows what to expect.

use std::rc::Rc;

use tapeline_omm::rwf::{DataType, MapAction, MapEncoder, MapHead, UpdateType};
use tapeline_omm::{Fid, FieldList, FieldListEncoder, Full, Real, Refused, Time, fid};
use tapeline_perf::omm::messages::DomainMessages;

/// An item with an order book of more than a megabyte.
pub(crate) const BIG: &[u8] = b"BIG";
/// An item whose posts are refused.
pub(crate) const NAK: &[u8] = b"NAK";
/// An item that does not exist.
pub(crate) const UNKNOWN: &[u8] = b"UNKNOWN";
/// An item that is closed after its first update.
pub(crate) const GONE: &[u8] = b"GONE";

const ORDERS: u64 = 20;
/// Orders of the book of [`BIG`], 65 bytes each.
const BIG_ORDERS: u64 = 20_000;
/// US dollars (ISO 4217), and prices of two decimals.
const USD: u16 = 840;
const TWO_DECIMALS: u16 = 2;

/// The fields of quoted items without a message file.
pub(crate) const PRICE_FIELDS: &[Fid] = &[
    fid::TRDPRC_1,
    fid::CURRENCY,
    fid::BID,
    fid::ASK,
    fid::BIDSIZE,
    fid::ASKSIZE,
    fid::ACVOL_1,
    fid::TRD_UNITS,
    fid::NUM_MOVES,
    fid::TRDVOL_1,
    fid::BID_SRC,
    fid::ASK_SRC,
    fid::BOOK_STATE,
    fid::TRD_STATUS,
    fid::QUOTIM_NS,
    fid::SALTIM_NS,
];
/// The fields of order books that quoted items do not have.
pub(crate) const BOOK_FIELDS: &[Fid] = &[
    fid::ORDER_ID,
    fid::ORDER_PRC,
    fid::ORDER_SIDE,
    fid::ORDER_SIZE,
    fid::MMID,
    fid::PR_TIM_NS,
    fid::OR_TIM_NS,
];

/// Ids of the requested fields; `None` means all. Streams with the same view share it.
pub(crate) type View = Option<Rc<[i16]>>;

/// An item's state after a number of changes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment<'a> {
    pub(crate) name: &'a [u8],
    /// Changes since the item was first opened.
    pub(crate) turn: u64,
    /// Nanoseconds since 1970.
    pub(crate) now_ns: u64,
    /// Messages that replace the simulated content of quoted items.
    pub(crate) messages: Option<&'a DomainMessages>,
}

/// A field list that writes only the fields of a view.
struct Viewed<'a, 'v> {
    list: FieldListEncoder<'a>,
    view: Option<&'v [i16]>,
}

impl Viewed<'_, '_> {
    fn add(
        &mut self,
        fid: Fid,
        write: impl FnOnce(&mut FieldListEncoder<'_>, Fid) -> Result<(), Full>,
    ) -> Result<(), Full> {
        if self.view.is_none_or(|view| view.contains(&fid.0)) { write(&mut self.list, fid) } else { Ok(()) }
    }

    /// Copies the view's fields of an encoded list.
    fn copy(&mut self, list: &[u8]) -> Result<(), Full> {
        for field in FieldList::parse(list).into_iter().flatten().map_while(Result::ok) {
            self.add(field.fid, |list, fid| list.raw(fid, field.data))?;
        }
        Ok(())
    }

    fn price(&mut self, fid: Fid, cents: u64) -> Result<(), Full> {
        self.add(fid, |list, fid| list.real(fid, Real::decimal(cents as i64, 2)))
    }

    fn count(&mut self, fid: Fid, count: u64) -> Result<(), Full> {
        self.add(fid, |list, fid| list.real(fid, Real::integer(count as i64)))
    }

    fn code(&mut self, fid: Fid, code: u16) -> Result<(), Full> {
        self.add(fid, |list, fid| list.enumeration(fid, code))
    }

    fn text(&mut self, fid: Fid, text: &[u8]) -> Result<(), Full> {
        self.add(fid, |list, fid| list.rmtes(fid, text))
    }

    fn time(&mut self, fid: Fid, now_ns: u64) -> Result<(), Full> {
        self.add(fid, |list, fid| list.time(fid, Time::from_ns_of_day(now_ns)))
    }
}

impl Moment<'_> {
    /// Every field of a quoted item.
    pub(crate) fn prices(&self, view: Option<&[i16]>, room: &mut [u8]) -> Result<usize, Refused> {
        let mut fields = Viewed { list: FieldListEncoder::new(room)?, view };
        if let Some(messages) = self.messages {
            fields.copy(messages.refresh.encoded())?;
            return Ok(fields.list.finish());
        }
        self.trade(&mut fields)?;
        fields.code(fid::CURRENCY, USD)?;
        self.quote(&mut fields)?;
        fields.code(fid::TRD_UNITS, TWO_DECIMALS)?;
        fields.text(fid::BID_SRC, b"TAPE")?;
        fields.text(fid::ASK_SRC, b"TAPE")?;
        fields.code(fid::BOOK_STATE, 1)?;
        fields.code(fid::TRD_STATUS, 1)?;
        Ok(fields.list.finish())
    }

    /// The update type of this turn: three quotes, then a trade.
    pub(crate) fn update_type(&self) -> UpdateType {
        match self.messages {
            Some(_) => UpdateType::MULTIPLE,
            None if self.turn.is_multiple_of(4) => UpdateType::TRADE,
            None => UpdateType::QUOTE,
        }
    }

    /// The fields that change with this turn and are in the view: bytes written, and whether there are any.
    pub(crate) fn price_change(
        &self,
        view: Option<&[i16]>,
        room: &mut [u8],
    ) -> Result<(usize, bool), Refused> {
        let mut fields = Viewed { list: FieldListEncoder::new(room)?, view };
        if let Some(messages) = self.messages {
            fields.copy(messages.update(self.turn).encoded())?;
        } else if self.update_type() == UpdateType::TRADE {
            self.trade(&mut fields)?;
        } else {
            self.quote(&mut fields)?;
        }
        let is_something = !fields.list.is_empty();
        Ok((fields.list.finish(), is_something))
    }

    fn quote(&self, fields: &mut Viewed<'_, '_>) -> Result<(), Full> {
        let middle = self.middle();
        fields.price(fid::BID, middle - 1)?;
        fields.price(fid::ASK, middle + 1)?;
        fields.count(fid::BIDSIZE, 1 + mix(middle, self.turn) % 99)?;
        fields.count(fid::ASKSIZE, 1 + mix(middle, self.turn + 1) % 99)?;
        fields.time(fid::QUOTIM_NS, self.now_ns)
    }

    fn trade(&self, fields: &mut Viewed<'_, '_>) -> Result<(), Full> {
        let trades = self.turn / 4 + 1;
        fields.price(fid::TRDPRC_1, self.middle())?;
        fields.count(fid::TRDVOL_1, 100)?;
        fields.count(fid::ACVOL_1, 100 * trades)?;
        fields.count(fid::NUM_MOVES, trades)?;
        fields.time(fid::SALTIM_NS, self.now_ns)
    }

    /// The price between bid and ask, in cents: within a dollar of the base price for the name.
    fn middle(&self) -> u64 {
        let seed = self.seed();
        1_000 + seed % 50_000 + mix(seed, self.turn) % 100
    }

    fn seed(&self) -> u64 {
        self.name.iter().fold(0, |seed, byte| mix(seed, u64::from(*byte)))
    }

    pub(crate) fn book(&self, room: &mut [u8]) -> Result<usize, Refused> {
        let orders = if self.name == BIG { BIG_ORDERS } else { ORDERS };
        let head = MapHead { count_hint: u32::try_from(orders).ok(), ..head() };
        let mut map = MapEncoder::with_summary(room, &head, |room| {
            let mut list = FieldListEncoder::new(room)?;
            list.enumeration(fid::CURRENCY, USD)?;
            list.enumeration(fid::TRD_UNITS, TWO_DECIMALS)?;
            Ok(list.finish())
        })?;
        for number in 0..orders {
            self.order(&mut map, MapAction::ADD, number)?;
        }
        Ok(map.finish())
    }

    /// The change of this turn: adds an order, updates another, or deletes the added one.
    pub(crate) fn book_change(&self, room: &mut [u8]) -> Result<usize, Refused> {
        let mut map = MapEncoder::new(room, &head())?;
        let round = self.turn / 3;
        match self.turn % 3 {
            0 => self.order(&mut map, MapAction::ADD, BIG_ORDERS + round)?,
            1 => self.order(&mut map, MapAction::UPDATE, round % ORDERS)?,
            _ => map.delete(key(BIG_ORDERS + round).as_bytes())?,
        }
        Ok(map.finish())
    }

    fn order(&self, map: &mut MapEncoder<'_>, action: MapAction, number: u64) -> Result<(), Refused> {
        map.entry_in_place(action, key(number).as_bytes(), None, |room| {
            let mut fields = Viewed { list: FieldListEncoder::new(room)?, view: None };
            let (side, depth) = (number % 2, number / 2 % 100);
            let price = if side == 0 { self.middle() - 1 - depth } else { self.middle() + 1 + depth };
            fields.price(fid::ORDER_PRC, price)?;
            fields.code(fid::ORDER_SIDE, 1 + side as u16)?;
            fields.count(fid::ORDER_SIZE, 100 + mix(number, self.turn) % 900)?;
            fields.text(fid::MMID, b"TAPE")?;
            fields.time(fid::PR_TIM_NS, self.now_ns)?;
            fields.time(fid::OR_TIM_NS, self.now_ns)?;
            Ok(fields.list.finish())
        })
    }
}

fn head() -> MapHead<'static> {
    MapHead { key_fid: Some(fid::ORDER_ID), ..MapHead::new(DataType::BUFFER, DataType::FIELD_LIST) }
}

fn key(number: u64) -> String {
    format!("ORDER{number}")
}

/// A pseudo-random number (the last steps of SplitMix64).
fn mix(seed: u64, number: u64) -> u64 {
    let mut value = seed.wrapping_add(number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use tapeline_omm::Dictionary;
    use tapeline_omm::rwf::Map;

    use super::*;

    const MOMENT: Moment<'_> = Moment { name: b"TAPE", turn: 0, now_ns: 52_215_000_000_001, messages: None };

    #[test]
    fn prices_are_all_known_fields_and_a_view_has_its_own() {
        let mut room = [0; 512];
        let len = MOMENT.prices(None, &mut room).unwrap();
        let list = FieldList::parse(&room[..len]).unwrap();
        assert!(list.len() > 10);
        for value in list.render(Dictionary::builtin()) {
            assert!(value.unwrap().name().is_some());
        }
        let len = MOMENT.prices(Some(&[fid::BID.0, fid::ASK.0]), &mut room).unwrap();
        let fids: Vec<_> =
            FieldList::parse(&room[..len]).unwrap().iter().map(|field| field.unwrap().fid).collect();
        assert_eq!(fids, [fid::BID, fid::ASK]);
        // A trade changes nothing in a view of quotes.
        assert!(!MOMENT.price_change(Some(&[fid::BID.0]), &mut room).unwrap().1);
        let quote = Moment { turn: 1, ..MOMENT };
        assert!(quote.price_change(Some(&[fid::BID.0]), &mut room).unwrap().1);
    }

    #[test]
    fn the_fields_are_those_of_prices_and_books() {
        let (mut room, mut said) = (vec![0; 1 << 16], vec![fid::ORDER_ID]);
        let mut take = |list: &[u8]| {
            said.extend(FieldList::parse(list).unwrap().iter().map(|field| field.unwrap().fid));
        };
        let len = MOMENT.prices(None, &mut room).unwrap();
        take(&room[..len]);
        let len = MOMENT.book(&mut room).unwrap();
        let map = Map::parse(&room[..len]).unwrap();
        assert_eq!(map.head().key_fid, Some(fid::ORDER_ID));
        take(map.head().summary.unwrap());
        map.iter().for_each(|entry| take(entry.unwrap().data));
        said.sort_unstable();
        said.dedup();
        let mut known = [PRICE_FIELDS, BOOK_FIELDS].concat();
        known.sort_unstable();
        assert_eq!(said, known);
    }

    #[test]
    fn the_big_book_has_a_megabyte() {
        let mut room = vec![0; 4 << 20];
        let len = Moment { name: BIG, ..MOMENT }.book(&mut room).unwrap();
        assert!(len > 1 << 20, "{len}");
        assert_eq!(Map::parse(&room[..len]).unwrap().iter().count(), BIG_ORDERS as usize);
    }

    #[test]
    fn what_is_deleted_was_added() {
        let mut room = vec![0; 4096];
        let mut keys = |turn| {
            let len = Moment { turn, ..MOMENT }.book_change(&mut room).unwrap();
            let map = Map::parse(&room[..len]).unwrap();
            map.iter()
                .map(|entry| entry.map(|entry| (entry.action, entry.key.to_vec())).unwrap())
                .next()
                .unwrap()
        };
        let (added, deleted) = (keys(6), keys(8));
        assert_eq!((added.0, deleted.0), (MapAction::ADD, MapAction::DELETE));
        assert_eq!(added.1, deleted.1);
    }
}
