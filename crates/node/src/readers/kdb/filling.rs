//! A plant's ticks as rows of a tickerplant's tables.

use std::collections::HashMap;

use tapeline_kdb::Type;
use tapeline_measure::Nanos;
use tapeline_omm::rwf::{DataType, Domain, MessageView};
use tapeline_omm::{Fid, FieldList, Malformed, fid};
use tapeline_plant::tick::{Flags, Header, Kind, Tick};
use tapeline_plant::{ItemId, RowKind};
use tapeline_tickerplant::{Local, Tickerplant};

use super::cells;
use crate::tick::zone::Zone;

/// The ticks that become a table's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowsOf {
    /// Ticks with a trade, and ticks with a break if a column tells them apart.
    Trades,
    /// Ticks that change the best bid or ask, or the size of either.
    Quotes,
    /// Ticks with one of the table's fields.
    Changes,
}

/// The content of a table's column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// The item's name.
    Item,
    /// One of the tick's stamps.
    Stamp(Stamp),
    /// The tick's sequence number in the plant.
    Sequence,
    /// Whether the row is a trade or a break.
    Action,
    /// A field of this type: its current value, from any tick so far.
    Field(Fid, DataType),
}

/// A stamp of a tick's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamp {
    /// Time of the event according to the exchange.
    Event,
    /// Arrival of the datagram.
    Wire,
    /// End of decoding.
    Decoded,
    /// Time at which the plant assigned the sequence number.
    Sequenced,
}

/// How a table is filled from ticks.
#[derive(Clone, Debug)]
pub struct Filler {
    /// Index among the tickerplant's tables.
    pub table: usize,
    /// Selection of the ticks that become rows.
    pub rows: RowsOf,
    /// Content and type of each column.
    pub columns: Vec<(Content, Type)>,
}

/// All tables that ticks fill, with the current values of each item.
#[derive(Debug)]
pub struct Filling {
    tables: Vec<Table>,
    max_items: usize,
}

#[derive(Debug)]
struct Table {
    filler: Filler,
    images: Images,
}

impl Filling {
    /// Creates the tables, without any image. Ticks of items with numbers above `max_items` become no rows.
    pub fn new(fillers: Vec<Filler>, max_items: usize) -> Self {
        let table = |filler: Filler| Table { images: Images::new(&filler.columns), filler };
        Self { tables: fillers.into_iter().map(table).collect(), max_items }
    }

    /// Adds a tick's rows, one in each table that takes it.
    ///
    /// # Errors
    /// The tick's message cannot be decoded.
    pub fn take(&mut self, tick: &Tick<'_>, zone: &Zone, plant: &mut Tickerplant) -> Result<(), Malformed> {
        let header = &tick.header;
        if header.kind == Kind::Status {
            if header.flags.contains(Flags::LAST) {
                self.tables.iter_mut().for_each(|table| table.images.forget(header.item));
            }
            return Ok(());
        }
        let message = MessageView::parse(tick.body)?;
        let is_of_item = !tick.name.is_empty() && header.item.0 as usize <= self.max_items;
        if message.domain() != Domain::MARKET_PRICE
            || message.container() != DataType::FIELD_LIST
            || !is_of_item
        {
            return Ok(());
        }
        let fields = FieldList::parse(message.payload())?;
        let news = RowKind::of(header, &fields)?;
        for table in &mut self.tables {
            let is_row = table.fold(header, &fields, news)?;
            if is_row {
                table.add(tick, None, zone, plant);
            }
            if news.broken && table.has_breaks() {
                table.add(tick, Some(&fields), zone, plant);
            }
        }
        Ok(())
    }
}

impl Table {
    /// Updates an item's image. Returns whether the tick is a row.
    fn fold(&mut self, header: &Header, fields: &FieldList<'_>, news: RowKind) -> Result<bool, Malformed> {
        let Self { filler, images } = self;
        let is_image = header.kind == Kind::Refresh;
        if is_image || header.item == ItemId(0) {
            // An item without a number has no lasting image.
            images.forget(header.item);
        }
        let mut has_field = false;
        for field in fields.iter() {
            let field = field?;
            // An image has all fields, including blank ones.
            let says = !is_image || !field.is_blank();
            for (at, (content, kind)) in filler.columns.iter().enumerate() {
                if let Content::Field(fid, is) = content
                    && *fid == field.fid
                {
                    has_field |= says;
                    images.set(header.item, at, |out| cells::value(&field, *is, *kind, out));
                }
            }
        }
        Ok(match filler.rows {
            RowsOf::Trades => news.trade,
            RowsOf::Quotes => news.quote,
            RowsOf::Changes => has_field,
        })
    }

