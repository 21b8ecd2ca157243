//! The TOML file of a tickerplant.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use serde::Deserialize;
use tapeline_kdb::Type;
use tapeline_tickerplant::{Column, Schema};

use super::access::{Access, RawAccess};
use super::log::LogConfig;
use crate::arguments;
use crate::failure::Hinted;

/// `tick.q`'s own.
const USUAL_PORT: u16 = 5010;
const USUAL_QUEUE: usize = 64 << 20;
const USUAL_MESSAGE: usize = 16 << 20;
const USUAL_CONNECTIONS: usize = 1_000;

/// What a tickerplant is to be.
#[derive(Debug)]
pub(super) struct Config {
    /// Where it listens over TCP, port 0 for a free one; nowhere if there is none.
    pub(super) address: Option<SocketAddr>,
    /// The name of its Unix-domain socket.
    pub(super) unix: Option<PathBuf>,
    /// Publish so often in place of at once.
    pub(super) publish_every: Option<Duration>,
    /// Look for messages without sleeping.
    pub(super) spins: bool,
    /// Bytes that may wait for a subscriber.
    pub(super) queue_bytes: usize,
    /// The longest message that is taken.
    pub(super) most_message: usize,
    /// Connections at most.
    pub(super) max_connections: usize,
    /// Where its days begin at midnight.
    pub(super) timezone: String,
    /// Where its logs go, if it keeps any.
    pub(super) log: Option<LogConfig>,
    /// Its tables.
    pub(super) tables: Vec<Schema>,
    /// Who may in; everybody, if nothing is said.
    pub(super) access: Option<Access>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    bind: Option<IpAddr>,
    port: Option<u16>,
    tcp: Option<bool>,
    unix: Option<PathBuf>,
    publish_every: Option<String>,
    waiting: Option<Waiting>,
    queue: Option<String>,
    max_message: Option<String>,
    max_connections: Option<usize>,
    timezone: Option<String>,
    kdb_log: Option<bool>,
    durability: Option<Durability>,
    log_folder: Option<PathBuf>,
    log_name: Option<String>,
    table: Vec<RawTable>,
    access: Option<RawAccess>,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Waiting {
    Block,
    Spin,
}

/// Where a message of the log is before it leaves for a subscriber.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Durability {
    /// In the page cache: there after a crash of the process.
    Written,
    /// On the disk: there after a crash of the machine.
    Synced,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTable {
    name: String,
    columns: Vec<String>,
}

/// Reads a file.
///
/// # Errors
/// The first thing that is wrong with it, with its place and a hint.
pub(super) fn read(path: &Path) -> anyhow::Result<Config> {
    let hint = "docs/kdb.md shows one";
    let text = std::fs::read_to_string(path)
        .with_context(|| Hinted::new(format!("cannot read {}", path.display()), hint))?;
    let raw = toml::from_str(&text).with_context(|| Hinted::new(path.display().to_string(), hint))?;
    check(raw, path).with_context(|| path.display().to_string())
}

fn check(raw: Raw, path: &Path) -> anyhow::Result<Config> {
    let size = |key, given: Option<&String>, usual: usize| match given.map(|text| arguments::some_size(text))
    {
        None => Ok(usual),
        Some(Ok(size)) => Ok(usize::try_from(size).unwrap_or(usize::MAX)),
        Some(Err(what)) => Err(Hinted::new(format!("{key}: {what}"), "such as \"64MiB\"")),
    };
    let publish_every = raw.publish_every.as_ref().map(|text| arguments::some_duration(text)).transpose();
    let publish_every = publish_every
        .map_err(|what| Hinted::new(format!("publish_every: {what}"), "left out, updates go at once"))?;
    let tables = raw.table.iter().map(schema).collect::<anyhow::Result<Vec<_>>>()?;
    if tables.is_empty() {
        return Err(Hinted::new("there is no [[table]]", TABLE_HINT).into());
    }
    for (at, table) in tables.iter().enumerate() {
        if tables[..at].iter().any(|other| other.name() == table.name()) {
            return Err(Hinted::new(format!("there are two tables \"{}\"", table.name()), TABLE_HINT).into());
        }
    }
    let has_tcp = raw.tcp.unwrap_or(true);
    if !has_tcp && raw.unix.is_none() {
        let hint = "tcp = false goes with unix = \"/tmp/kx.5010\"";
        return Err(Hinted::new("nobody could connect: neither tcp nor unix", hint).into());
    }
    if raw.max_connections == Some(0) {
        return Err(Hinted::new("max_connections is 0: nobody could connect", "1000 is usual").into());
    }
    let bind = raw.bind.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let folder = path.parent().unwrap_or(Path::new("")).join(raw.log_folder.unwrap_or_default());
    if raw.kdb_log == Some(false) && raw.durability.is_some() {
        let hint = "leave kdb_log = false out, or durability";
        return Err(
            Hinted::new("durability says how sure the log is, and kdb_log = false keeps none", hint).into()
        );
    }
    let access = raw.access.as_ref().map(|raw| Access::read(raw, path, &tables)).transpose()?;
    Ok(Config {
        address: has_tcp.then_some(SocketAddr::new(bind, raw.port.unwrap_or(USUAL_PORT))),
        unix: raw.unix.map(|unix| path.parent().unwrap_or(Path::new("")).join(unix)),
        publish_every,
        spins: raw.waiting == Some(Waiting::Spin),
        queue_bytes: size("queue", raw.queue.as_ref(), USUAL_QUEUE)?,
        most_message: size("max_message", raw.max_message.as_ref(), USUAL_MESSAGE)?,
        max_connections: raw.max_connections.unwrap_or(USUAL_CONNECTIONS),
        timezone: raw.timezone.unwrap_or_else(|| "UTC".to_owned()),
        log: raw.kdb_log.unwrap_or(true).then(|| LogConfig {
            folder,
            name: raw.log_name.unwrap_or_else(|| "sym".to_owned()),
            is_synced: raw.durability == Some(Durability::Synced),
        }),
        tables,
        access,
    })
}

const TABLE_HINT: &str = "such as [[table]] with name = \"trade\" and columns = [\"time timespan\", \"sym symbol\", \"price float\"]";

fn schema(raw: &RawTable) -> anyhow::Result<Schema> {
    let column = |text: &String| {
        let mut words = text.split_whitespace();
        let (Some(name), Some(kind), None) = (words.next(), words.next(), words.next()) else {
            let what = format!("column \"{text}\" of table {} is no name and type", raw.name);
            return Err(Hinted::new(what, TABLE_HINT));
        };
        let kind = kind_named(kind).ok_or_else(|| {
            let what = format!("column {name} of table {} has no type that there is: \"{kind}\"", raw.name);
            let all: Vec<_> = kinds().map(|kind| format!("{} ({})", kind.name(), kind.letter())).collect();
            Hinted::new(what, format!("{}; list takes strings, and any other cells", all.join(", ")))
        })?;
        Ok(Column { name: name.into(), kind })
    };
    let columns = raw.columns.iter().map(column).collect::<Result<_, _>>()?;
    Schema::new(&raw.name, columns)
        .with_context(|| Hinted::new(format!("table \"{}\"", raw.name), TABLE_HINT))
}

/// The types of columns: those of vectors.
fn kinds() -> impl Iterator<Item = Type> {
    (1..=19).map(Type).filter(|kind| kind.letter() != ' ')
}

/// By q's name, or its letter.
fn kind_named(text: &str) -> Option<Type> {
    if text == Type::LIST.name() {
        return Some(Type::LIST);
    }
    kinds().find(|kind| kind.name() == text || text.len() == 1 && text.starts_with(kind.letter()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const TRADE: &str =
        "[[table]]\nname = \"trade\"\ncolumns = [\"time timespan\", \"sym s\", \"note list\"]\n";

    fn told(text: &str) -> Result<Config, String> {
        let raw = toml::from_str(text).map_err(|error| error.to_string())?;
        check(raw, Path::new("tick.toml")).map_err(|error| crate::failure::text(&error))
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
            (&*format!("{TRADE}{TRADE}"), "two tables \"trade\""),
            (&*format!("queue = \"x\"\n{TRADE}"), "queue: 'x' is no size"),
            (&*format!("publish_every = \"0ms\"\n{TRADE}"), "publish_every"),
            (&*format!("tcp = false\n{TRADE}"), "nobody could connect"),
            (&*format!("kdb_log = false\ndurability = \"synced\"\n{TRADE}"), "kdb_log = false keeps none"),
            (&*format!("durability = \"sure\"\n{TRADE}"), "expected `written` or `synced`"),
            (&*format!("max_connections = 0\n{TRADE}"), "max_connections is 0"),
            (&TRADE.replace("sym s", "sym"), "no name and type"),
            (&TRADE.replace("list", "text"), "\"text\""),
            (&TRADE.replace("time timespan\", \"", ""), "as the first two columns"),
        ] {
            let said = told(text).unwrap_err();
            assert!(said.contains(says), "{text}: {said}");
        }
    }
}
