//! `[[service]]`, `[[provider]]`, `[publishers]`: the plant's sources that speak OMM.

use std::net::SocketAddr;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use tapeline_console::arguments;
use tapeline_node::config::{Door, Host, SourcesConfig};
use tapeline_omm::Dictionary;
use tapeline_omm::role::{acceptor, consumer};
use tapeline_plant::sources::{
    Policy, Posts, ProviderSettings, ServiceSettings, Settings, Sharing, Sourcing,
};
use tapeline_plant::tick;
use tapeline_wire::rssl::{self, ConnectionType, SubProtocol};
use toml::Spanned;

use super::Source;
use super::hub::MAX_CONNECTIONS;
use super::source::{Span, span};

/// The port at which EMA's NI providers connect to a hub by default.
const USUAL_PORT: u16 = 14_003;
/// Maximum number of services, and of providers: each is checked in turn.
const MOST: usize = 64;
const TIMEOUT_HINT: &str = "request_timeout = \"15s\" is the default";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawService {
    name: Spanned<String>,
    id: Spanned<u16>,
    providers: Option<Spanned<Vec<Spanned<String>>>>,
    sources: Option<Spanned<String>>,
    publishers: Option<Spanned<Vec<String>>>,
    posts: Option<Spanned<String>>,
    cache: Option<Spanned<bool>>,
    unknown: Option<Spanned<String>>,
    request_timeout: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawProvider {
    name: Spanned<String>,
    servers: Spanned<Vec<Spanned<String>>>,
    tls: Option<bool>,
    ca: Option<Spanned<PathBuf>>,
    websocket: Option<Spanned<String>>,
    user: Option<Spanned<String>>,
    password_file: Option<Spanned<PathBuf>>,
    application_id: Option<u16>,
    position: Option<String>,
    request_timeout: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawPublishers {
    bind: Option<Spanned<String>>,
    port: Option<u16>,
    cert: Option<Spanned<PathBuf>>,
    key: Option<Spanned<PathBuf>>,
    users: Option<Vec<String>>,
    max_connections: Option<Spanned<usize>>,
}

pub(super) struct RawSources {
    pub(super) services: Vec<RawService>,
    pub(super) providers: Vec<RawProvider>,
    pub(super) publishers: Option<RawPublishers>,
}

impl RawSources {
    /// Whether there are sources of this plant, not only services of a plant above.
    pub(super) const fn are_own(&self) -> bool {
        !self.providers.is_empty() || self.publishers.is_some()
    }

    pub(super) const fn are_none(&self) -> bool {
        self.services.is_empty() && self.providers.is_empty() && self.publishers.is_none()
    }
}

/// The rest of the plant, as far as sources need it.
pub(super) struct Beside<'a> {
    /// The number and the name of the feeds' service, if there are feeds.
    pub(super) feeds: Option<(u16, &'a str)>,
    /// The first number that no channel has.
    pub(super) channel: u16,
    pub(super) max_items: usize,
    pub(super) dictionary: Option<Arc<Dictionary>>,
    /// The treatment of posts to the feeds' service.
    pub(super) posts: Posts,
    /// Maximum bytes of images of each source on warm standby, if given.
    pub(super) standby: Option<(usize, Range<usize>)>,
}

impl Beside<'_> {
    /// The feeds' service, if posts to it are reflected.
    fn posted(&self) -> Option<ServiceSettings> {
        let (id, name) = self.feeds.filter(|_| self.posts == Posts::Reflect)?;
        Some(ServiceSettings {
            id,
            name: name.to_owned(),
            channel: tick::POSTED,
            sources: Sourcing::Feeds,
            posts: Posts::Reflect,
        })
    }
}

impl Source<'_> {
    /// Checks the sources of a plant; `None` if it has none.
    fn sources(&self, raw: &RawSources, beside: &Beside<'_>) -> anyhow::Result<Option<SourcesConfig>> {
        if raw.services.is_empty() {
            return self.without_services(raw, beside);
        }
        if raw.services.len() > MOST || raw.providers.len() > MOST {
            let what = format!(
                "{} services and {} providers; at most {MOST} of each are expected",
                raw.services.len(),
                raw.providers.len()
            );
            return Err(self.wrong(self.end(), what, "give some of them to a second plant"));
        }
        let (providers, hosts) = self.providers(&raw.providers, beside.max_items)?;
        let mut services = self.services(raw, beside);
        self.check_providers_are_used(raw);
        let door = self.door_of_publishers(raw)?;
        let usual = Settings::default();
        // Services with faults are missing here, but then nothing runs.
        let pairs = raw.services.iter().zip(&services);
        let for_clients = pairs.map(|(raw, service)| self.for_clients(raw, service)).collect();
        services.extend(beside.posted());
        Ok(Some(SourcesConfig {
            for_clients,
            settings: Settings {
                services,
                providers,
                publishers: acceptor::AcceptorSettings {
                    most_items: u32::try_from(beside.max_items).unwrap_or(u32::MAX),
                    ..acceptor::AcceptorSettings::default()
                },
                max_strangers: door.as_ref().map_or(0, |door| door.max_connections.div_ceil(2)),
                users: raw.publishers.as_ref().and_then(|publishers| publishers.users.clone()),
                dictionary: beside.dictionary.clone().unwrap_or(usual.dictionary.clone()),
                max_items: beside.max_items,
                standby_bytes: beside.standby.as_ref().map_or(usual.standby_bytes, |(bytes, _)| *bytes),
                ..usual
            },
            door,
            hosts,
        }))
    }

    /// The sources of a plant, and the services that its hub has: those of the sources, or of the plant above.
    pub(super) fn services_and_sources(
        &self,
        raw: &RawSources,
        beside: &Beside<'_>,
        is_below: bool,
    ) -> (Option<SourcesConfig>, Vec<tapeline_hub::Service>) {
        if is_below {
            return (None, self.services_above(raw, beside));
        }
        let sources = self.sound(self.sources(raw, beside)).flatten();
        let of_hub = sources.as_ref().map(|sources| sources.for_clients.clone());
        (sources, of_hub.unwrap_or_default())
    }

    /// The services of the plant above that this plant's hub has.
    fn services_above(&self, raw: &RawSources, beside: &Beside<'_>) -> Vec<tapeline_hub::Service> {
        let mut services: Vec<tapeline_hub::Service> = Vec::new();
        for raw in &raw.services {
            let of_above = [
                raw.providers.as_ref().map(|key| ("providers", key.span())),
                raw.sources.as_ref().map(|key| ("sources", key.span())),
                raw.publishers.as_ref().map(|key| ("publishers", key.span())),
                raw.cache.as_ref().map(|key| ("cache", key.span())),
                raw.unknown.as_ref().map(|key| ("unknown", key.span())),
            ];
            for (key, span) in of_above.into_iter().flatten() {
                let what = format!("{key} is set for a service whose sources are those of the plant above");
                self.fault(span, what, "name, id, posts and request_timeout are the keys of such a service");
            }
            let (id, name) = (*raw.id.get_ref(), raw.name.get_ref());
            let hint = "the name that the service has in the plant above";
            self.sound(self.name_fits("the service's name", name, raw.name.span(), hint));
            let is_taken = services.iter().any(|other| other.id == id || other.name == *name);
            self.check_free((id, name), raw.id.span(), is_taken, beside);
            let hint =
                "\"forward\" passes posts to the plant above, whose own posts says what it does with them";
            let posts = [("refuse", Posts::Refuse), ("forward", Posts::Forward)];
            let usual = tapeline_hub::Service::new(name, id);
            let timeout = self.milliseconds(&raw.request_timeout, usual.request_timeout_ms, TIMEOUT_HINT);
            services.push(tapeline_hub::Service {
                posts: self.word("posts", &raw.posts, posts, hint),
                request_timeout_ms: timeout,
                ..usual
            });
        }
        services
    }

    /// Adds a fault if the number or the name of a service is that of another.
    fn check_free(&self, (id, name): (u16, &str), span: Span, is_taken: bool, beside: &Beside<'_>) {
        let is_of_feeds = beside.feeds.is_some_and(|feeds| feeds.0 == id || feeds.1 == name);
        if is_of_feeds || is_taken {
            let what = format!("id {id} or name \"{name}\" is that of another service");
            let hint = "each service needs a name and an id of its own; the feeds have those of [hub], id 1 if left out";
            self.fault(span, what, hint);
        }
    }

    /// The sources of a plant without services: none, unless posts to its feeds are reflected.
    fn without_services(
        &self,
        raw: &RawSources,
        beside: &Beside<'_>,
    ) -> anyhow::Result<Option<SourcesConfig>> {
        let hint = "a service is a table [[service]] with its name and its id";
        if let Some(provider) = raw.providers.first() {
            let what = format!("provider {} belongs to no service", provider.name.get_ref());
            return Err(self.wrong(provider.name.span(), what, hint));
        }
        if raw.publishers.is_some() {
            return Err(self.wrong(self.end(), "[publishers] is set without a service", hint));
        }
        if let Some((_, at)) = &beside.standby {
            let what = "standby_size is set without a service of providers";
            return Err(self.wrong(at.clone(), what, hint));
        }
        Ok(beside.posted().map(|feeds| SourcesConfig {
            for_clients: Vec::new(),
            settings: Settings { services: vec![feeds], ..Settings::default() },
            door: None,
            hosts: Vec::new(),
        }))
    }

    /// The interactive providers, and the hosts of each; an error if two have the same name.
    fn providers(
        &self,
        all: &[RawProvider],
        max_items: usize,
    ) -> anyhow::Result<(Vec<ProviderSettings>, Vec<Vec<Host>>)> {
        let mut providers = Vec::new();
        let mut hosts = Vec::new();
        for provider in all {
            if let Some(twice) = all.iter().filter(|other| other.name == provider.name).nth(1) {
                let what = format!("provider \"{}\" is defined twice", provider.name.get_ref());
                return Err(self.wrong(twice.name.span(), what, "each provider needs a name of its own"));
            }
            providers.extend(self.sound(self.provider(provider, max_items)));
            hosts.extend(self.sound(self.hosts(provider)));
        }
        Ok((providers, hosts))
    }

    /// The services; two with the same id or name go to the faults.
    fn services(&self, raw: &RawSources, beside: &Beside<'_>) -> Vec<ServiceSettings> {
        let mut services: Vec<ServiceSettings> = Vec::new();
        for (service, channel) in raw.services.iter().zip(beside.channel..) {
            let Some(checked) = self.sound(self.service(service, raw, channel)) else { continue };
            let is_taken = services.iter().any(|other| other.id == checked.id || other.name == checked.name);
            self.check_free((checked.id, &checked.name), service.id.span(), is_taken, beside);
            services.push(checked);
        }
        services
    }

    /// Adds a fault for each provider that no service names.
    fn check_providers_are_used(&self, raw: &RawSources) {
        for provider in &raw.providers {
            let is_used = |service: &RawService| {
                let of = service.providers.as_ref().map(|of| of.get_ref().as_slice()).unwrap_or_default();
                of.iter().any(|name| name.get_ref() == provider.name.get_ref())
            };
            if !raw.services.iter().any(is_used) {
                let what = format!("provider \"{}\" belongs to no service", provider.name.get_ref());
                let hint = "name it in providers = [...] of a [[service]]";
                self.fault(provider.name.span(), what, hint);
            }
        }
    }

    /// The port for non-interactive providers; an error if services need it and it is missing, or the reverse.
    fn door_of_publishers(&self, raw: &RawSources) -> anyhow::Result<Option<Door>> {
        let is_published = raw.services.iter().find(|service| service.providers.is_none());
        match (&raw.publishers, is_published) {
            (Some(publishers), Some(_)) => Ok(self.sound(self.door(publishers))),
            (None, None) => Ok(None),
            (Some(_), None) => {
                let what = "[publishers] is set, but all services have interactive providers";
                Err(self.wrong(self.end(), what, "a service without providers = [...] is published"))
            }
            (None, Some(service)) => {
                let what = format!(
                    "service \"{}\" has no providers, and without [publishers] nobody can publish it",
                    service.name.get_ref()
                );
                let hint = "providers = [\"name\"] for interactive providers; the table [publishers] for non-interactive ones";
                Err(self.wrong(service.name.span(), what, hint))
            }
        }
    }

    fn service(&self, raw: &RawService, all: &RawSources, channel: u16) -> anyhow::Result<ServiceSettings> {
        let hint = "the name that its source and its clients use";
        self.name_fits("the service's name", raw.name.get_ref(), raw.name.span(), hint)?;
        let posts = self.word(
            "posts",
            &raw.posts,
            [("refuse", Posts::Refuse), ("forward", Posts::Forward), ("reflect", Posts::Reflect)],
            "\"forward\" passes posts to the source, \"reflect\" publishes their content",
        );
        let sources = match (&raw.providers, &raw.publishers) {
            (Some(_), Some(publishers)) => {
                let what = "publishers is set, but the service has interactive providers";
                return Err(self.wrong(publishers.span(), what, "a service has one or the other"));
            }
            (None, publishers) => {
                let sharing = self.word(
                    "sources",
                    &raw.sources,
                    [("merge", Sharing::Merge), ("first", Sharing::First)],
                    "\"merge\" has the items of all publishers, \"first\" those of one while the others stand by",
                );
                let users = publishers.as_ref().map(|users| users.get_ref().clone());
                Sourcing::Publishers { users, sharing }
            }
            (Some(names), None) => {
                let policy = self.word(
                    "sources",
                    &raw.sources,
                    [("first", Policy::First), ("balance", Policy::Balance), ("warm", Policy::Warm)],
                    "\"first\" is fail-over, \"balance\" spreads the items, \"warm\" opens them with all providers",
                );
                let mut of: Vec<usize> = Vec::new();
                for name in names.get_ref() {
                    let known = |provider: &RawProvider| provider.name.get_ref() == name.get_ref();
                    let Some(number) = all.providers.iter().position(known) else {
                        let what = format!("there is no provider \"{}\"", name.get_ref());
                        let hint = "a provider is a table [[provider]] with its name and its servers";
                        self.fault(name.span(), what, hint);
                        continue;
                    };
                    if of.contains(&number) {
                        let what = format!("provider \"{}\" is named twice", name.get_ref());
                        return Err(self.wrong(name.span(), what, "name each provider once"));
                    }
                    of.push(number);
                }
                if names.get_ref().is_empty() {
                    let hint = "leave providers out for a service that is published";
                    return Err(self.wrong(names.span(), "providers is empty", hint));
                }
                Sourcing::Providers { of, policy }
            }
        };
        let (id, name) = (*raw.id.get_ref(), raw.name.get_ref().clone());
        Ok(ServiceSettings { id, name, channel, sources, posts })
    }

    /// The service as clients see it.
    fn for_clients(&self, raw: &RawService, service: &ServiceSettings) -> tapeline_hub::Service {
        let usual = tapeline_hub::Service::new(&service.name, service.id);
        let on_demand = matches!(service.sources, Sourcing::Providers { .. });
        let is_cached = raw.cache.as_ref().is_none_or(|cache| *cache.get_ref());
        if let Some(cache) = raw.cache.as_ref().filter(|_| !on_demand && !is_cached) {
            let what =
                "cache is false, but no provider could be asked for the image that a second client needs";
            let hint = "leave cache out: publishers send an image once; only interactive providers can be asked again";
            self.fault(cache.span(), what, hint);
        }
        if let Some(unknown) = raw.unknown.as_ref().filter(|_| on_demand) {
            let what = "unknown is set, but the service's providers are asked for each item";
            let hint = "leave unknown out: the provider decides which items exist";
            self.fault(unknown.span(), what, hint);
        }
        tapeline_hub::Service {
            on_demand,
            is_cached,
            unknown: self.unknown(&raw.unknown),
            posts: service.posts,
            request_timeout_ms: self.milliseconds(
                &raw.request_timeout,
                usual.request_timeout_ms,
                TIMEOUT_HINT,
            ),
            ..usual
        }
    }

    fn provider(&self, raw: &RawProvider, max_items: usize) -> anyhow::Result<ProviderSettings> {
        let usual = consumer::ConsumerSettings::default();
        let request_timeout = self.time(&raw.request_timeout, arguments::some_duration, TIMEOUT_HINT);
        let user = raw.user.as_ref().map_or("tapeline", |user| user.get_ref());
        self.sound(self.name_fits("user", user, span(&raw.user), "user = \"tapeline\" is the default"));
        let password = match &raw.password_file {
            None => None,
            Some(file) => {
                let hint = "the file's first line is the password";
                let text = String::from_utf8(self.file(file)?)
                    .map_err(|_| self.wrong(file.span(), "the password is not text", hint))?;
                Some(text.lines().next().unwrap_or_default().to_owned())
            }
        };
        Ok(ProviderSettings {
            name: raw.name.get_ref().clone(),
            consumer: consumer::ConsumerSettings {
                request_timeout: request_timeout.unwrap_or(usual.request_timeout),
                // A warm standby is retried with short waits, so that it is found as soon as it is useful.
                reconnect: consumer::Backoff { most: Duration::from_secs(5), ..usual.reconnect },
                most_items: max_items.saturating_add(Settings::default().max_private),
                ..usual
            },
            user: user.to_owned(),
            password,
            application_id: raw.application_id.unwrap_or(256).to_string(),
            position: raw.position.clone().unwrap_or_else(|| "127.0.0.1/net".to_owned()),
        })
    }

    fn hosts(&self, raw: &RawProvider) -> anyhow::Result<Vec<Host>> {
        let protocol = self.word(
            "websocket",
            &raw.websocket,
            [("rwf", SubProtocol::Rwf), ("json", SubProtocol::TrJson2)],
            "leave websocket out for RSSL over TCP",
        );
        let mut transport = rssl::ConnectionSettings::default();
        if raw.websocket.is_some() {
            transport.connection_type = ConnectionType::WebSocket;
            transport.ws_protocols = vec![protocol];
        }
        transport.tls = self.trusted(raw.tls.unwrap_or(false), &raw.ca)?;
        if raw.servers.get_ref().is_empty() {
            return Err(self.wrong(raw.servers.span(), "servers is empty", "servers = [\"host:14002\"]"));
        }
        raw.servers
            .get_ref()
            .iter()
            .map(|server| {
                let name = server.get_ref();
                if !is_server(name) {
                    let what = format!("\"{name}\" is not a server; a host and a port are expected");
                    return Err(self.wrong(server.span(), what, "\"localhost:14002\" or \"[::1]:14002\""));
                }
                let transport =
                    Arc::new(rssl::ConnectionSettings { host: name.clone(), ..transport.clone() });
                Ok(Host { server: name.clone(), transport })
            })
            .collect()
    }

    fn door(&self, raw: &RawPublishers) -> anyhow::Result<Door> {
        let hint = "max_connections = 100 is the default";
        let most = self.number("max_connections", &raw.max_connections, 100, MAX_CONNECTIONS, hint);
        Ok(Door {
            max_connections: self.or(most, 100),
            address: self.listens(&raw.bind, raw.port, USUAL_PORT),
            transport: Arc::new(rssl::ConnectionSettings {
                tls: self.certificate(&raw.cert, &raw.key)?,
                ..rssl::ConnectionSettings::default()
            }),
        })
    }
}

