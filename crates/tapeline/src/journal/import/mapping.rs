//! Maps columns to fields.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use serde::Deserialize;
use tapeline_console::near::nearest;
use tapeline_console::{Hinted, paths};
use tapeline_export::{AGGRESSORS, IMBALANCES, Numbers, Table, VARIATIONS, types};
use tapeline_kdb::{Rows, Type};
use tapeline_omm::rwf::{DataType, UpdateType};
use tapeline_omm::{Dictionary, Fid, fid};

const HINT: &str = "docs/journal.md shows one";
/// The hint if a log does not match the usual mapping.
pub(super) const TABLES_HINT: &str = "--tables FILE maps a table's columns to fields, as docs/journal.md shows; \
     `tapeline kdb inspect` shows their types";

/// The usual columns of kdb+'s tick tables.
const USUAL: &str = r#"
[[table]]
name = "trade"
columns = ["time", "sym", "price", "size"]
fields = { price = "TRDPRC_1", size = "TRDVOL_1" }

[[table]]
name = "quote"
columns = ["time", "sym", "bid", "ask", "bsize", "asize"]
fields = { bid = "BID", ask = "ASK", bsize = "BIDSIZE", asize = "ASKSIZE" }
"#;

/// How rows become ticks, by table.
#[derive(Debug)]
pub(super) struct Mapping {
    tables: BTreeMap<String, TableMapping>,
    /// Without a mapping file: the tables of an export, which are distinguished from the usual ones.
    exported: Option<Vec<Exported>>,
}

/// A table as `tapeline journal export` writes it.
#[derive(Debug)]
struct Exported {
    name: &'static str,
    /// The types of the columns, with sizes as whole numbers and as doubles.
    types: [Vec<Type>; 2],
    mapping: TableMapping,
}

/// How rows of one table become ticks.
#[derive(Debug)]
pub(super) struct TableMapping {
    columns: Vec<(String, Use)>,
    /// The update type of the rows.
    pub(super) update: UpdateType,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// The time of the row.
    Time,
    Name,
    Field(Fid, DataType),
    /// A field: a time of day, in a column of ns since midnight.
    TimeOfDay(Fid),
    /// The exchange's time of the event, which becomes the tick's event time.
    Event,
    /// The time at which it was received.
    Received,
    /// The quality: the name of a [`Quality`](tapeline_plant::tick::Quality).
    Quality,
    /// Whether a row of trades is a trade or a break.
    Action,
    /// An enumeration field, by the words for its numbers.
    Word(Fid, &'static [&'static str]),
    None,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawMapping {
    table: Vec<RawTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTable {
    name: String,
    columns: Vec<String>,
    time: Option<String>,
    sym: Option<String>,
    fields: BTreeMap<String, String>,
}

impl Mapping {
    pub(super) fn usual() -> Self {
        let raw: RawMapping = toml::from_str(USUAL).expect("the text above is well-formed");
        let usual = Self::of(raw).expect("and its fields are in the dictionary: a test reads it");
        Self {
            exported: Some([Table::Trades, Table::Quotes, Table::Auctions].map(Exported::of).into()),
            ..usual
        }
    }

    /// Reads a mapping from a file.
    ///
    /// # Errors
    /// The first fault, with its place and a hint.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let place = paths::shown(&path).to_string();
        let text = std::fs::read_to_string(path)
            .with_context(|| Hinted::new(format!("cannot read {place}"), HINT))?;
        let raw = toml::from_str(&text).with_context(|| Hinted::new(place.clone(), HINT))?;
        Self::of(raw).with_context(|| place)
    }

    fn of(raw: RawMapping) -> anyhow::Result<Self> {
        let mut tables = BTreeMap::new();
        for table in raw.table {
            let name = table.name.clone();
            let mapping = TableMapping::of(table)?;
            if tables.insert(name.clone(), mapping).is_some() {
                return Err(Hinted::new(format!("there are two tables \"{name}\""), HINT).into());
            }
        }
        Ok(Self { tables, exported: None })
    }

    /// The mapping of these rows of a table, if there is one. Without a mapping file, the number and the types of
    /// the columns identify an export's table, and all other tables must have the usual columns.
    ///
    /// # Errors
    /// The rows do not match: a column expected to be a price, for example, is something else.
    pub(super) fn of_rows(&self, table: &str, rows: &Rows<'_>) -> anyhow::Result<Option<&TableMapping>> {
        let known = self.tables.get(table);
        let Some(exported) = &self.exported else { return Ok(known) };
        if let Some(exported) = exported.iter().find(|exported| exported.name == table && exported.has(rows))
        {
            return Ok(Some(&exported.mapping));
        }
        // The names identify named columns.
        if let Some(known) = known
            && rows.names().is_none()
            && !rows.is_empty()
            && let Some(why) = known.misfit(rows)
        {
            let what = format!("a log's table {table} does not match its mapping: {why}");
            return Err(Hinted::new(what, TABLES_HINT).into());
        }
        Ok(known)
    }
}

