//! `tapeline plant check FILE`: reads everything that a plant would read; reports all faults and what would run.

use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use tapeline_console::failure::{self, Hinted};
use tapeline_console::output::{self, Format, table};
use tapeline_console::paths;
use tapeline_hub::access::LoginPolicy;
use tapeline_journal::{Durability, OnFailure, Settings};
use tapeline_measure::figures;
use tapeline_node::access::AuditTo;
use tapeline_node::config::{Config, Feed, Host, Receive, SourcesConfig};
use tapeline_node::hub::HubConfig;
use tapeline_plant::sources::{Policy, Posts, ProviderSettings, ServiceSettings, Sharing, Sourcing};
use tapeline_tickerplant::Schema;
use tapeline_wire::rssl::ConnectionType;

use super::config;

/// Check a configuration and the files that it names: list every fault, and the parts that would run
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The plant's configuration
    file: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// The result of a check.
#[derive(Debug, Serialize)]
struct Checked {
    /// Whether a plant would start, as far as the files can tell.
    ok: bool,
    faults: Vec<Fault>,
    /// Settings that are valid but may not be intended.
    warnings: Vec<String>,
    /// What would run.
    #[serde(skip_serializing_if = "Option::is_none")]
    runs: Option<Vec<Part>>,
    /// The memory limits that are known in advance.
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<Vec<Memory>>,
}

#[derive(Debug, Serialize)]
struct Fault {
    /// What is wrong, where, and what was expected.
    what: String,
    hints: Vec<String>,
}

/// A part of a plant.
#[derive(Debug, Serialize)]
struct Part {
    /// Ring, feed, service, port and so on.
    part: &'static str,
    name: String,
    /// The part's settings, as text.
    is: String,
}

/// A memory limit in bytes.
#[derive(Debug, Serialize)]
struct Memory {
    what: &'static str,
    bytes: u64,
}

