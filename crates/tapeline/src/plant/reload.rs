//! Reloading a plant's configuration: what changes while the plant runs, and what needs a restart.
//!
//! Users, rules and certificates change while the plant runs. Every other changed key is refused, with the reason. The
//! file is checked as a whole first; with a fault in it, nothing changes.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use anyhow::Context;
use jiff::Timestamp;
use serde::Serialize;
use tapeline_console::stop::Again;
use tapeline_console::{Hinted, log, paths};
use tapeline_node::Config;
use tapeline_node::access::{AccessConfig, Reload};
use tapeline_node::hub::HubConfig;
use tapeline_node::stat::file::{self, Found};
use tapeline_ring::Name;
use tapeline_wire::tls::Tls;
use toml::{Table, Value};

use super::{config, supervised};

/// The keys that change while a plant runs, with what follows them.
const RELOADED: [&str; 13] = [
    "hub.access.login",
    "hub.access.users",
    "hub.access.allow_plain_passwords",
    "hub.access.max_connections",
    "hub.access.max_items",
    "hub.access.code",
    "hub.access.rule",
    "hub.cert",
    "bridge.cert",
    "bridge.key",
    "hub.key",
    "publishers.cert",
    "publishers.key",
];

/// A key of the configuration that differs from what a plant runs with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct KeyChange {
    /// The key with its tables: `feed.itch.stale_after`.
    pub(crate) key: String,
    /// Why the key cannot change while the plant runs; `None` if it can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) refused: Option<&'static str>,
}

impl KeyChange {
    fn of(key: String) -> Self {
        let is = |known: &str| {
            key.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let refused = match key.split('.').next().unwrap_or_default() {
            _ if RELOADED.iter().any(|known| is(known)) => None,
            "plant" => Some("the ring and the threads keep what they began with"),
            "feed" | "nbbo" => Some("a feed's sockets, lines and books begin with the plant"),
            "hub" if is("hub.access.audit") => Some("the audit keeps its place; SIGHUP opens the file again"),
            "hub" if key == "hub.access" => Some("with or without [hub.access] is decided at the start"),
            "hub" => Some("the hub's ports, queues and limits are set when they are opened"),
            "journal" => Some("the journal is opened at the start, or not at all"),
            "kdb" => Some("the port, the tables and the log of kdb+ are opened at the start"),
            "service" | "provider" | "publishers" => Some("clients and sources have agreed on the services"),
            "bridge" | "upstream" => Some("the plants above and below follow what was announced"),
            "lease" => Some("the witnesses and the other plant know this one as it began"),
            "otlp" => Some("the thread that pushes metrics keeps what it began with"),
            _ => Some("the key is read at the start only"),
        };
        Self { key, refused }
    }
}

/// The keys that differ, in the order of the old file, then those that only the new one has.
pub(crate) fn changes(old: &Table, new: &Table) -> Vec<KeyChange> {
    let mut keys = Vec::new();
    differing("", old, new, &mut keys);
    // With or without a certificate is decided when a port is opened.
    let has = |of: &Table, table: &str| of.get(table).and_then(|table| table.get("cert")).is_some();
    keys.into_iter()
        .map(KeyChange::of)
        .map(|change| match change.key.split_once('.') {
            Some((table @ ("hub" | "publishers" | "bridge"), "cert" | "key"))
                if has(old, table) != has(new, table) =>
            {
                KeyChange { refused: Some("a port is encrypted or not from its opening on"), ..change }
            }
            _ => change,
        })
        .collect()
}

fn differing(at: &str, old: &Table, new: &Table, keys: &mut Vec<String>) {
    let only_new = new.keys().filter(|key| !old.contains_key(*key));
    for key in old.keys().chain(only_new) {
        let at = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
        match (old.get(key), new.get(key)) {
            (Some(one), Some(other)) if one == other => {}
            (Some(Value::Table(one)), Some(Value::Table(other))) => differing(&at, one, other, keys),
            (Some(Value::Array(one)), Some(Value::Array(other))) => match (named(one), named(other)) {
                (Some(one), Some(other)) => differing(&at, &one, &other, keys),
                _ => keys.push(at),
            },
            _ => keys.push(at),
        }
    }
}

/// Tables of an array by their names, if each has one of its own.
fn named(array: &[Value]) -> Option<Table> {
    let mut tables = Table::new();
    for value in array {
        let name = value.get("name")?.as_str()?;
        if tables.insert(name.to_owned(), value.clone()).is_some() {
            return None;
        }
    }
    Some(tables)
}

/// The certificates of a plant's servers, in the order of [`Running::certificates`].
fn certificates<'a>(config: &'a Config, hub: Option<&'a HubConfig>) -> [Option<&'a Tls>; 3] {
    let door = config.sources.as_ref().and_then(|sources| sources.door.as_ref());
    let of_transports = [hub.map(|hub| &hub.transport), door.map(|door| &door.transport)];
    let [clients, publishers] = of_transports.map(|transport| transport.and_then(|it| it.tls.as_ref()));
    [clients, publishers, config.bridge.as_ref().and_then(|bridge| bridge.tls.as_ref())]
}