impl Exported {
    fn of(table: Table) -> Self {
        let columns =
            table.columns().iter().map(|column| (column.kdb_name(), Use::exported(table, column.name)));
        let types = [Numbers::WholeSizes, Numbers::Double].map(|numbers| types(table, numbers));
        Self { name: table.kdb_name(), types, mapping: TableMapping::with(columns.collect()) }
    }

    /// Whether rows are those of the export's table: only these have all of these types in this order.
    fn has(&self, rows: &Rows<'_>) -> bool {
        let kinds = || rows.columns().map(|column| column.kind());
        let known = || self.mapping.columns.iter().map(|(name, _)| name.as_bytes());
        let names = rows.names().and_then(|names| names.symbols());
        self.types.iter().any(|types| kinds().eq(types.iter().copied()))
            && names.is_none_or(|names| names.eq(known()))
    }
}

impl Use {
    /// The use of an export's column of this name.
    fn exported(table: Table, column: &str) -> Self {
        let real = |fid| Self::Field(fid, DataType::REAL);
        let text = |fid| Self::Field(fid, DataType::RMTES_STRING);
        match column {
            "time" => Self::Time,
            "name" => Self::Name,
            "event_time" => Self::Event,
            "received_time" => Self::Received,
            "quality" => Self::Quality,
            "action" => Self::Action,
            "trade_id" => text(fid::TRADE_ID),
            "side" if table == Table::Auctions => Self::Word(fid::IMB_SIDE, &IMBALANCES),
            "side" => Self::Word(fid::AGGRS_SID1, &AGGRESSORS),
            "conditions" => text(fid::COND_N),
            "price" => real(fid::TRDPRC_1),
            "size" => real(fid::TRDVOL_1),
            "volume" => real(fid::ACVOL_1),
            "trades" => real(fid::NUM_MOVES),
            "trade_time_ns" => Self::TimeOfDay(fid::SALTIM_NS),
            "bid" => real(fid::BID),
            "bid_size" => real(fid::BIDSIZE),
            "ask" => real(fid::ASK),
            "ask_size" => real(fid::ASKSIZE),
            "bid_source" => text(fid::BID_SRC),
            "ask_source" => text(fid::ASK_SRC),
            "quote_time_ns" => Self::TimeOfDay(fid::QUOTIM_NS),
            "kind" => text(fid::INDAUCTYPE),
            "paired" => real(fid::IMB_PR_SH),
            "imbalance" => real(fid::IMB_SH),
            "reference_price" => real(fid::IMB_PR_REF),
            "near_price" => real(fid::IMB_PR_NR),
            "far_price" => real(fid::IMB_PR_FR),
            "variation" => Self::Word(fid::IMB_VA_IND, &VARIATIONS),
            "due_time_ns" => Self::TimeOfDay(fid::AUC_TIME),
            "extensions" => real(fid::AUC_EX_NO),
            "imbalance_time_ns" => Self::TimeOfDay(fid::IMB_TIM_NS),
            _ => Self::None,
        }
    }

    /// The use of a trades column in the row of a broken trade; `None` if it says nothing about such a row.
    pub(super) const fn of_break(self) -> Option<Self> {
        match self {
            Self::Field(fid::TRADE_ID, _) => Some(Self::Field(fid::CAN_TRD_ID, DataType::RMTES_STRING)),
            Self::Field(fid::TRDPRC_1, _) => Some(Self::Field(fid::CAN_PRC, DataType::REAL)),
            Self::Field(fid::TRDVOL_1, _) => Some(Self::Field(fid::CAN_VOL, DataType::INT)),
            Self::TimeOfDay(fid::SALTIM_NS) => Some(Self::TimeOfDay(fid::CAN_TIM_NS)),
            Self::Field(fid::COND_N, _) | Self::Word(fid::AGGRS_SID1, _) => None,
            other => Some(other),
        }
    }

    /// The expected content of a usual table's column, if this type does not match it.
    fn expects(self, kind: Type) -> Option<&'static str> {
        let is_float = matches!(kind, Type::REAL | Type::FLOAT);
        let is_whole = matches!(kind, Type::SHORT | Type::INT | Type::LONG);
        let is_time =
            matches!(kind, Type::TIMESTAMP | Type::TIMESPAN | Type::TIME | Type::SECOND | Type::MINUTE);
        let (fits, expected) = match self {
            Self::Time => (is_time, "times"),
            Self::Name => (matches!(kind, Type::SYMBOL | Type::LIST), "symbols"),
            Self::Field(fid::TRDPRC_1 | fid::BID | fid::ASK, _) => (is_float, "floats"),
            _ => (is_float || is_whole, "numbers"),
        };
        if fits { None } else { Some(expected) }
    }
}

