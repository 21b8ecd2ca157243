//! `[hub]`: the address for clients, limits on them, and the policy for slow clients.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use serde::Deserialize;
use tapeline_console::omm::dictionaries::DictionaryArgs;
use tapeline_console::{FilePath, arguments, paths};
use tapeline_hub::{Posts, SLOW_BYTES, SLOW_MESSAGES, SLOW_TIME_MS, Settings, SlowPolicy, Unknown};
use tapeline_node::hub::HubConfig;
use tapeline_node::hub::config::{CONNECTIONS, INCOMING_BYTES, PING_TIMEOUT_S};
use tapeline_omm::role::provider;
use tapeline_wire::rssl;
use tapeline_wire::tls::{Tls, TlsVersions};
use toml::Spanned;

use super::Source;
use super::access::RawAccess;
use super::source::span;
use super::web::RawWeb;
use super::zeromq::RawZeromq;

/// The port at which EMA's consumers connect to a provider by default.
const USUAL_PORT: u16 = 14_002;
/// The default size of all images together.
const CACHE_BYTES: usize = 1 << 30;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawHub {
    bind: Option<Spanned<String>>,
    port: Option<u16>,
    cert: Option<Spanned<PathBuf>>,
    key: Option<Spanned<PathBuf>>,
    service: Option<Spanned<String>>,
    service_id: Option<u16>,
    max_connections: Option<Spanned<usize>>,
    max_connections_per_address: Option<Spanned<usize>>,
    max_streams: Option<u32>,
    max_streams_of_item: Option<usize>,
    streams_in_all: Option<usize>,
    incoming_size: Option<Spanned<String>>,
    waiting_size: Option<Spanned<String>>,
    cache_size: Option<Spanned<String>>,
    unknown: Option<Spanned<String>>,
    unknown_timeout: Option<Spanned<String>>,
    posts: Option<Spanned<String>>,
    slow: Option<Spanned<String>>,
    slow_bytes: Option<Spanned<String>>,
    slow_messages: Option<Spanned<usize>>,
    slow_age: Option<Spanned<String>>,
    slow_time: Option<Spanned<String>>,
    ping_timeout: Option<Spanned<String>>,
    login_timeout: Option<Spanned<String>>,
    dictionary: Option<Spanned<PathBuf>>,
    enums: Option<Spanned<PathBuf>>,
    cpu: Option<Spanned<usize>>,
    wait: Option<Spanned<String>>,
    #[serde(default)]
    origins: Vec<Spanned<String>>,
    web: Option<RawWeb>,
    zeromq: Option<Spanned<RawZeromq>>,
    pub(super) access: Option<RawAccess>,
}