/// Whether this is a host and a port. The plant finds out whether the host exists when it connects.
fn is_server(text: &str) -> bool {
    let is_name = |host: &str| !host.is_empty() && !host.contains([':', '[', ']', '/', '@', ' ']);
    let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port != 0);
    text.parse::<SocketAddr>().is_ok_and(|address| address.port() != 0)
        || text.rsplit_once(':').is_some_and(|(host, port)| is_name(host) && is_port(port))
}

#[cfg(test)]
mod tests {
    use tapeline_hub::Unknown;

    use super::*;
    use crate::plant::config::{Config, parse, testing};

    fn checked(text: &str) -> Result<Config, String> {
        testing::checked(&format!("[plant]\nring = \"r\"\n{text}"))
    }

    const PROVIDER: &str = "[[provider]]\nname = \"a\"\nservers = [\"127.0.0.1:14002\"]\n";

    #[test]
    fn a_plant_may_have_services_and_no_feeds() {
        let text = format!(
            "[publishers]\n[[service]]\nname = \"X\"\nid = 3\nunknown = \"closed\"\n[[service]]\nname = \"Y\"\nid = 4\n\
             providers = [\"a\"]\nsources = \"warm\"\nposts = \"forward\"\ncache = false\n{PROVIDER}"
        );
        let sources = checked(&text).unwrap().sources.unwrap();
        assert_eq!(sources.door.unwrap().address.to_string(), "127.0.0.1:14003");
        let for_clients =
            sources.for_clients.iter().map(|service| (service.is_cached, service.on_demand, service.unknown));
        assert_eq!(
            for_clients.collect::<Vec<_>>(),
            [(true, false, Unknown::Closed), (false, true, Unknown::Wait)]
        );
        let [x, y] = &sources.settings.services[..] else { panic!("two services") };
        assert_eq!(
            (x.id, &x.sources, x.posts),
            (3, &Sourcing::Publishers { users: None, sharing: Sharing::Merge }, Posts::Refuse)
        );
        let policy = Policy::Warm;
        assert_eq!(
            (y.id, &y.sources, y.posts),
            (4, &Sourcing::Providers { of: vec![0], policy }, Posts::Forward)
        );
        assert_ne!(x.channel, y.channel);
    }