impl TableMapping {
    fn of(table: RawTable) -> anyhow::Result<Self> {
        let wrong = |what: String| Hinted::new(format!("table \"{}\": {what}", table.name), HINT);
        let (time, name) = (table.time.as_deref().unwrap_or("time"), table.sym.as_deref().unwrap_or("sym"));
        for named in [time, name].into_iter().chain(table.fields.keys().map(String::as_str)) {
            if !table.columns.iter().any(|column| column == named) {
                return Err(wrong(format!("there is no \"{named}\" among its columns")).into());
            }
        }
        let dictionary = Dictionary::builtin();
        let mut columns = Vec::new();
        for column in &table.columns {
            let purpose = if column == time {
                Use::Time
            } else if column == name {
                Use::Name
            } else if let Some(field) = table.fields.get(column) {
                let known = dictionary.field_named(field).ok_or_else(|| {
                    let names: Vec<&str> = dictionary.fields().map(|field| &*field.name).collect();
                    let what = format!("{column} maps to {field}, which the dictionary does not have");
                    match nearest(field, &names) {
                        Some(near) => wrong(format!("{what}; it has {near}")),
                        None => wrong(what),
                    }
                })?;
                Use::Field(known.fid, known.data_type)
            } else {
                Use::None
            };
            columns.push((column.clone(), purpose));
        }
        Ok(Self::with(columns))
    }

    fn with(columns: Vec<(String, Use)>) -> Self {
        let has = |fids: &[Fid]| {
            columns.iter().any(|(_, purpose)| matches!(purpose, Use::Field(fid, _) if fids.contains(fid)))
        };
        let update = match (has(&[fid::TRDPRC_1]), has(&[fid::BID, fid::ASK, fid::BIDSIZE, fid::ASKSIZE])) {
            (true, true) => UpdateType::QUOTES_TRADE,
            (true, false) => UpdateType::TRADE,
            (false, true) => UpdateType::QUOTE,
            (false, false) => UpdateType::UNSPECIFIED,
        };
        Self { columns, update }
    }

    /// Why rows without names do not start with these columns, judging by their types.
    fn misfit(&self, rows: &Rows<'_>) -> Option<String> {
        let mut found = rows.columns();
        let count = found.len();
        self.columns.iter().zip(1..).find_map(|((name, purpose), place)| {
            let Some(kind) = found.next().map(|column| column.kind()) else {
                return Some(format!("it has {count} columns, and {name} would be column {place}"));
            };
            let expected = purpose.expects(kind)?;
            Some(format!(
                "column {place} of {count} is of type {}, where {expected} are expected, for {name}",
                kind.name()
            ))
        })
    }

    /// The name and the use of the column at a place; a column without a mapping has its number as its name.
    pub(super) fn at(&self, place: usize) -> (String, Use) {
        let beyond = || (format!("column {}", place + 1), Use::None);
        self.columns.get(place).cloned().unwrap_or_else(beyond)
    }

    /// The use of a column by name, for rows with names.
    pub(super) fn named(&self, name: &[u8]) -> (String, Use) {
        let name = String::from_utf8_lossy(name).into_owned();
        let purpose = self.columns.iter().find(|(known, _)| *known == name).map(|(_, purpose)| *purpose);
        (name, purpose.unwrap_or(Use::None))
    }
}

#[cfg(test)]
mod tests {
    use tapeline_kdb::{Encoder, Message, MessageKind, Update};

    use super::*;

    fn read(text: &str) -> Result<Mapping, String> {
        let raw = toml::from_str(text).map_err(|error| error.to_string())?;
        Mapping::of(raw).map_err(|error| tapeline_console::failure::text(&error))
    }

    #[test]
    fn what_is_usual_is_known() {
        let usual = Mapping::usual();
        let trade = &usual.tables["trade"];
        assert_eq!(trade.at(0).1, Use::Time);
        assert_eq!(trade.at(2).1, Use::Field(fid::TRDPRC_1, DataType::REAL));
        assert_eq!(trade.at(4), ("column 5".to_owned(), Use::None));
        assert_eq!(trade.named(b"size").1, Use::Field(fid::TRDVOL_1, DataType::REAL));
        assert_eq!(usual.tables["quote"].update, UpdateType::QUOTE);
        assert!(!usual.tables.contains_key("other"));
    }