impl CheckArgs {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let checked = match config::read_all(&self.file) {
            Ok(config) => {
                let faults = files(&config);
                Checked {
                    ok: faults.is_empty(),
                    faults: faults.iter().map(Fault::of).collect(),
                    warnings: warnings(&config),
                    runs: Some(parts(&config)),
                    memory: Some(memory(&config)),
                }
            }
            Err(faults) => Checked {
                ok: false,
                faults: faults.iter().map(Fault::of).collect(),
                warnings: Vec::new(),
                runs: None,
                memory: None,
            },
        };
        match self.format {
            Format::Json => output::print_json(&checked)?,
            Format::Table => checked.print()?,
        }
        Ok(if checked.ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

impl Fault {
    fn of(fault: &anyhow::Error) -> Self {
        Self { what: format!("{fault:#}"), hints: failure::hints(fault) }
    }
}

impl Checked {
    fn print(&self) -> anyhow::Result<()> {
        for fault in &self.faults {
            let hints: String = fault.hints.iter().map(|hint| format!("\nhint: {hint}")).collect();
            anstream::eprintln!("error: {}{hints}", fault.what);
        }
        for warning in &self.warnings {
            anstream::eprintln!("warning: {warning}");
        }
        let (Some(runs), Some(memory)) = (&self.runs, &self.memory) else { return Ok(()) };
        let mut parts = table(["part", "name", "settings"]);
        for Part { part, name, is } in runs {
            parts.add_row([(*part).to_owned(), name.clone(), is.clone()]);
        }
        let mut most = table(["maximum memory", "MB"]);
        let mut sum = 0;
        for Memory { what, bytes } in memory {
            sum += bytes;
            most.add_row([(*what).to_owned(), megabytes(*bytes)]);
        }
        most.add_row(["total".to_owned(), megabytes(sum)]);
        output::print(&format!("{parts}\n\n{most}"))
    }
}

fn megabytes(bytes: u64) -> String {
    figures::thousands(bytes.div_ceil(1_000_000))
}

/// Faults of files and folders that a plant opens only when it runs.
fn files(config: &Config) -> Vec<anyhow::Error> {
    let recordings = config.feeds.iter().filter_map(|feed| Some((feed, feed.file.as_ref()?)));
    let wrong = recordings.filter_map(|(feed, file)| {
        let cause = std::fs::File::open(&file.path).err()?;
        let what = format!("feed {}: cannot read {}: {cause}", feed.name, paths::shown(&file.path));
        Some(Hinted::new(what, "file is an absolute path, or relative to the configuration's folder").into())
    });
    let audit = config.hub.as_ref().and_then(|hub| match &hub.access.audit {
        AuditTo::File(path) => {
            let folder = path.parent().unwrap_or(path);
            (!folder.is_dir()).then(|| {
                let what = format!("the audit's folder {} does not exist", paths::shown(&folder));
                Hinted::new(what, "create it, or name another file in [hub.access]").into()
            })
        }
        _ => None,
    });
    let journal = config.journal.as_ref().and_then(|journal| no_folder(&journal.folder));
    wrong.chain(audit).chain(journal).collect()
}

/// The reason that a journal cannot be in this folder, as far as this can be checked without creating it.
fn no_folder(folder: &Path) -> Option<anyhow::Error> {
    let what = match std::fs::metadata(folder) {
        Ok(about) if about.is_dir() => return None,
        Ok(_) => format!("the journal's folder {} is a file", paths::shown(&folder)),
        Err(cause) if cause.kind() == ErrorKind::NotFound => {
            let above = folder.parent().unwrap_or(folder);
            if above.is_dir() {
                return None;
            }
            format!(
                "the journal's folder {} cannot be created: {} does not exist",
                paths::shown(&folder),
                paths::shown(&above)
            )
        }
        Err(cause) => format!("cannot look at the journal's folder {}: {cause}", paths::shown(&folder)),
    };
    let hint = "folder in [journal] must be a folder; it is created if its parent exists";
    Some(Hinted::new(what, hint).into())
}

fn warnings(config: &Config) -> Vec<String> {
    let mut said = Vec::new();
    let Some(hub) = &config.hub else { return said };
    let access = &hub.access.access;
    let is_local = hub.address.ip().is_loopback();
    if let Some(path) = &hub.access.users
        && let Ok(about) = std::fs::metadata(path)
        && about.permissions().mode() & 0o044 != 0
    {
        said.push(format!("{} can be read by others on this machine: chmod 600 {0}", paths::shown(&path)));
    }
    match access.login {
        LoginPolicy::Open if !is_local => {
            said.push(format!(
                "anyone who can reach {} can connect: login in [hub.access] restricts this",
                hub.address
            ));
        }
        LoginPolicy::Open
            if access.rules.iter().any(|rule| !rule.users.is_empty() || !rule.groups.is_empty()) =>
        {
            said.push("rules name users, but with login = \"open\" user names are not verified".to_owned());
        }
        LoginPolicy::Password | LoginPolicy::Token if !is_local && hub.transport.tls.is_none() => {
            let what = "there is no certificate: passwords and tokens from other machines";
            let then = if access.plain_secrets { "cross the network unencrypted" } else { "are refused" };
            said.push(format!("{what} {then}"));
        }
        _ => {}
    }
    if !access.users.is_empty() {
        for group in access.rules.iter().flat_map(|rule| &rule.groups) {
            if !access.users.has_group(group) {
                said.push(format!("no user is in the group \"{group}\" that a rule names"));
            }
        }
    }
    said
}

fn parts(config: &Config) -> Vec<Part> {
    let size = format!("{} MiB, {} items at most", config.ring_bytes >> 20, config.max_items);
    let mut parts = vec![
        Part { part: "plant", name: config.name.clone(), is: of_plant(config) },
        Part { part: "ring", name: config.ring.to_string(), is: size },
    ];
    parts.extend(config.feeds.iter().map(feed));
    if let Some(nbbo) = &config.nbbo {
        let is = format!("best of {} feeds", nbbo.participants.len());
        parts.push(Part { part: "nbbo", name: nbbo.suffix.clone(), is });
    }
    if let Some(sources) = &config.sources {
        let SourcesConfig { settings, door, hosts, for_clients } = sources;
        let services = settings.services.iter().zip(for_clients);
        parts.extend(services.map(|(service, clients)| of_service(service, clients, &settings.providers)));
        parts.extend(
            settings.providers.iter().zip(hosts).map(|(provider, hosts)| of_provider(provider, hosts)),
        );
        if let Some(door) = door {
            let tls = if door.transport.tls.is_some() { "TLS" } else { "no TLS" };
            let who = match &settings.users {
                Some(users) => format!("{} users", users.len()),
                None => "any user".to_owned(),
            };
            let is = format!("non-interactive providers: {who}, {tls}, {} connections", door.max_connections);
            parts.push(Part { part: "port", name: door.address.to_string(), is });
        }
    }
    if let Some(journal) = &config.journal {
        let name = journal.folder.display().to_string();
        parts.push(Part { part: "journal", name, is: of_journal(&journal.settings) });
    }
    if let Some(kdb) = &config.kdb {
        let serve = &kdb.serve;
        let tables: Vec<_> = serve.tables.iter().map(Schema::name).collect();
        let log = serve.log.as_ref().map_or_else(
            || "no log".to_owned(),
            |log| format!("a log for each day in {}", log.folder.display()),
        );
        let is = format!("kdb+ clients: {}; {log}", tables.join(", "));
        let address = serve.address.map(|address| address.to_string());
        let unix = serve.unix.as_ref().map(|path| path.display().to_string());
        parts.extend(address.into_iter().chain(unix).map(|name| Part { part: "port", name, is: is.clone() }));
    }
    if let Some(hub) = &config.hub {
        parts.extend(of_hub(hub));
        if let Some(web) = &hub.web {
            let is = "the live page, metrics, health".to_owned();
            parts.push(Part { part: "page", name: web.address.to_string(), is });
        }
        if let Some(zeromq) = &hub.zeromq {
            let is = format!("subscribers of ZeroMQ, {} at most", zeromq.settings.max_subscribers);
            parts.push(Part { part: "port", name: zeromq.address.to_string(), is });
        }
    }
    parts
}

fn of_plant(config: &Config) -> String {
    let services = config.sources.as_ref().map_or(0, |sources| sources.for_clients.len());
    format!("{} feeds, {services} services of providers", config.feeds.len())
}

/// A journal's durability and retention, as text.
fn of_journal(settings: &Settings) -> String {
    let durability = match settings.durability {
        Durability::Written => "written",
        Durability::Synced => "synced",
    };
    let on_failure = match settings.on_failure {
        OnFailure::Stop => "stop",
        OnFailure::Continue => "continue",
    };
    let age = settings.retention.age.map(|age| format!("for {}", time(age)));
    let bytes = settings.retention.bytes.map(|bytes| format!("up to {}", size(bytes)));
    let kept = match (age, bytes) {
        (None, None) => "for ever".to_owned(),
        (Some(one), None) | (None, Some(one)) => one,
        (Some(age), Some(bytes)) => format!("{age} and {bytes}"),
    };
    let segment = size(settings.segment_bytes);
    format!("{durability}, on failure {on_failure}; files of {segment}, kept {kept}")
}

/// A number of bytes, in the largest unit that divides it.
fn size(bytes: u64) -> String {
    let units = [(1_u64 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.iter().find(|(unit, _)| bytes >= *unit && bytes.is_multiple_of(*unit)) {
        Some((unit, name)) => format!("{} {name}", figures::thousands(bytes / unit)),
        None => format!("{} bytes", figures::thousands(bytes)),
    }
}

/// A time, in hours if it is a whole number of them: retention is often given in days.
fn time(time: Duration) -> String {
    const HOUR_NS: u64 = 3_600_000_000_000;
    let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    if ns >= HOUR_NS && ns.is_multiple_of(HOUR_NS) {
        return format!("{} h", figures::thousands(ns / HOUR_NS));
    }
    figures::duration(ns)
}

/// Describes a service: its sources, and its policies for clients.
fn of_service(
    service: &ServiceSettings,
    clients: &tapeline_hub::Service,
    providers: &[ProviderSettings],
) -> Part {
    let of = match &service.sources {
        Sourcing::Feeds => "from the feeds".to_owned(),
        Sourcing::Publishers { users, sharing } => {
            let who = users.as_ref().map_or("any publisher".to_owned(), |users| users.join(", "));
            let what = match sharing {
                Sharing::Merge => "items merged",
                Sharing::First => "the first one serves",
            };
            format!("published by {who}, {what}")
        }
        Sourcing::Providers { of, policy } => {
            let names = of.iter().filter_map(|number| providers.get(*number));
            let names: Vec<&str> = names.map(|provider| provider.name.as_str()).collect();
            let how = match policy {
                _ if names.len() < 2 => "",
                Policy::First => ", from the first that is up",
                Policy::Balance => ", items distributed over all",
                Policy::Warm => ", one active, the others warm standbys",
            };
            format!("requested from {}{how}", names.join(", "))
        }
    };
    let posts = match service.posts {
        Posts::Refuse => "refused",
        Posts::Forward => "forwarded",
        Posts::Reflect => "reflected",
    };
    let images = if clients.is_cached { "cached" } else { "not cached" };
    let is = format!("number {}, {of}; images {images}, posts {posts}", service.id);
    Part { part: "service", name: service.name.clone(), is }
}

fn of_provider(provider: &ProviderSettings, hosts: &[Host]) -> Part {
    let servers: Vec<&str> = hosts.iter().map(|host| host.server.as_str()).collect();
    let transport = hosts.first().map(|host| &host.transport);
    let way = match transport.map(|transport| transport.connection_type) {
        Some(ConnectionType::WebSocket) => "WebSocket",
        _ => "TCP",
    };
    let tls = if transport.is_some_and(|transport| transport.tls.is_some()) { ", TLS" } else { "" };
    let secret = if provider.password.is_some() { " with a password" } else { "" };
    let is = format!("{} over {way}{tls}, as user {}{secret}", servers.join(", "), provider.user);
    Part { part: "provider", name: provider.name.clone(), is }
}

fn feed(feed: &Feed) -> Part {
    let from = match &feed.file {
        Some(file) => file.path.display().to_string(),
        None => feed.lines.iter().map(|line| line.address.to_string()).collect::<Vec<_>>().join(", "),
    };
    let recovery = if feed.recovery.is_some() { ", recovery" } else { "" };
    let symbols = if feed.symbols.is_some() { ", selected symbols" } else { "" };
    let is = format!("{} from {from}{recovery}{symbols}", feed.protocol.name());
    Part { part: "feed", name: feed.name.clone(), is }
}

fn of_hub(hub: &HubConfig) -> [Part; 3] {
    let access = &hub.access.access;
    let login = match access.login {
        LoginPolicy::Open => "any user",
        LoginPolicy::Password => "with a password",
        LoginPolicy::Token => "with a token",
    };
    let tls = if hub.transport.tls.is_some() { "TLS" } else { "no TLS" };
    let what = match access.rules.len() {
        0 => "all items".to_owned(),
        rules => format!("items by {rules} rules"),
    };
    let audit = match &hub.access.audit {
        AuditTo::Talk | AuditTo::Stderr => "standard error".to_owned(),
        AuditTo::File(path) => path.display().to_string(),
    };
    [
        Part {
            part: "port",
            name: hub.address.to_string(),
            is: format!(
                "{} as {}, {tls}, {} connections, {} streams each",
                hub.settings.service,
                hub.settings.service_id,
                hub.max_connections,
                hub.settings.session.most_streams
            ),
        },
        Part { part: "access", name: login.to_owned(), is: format!("{} users, {what}", access.users.len()) },
        Part { part: "audit", name: audit, is: "logins, denials, session ends".to_owned() },
    ]
}

fn memory(config: &Config) -> Vec<Memory> {
    let mut parts = vec![Memory { what: "ring", bytes: config.ring_bytes as u64 }];
    if let Receive::Thread(pool) = &config.receive {
        // A slot has 2 KiB and stores one datagram.
        let bytes = (pool.slots as u64).saturating_mul(2_048).saturating_mul(config.feeds.len() as u64);
        parts.push(Memory { what: "receiving threads' pools", bytes });
    }
    if let Some(images) = &config.images {
        parts.push(Memory { what: "images for late hubs", bytes: images.bytes as u64 });
    }
    if let Some(sources) = &config.sources {
        let bytes = sources.standby_bound() as u64;
        parts.push(Memory { what: "images of standby sources (standby_size)", bytes });
    }
    if let Some(kdb) = &config.kdb {
        let serve = &kdb.serve;
        let queues = serve.max_connections.saturating_mul(serve.queue_bytes) as u64;
        parts.push(Memory { what: "kdb+ clients' queues (queue, max_connections)", bytes: queues });
        let incoming = serve.incoming_bytes as u64;
        parts.push(Memory { what: "kdb+ clients' incoming messages (incoming_size)", bytes: incoming });
        let rows = tapeline_node::kdb::publishing::ROWS_BYTES as u64;
        parts.push(Memory { what: "kdb+ publishers' rows inside the plant", bytes: rows });
    }
    if let Some(hub) = &config.hub {
        parts.extend(hub.memory_bound().map(|(what, bytes)| Memory { what, bytes: bytes as u64 }));
    }
    parts
}
