//! The TOML file of a tickerplant.

use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Deserialize;
use tapeline_console::{Hinted, arguments, paths};
use tapeline_kdb::Type;
use tapeline_node::tick::config::{LogConfig, TickerplantConfig};
use tapeline_tickerplant::{Column, Schema};
use toml::Spanned;

use super::access::{self, RawTickAccess};
use crate::plant::config::Source;

/// The default port of `tick.q`.
const USUAL_PORT: u16 = 5010;
const USUAL_QUEUE: usize = 64 << 20;
const USUAL_MESSAGE: usize = 16 << 20;
const USUAL_CONNECTIONS: usize = 1_000;
const USUAL_INCOMING: usize = 64 << 20;

/// The same as written in a file: a tickerplant's own, or a plant's table `[kdb]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawTickerplant {
    bind: Option<Spanned<String>>,
    port: Option<u16>,
    tcp: Option<bool>,
    unix: Option<PathBuf>,
    publish_every: Option<Spanned<String>>,
    waiting: Option<Spanned<String>>,
    queue: Option<Spanned<String>>,
    max_message: Option<Spanned<String>>,
    max_connections: Option<Spanned<usize>>,
    incoming_size: Option<Spanned<String>>,
    timezone: Option<String>,
    kdb_log: Option<bool>,
    durability: Option<Spanned<String>>,
    log_folder: Option<PathBuf>,
    log_name: Option<String>,
    /// The suffix that a plant adds to symbols in item names.
    pub(crate) suffix: Option<Spanned<String>>,
    pub(crate) table: Vec<RawTable>,
    access: Option<Spanned<RawTickAccess>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawTable {
    pub(crate) name: Spanned<String>,
    /// Name and type of each column, and what a plant fills it with.
    pub(crate) columns: Vec<Spanned<String>>,
    /// The plant's ticks that become rows of the table.
    pub(crate) rows: Option<Spanned<String>>,
}

/// Reads a file.
///
/// # Errors
/// The first fault, with its place and a hint.
pub(super) fn read(path: &Path) -> anyhow::Result<TickerplantConfig> {
    let hint = "docs/kdb.md shows one";
    let text = std::fs::read_to_string(path)
        .with_context(|| Hinted::new(format!("cannot read {}", paths::shown(&path)), hint))?;
    let source = Source::of(path, &text);
    let raw = toml::from_str(&text).with_context(|| Hinted::new(source.file.clone(), hint))?;
    check(&source, &raw)
}

fn check(source: &Source<'_>, raw: &RawTickerplant) -> anyhow::Result<TickerplantConfig> {
    let config = source.tickerplant(raw);
    if let Some(suffix) = &raw.suffix {
        let what = "suffix is for item names, and only a plant has items";
        source.fault(suffix.span(), what, "it belongs in [kdb] of a plant's file");
    }
    for table in &raw.table {
        if let Some(rows) = &table.rows {
            let what = "rows fills the table from a plant's ticks, and there is no plant here";
            let hint = "leave it out, or move all this to the table [kdb] of a plant's file";
            source.fault(rows.span(), what, hint);
        }
        for column in table.columns.iter().filter(|column| words(column.get_ref()).nth(2).is_some()) {
            let what = format!("column \"{}\" is more than a name and a type", column.get_ref());
            source.fault(column.span(), what, TABLE_HINT);
        }
    }
    match (source.first_fault(), config) {
        (None, Some(config)) => Ok(config),
        (fault, _) => Err(fault.unwrap_or_else(|| anyhow::anyhow!("it describes no tickerplant"))),
    }
}