    /// An update with this number of rows of a table with columns of these types.
    fn of_columns(table: &str, rows: usize, kinds: &[Type]) -> Vec<u8> {
        let mut room = vec![0; 4_096];
        let mut message = Encoder::message(&mut room, MessageKind::Async).unwrap();
        message.list(3).unwrap();
        message.symbol(b"upd").unwrap();
        message.symbol(table.as_bytes()).unwrap();
        message.list(kinds.len()).unwrap();
        for kind in kinds {
            match *kind {
                Type::SYMBOL => message.symbols(vec![b"A".as_slice(); rows]).unwrap(),
                Type::FLOAT => message.column(Type::FLOAT, vec![1.5; rows]).unwrap(),
                Type::BOOLEAN => message.column(Type::BOOLEAN, vec![true; rows]).unwrap(),
                Type::INT => message.column(Type::INT, vec![1_i32; rows]).unwrap(),
                // Texts, as a list.
                Type::LIST => {
                    message.list(rows).unwrap();
                    (0..rows).for_each(|_| message.string(b"1").unwrap());
                }
                kind => message.column(kind, vec![1_i64; rows]).unwrap(),
            }
        }
        let length = message.finish().unwrap();
        room.truncate(length);
        room
    }

    #[test]
    fn an_exports_tables_are_known_and_others_have_to_be_usual() {
        let usual = Mapping::usual();
        let (time, name, float, long) = (Type::TIMESPAN, Type::SYMBOL, Type::FLOAT, Type::LONG);
        let asked = |table: &str, rows, kinds: &[Type]| {
            let message = of_columns(table, rows, kinds);
            let message = Message::parse(&message).unwrap();
            let view = message.view().unwrap();
            let update = Update::of(&view).unwrap();
            match usual.of_rows(table, &update.rows) {
                Ok(found) => Ok(found.map(|mapping| mapping.at(2))),
                Err(error) => Err(tapeline_console::failure::text(&error)),
            }
        };
        for (table, place, fid) in [(Table::Trades, 10, fid::TRDPRC_1), (Table::Quotes, 8, fid::ASK)] {
            for numbers in [Numbers::WholeSizes, Numbers::Double] {
                let kinds = types(table, numbers);
                assert_eq!(asked(table.kdb_name(), 1, &kinds).unwrap().unwrap().0, "sequence");
                // With one more column it is another table.
                let said = asked(table.kdb_name(), 1, &[&kinds[..], &[long]].concat()).unwrap_err();
                assert!(said.contains("column 3 of") && said.contains("floats are expected"), "{said}");
            }
            let exported = Exported::of(table);
            assert_eq!(exported.mapping.at(place).1, Use::Field(fid, DataType::REAL));
        }
        for kinds in [
            &[time, name, float, long][..],
            &[time, name, float, Type::INT, Type::BOOLEAN],
            &[Type::TIMESTAMP, name, float, float],
        ] {
            assert_eq!(asked("trade", 1, kinds).unwrap().unwrap().0, "price", "{kinds:?}");
        }
        for (table, kinds, says) in [
            ("trade", &[time, name, float][..], "it has 3 columns, and size would be column 4"),
            ("trade", &[time, name, name, float, long][..], "column 3 of 5 is of type symbol"),
            (
                "trade",
                &[name, time, float, long][..],
                "column 1 of 4 is of type symbol, where times are expected",
            ),
            ("quote", &[time, name, float, long, float, long][..], "column 4 of 6 is of type long"),
        ] {
            let said = asked(table, 1, kinds).unwrap_err();
            assert!(said.contains(says) && said.contains("--tables"), "{said}");
            // Without rows there is nothing to mistake.
            assert!(asked(table, 0, kinds).is_ok(), "{said}");
        }
        assert_eq!(asked("other", 1, &[long]), Ok(None));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let table = "[[table]]\nname = \"t\"\ncolumns = [\"time\", \"sym\", \"p\"]\n";
        for (text, says) in [
            (
                format!("{table}fields = {{ p = \"TRDPRC1\" }}"),
                "p maps to TRDPRC1, which the dictionary does not have; it has TRDPRC_1",
            ),
            (format!("{table}fields = {{ q = \"BID\" }}"), "no \"q\" among its columns"),
            (format!("{table}sym = \"item\"\nfields = {{ p = \"BID\" }}"), "no \"item\" among its columns"),
            (format!("{table}fields = {{ p = \"BID\" }}\n").repeat(2), "two tables \"t\""),
            (format!("{table}feilds = {{ p = \"BID\" }}"), "unknown field `feilds`"),
        ] {
            let said = read(&text).unwrap_err();
            assert!(said.contains(says), "{said}");
        }
    }
}