/// A configuration that a plant runs with, reloaded at SIGHUP.
#[derive(Debug)]
pub(crate) struct Running {
    path: PathBuf,
    /// What the plant runs with: its file at the start, and what was reloaded since.
    table: Mutex<Table>,
    /// The certificates of `[hub]`, `[publishers]` and `[bridge]`.
    certificates: [Option<Tls>; 3],
    /// The file in shared memory that shows other programs what the plant runs with, while there is one.
    shown: Mutex<Option<PathBuf>>,
    again: OnceLock<Again>,
}

impl Running {
    /// The configuration of a process that has just read this file.
    pub(crate) fn of(path: &Path, config: &Config, hub: Option<&HubConfig>) -> anyhow::Result<Self> {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", paths::shown(&path)))?;
        Ok(Self {
            path: paths::absolute(path),
            table: Mutex::new(text.parse().with_context(|| format!("{} has changed", paths::shown(&path)))?),
            certificates: certificates(config, hub).map(Option::<&Tls>::cloned),
            shown: Mutex::default(),
            again: OnceLock::new(),
        })
    }

    /// Shows other programs of this user what the plant of a ring runs with, until the result is dropped. Call when the
    /// plant has the ring: before, the file may belong to another plant.
    pub(crate) fn show_of(&self, ring: &Name) -> Shown<'_> {
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = Some(shown_at(ring));
        self.show();
        Shown(self)
    }

    fn show(&self) {
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(path) = &*shown else { return };
        let text = self.table.lock().unwrap_or_else(PoisonError::into_inner).to_string();
        if let Err(error) = replace(path, &text) {
            log::warning(format_args!(
                "`tapeline plant check --running` cannot see this plant's configuration: {}: {error}",
                path.display()
            ));
        }
    }

    /// Reads the file again, applies what can change, and reports the rest. Returns the new users and rules; `None` if
    /// the file has faults or no `[hub.access]`.
    fn read_again(&self) -> Option<AccessConfig> {
        let (config, new) = match self.check() {
            Ok(read) => read,
            Err(faults) => {
                faults.iter().for_each(|fault| log::error(fault, &str::to_owned));
                log::note(
                    "users and rules stay as they were, and certificates too: nothing of the file was applied",
                );
                return None;
            }
        };
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let changes = changes(&table, &new);
        for KeyChange { key, refused } in &changes {
            match refused {
                Some(why) => log::warning_with(
                    format_args!("{key} was not changed: {why}"),
                    "it takes effect at the plant's next start",
                ),
                None => adopt(&mut table, &new, key),
            }
        }
        let has_access = [&table, &new].iter().all(|table| has_access(table));
        drop(table);
        self.renew(&config);
        self.show();
        let access = config.hub.map(|hub| hub.access).filter(|_| has_access);
        let Some(access) = access else {
            log::note(format_args!("{} read again", self.path.display()));
            return None;
        };
        let (users, rules) = (access.access.users.len(), access.access.rules.len());
        log::note(format_args!("{} read again: {users} users, {rules} rules", self.path.display()));
        Some(access)
    }

    /// Checks the file as it is now.
    fn check(&self) -> Result<(Config, Table), Vec<anyhow::Error>> {
        let text = std::fs::read_to_string(&self.path).with_context(|| {
            Hinted::new(format!("cannot read {}", paths::shown(&self.path)), "everything stays as it was")
        });
        let text = text.map_err(|error| vec![error])?;
        let (config, _) = config::check(&self.path, &text)?;
        let table = text.parse().map_err(|error: toml::de::Error| vec![error.into()])?;
        Ok((config, table))
    }

    /// Takes renewed certificates, for later connections.
    fn renew(&self, config: &Config) {
        let new = certificates(config, config.hub.as_ref());
        for ((own, new), table) in self.certificates.iter().zip(new).zip(["hub", "publishers", "bridge"]) {
            if let (Some(own), Some(new)) = (own, new)
                && own.renew(new)
            {
                let ends = own.ends().and_then(|ends| Timestamp::from_nanosecond(ends.0.into()).ok());
                let ends = ends.map_or_else(String::new, |ends| format!("; it expires at {ends}"));
                log::note(format_args!("[{table}] has another certificate for new connections{ends}"));
            }
        }
    }
}

impl Reload for Running {
    fn begin(&self) -> io::Result<()> {
        let _ = self.again.set(Again::on_signal()?);
        Ok(())
    }

    fn is_requested(&self) -> bool {
        self.again.get().is_some_and(Again::is_requested)
    }

