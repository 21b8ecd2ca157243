//! Converts rows to ticks in the journal.

use std::collections::{BTreeMap, HashMap};

use jiff::civil::Date;
use tapeline_console::failure::Hinted;
use tapeline_journal::{Directory, Outcome, Writer};
use tapeline_kdb::{Column, Update};
use tapeline_omm::rwf::{self, DataType, Domain, RefreshHeader, State as RwfState, UpdateType, flags};
use tapeline_omm::{FieldListEncoder, Full};
use tapeline_plant::tick::{Flags, Header, Kind, MAX_NAME_BYTES, Quality, Tick};
use tapeline_plant::{ItemId, Seq, State};

use super::cell::Cell;
use super::mapping::{Mapping, TableMapping, Use};
use super::untaken::Untaken;

/// Maximum number of separate items.
const MOST_ITEMS: usize = 1_000_000;
/// Maximum size of a row's message: more than all fields of the dictionary with their longest values.
const MOST_BODY: usize = 64 << 10;
/// The service of the ticks, as in a plant with one service.
const SERVICE: u16 = 1;

#[derive(Debug)]
pub(super) struct Done {
    pub(super) ticks: u64,
    pub(super) items: u64,
    /// Rows that became ticks, by table.
    pub(super) rows: BTreeMap<String, u64>,
    pub(super) untaken: Untaken,
}

pub(super) struct Ticks<'a> {
    writer: Writer<Directory>,
    mapping: &'a Mapping,
    /// The last sequence before the import, and the last one now.
    before: u64,
    seq: u64,
    items: HashMap<Box<str>, ItemId>,
    day: Option<Date>,
    rows: BTreeMap<String, u64>,
    pub(super) untaken: Untaken,
    body: Vec<u8>,
    frame: Vec<u8>,
}

impl<'a> Ticks<'a> {
    /// Starts after the sequence `last`.
    pub(super) fn new(writer: Writer<Directory>, last: u64, mapping: &'a Mapping) -> Self {
        Self {
            writer,
            mapping,
            before: last,
            seq: last,
            items: HashMap::new(),
            day: None,
            rows: BTreeMap::new(),
            untaken: Untaken::default(),
            body: vec![0; MOST_BODY],
            frame: Vec::new(),
        }
    }

    /// Starts a log; its times without a date are on this day.
    pub(super) fn begin_log(&mut self, day: Option<Date>) {
        self.day = day;
    }

    /// Adds the rows of an update that begins at `offset` in its log.
    ///
    /// # Errors
    /// The journal cannot be written, there are too many items, or the table is [not the usual one](Mapping::of_rows).
    pub(super) fn add(&mut self, update: &Update<'_>, offset: u64) -> anyhow::Result<()> {
        let name = String::from_utf8_lossy(update.table);
        let count = update.rows.len() as u64;
        let mapping = self.mapping;
        let Some(table) = mapping.of_rows(&name, &update.rows)? else {
            self.untaken.count(&name, None, "there is no such table in the mapping", count, offset);
            return Ok(());
        };
        let names = update.rows.names().and_then(|names| names.symbols());
        let purposes: Vec<(String, Use)> = match names {
            Some(names) => names.map(|name| table.named(name)).collect(),
            None => (0..update.rows.columns().len()).map(|place| table.at(place)).collect(),
        };
        for (column, _) in purposes.iter().filter(|(_, purpose)| *purpose == Use::None) {
            self.untaken.count(&name, Some(column), "it maps to no field", count, offset);
        }
        let mut columns: Vec<_> = update.rows.columns().map(cells).collect();
        let mut row = Vec::with_capacity(columns.len());
        for _ in 0..count {
            row.clear();
            row.extend(columns.iter_mut().map(|cells| cells.next().unwrap_or(Cell::Other)));
            if self.row(&name, table, &purposes, &row, offset)? {
                *self.rows.entry(name.clone().into_owned()).or_default() += 1;
            }
        }
        Ok(())
    }