impl Source<'_> {
    /// Checks the settings of a tickerplant; errors go to the faults, `None` if they leave no usable settings.
    pub(crate) fn tickerplant(&self, raw: &RawTickerplant) -> Option<TickerplantConfig> {
        let address = self.listens(&raw.bind, raw.port, USUAL_PORT);
        // If left out, updates are sent at once.
        let time =
            |text: &str| arguments::some_duration(text).map_err(|error| format!("publish_every: {error}"));
        let publish_every = self.time(&raw.publish_every, time, "if left out, updates are sent at once");
        let most_message = self.some_size(&raw.max_message, USUAL_MESSAGE);
        let usual_incoming = USUAL_INCOMING.max(most_message.saturating_mul(3));
        self.check_ways_in(raw);
        let log = self.kdb_log(raw);
        let tables = self.tables(&raw.table)?;
        let access = raw.access.as_ref().and_then(|raw| {
            let access = access::read(raw.get_ref(), |file| self.beside(file), &tables);
            self.sound(access.with_context(|| self.at(&raw.span())))
        });
        Some(TickerplantConfig {
            address: raw.tcp.unwrap_or(true).then_some(address),
            unix: raw.unix.as_deref().map(|unix| match tapeline_wire::local::is_abstract(unix) {
                true => unix.to_owned(),
                false => self.beside(unix),
            }),
            publish_every,
            spins: self.spins("waiting", &raw.waiting),
            queue_bytes: self.some_size(&raw.queue, USUAL_QUEUE),
            most_message,
            incoming_bytes: self.some_size(&raw.incoming_size, usual_incoming),
            max_connections: raw.max_connections.as_ref().map_or(USUAL_CONNECTIONS, |most| *most.get_ref()),
            timezone: raw.timezone.clone().unwrap_or_else(|| "UTC".to_owned()),
            log,
            tables,
            access,
        })
    }

    /// Adds a fault if no client could connect.
    fn check_ways_in(&self, raw: &RawTickerplant) {
        if !raw.tcp.unwrap_or(true) && raw.unix.is_none() {
            let hint = "tcp = false goes with unix = \"/tmp/kx.5010\"";
            let what = "nobody could connect: neither tcp nor unix";
            self.fault(self.end(), what, hint);
        }
        if let Some(none) = raw.max_connections.as_ref().filter(|most| *most.get_ref() == 0) {
            let what = "max_connections is 0: nobody could connect";
            self.fault(none.span(), what, "1000 is usual");
        }
    }

    /// The log, if one is written; errors go to the faults.
    fn kdb_log(&self, raw: &RawTickerplant) -> Option<LogConfig> {
        let hint = "\"synced\" waits for the log to be on disk before anything is sent";
        let words = [("written", false), ("synced", true)];
        let is_synced = self.word("durability", &raw.durability, words, hint);
        if let Some(durability) = raw.durability.as_ref().filter(|_| raw.kdb_log == Some(false)) {
            let what = "durability is set, but kdb_log = false keeps no log";
            let hint = "leave out kdb_log = false or durability";
            self.fault(durability.span(), what, hint);
        }
        raw.kdb_log.unwrap_or(true).then(|| LogConfig {
            folder: self.beside(raw.log_folder.as_deref().unwrap_or(Path::new(""))),
            name: raw.log_name.clone().unwrap_or_else(|| "sym".to_owned()),
            is_synced,
        })
    }

    /// The tables; `None` if one of them is wrong.
    fn tables(&self, all: &[RawTable]) -> Option<Vec<Schema>> {
        if all.is_empty() {
            self.fault(self.end(), "there is no table", TABLE_HINT);
        }
        for (at, table) in all.iter().enumerate() {
            let name = table.name.get_ref();
            if all[..at].iter().any(|other| other.name.get_ref() == name) {
                let what = format!("there are two tables \"{name}\"");
                self.fault(table.name.span(), what, "each has a name of its own");
            }
        }
        let tables: Vec<_> = all.iter().filter_map(|table| self.schema(table)).collect();
        // With a table left out, checks over all tables would report wrong faults.
        (tables.len() == all.len()).then_some(tables)
    }

    /// A table; errors go to the faults.
    fn schema(&self, raw: &RawTable) -> Option<Schema> {
        let columns: Vec<_> =
            raw.columns.iter().filter_map(|column| self.sound(self.column(raw, column))).collect();
        if columns.len() < raw.columns.len() {
            return None;
        }
        self.sound(Schema::new(raw.name.get_ref(), columns).map_err(|error| {
            let what = format!("table \"{}\": {error}", raw.name.get_ref());
            self.wrong(raw.name.span(), what, TABLE_HINT)
        }))
    }

    fn column(&self, table: &RawTable, text: &Spanned<String>) -> anyhow::Result<Column> {
        let (of, mut words) = (table.name.get_ref(), words(text.get_ref()));
        let (Some(name), Some(kind)) = (words.next(), words.next()) else {
            let what = format!("column \"{}\" of table {of} is not a name and a type", text.get_ref());
            return Err(self.wrong(text.span(), what, TABLE_HINT));
        };
        let kind = kind_named(kind).ok_or_else(|| {
            let what = format!("column {name} of table {of} has an unknown type: \"{kind}\"");
            let all: Vec<_> = kinds().map(|kind| format!("{} ({})", kind.name(), kind.letter())).collect();
            let hint = format!("{}; list takes strings and cells of any other type", all.join(", "));
            self.wrong(text.span(), what, hint)
        })?;
        Ok(Column { name: name.into(), kind })
    }
}