    fn read(&self) -> Option<AccessConfig> {
        supervised::reloading();
        let read = self.read_again();
        supervised::ready();
        read
    }
}

/// The file that shows what a plant runs with. Drop it before the plant reports its end: whoever reads the report may kill
/// the process. Threads of the plant that outlive an error have the [`Running`] itself.
pub(crate) struct Shown<'a>(&'a Running);

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        if let Some(path) = self.0.shown.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Takes the value of a key, given with its tables, from another file.
fn adopt(table: &mut Table, new: &Table, key: &str) {
    let (first, rest) = key.split_once('.').unwrap_or((key, ""));
    match (table.get_mut(first), new.get(first)) {
        (Some(Value::Table(table)), Some(Value::Table(new))) if !rest.is_empty() => adopt(table, new, rest),
        (_, Some(new)) => {
            table.insert(first.to_owned(), new.clone());
        }
        (_, None) => {
            table.remove(first);
        }
    }
}

fn has_access(table: &Table) -> bool {
    table.get("hub").is_some_and(|hub| hub.get("access").is_some())
}

/// Where a plant shows its configuration: next to its ring and its counters.
fn shown_at(ring: &Name) -> PathBuf {
    file::path(ring).with_extension("config")
}

/// Removes what a dead plant showed.
pub(crate) fn forget(ring: &Name) {
    // Left by another user, or not there: a plant of this ring replaces it.
    let _ = std::fs::remove_file(shown_at(ring));
}

/// Replaces a file with one that only this user can read.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let next = path.with_extension("config-next");
    match std::fs::remove_file(&next) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(&next)?.write_all(text.as_bytes())?;
    std::fs::rename(&next, path)
}

/// What the plant of a ring runs with.
///
/// # Errors
/// There is no such plant, or its configuration cannot be read.
pub(crate) fn running(ring: &Name) -> anyhow::Result<Table> {
    let hint = "`tapeline stat` lists the plants that run";
    match file::read(ring).with_context(|| format!("cannot look for a plant of ring {ring}"))? {
        Found::Live(_) => {}
        Found::Stale(pid) => {
            return Err(
                Hinted::new(format!("the plant of ring {ring}, process {pid}, has died"), hint).into()
            );
        }
        Found::Nothing => return Err(Hinted::new(format!("no plant of ring {ring} runs"), hint).into()),
    }
    let path = shown_at(ring);
    let what = || format!("cannot read what the plant of ring {ring} runs with: {}", path.display());
    let text = std::fs::read_to_string(&path).with_context(what)?;
    text.parse().with_context(what)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = r#"
        [plant]
        ring = "a"
        [[feed]]
        name = "itch"
        stale_after = "3s"
        [[feed]]
        name = "iex"
        [hub]
        port = 1
        cert = "a.pem"
        [hub.access]
        login = "open"
        [[hub.access.rule]]
        items = ["A"]
        [publishers]
        key = "b.pem"
    "#;

    fn told(new: &str) -> Vec<(String, bool)> {
        let changes = changes(&OLD.parse().unwrap(), &new.parse().unwrap());
        changes.into_iter().map(|change| (change.key, change.refused.is_none())).collect()
    }

    #[test]
    fn each_key_that_differs_is_told_with_whether_it_can_change() {
        assert_eq!(told(OLD), []);
        let key = |key: &str, can_change| vec![(key.to_owned(), can_change)];
        assert_eq!(told(&OLD.replace("3s", "4s")), key("feed.itch.stale_after", false));
        assert_eq!(told(&OLD.replace("\"iex\"", "\"deep\"")).len(), 2);
        assert_eq!(told(&OLD.replace("a.pem", "c.pem")), key("hub.cert", true));
        assert_eq!(told(&OLD.replace("b.pem", "c.pem")), key("publishers.key", true));
        assert_eq!(told(&OLD.replace("cert = \"a.pem\"", "")), key("hub.cert", false));
        assert_eq!(told(&OLD.replace("[\"A\"]", "[\"B\"]")), key("hub.access.rule", true));
        assert_eq!(
            told(&OLD.replace("login = \"open\"", "audit = \"-\""))[1],
            ("hub.access.audit".to_owned(), false)
        );
        assert_eq!(told(&OLD.replace("port = 1", "port = 2")), key("hub.port", false));
        assert_eq!(told(&OLD.replace("ring = \"a\"", "ring = \"b\"")), key("plant.ring", false));
        assert_eq!(told(&format!("{OLD}\n[journal]\nfolder = \"j\"")), key("journal", false));
    }

    #[test]
    fn what_was_adopted_differs_no_more() {
        let (mut old, new): (Table, Table) = (
            OLD.parse().unwrap(),
            OLD.replace("a.pem", "c.pem").replace("login = \"open\"", "").parse().unwrap(),
        );
        for change in changes(&old, &new) {
            adopt(&mut old, &new, &change.key);
        }
        assert_eq!(old, new);
    }
}