    /// Whether broken trades are rows: not if no column tells them apart from trades.
    fn has_breaks(&self) -> bool {
        let Filler { rows, columns, .. } = &self.filler;
        *rows == RowsOf::Trades && columns.iter().any(|(content, _)| *content == Content::Action)
    }

    /// Adds a row. For a break, with its fields, the columns of the last trade contain the broken trade.
    fn add(&self, tick: &Tick<'_>, broken: Option<&FieldList<'_>>, zone: &Zone, plant: &mut Tickerplant) {
        let header = &tick.header;
        let is_added = plant.add_row(self.filler.table, |at, out| {
            let Some((content, kind)) = self.filler.columns.get(at) else { return };
            match content {
                Content::Item => {
                    // A zero byte would end the symbol early.
                    out.extend(tick.name.bytes().take_while(|byte| *byte != 0));
                    out.push(0);
                }
                // A replayed tick may be from another season of daylight saving time.
                Content::Stamp(Stamp::Event) => write_time(zone.local_then(header.event), *kind, out),
                Content::Stamp(stamp) => write_time(zone.local(stamp.of(header)), *kind, out),
                Content::Sequence => out.extend_from_slice(&header.seq.0.to_le_bytes()),
                Content::Action => {
                    out.extend_from_slice(if broken.is_some() { b"break\0" } else { b"trade\0" });
                }
                Content::Field(of, _) if broken.is_some() && is_of_trade(*of) => {
                    let found = of_break(*of).and_then(|(fid, is)| Some((broken?.find(fid).ok()??, is)));
                    match found {
                        Some((field, is)) => cells::value(&field, is, *kind, out),
                        None => cells::null(*kind, out),
                    }
                }
                Content::Field(..) => self.images.write(header.item, at, *kind, out),
            }
        });
        debug_assert!(is_added, "{:?}", self.filler);
    }
}

/// Whether a field describes the last trade only.
const fn is_of_trade(field: Fid) -> bool {
    matches!(field, fid::COND_N | fid::AGGRS_SID1) || of_break(field).is_some()
}

/// The field of a broken trade that corresponds to this field of the last trade, and its type.
const fn of_break(field: Fid) -> Option<(Fid, DataType)> {
    match field {
        fid::TRADE_ID => Some((fid::CAN_TRD_ID, DataType::RMTES_STRING)),
        fid::TRDPRC_1 => Some((fid::CAN_PRC, DataType::REAL)),
        fid::TRDVOL_1 => Some((fid::CAN_VOL, DataType::INT)),
        fid::SALTIM_NS => Some((fid::CAN_TIM_NS, DataType::TIME)),
        _ => None,
    }
}

impl Stamp {
    const fn of(self, header: &Header) -> Nanos {
        match self {
            Self::Event => header.event,
            Self::Wire => header.wire,
            Self::Decoded => header.decoded,
            Self::Sequenced => header.sequenced,
        }
    }
}

fn write_time(at: Local, kind: Type, out: &mut Vec<u8>) {
    match kind {
        Type::TIMESTAMP => out.extend_from_slice(&at.0.to_le_bytes()),
        kind => cells::time_of_day(at.of_day_ns() as u64, kind, out),
    }
}

/// The current cells of every item, for the columns of one table that have fields.
#[derive(Debug)]
struct Images {
    /// The offset and the width of each column's cell in an item's cells; 0 for text and without a field.
    places: Vec<(usize, usize)>,
    /// The cells of an item with no known values.
    blank: Vec<u8>,
    /// The cells of all items, one item after the other.
    cells: Vec<u8>,
    /// Text, by item and column.
    texts: HashMap<(ItemId, usize), Vec<u8>>,
    written: Vec<u8>,
}