    #[test]
    fn posts_to_feeds_are_reflected_where_that_is_said() {
        let feed = "[[feed]]\nname = \"f\"\nprotocol = \"itch50-moldudp64\"\n[[feed.line]]\n\
                    address = \"239.1.1.1:26477\"\ninterface = \"127.0.0.1\"\n";
        let posted = |text: &str| {
            checked(&format!("{text}{feed}")).unwrap().sources.map(|sources| sources.settings.services)
        };
        assert!(posted("[hub]\n").is_none());
        let [feeds] = &posted("[hub]\nposts = \"reflect\"\nservice_id = 5\n").unwrap()[..] else {
            panic!("one service")
        };
        assert_eq!((feeds.id, &feeds.sources, feeds.posts), (5, &Sourcing::Feeds, Posts::Reflect));
        let both =
            posted("[hub]\nposts = \"reflect\"\n[publishers]\n[[service]]\nname = \"X\"\nid = 3\n").unwrap();
        let [x, feeds] = &both[..] else { panic!("two services") };
        assert_eq!(x.id, 3);
        assert_ne!(x.channel, feeds.channel);
        let forward = format!("[hub]\nposts = \"forward\"\n{feed}");
        assert!(checked(&forward).unwrap_err().contains("feeds have no provider"));
    }

