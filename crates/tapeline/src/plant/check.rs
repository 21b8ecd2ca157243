//! `tapeline plant check FILE`: reads everything that a plant would read; reports all faults and what would run.

use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use tapeline_console::output::table;
use tapeline_console::{Format, Hinted, failure, output, paths};
use tapeline_hub::access::LoginPolicy;
use tapeline_journal::{Durability, OnFailure, Settings};
use tapeline_measure::{figures, utc_now};
use tapeline_node::access::AuditTo;
use tapeline_node::config::{Config, Feed, Host, Receive, SourcesConfig};
use tapeline_node::hub::HubConfig;
use tapeline_node::upstream::UpstreamConfig;
use tapeline_plant::sources::{Policy, Posts, ProviderSettings, ServiceSettings, Sharing, Sourcing};
use tapeline_ring::Name;
use tapeline_tickerplant::Schema;
use tapeline_wire::rssl::ConnectionType;

use super::config;
use super::reload::{self, KeyChange};

/// Check a configuration and the files that it names: list every fault, and the parts that would run
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 if a plant would start; 1 if not; with --running, 3 if a reload would refuse a change, \
    which then waits for the plant's next start.\n\n\
    Examples:\n  \
        tapeline plant check plant.toml\n  \
        tapeline plant check plant.toml --running tapeline     what `systemctl reload` would do now"
)]
pub(crate) struct CheckArgs {
    /// The plant's configuration
    file: PathBuf,
    /// Compare with what the plant of this ring runs with: what a reload would apply, and what it would refuse
    #[arg(long, value_name = "RING")]
    running: Option<Name>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Debug, Default, Serialize)]
struct Checked {
    /// Whether a plant would start, as far as the files can tell.
    ok: bool,
    faults: Vec<Fault>,
    /// Settings that are valid but may not be intended.
    warnings: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    runs: Option<Vec<Part>>,
    /// What differs from the running plant, if one was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<Vec<KeyChange>>,
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
        let (faults, checked) = match config::read_all(&self.file) {
            Ok((config, _)) => {
                let (runs, memory) = (Some(parts(&config)), Some(memory(&config)));
                (files(&config), Checked { warnings: warnings(&config), runs, memory, ..Checked::default() })
            }
            Err(faults) => (faults, Checked::default()),
        };
        let ok = faults.is_empty();
        let changes = self.running.as_ref().map(|ring| self.changes(ring)).transpose()?;
        let checked = Checked { ok, changes, faults: faults.iter().map(Fault::of).collect(), ..checked };
        match self.format {
            Format::Json => output::print_json(&checked)?,
            Format::Table => checked.print()?,
        }
        let is_refused = checked.changes.iter().flatten().any(|change| change.refused.is_some());
        Ok(match checked.ok {
            true if is_refused => ExitCode::from(3),
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        })
    }
}

impl CheckArgs {
    /// What differs from the configuration of a running plant; nothing if the file is no TOML, which is a fault.
    fn changes(&self, ring: &Name) -> anyhow::Result<Vec<KeyChange>> {
        let running = reload::running(ring)?;
        let text = std::fs::read_to_string(&self.file).unwrap_or_default();
        Ok(text.parse().map_or_else(|_| Vec::new(), |new| reload::changes(&running, &new)))
    }
}

impl Fault {
    fn of(fault: &anyhow::Error) -> Self {
        Self { what: format!("{fault:#}"), hints: failure::hints(fault) }
    }
}