impl Source<'_> {
    /// Checks the hub of a plant of this name, with this many items.
    pub(super) fn hub(&self, raw: RawHub, plant: &str, max_items: usize) -> anyhow::Result<HubConfig> {
        let address = self.listens(&raw.bind, raw.port, USUAL_PORT);
        let service = raw.service.as_ref().map_or(plant, |service| service.get_ref().as_str());
        let hint = "the service's name, as clients ask for it";
        self.sound(self.name_fits("service", service, span(&raw.service), hint));
        let (max_connections, of_one_address) = self.max_connections(&raw);
        let cpu = self.core(&raw.cpu);
        let slow = self.or(self.slow(&raw), SlowPolicy::Conflate);
        let access = self.access(raw.access.as_ref());
        let (wait_timeout_ms, told_ms) = (self.unknown_timeout(&raw), Settings::default().request_timeout_ms);
        let settings = Settings {
            service: service.to_owned(),
            service_id: raw.service_id.unwrap_or(1),
            dictionary: self.sound(self.dictionary(&raw)).unwrap_or_else(|| Settings::default().dictionary),
            slow,
            slow_age_ms: self.milliseconds(&raw.slow_age, 0, "slow_age = \"10s\", for example"),
            stuck_ms: self.milliseconds(&raw.slow_time, SLOW_TIME_MS, "slow_time = \"60s\" is the default"),
            unknown: self.unknown(&raw.unknown),
            request_timeout_ms: if wait_timeout_ms == 0 { told_ms } else { told_ms.min(wait_timeout_ms) },
            wait_timeout_ms,
            posts: self.posts_to_feeds(&raw.posts),
            max_items,
            max_streams: raw.streams_in_all.unwrap_or(1_000_000),
            max_strangers: max_connections.div_ceil(2),
            max_streams_of_item: raw.max_streams_of_item.unwrap_or(Settings::default().max_streams_of_item),
            access: access.access.clone(),
            cache_bytes: self.size_or(&raw.cache_size, CACHE_BYTES),
            waiting_bytes: self.or(self.waiting(&raw.waiting_size), Settings::default().waiting_bytes),
            session: self.sessions(&raw),
            ..Settings::default()
        };
        let zeromq = raw.zeromq.as_ref();
        let zeromq =
            zeromq.and_then(|zeromq| self.sound(self.zeromq(zeromq, &settings, raw.access.is_some())));
        Ok(HubConfig {
            address,
            transport: Arc::new(rssl::ConnectionSettings {
                connection_ping_timeout: self.ping_timeout(&raw),
                tls: self.or(self.certificate(&raw.cert, &raw.key), None),
                ws_origins: self.or(self.origins(raw.origins), Vec::new()),
                ..HubConfig::transport()
            }),
            max_connections,
            max_connections_per_address: of_one_address,
            incoming_bytes: self.size_or(&raw.incoming_size, INCOMING_BYTES),
            access,
            cpu,
            spin: self.spins("wait", &raw.wait),
            web: raw.web.and_then(|web| self.sound(self.web(web))),
            zeromq,
            settings,
        })
    }

    /// Maximum number of connections in total, and from one address.
    fn max_connections(&self, raw: &RawHub) -> (usize, usize) {
        let hint = "each slow connection takes 1.2 MB of output buffers";
        let most = self.number("max_connections", &raw.max_connections, CONNECTIONS, MAX_CONNECTIONS, hint);
        let max_connections = self.or(most, CONNECTIONS);
        let of_address = raw.max_connections_per_address.as_ref();
        if let Some(count) = of_address.filter(|count| *count.get_ref() == 0) {
            let hint = "if left out, one address may have all of max_connections";
            self.fault(count.span(), "max_connections_per_address is 0", hint);
        }
        (max_connections, of_address.map_or(max_connections, |count| *count.get_ref()))
    }

    /// The limits of each client's session.
    fn sessions(&self, raw: &RawHub) -> provider::ProviderSettings {
        let usual = provider::ProviderSettings::default();
        let hint = "login_timeout = \"30s\" is the default";
        provider::ProviderSettings {
            most_streams: raw.max_streams.unwrap_or(usual.most_streams),
            login_timeout_ms: self.milliseconds(&raw.login_timeout, usual.login_timeout_ms, hint),
            ..usual
        }
    }

    /// The response to requests for unpublished items.
    pub(super) fn unknown(&self, given: &Option<Spanned<String>>) -> Unknown {
        let hint = "\"wait\" keeps the stream of an unknown item open; \"closed\" closes it";
        self.word("unknown", given, [("wait", Unknown::Wait), ("closed", Unknown::Closed)], hint)
    }

    /// How long a request for an item that the feeds have not published waits until it is closed, in milliseconds;
    /// 0 means without limit.
    fn unknown_timeout(&self, raw: &RawHub) -> u64 {
        let usual = Settings::default().wait_timeout_ms;
        let Some(given) = &raw.unknown_timeout else { return usual };
        if raw.unknown.as_ref().is_some_and(|unknown| unknown.get_ref() == "closed") {
            let what = "unknown_timeout is set, but nothing waits with unknown = \"closed\"";
            self.fault(given.span(), what, "leave out one of the two");
        }
        if given.get_ref() == "never" {
            return 0;
        }
        let hint = "unknown_timeout = \"30s\" is the default; \"never\" or \"0s\" waits for ever";
        let time = self.time(&raw.unknown_timeout, arguments::duration, hint);
        time.map_or(usual, |time| if time.is_zero() { 0 } else { in_ms(time) })
    }

    /// The treatment of posts to the service of the plant's own feeds.
    fn posts_to_feeds(&self, given: &Option<Spanned<String>>) -> Posts {
        let hint = "\"reflect\" publishes the updates that are posted to items of the feeds";
        if let Some(given) = given.as_ref().filter(|given| given.get_ref() == "forward") {
            let what = "posts is \"forward\", but feeds have no provider to forward posts to";
            self.fault(given.span(), what, hint);
            return Posts::Refuse;
        }
        self.word("posts", given, [("refuse", Posts::Refuse), ("reflect", Posts::Reflect)], hint)
    }

    fn slow(&self, raw: &RawHub) -> anyhow::Result<SlowPolicy> {
        let limits = [
            raw.slow_bytes.as_ref().map(|bytes| ("slow_bytes", bytes.span())),
            raw.slow_messages.as_ref().map(|messages| ("slow_messages", messages.span())),
            raw.slow_age.as_ref().map(|age| ("slow_age", age.span())),
        ];
        let bytes = self.size(&raw.slow_bytes, SLOW_BYTES)?;
        let messages = raw.slow_messages.as_ref().map_or(SLOW_MESSAGES, |messages| *messages.get_ref());
        let slow = self.one_of(
            "slow",
            &raw.slow,
            [
                ("conflate", SlowPolicy::Conflate),
                ("cut", SlowPolicy::Cut { bytes, messages }),
                ("drop-with-gap", SlowPolicy::DropWithGap { bytes, messages }),
                ("block", SlowPolicy::Block { bytes, messages }),
            ],
            "\"conflate\" leaves out updates and sends an image later; \"cut\" disconnects a client too slow for every update; \
             \"drop-with-gap\" drops updates beyond the limits and notifies the client; \
             \"block\" pauses a source that one client alone uses, and disconnects",
        )?;
        match (slow, limits.into_iter().flatten().next()) {
            (SlowPolicy::Conflate, Some((key, span))) => {
                let what = format!("{key} is set, but nothing is queued for a client that is conflated");
                Err(self.wrong(span, what, "limits go with the other policies, such as slow = \"cut\""))
            }
            (slow, _) => Ok(slow),
        }
    }

    /// At least one image must fit.
    fn waiting(&self, given: &Option<Spanned<String>>) -> anyhow::Result<usize> {
        let usual = Settings::default();
        let (bytes, least) = (self.size(given, usual.waiting_bytes)?, usual.image_bytes);
        if bytes < least {
            let what = format!("waiting_size is {bytes} bytes; one image may have {least} of them");
            return Err(self.wrong(span(given), what, "waiting_size = \"64MiB\" is the default"));
        }
        Ok(bytes)
    }

    /// A time, by default `usual`; errors go to the faults.
    pub(super) fn milliseconds(&self, given: &Option<Spanned<String>>, usual: u64, hint: &str) -> u64 {
        self.time(given, arguments::some_duration, hint).map_or(usual, in_ms)
    }

    /// The protocol has whole seconds, in one byte.
    fn ping_timeout(&self, raw: &RawHub) -> u8 {
        let hint = "ping_timeout = \"60s\" is the default";
        let time = self.time(&raw.ping_timeout, arguments::some_duration, hint);
        let (Some(given), Some(time)) = (&raw.ping_timeout, time) else { return PING_TIMEOUT_S };
        match u8::try_from(time.as_secs()) {
            Ok(seconds) if seconds > 0 && time.subsec_nanos() == 0 => return seconds,
            _ => {}
        }
        let what = format!("ping_timeout is \"{}\"; whole seconds, 1 to 255, are expected", given.get_ref());
        self.fault(given.span(), what, hint);
        PING_TIMEOUT_S
    }

    fn dictionary(&self, raw: &RawHub) -> anyhow::Result<Arc<tapeline_omm::Dictionary>> {
        if let (None, Some(enums)) = (&raw.dictionary, &raw.enums) {
            let hint = "dictionary = \"RDMFieldDictionary\" goes with it";
            return Err(self.wrong(enums.span(), "enums is set, but no dictionary", hint));
        }
        let path = |file: &Spanned<PathBuf>| FilePath::of(self.beside(file.get_ref()));
        DictionaryArgs::of(raw.dictionary.as_ref().map(path), raw.enums.as_ref().map(path)).load()
    }

    /// The local address to listen on, by default `usual_port` of this machine; errors go to the faults.
    pub(crate) fn listens(
        &self,
        bind: &Option<Spanned<String>>,
        port: Option<u16>,
        usual_port: u16,
    ) -> SocketAddr {
        let address = bind.as_ref().and_then(|bind| {
            self.sound(bind.get_ref().parse().map_err(|_| {
                let what = format!("bind is \"{}\"; an address of this machine is expected", bind.get_ref());
                let hint =
                    "\"127.0.0.1\" is the default; \"0.0.0.0\" is every interface, \"::\" the same for IPv4 and IPv6";
                self.wrong(bind.span(), what, hint)
            }))
        });
        SocketAddr::new(address.unwrap_or(Ipv4Addr::LOCALHOST.into()), port.unwrap_or(usual_port))
    }

    /// A server's certificate and its key, if configured.
    pub(super) fn certificate(
        &self,
        cert: &Option<Spanned<PathBuf>>,
        key: &Option<Spanned<PathBuf>>,
    ) -> anyhow::Result<Option<Tls>> {
        let Some((cert, key)) = self.cert_and_key(cert, key)? else { return Ok(None) };
        let tls = Tls::server(&self.file(cert)?, &self.file(key)?, TlsVersions::Both);
        tls.map(Some).with_context(|| self.unusable(cert))
    }

    /// A certificate and its key, which are set together.
    pub(super) fn cert_and_key<'a>(
        &self,
        cert: &'a Option<Spanned<PathBuf>>,
        key: &'a Option<Spanned<PathBuf>>,
    ) -> anyhow::Result<Option<(&'a Spanned<PathBuf>, &'a Spanned<PathBuf>)>> {
        match (cert, key) {
            (None, None) => Ok(None),
            (Some(cert), Some(key)) => Ok(Some((cert, key))),
            (Some(one), None) | (None, Some(one)) => {
                let hint = "cert and key go together: two PEM files";
                Err(self.wrong(one.span(), "cert and key: one is set without the other", hint))
            }
        }
    }

    /// The place of a certificate that cannot be used.
    pub(super) fn unusable(&self, cert: &Spanned<PathBuf>) -> String {
        format!("{}: cannot use this certificate", self.at(&cert.span()))
    }

    /// Trusted certificates for a connection with TLS: those of a file, or of this system.
    pub(super) fn trusted(&self, tls: bool, ca: &Option<Spanned<PathBuf>>) -> anyhow::Result<Option<Tls>> {
        match (tls, ca) {
            (false, None) => Ok(None),
            (false, Some(ca)) => Err(self.wrong(ca.span(), "ca is set without tls", "set tls = true")),
            (true, Some(ca)) => {
                Tls::client(&self.file(ca)?, TlsVersions::Both).with_context(|| self.unusable(ca)).map(Some)
            }
            (true, None) => Ok(Some(Tls::client_of_system(TlsVersions::Both)?)),
        }
    }

    /// The content of a file named in the configuration.
    pub(super) fn file(&self, file: &Spanned<PathBuf>) -> anyhow::Result<Vec<u8>> {
        let path = self.beside(file.get_ref());
        std::fs::read(&path).map_err(|cause| {
            let what = format!("cannot read {}: {cause}", paths::shown(&path));
            self.wrong(file.span(), what, "an absolute path, or relative to the configuration's folder")
        })
    }
}