    #[test]
    fn memory_of_sources_that_stand_by_is_bounded() {
        let with = |plant: &str, rest: &str| {
            let text = format!("[plant]\nring = \"r\"\n{plant}{rest}");
            parse("plant.toml", &text).map(|config| config.sources.unwrap())
        };
        let warm =
            format!("[[service]]\nname = \"X\"\nid = 3\nproviders = [\"a\"]\nsources = \"warm\"\n{PROVIDER}");
        let usual = with("", &warm).unwrap();
        assert_eq!((usual.settings.standby_bytes, usual.standby_bound()), (256 << 20, 320 << 20));
        assert_eq!(with("standby_size = \"4KiB\"\n", &warm).unwrap().standby_bound(), 5 << 10);
        let feed = "[[feed]]\nname = \"f\"\nprotocol = \"itch50-moldudp64\"\nfile = \"f\"\n";
        let error = with("standby_size = \"4KiB\"\n", feed).unwrap_err().to_string();
        assert!(error.starts_with("plant.toml:3:16: standby_size is set"), "{error}");
    }

    #[test]
    fn what_does_not_go_together_is_said() {
        let published = "[publishers]\n[[service]]\nname = \"X\"\nid = 3\n";
        for (text, says) in [
            ("".to_owned(), "0 feeds"),
            (
                "[[service]]\nname = \"X\"\nid = 3\n".to_owned(),
                "plant.toml:4:8: service \"X\" has no providers",
            ),
            (format!("{published}[[service]]\nname = \"Y\"\nid = 3\n"), "is that of another service"),
            (format!("{published}providers = [\"b\"]\n"), "there is no provider \"b\""),
            (format!("{published}sources = \"warm\"\n"), "\"merge\" or \"first\" is expected"),
            (format!("{published}posts = \"take\"\n"), "\"refuse\", \"forward\" or \"reflect\" is expected"),
            (format!("{published}{PROVIDER}"), "provider \"a\" belongs to no service"),
            (PROVIDER.to_owned(), "provider a belongs to no service"),
            ("[publishers]\n".to_owned(), "[publishers] is set without a service"),
            (format!("{published}providers = [\"a\"]\npublishers = []\n{PROVIDER}"), "one or the other"),
            (format!("{published}providers = [\"a\"]\n{PROVIDER}ca = \"x\"\n"), "ca is set without tls"),
            (format!("{published}providers = [\"a\"]\n{PROVIDER}"), "all services have interactive"),
            (format!("{published}provider = [\"a\"]\n"), "did you mean `providers`?"),
            (
                format!("{published}providers = [\"a\"]\n{}", PROVIDER.replace(":14002", "")),
                "is not a server",
            ),
            (format!("{published}cache = false\n"), "cache is false, but no provider could be asked"),
            (
                format!(
                    "[[service]]\nname = \"X\"\nid = 3\nproviders = [\"a\"]\nunknown = \"closed\"\n{PROVIDER}"
                ),
                "unknown is set",
            ),
            (format!("{published}unknown = \"open\"\n"), "\"wait\" or \"closed\" is expected"),
        ] {
            let said = checked(&text).unwrap_err();
            assert!(said.contains(says), "{text}: {said}");
        }
    }
}