impl Part {
    fn new(part: &'static str, name: impl ToString, is: impl Into<String>) -> Self {
        Self { part, name: name.to_string(), is: is.into() }
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
        if let Some(changes) = &self.changes {
            return print_changes(changes);
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

fn print_changes(changes: &[KeyChange]) -> anyhow::Result<()> {
    if changes.is_empty() {
        return output::print("the plant runs with these keys; a reload reads the files that they name");
    }
    let mut keys = table(["key", "a reload"]);
    for KeyChange { key, refused } in changes {
        let what = match refused {
            None => "applies it".to_owned(),
            Some(why) => format!("refuses it, a restart applies it: {why}"),
        };
        keys.add_row([key.clone(), what]);
    }
    output::print(&keys.to_string())
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
    let above = folder.parent().unwrap_or(folder);
    let (shown, above_shown) = (paths::shown(&folder), paths::shown(&above));
    let what = match std::fs::metadata(folder) {
        Ok(about) if about.is_dir() => return None,
        Ok(_) => format!("the journal's folder {shown} is a file"),
        Err(cause) if cause.kind() == ErrorKind::NotFound && above.is_dir() => return None,
        Err(cause) if cause.kind() == ErrorKind::NotFound => {
            format!("the journal's folder {shown} cannot be created: {above_shown} does not exist")
        }
        Err(cause) => format!("cannot look at the journal's folder {shown}: {cause}"),
    };
    let hint = "folder in [journal] must be a folder; it is created if its parent exists";
    Some(Hinted::new(what, hint).into())
}

fn warnings(config: &Config) -> Vec<String> {
    let mut said = tapeline_node::certificates::warnings(config, utc_now());
    let Some(hub) = &config.hub else { return said };
    let access = &hub.access.access;
    let is_local = hub.address.ip().is_loopback();
    if let Some(path) = &hub.access.users
        && let Ok(about) = std::fs::metadata(path)
        && about.permissions().mode() & 0o044 != 0
    {
        said.push(format!("{} can be read by others on this machine: chmod 600 {0}", paths::shown(&path)));
    }
    let mut rules = access.rules.iter();
    match access.login {
        LoginPolicy::Open if !is_local => {
            let who = format!("anyone who can reach {} can connect", hub.address);
            said.push(format!("{who}: login in [hub.access] restricts this"));
        }
        LoginPolicy::Open if rules.any(|rule| !rule.users.is_empty() || !rule.groups.is_empty()) => {
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

/// The ways to other plants.
fn of_bridge(config: &Config) -> Vec<Part> {
    let mut parts = Vec::new();
    if let Some(bridge) = &config.bridge {
        let to = bridge.lines.iter().map(|line| format!("; a line to {line}")).collect::<String>();
        let tls = if bridge.tls.is_some() { ", with TLS" } else { "" };
        let is = format!("the plants below catch up{tls}, and send re-requests over UDP{to}");
        parts.push(Part::new("bridge", bridge.catch_up, is));
        parts.extend(bridge.tcp_lines.iter().map(|line| {
            let most = line.max_followers;
            Part::new(
                "bridge",
                line.address,
                format!("up to {most} plants below follow the ticks over TCP{tls}"),
            )
        }));
    }
    parts.extend(config.upstream.iter().flat_map(|upstream| of_upstream(upstream, config.hub.as_ref())));
    if let Some(lease) = &config.lease {
        let (count, time) = (lease.witnesses.len(), lease.time);
        let is = format!("leads or follows, by a lease of {time:?} from {count} witnesses");
        parts.push(Part::new("lease", lease.holder, is));
    }
    parts
}

fn parts(config: &Config) -> Vec<Part> {
    let size = format!("{} MiB, {} items at most", config.ring_bytes >> 20, config.max_items);
    let services = config.sources.as_ref().map_or(0, |sources| sources.for_clients.len());
    let of_plant = format!("{} feeds, {services} services of providers", config.feeds.len());
    let mut parts = vec![Part::new("plant", &config.name, of_plant), Part::new("ring", &config.ring, size)];
    parts.extend(config.feeds.iter().map(feed));
    if let Some(nbbo) = &config.nbbo {
        let is = format!("best of {} feeds", nbbo.participants.len());
        parts.push(Part::new("nbbo", &nbbo.suffix, is));
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
            parts.push(Part::new("port", door.address, is));
        }
    }
    if let Some(journal) = &config.journal {
        parts.push(Part::new("journal", journal.folder.display(), of_journal(&journal.settings)));
    }
    if let Some(kdb) = &config.kdb {
        let serve = &kdb.serve;
        let tables: Vec<_> = serve.tables.iter().map(Schema::name).collect();
        let log = match &serve.log {
            Some(log) => format!("a log for each day in {}", log.folder.display()),
            None => "no log".to_owned(),
        };
        let is = format!("kdb+ clients: {}; {log}", tables.join(", "));
        let address = serve.address.map(|address| address.to_string());
        let unix = serve.unix.as_ref().map(|path| path.display().to_string());
        parts.extend(address.into_iter().chain(unix).map(|name| Part::new("port", name, &*is)));
    }
    parts.extend(of_bridge(config));
    if let Some(otlp) = &config.otlp {
        parts.push(Part::new("otlp", &otlp.endpoint, format!("gets metrics every {:?}", otlp.every)));
    }
    if let Some(hub) = &config.hub {
        parts.extend(of_hub(hub));
        if let Some(web) = &hub.web {
            parts.push(Part::new("page", web.address, "the live page, metrics, health"));
        }
        if let Some(zeromq) = &hub.zeromq {
            let is = format!("subscribers of ZeroMQ, {} at most", zeromq.settings.max_subscribers);
            parts.push(Part::new("port", zeromq.address, is));
        }
    }
    parts
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

/// Describes a plant above, and the services of it that the hub has.
fn of_upstream(upstream: &UpstreamConfig, hub: Option<&HubConfig>) -> Vec<Part> {
    let lines: Vec<_> = upstream.lines.iter().map(ToString::to_string).collect();
    let plant = upstream.follower.plant;
    let tls = if upstream.tls.is_some() { ", with TLS" } else { "" };
    let is = format!("the ticks of plant {plant} at {}{tls}; lines {}", upstream.servers(), lines.join(", "));
    let services = hub.into_iter().flat_map(|hub| &hub.settings.services).map(|service| {
        let posts = if service.posts == Posts::Refuse { "refused" } else { "passed on" };
        let is = format!("number {}, demanded of plant {plant}; posts {posts}", service.id);
        Part::new("service", &service.name, is)
    });
    std::iter::once(Part::new("upstream", &upstream.name, is)).chain(services).collect()
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
    Part::new("service", &service.name, is)
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
    Part::new("provider", &provider.name, is)
}

fn feed(feed: &Feed) -> Part {
    if let Some(stream) = &feed.stream {
        let (protocol, symbols) = (feed.protocol.name(), stream.settings.symbols.len());
        let is = format!("{protocol} from {}, {symbols} symbols", stream.url);
        return Part::new("feed", &feed.name, is);
    }
    let from = match &feed.file {
        Some(file) => file.path.display().to_string(),
        None => feed.lines.iter().map(|line| line.address.to_string()).collect::<Vec<_>>().join(", "),
    };
    let recovery = if feed.recovery.is_some() { ", recovery" } else { "" };
    let symbols = if feed.symbols.is_some() { ", selected symbols" } else { "" };
    let is = format!("{} from {from}{recovery}{symbols}", feed.protocol.name());
    Part::new("feed", &feed.name, is)
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
    let port = format!(
        "{} as {}, {tls}, {} connections, {} streams each",
        hub.settings.service, hub.settings.service_id, hub.max_connections, hub.settings.session.most_streams
    );
    [
        Part::new("port", hub.address, port),
        Part::new("access", login, format!("{} users, {what}", access.users.len())),
        Part::new("audit", audit, "logins, denials, session ends"),
    ]
}

fn memory(config: &Config) -> Vec<Memory> {
    let mut parts = vec![("ring", config.ring_bytes)];
    if let Receive::Thread(pool) = &config.receive {
        // A slot has 2 KiB and stores one datagram.
        let bytes = pool.slots.saturating_mul(2_048).saturating_mul(config.feeds.len());
        parts.push(("receiving threads' pools", bytes));
    }
    if let Some(images) = &config.images {
        parts.push(("images for late hubs", images.bytes));
    }
    if let Some(sources) = &config.sources {
        parts.push(("images of standby sources (standby_size)", sources.standby_bound()));
    }
    if let Some(kdb) = &config.kdb {
        let serve = &kdb.serve;
        parts.extend([
            (
                "kdb+ clients' queues (queue, max_connections)",
                serve.max_connections.saturating_mul(serve.queue_bytes),
            ),
            ("kdb+ clients' incoming messages (incoming_size)", serve.incoming_bytes),
            ("kdb+ publishers' rows inside the plant", tapeline_node::kdb::publishing::ROWS_BYTES),
        ]);
    }
    if let Some(bridge) = &config.bridge {
        // Lines over TCP beside others have a memory of their own.
        let has_both = !bridge.lines.is_empty() && !bridge.tcp_lines.is_empty();
        let bytes = bridge.packer.history.bytes * if has_both { 2 } else { 1 };
        parts.push(("ticks for re-requests (history)", bytes));
        parts.extend(bridge.images.as_ref().map(|images| ("images for plants below (images)", images.bytes)));
        let demands = Some(bridge.demands_bound()).filter(|bytes| *bytes > 0);
        parts.extend(demands.map(|bytes| ("demands of plants below (max_demanded)", bytes)));
    }
    if let Some(hub) = &config.hub {
        parts.extend(hub.memory_bound());
    }
    parts.into_iter().map(|(what, bytes)| Memory { what, bytes: bytes as u64 }).collect()
}
