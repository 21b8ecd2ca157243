//! Which column becomes what.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use serde::Deserialize;
use tapeline_omm::rwf::{DataType, UpdateType};
use tapeline_omm::{Dictionary, Fid, fid};

use crate::failure::Hinted;
use crate::near::nearest;

const HINT: &str = "docs/journal.md shows one";

/// What kdb+'s tick tables usually have.
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
}

/// How those of one table do.
#[derive(Debug)]
pub(super) struct TableMapping {
    columns: Vec<(String, Use)>,
    /// What kind of update its rows are.
    pub(super) update: UpdateType,
}

/// What a column is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// When it was.
    Time,
    /// The item.
    Name,
    /// A field.
    Field(Fid, DataType),
    /// Nothing.
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
    /// What is usual.
    pub(super) fn usual() -> Self {
        let raw: RawMapping = toml::from_str(USUAL).expect("the text above is well-formed");
        Self::of(raw).expect("and its fields are in the dictionary: a test reads it")
    }

    /// Out of a file.
    ///
    /// # Errors
    /// The first thing that is wrong with it, with its place and a hint.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let place = path.display().to_string();
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
        Ok(Self { tables })
    }

    /// How rows of this table become ticks, if they do.
    pub(super) fn of_table(&self, name: &str) -> Option<&TableMapping> {
        self.tables.get(name)
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
                    let what = format!("{column} is to be {field}, which the dictionary does not have");
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
        let has = |fids: &[Fid]| {
            columns.iter().any(|(_, purpose)| matches!(purpose, Use::Field(fid, _) if fids.contains(fid)))
        };
        let update = match (has(&[fid::TRDPRC_1]), has(&[fid::BID, fid::ASK, fid::BIDSIZE, fid::ASKSIZE])) {
            (true, true) => UpdateType::QUOTES_TRADE,
            (true, false) => UpdateType::TRADE,
            (false, true) => UpdateType::QUOTE,
            (false, false) => UpdateType::UNSPECIFIED,
        };
        Ok(Self { columns, update })
    }

    /// What the column at a place is for, with its name; beyond those that are named, its number.
    pub(super) fn at(&self, place: usize) -> (String, Use) {
        let beyond = || (format!("column {}", place + 1), Use::None);
        self.columns.get(place).cloned().unwrap_or_else(beyond)
    }

    /// What the column of a name is for, where rows came with names.
    pub(super) fn named(&self, name: &[u8]) -> (String, Use) {
        let name = String::from_utf8_lossy(name).into_owned();
        let purpose = self.columns.iter().find(|(known, _)| *known == name).map(|(_, purpose)| *purpose);
        (name, purpose.unwrap_or(Use::None))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Mapping, String> {
        let raw = toml::from_str(text).map_err(|error| error.to_string())?;
        Mapping::of(raw).map_err(|error| crate::failure::text(&error))
    }

    #[test]
    fn what_is_usual_is_known() {
        let usual = Mapping::usual();
        let trade = usual.of_table("trade").unwrap();
        assert_eq!(trade.at(0).1, Use::Time);
        assert_eq!(trade.at(2).1, Use::Field(fid::TRDPRC_1, DataType::REAL));
        assert_eq!(trade.at(4), ("column 5".to_owned(), Use::None));
        assert_eq!(trade.named(b"size").1, Use::Field(fid::TRDVOL_1, DataType::REAL));
        assert_eq!(usual.of_table("quote").unwrap().update, UpdateType::QUOTE);
        assert!(usual.of_table("other").is_none());
    }

    #[test]
    fn what_is_wrong_is_said() {
        let table = "[[table]]\nname = \"t\"\ncolumns = [\"time\", \"sym\", \"p\"]\n";
        for (text, says) in [
            (
                format!("{table}fields = {{ p = \"TRDPRC1\" }}"),
                "p is to be TRDPRC1, which the dictionary does not have; it has TRDPRC_1",
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