const TABLE_HINT: &str = "such as a table with name = \"trade\" and columns = [\"time timespan\", \"sym symbol\", \"price float\"]";

/// The words of a column: its name, its type, and what a plant fills it with.
pub(crate) fn words(column: &str) -> impl Iterator<Item = &str> {
    column.split_whitespace()
}

/// The column types: those of vectors.
fn kinds() -> impl Iterator<Item = Type> {
    (1..=19).map(Type).filter(|kind| kind.letter() != ' ')
}

/// A type by q's name or letter.
fn kind_named(text: &str) -> Option<Type> {
    if text == Type::LIST.name() {
        return Some(Type::LIST);
    }
    kinds().find(|kind| kind.name() == text || text.len() == 1 && text.starts_with(kind.letter()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRADE: &str =
        "[[table]]\nname = \"trade\"\ncolumns = [\"time timespan\", \"sym s\", \"note list\"]\n";

    fn told(text: &str) -> Result<TickerplantConfig, String> {
        let raw = toml::from_str(text).map_err(|error: toml::de::Error| error.to_string())?;
        check(&Source::of(Path::new("tick.toml"), text), &raw)
            .map_err(|error| tapeline_console::failure::text(&error))
    }

    #[test]
    fn what_is_left_out_is_usual() {
        let config = told(TRADE).unwrap();
        assert_eq!(config.address, Some("127.0.0.1:5010".parse().unwrap()));
        assert_eq!((config.publish_every, config.spins, config.access.is_some()), (None, false, false));
        assert_eq!(config.log.unwrap().name, "sym");
        let kinds: Vec<_> = config.tables[0].columns().iter().map(|column| column.kind).collect();
        assert_eq!(kinds, [Type::TIMESPAN, Type::SYMBOL, Type::LIST]);
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, says) in [
            ("port = 1", "missing field `table`"),
            (&*format!("prot = 1\n{TRADE}"), "unknown field `prot`"),
            (&*format!("{TRADE}{TRADE}"), "tick.toml:5:8: there are two tables \"trade\""),
            (&*format!("queue = \"x\"\n{TRADE}"), "tick.toml:1:9: 'x' is not a size"),
            (&*format!("waiting = \"x\"\n{TRADE}"), "tick.toml:1:11: waiting is \"x\""),
            (&*format!("publish_every = \"0ms\"\n{TRADE}"), "publish_every"),
            (&*format!("tcp = false\n{TRADE}"), "nobody could connect"),
            (&*format!("kdb_log = false\ndurability = \"synced\"\n{TRADE}"), "kdb_log = false keeps no log"),
            (
                &*format!("durability = \"sure\"\n{TRADE}"),
                "durability is \"sure\"; \"written\" or \"synced\" is",
            ),
            (&*format!("max_connections = 0\n{TRADE}"), "max_connections is 0"),
            (
                &TRADE.replace("sym s", "sym"),
                "tick.toml:3:29: column \"sym\" of table trade is not a name and a type",
            ),
            (&TRADE.replace("sym s", "sym s BID"), "is more than a name and a type"),
            (
                &*format!("{TRADE}rows = \"trades\"\n"),
                "tick.toml:4:8: rows fills the table from a plant's ticks",
            ),
            (&*format!("suffix = \"\"\n{TRADE}"), "tick.toml:1:10: suffix is for item names"),
            (&TRADE.replace("list", "text"), "\"text\""),
            (&TRADE.replace("time timespan\", \"", ""), "as the first two columns"),
        ] {
            let said = told(text).unwrap_err();
            assert!(said.contains(says), "{text}: {said}");
        }
    }
}