/// In milliseconds, at least 1: 0 would mean no limit.
fn in_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1)
}

/// About the number of sockets that a process may usually have at most.
pub(super) const MAX_CONNECTIONS: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plant::config::Config;
    use crate::plant::config::testing::{self, PLANT};

    fn checked(hub: &str) -> Result<Config, String> {
        testing::checked(&format!("{PLANT}[hub]\n{hub}"))
    }

    #[test]
    fn an_empty_table_is_a_hub_for_this_machine() {
        let hub = checked("").unwrap().hub.unwrap();
        assert_eq!(hub.address.to_string(), "127.0.0.1:14002");
        assert_eq!((&*hub.settings.service, hub.settings.slow), ("TAPELINE", SlowPolicy::Conflate));
        assert!(checked("slow = \"cut\"\nslow_bytes = \"1MiB\"\nslow_time = \"5s\"").is_ok());
    }

    #[test]
    fn a_request_for_an_unknown_item_waits_for_a_time_or_for_ever() {
        let times = |keys: &str| {
            let settings = checked(keys).unwrap().hub.unwrap().settings;
            (settings.request_timeout_ms, settings.wait_timeout_ms)
        };
        assert_eq!(times(""), (5_000, 30_000));
        assert_eq!(times("unknown_timeout = \"2m\""), (5_000, 120_000));
        assert_eq!(times("unknown_timeout = \"2s\""), (2_000, 2_000));
        for for_ever in ["never", "0s", "0"] {
            assert_eq!(times(&format!("unknown_timeout = \"{for_ever}\"")), (5_000, 0), "{for_ever}");
        }
    }

    #[test]
    fn what_does_not_go_together_is_said() {
        for (keys, says) in [
            ("unknown_timeout = \"soon\"", "\"never\" or \"0s\" waits for ever"),
            ("unknown = \"closed\"\nunknown_timeout = \"5s\"", "unknown_timeout is set"),
            ("bind = \"here\"", "plant.toml:10:8: bind is \"here\""),
            ("slow_bytes = \"1MiB\"", "plant.toml:10:14: slow_bytes is set"),
            ("slow = \"drop\"", "\"conflate\", \"cut\", \"drop-with-gap\" or \"block\" is expected"),
            ("slow_age = \"5s\"", "slow_age is set"),
            ("ping_timeout = \"1500ms\"", "whole seconds, 1 to 255"),
            ("max_connections = 0", "max_connections is 0"),
            ("max_connections_per_address = 0", "max_connections_per_address is 0"),
            ("cert = \"a.pem\"", "cert and key go together"),
            ("cert = \"no.pem\"\nkey = \"no.pem\"", "cannot read no.pem"),
            ("enums = \"enumtype.def\"", "no dictionary"),
            ("waiting_size = \"1MiB\"", "waiting_size is 1048576 bytes; one image may have 8388608"),
            ("cpu = 99999", "cpu is 99999"),
            ("origins = [\"desk.example.com\"]", "the origin of a page is expected"),
            ("[hub.web]\nnames = [\"plant:80\"]", "a host name is expected"),
            ("[hub.web]\nbind = \"here\"", "bind is \"here\""),
            ("prot = 1", "did you mean `port`?"),
            ("[hub.zeromq]\nbody = \"xml\"", "\"rwf\" or \"json\" is expected"),
            ("[hub.zeromq]\nimages_every = \"often\"", "\"0s\" sends no images"),
            ("[hub.zeromq]\nqueue = \"1KiB\"", "queue is 1024 bytes"),
            ("[hub.zeromq]\n[hub.access]", "ZeroMQ would publish to everybody what [hub.access] denies"),
            ("[hub.zeromq]\nbnd = \"::\"", "did you mean `bind`?"),
        ] {
            let said = checked(keys).unwrap_err();
            assert!(said.contains(says), "{keys}: {said}");
        }
    }

    #[test]
    fn who_comes_late_to_zeromq_has_images_unless_nobody_is_to() {
        for (keys, seconds) in
            [("", Some(10)), ("images_every = \"2s\"", Some(2)), ("images_every = \"0s\"", None)]
        {
            let hub = checked(&format!("[hub.zeromq]\n{keys}")).unwrap().hub.unwrap();
            assert_eq!(hub.zeromq.unwrap().images_every, seconds.map(Duration::from_secs), "{keys}");
        }
    }
}