    /// Adds a row; returns whether it was taken.
    fn row(
        &mut self,
        table: &str,
        mapping: &TableMapping,
        purposes: &[(String, Use)],
        row: &[Cell<'_>],
        offset: u64,
    ) -> anyhow::Result<bool> {
        let cell = |wanted| purposes.iter().position(|(_, purpose)| *purpose == wanted).map(|at| row[at]);
        let Some(time) = cell(Use::Time).and_then(|cell| cell.time(self.day)) else {
            let reason = "it has no time, or a time without a date: set --date";
            self.untaken.count(table, None, reason, 1, offset);
            return Ok(false);
        };
        let name = cell(Use::Name).and_then(Cell::name).filter(|name| name.len() <= MAX_NAME_BYTES);
        let Some(name) = name else {
            self.untaken.count(table, None, "it has no valid item name", 1, offset);
            return Ok(false);
        };
        let moment = |wanted| cell(wanted).map_or(time, |cell| cell.time(self.day).unwrap_or_default());
        let quality = cell(Use::Quality).and_then(Cell::name);
        let is = |known: Quality| quality == Some(known.name());
        let header = Header {
            seq: Seq(0),
            feed_seq: 0,
            event: moment(Use::Event),
            wire: moment(Use::Received),
            decoded: time,
            sequenced: time,
            item: ItemId(0),
            service: SERVICE,
            channel: 0,
            kind: Kind::Update,
            flags: if is(Quality::Unknown) { Flags::SUSPECT } else { Flags::default() },
            source_type: 0,
            state: if is(Quality::Late) { State::Recovering } else { State::Live },
        };
        let item = self.item(name, header)?;
        let mut body = std::mem::take(&mut self.body);
        let is_break = cell(Use::Action).is_some_and(|cell| cell.name() == Some("break"));
        let update = if is_break { UpdateType::CORRECTION } else { mapping.update };
        let written = self.message(&mut body, table, update, purposes, row, offset);
        let taken = match written {
            Ok(length) => self.tick(Header { item, ..header }, name, &body[..length]).map(|()| true),
            Err(Full) => {
                self.untaken.count(table, None, "its values are longer than a tick", 1, offset);
                Ok(false)
            }
        };
        self.body = body;
        taken
    }

    /// Writes the update of a row; returns its length.
    fn message(
        &mut self,
        out: &mut [u8],
        table: &str,
        update: UpdateType,
        purposes: &[(String, Use)],
        row: &[Cell<'_>],
        offset: u64,
    ) -> Result<usize, Full> {
        let header = rwf::update_header(out, Domain::MARKET_PRICE, 0, update, DataType::FIELD_LIST)?;
        let mut fields = FieldListEncoder::new(&mut out[header..])?;
        for ((column, purpose), cell) in purposes.iter().zip(row) {
            let purpose = match update {
                UpdateType::CORRECTION => purpose.of_break(),
                _ => Some(*purpose),
            };
            let written = match purpose.unwrap_or(Use::None) {
                Use::Word(fid, words) => cell.write_word(fid, words, &mut fields)?,
                Use::Field(fid, data_type) => cell.write(fid, data_type, &mut fields)?,
                Use::TimeOfDay(fid) => cell.as_time_of_day().write(fid, DataType::TIME, &mut fields)?,
                _ => continue,
            };
            if let Err(reason) = written {
                self.untaken.count(table, Some(column), reason, 1, offset);
            }
        }
        Ok(header + fields.finish())
    }

    /// The item of a name. A new item begins with an image, as in a plant, so that readers have something to
    /// update.
    fn item(&mut self, name: &str, of_row: Header) -> anyhow::Result<ItemId> {
        if let Some(item) = self.items.get(name) {
            return Ok(*item);
        }
        if self.items.len() == MOST_ITEMS {
            let what = format!("there are more than {MOST_ITEMS} items");
            return Err(Hinted::new(what, "import logs of fewer symbols at a time").into());
        }
        let item = ItemId(self.items.len() as u32 + 1);
        self.items.insert(name.into(), item);
        let mut image = [0; 64];
        let mut header = RefreshHeader::new(Domain::MARKET_PRICE, 0, RwfState::OPEN_OK, DataType::FIELD_LIST);
        header.flags = flags::refresh::REFRESH_COMPLETE | flags::refresh::CLEAR_CACHE;
        let head = header.encode(&mut image)?;
        let length = head + FieldListEncoder::new(&mut image[head..])?.finish();
        self.tick(Header { kind: Kind::Refresh, item, ..of_row }, name, &image[..length])?;
        Ok(item)
    }

    /// Adds a tick with the next sequence.
    fn tick(&mut self, header: Header, name: &str, body: &[u8]) -> anyhow::Result<()> {
        let seq = self.seq + 1;
        let header = Header { seq: Seq(seq), ..header };
        self.frame.clear();
        Tick { header, name, body, source: &[] }.write(&mut self.frame);
        let outcome = self.writer.append(seq, header.sequenced, &self.frame);
        self.kept(outcome)?;
        self.seq = seq;
        Ok(())
    }

    fn kept(&self, outcome: Outcome) -> anyhow::Result<()> {
        match self.writer.fault() {
            _ if outcome.is_kept() => Ok(()),
            Some(fault) => {
                let hint = fault.hint().unwrap_or_default();
                Err(Hinted::new(format!("the journal cannot be written: {fault}"), hint).into())
            }
            None => anyhow::bail!("the journal cannot be written"),
        }
    }

    /// Writes everything to disk.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub(super) fn finish(mut self) -> anyhow::Result<Done> {
        let outcome = self.writer.flush();
        self.kept(outcome)?;
        anyhow::ensure!(self.writer.finish().is_kept(), "the journal cannot be synced");
        Ok(Done {
            ticks: self.seq - self.before,
            items: self.items.len() as u64,
            rows: self.rows,
            untaken: self.untaken,
        })
    }
}

fn cells<'a>(column: Column<'a>) -> Box<dyn Iterator<Item = Cell<'a>> + 'a> {
    match column {
        Column::Vector(vector) => Box::new(vector.iter().map(Cell::Atom)),
        Column::List(list) => Box::new(list.iter().map(|value| Cell::of(&value))),
    }
}