impl Images {
    fn new(columns: &[(Content, Type)]) -> Self {
        let mut blank = Vec::new();
        let places = columns.iter().map(|(content, kind)| {
            let begin = blank.len();
            if matches!(content, Content::Field(..)) && kind.width() > 0 {
                cells::null(*kind, &mut blank);
            }
            (begin, blank.len() - begin)
        });
        let places = places.collect();
        Self { places, blank, cells: Vec::new(), texts: HashMap::new(), written: Vec::new() }
    }

    fn forget(&mut self, item: ItemId) {
        let begin = item.0 as usize * self.blank.len();
        if let Some(cells) = self.cells.get_mut(begin..begin + self.blank.len()) {
            cells.copy_from_slice(&self.blank);
        }
        for at in 0..self.places.len() {
            if let Some(text) = self.texts.get_mut(&(item, at)) {
                text.clear();
            }
        }
    }

    /// Sets the cell of a column of an item. Allocates for a new item or text.
    fn set(&mut self, item: ItemId, column: usize, write: impl FnOnce(&mut Vec<u8>)) {
        let (begin, width) = self.places[column];
        if width == 0 {
            let text = self.texts.entry((item, column)).or_default();
            text.clear();
            return write(text);
        }
        let end = (item.0 as usize + 1) * self.blank.len();
        while self.cells.len() < end {
            self.cells.extend_from_slice(&self.blank);
        }
        self.written.clear();
        write(&mut self.written);
        let begin = end - self.blank.len() + begin;
        self.cells[begin..begin + width].copy_from_slice(&self.written);
    }

    /// Appends the cell of a column.
    fn write(&self, item: ItemId, column: usize, kind: Type, out: &mut Vec<u8>) {
        let (begin, width) = self.places[column];
        let begin = item.0 as usize * self.blank.len() + begin;
        let cell = match width {
            0 => self.texts.get(&(item, column)).map(Vec::as_slice).filter(|text| !text.is_empty()),
            _ => self.cells.get(begin..begin + width),
        };
        match cell {
            Some(cell) => out.extend_from_slice(cell),
            None => cells::null(kind, out),
        }
    }
}

#[cfg(test)]
mod tests {
    use tapeline_omm::{FieldListEncoder, Real};

    use super::*;
    use crate::ticks::header;

    fn fields(of: &[(Fid, i64)], out: &mut [u8]) -> usize {
        let mut fields = FieldListEncoder::new(out).unwrap();
        for (fid, value) in of {
            fields.real(*fid, Real::decimal(*value, 0)).unwrap();
        }
        fields.finish()
    }

    #[test]
    fn an_image_leaves_no_value_of_before_it_and_an_update_leaves_all() {
        let columns = [fid::BID, fid::ASK].map(|fid| (Content::Field(fid, DataType::REAL), Type::FLOAT));
        let filler = Filler { table: 0, rows: RowsOf::Quotes, columns: columns.to_vec() };
        let mut table = Table { images: Images::new(&filler.columns), filler };
        let mut shown = |kind, of: &[(Fid, i64)]| {
            let mut room = [0; 64];
            let len = fields(of, &mut room);
            let header = Header { kind, ..header(3, 1) };
            let list = FieldList::parse(&room[..len]).unwrap();
            table.fold(&header, &list, RowKind::of(&header, &list).unwrap()).unwrap();
            let mut out = Vec::new();
            (0..columns.len()).for_each(|at| table.images.write(header.item, at, Type::FLOAT, &mut out));
            let cells = out.chunks(8).map(|cell| f64::from_le_bytes(cell.try_into().unwrap()));
            cells.map(|value| (!value.is_nan()).then_some(value)).collect::<Vec<_>>()
        };
        assert_eq!(shown(Kind::Update, &[(fid::BID, 10)]), [Some(10.0), None]);
        assert_eq!(shown(Kind::Update, &[(fid::ASK, 11)]), [Some(10.0), Some(11.0)]);
        assert_eq!(shown(Kind::Refresh, &[(fid::ASK, 12)]), [None, Some(12.0)]);
    }
}
