//! The stream of a crypto venue: its addresses and its symbols.

use std::path::PathBuf;

use anyhow::Context;
use tapeline_feed::Protocol;
use tapeline_feed::symbols::Symbols;
use tapeline_feed::venues::{CryptoVenue, MAX_SYMBOL_BYTES, MAX_SYMBOLS, VenueSettings};
use tapeline_node::config::VenueStream;
use tapeline_wire::tls::{Tls, TlsVersions};
use tapeline_wire::web_client::Url;
use toml::Spanned;

use super::source::{Source, span};
use super::{RawFeed, source};

/// The keys of a feed that only a venue's stream has.
pub(super) struct VenueKeys {
    /// Where the protocol is named.
    protocol: source::Span,
    /// Where the symbols are named.
    symbols: Option<source::Span>,
    url: Option<Spanned<String>>,
    snapshot_url: Option<Spanned<String>>,
    ca: Option<Spanned<PathBuf>>,
}

impl VenueKeys {
    /// Takes the keys of a feed.
    pub(super) fn of(raw: &mut RawFeed) -> Self {
        let listed = raw.symbols.as_ref().map(Spanned::span);
        Self {
            protocol: raw.protocol.span(),
            symbols: listed.or_else(|| raw.symbols_file.as_ref().map(Spanned::span)),
            url: raw.url.take(),
            snapshot_url: raw.snapshot_url.take(),
            ca: raw.ca.take(),
        }
    }

    /// Returns the first of the keys that is set, and its place.
    fn first(&self) -> Option<(&'static str, source::Span)> {
        let url = self.url.as_ref().map(|url| ("url", url.span()));
        let snapshot_url = self.snapshot_url.as_ref().map(|url| ("snapshot_url", url.span()));
        url.or(snapshot_url).or(self.ca.as_ref().map(|ca| ("ca", ca.span())))
    }
}

impl Source<'_> {
    /// A venue's stream takes the place of lines, of a file and of recovery.
    pub(super) fn check_no_lines(&self, raw: &RawFeed, protocol: Protocol) {
        let (name, protocol) = (raw.name.get_ref(), protocol.name());
        let said =
            |what: &str| format!("feed {name} has {what}, and protocol \"{protocol}\" is a venue's stream");
        let hint = "url names the stream's address, if it is not the venue's own";
        if let Some(line) = raw.line.first() {
            self.fault(line.address.span(), said("lines"), hint);
        }
        if let Some(file) = &raw.file {
            self.fault(file.span(), said("a file"), hint);
        }
        if raw.recovery.is_some() {
            let hint = "a venue's book is joined with a new snapshot after a gap, without a table of its own";
            self.fault(raw.name.span(), said("a table [feed.recovery]"), hint);
        }
    }

    /// The stream of a venue's protocol; `None` for other protocols.
    pub(super) fn stream(
        &self,
        keys: &VenueKeys,
        protocol: Protocol,
        symbols: Option<&Symbols>,
    ) -> anyhow::Result<Option<VenueStream>> {
        let Some(venue) = protocol.venue() else {
            return match keys.first() {
                Some((key, span)) => {
                    let what =
                        format!("{key} is set, and protocol \"{}\" has no such address", protocol.name());
                    Err(self.wrong(
                        span,
                        what,
                        "url, snapshot_url and ca are for the streams of crypto venues",
                    ))
                }
                None => Ok(None),
            };
        };
        let symbols = self.symbols_of_venue(keys, venue, symbols)?;
        let url = self.url("url", &keys.url, venue.stream_url(), true)?;
        let snapshot_url = match (venue.snapshot_url(), &keys.snapshot_url) {
            (Some(usual), given) => Some(self.url("snapshot_url", given, usual, false)?),
            (None, None) => None,
            (None, Some(given)) => {
                let what = format!("snapshot_url is set, and protocol \"{}\" has none", protocol.name());
                return Err(self.wrong(given.span(), what, "this venue sends snapshots on its stream"));
            }
        };
        let is_encrypted = url.is_encrypted() || snapshot_url.as_ref().is_some_and(Url::is_encrypted);
        let tls = self.tls_for(is_encrypted, &keys.ca, &keys.protocol, "url = \"wss://…\"")?;
        let settings = VenueSettings::new(venue, symbols);
        Ok(Some(VenueStream { settings, url, snapshot_url, tls }))
    }

    /// The symbols of a venue: whole names that can stand in its requests.
    fn symbols_of_venue<'s>(
        &self,
        keys: &VenueKeys,
        venue: CryptoVenue,
        symbols: Option<&'s Symbols>,
    ) -> anyhow::Result<Vec<&'s str>> {
        let hint = format!("such as symbols = [\"{}\"], in the venue's own notation", venue.example());
        let place = keys.symbols.clone().unwrap_or_else(|| keys.protocol.clone());
        let Some(symbols) = symbols else {
            let what = "a venue's stream has no symbols to subscribe to";
            return Err(self.wrong(place, what, hint));
        };
        if let Some(prefix) = symbols.prefixes().next() {
            let what = format!(
                "\"{prefix}*\" is not a whole symbol: a venue's stream subscribes to each by its name"
            );
            return Err(self.wrong(place, what, hint));
        }
        let names = symbols.names();
        if names.len() > MAX_SYMBOLS {
            let what = format!("{} symbols; at most {MAX_SYMBOLS} are expected on one stream", names.len());
            return Err(self.wrong(place, what, "make a second feed for the others"));
        }
        let is_part =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'/' | b'_' | b'.' | b':');
        if let Some(bad) =
            names.iter().find(|name| name.len() > MAX_SYMBOL_BYTES || !name.bytes().all(is_part))
        {
            let what = format!(
                "\"{bad}\" is not a symbol: up to {MAX_SYMBOL_BYTES} letters, digits and -/_.: are expected"
            );
            return Err(self.wrong(place, what, hint));
        }
        Ok(names)
    }

    /// Trusted certificates, if an address asks for TLS: those of a file, or of this system. `place`: where the address is named.
    pub(super) fn tls_for(
        &self,
        is_encrypted: bool,
        ca: &Option<Spanned<PathBuf>>,
        place: &source::Span,
        example: &str,
    ) -> anyhow::Result<Option<Tls>> {
        match (is_encrypted, ca) {
            (false, None) => Ok(None),
            (false, Some(ca)) => {
                let what = "ca is set, but no address asks for TLS";
                Err(self.wrong(ca.span(), what, format!("such as {example}")))
            }
            (true, Some(ca)) => Tls::client(&self.file(ca)?, TlsVersions::Both)
                .with_context(|| format!("{}: cannot use this certificate", self.at(&ca.span())))
                .map(Some),
            (true, None) => Tls::client_of_system(TlsVersions::Both).map(Some).map_err(|cause| {
                self.wrong(place.clone(), cause, "ca = \"ca.pem\" names a file of trusted certificates")
            }),
        }
    }

    /// An address of a web server.
    pub(super) fn url(
        &self,
        key: &str,
        given: &Option<Spanned<String>>,
        usual: &str,
        is_stream: bool,
    ) -> anyhow::Result<Url> {
        let text = given.as_ref().map_or(usual, |given| given.get_ref());
        let hint = format!("such as {key} = \"{usual}\"");
        let url = Url::parse(text).map_err(|fault| {
            self.wrong(span(given), format!("{key} is \"{text}\": {fault}"), hint.clone())
        })?;
        if url.is_websocket() == is_stream {
            return Ok(url);
        }
        let expected = if is_stream { "wss:// or ws://" } else { "https:// or http://" };
        Err(self.wrong(span(given), format!("{key} is \"{text}\"; {expected} is expected"), hint))
    }
}

#[cfg(test)]
mod tests {
    use tapeline_node::config::VENUE_STALE_AFTER;

    use crate::plant::config::testing::checked;

    fn plant(more: &str) -> String {
        format!("[plant]\nring = \"r\"\n[[feed]]\nname = \"f\"\nprotocol = \"binance\"\n{more}\n")
    }

    const LOCAL: &str = "url = \"ws://127.0.0.1:1/s\"\nsnapshot_url = \"http://127.0.0.1:1/d\"\n";

    #[test]
    fn a_stream_has_addresses_and_symbols() {
        let config = checked(&plant(&format!("symbols = [\"ETHUSDT\", \"BTCUSDT\"]\n{LOCAL}"))).unwrap();
        let feed = &config.feeds[0];
        let stream = feed.stream.as_ref().unwrap();
        assert_eq!(stream.settings.symbols, ["BTCUSDT", "ETHUSDT"]);
        assert_eq!(stream.url.to_string(), "ws://127.0.0.1:1/s");
        assert!(stream.tls.is_none() && feed.symbols.is_none() && feed.lines.is_empty());
        assert_eq!(feed.stale_after, VENUE_STALE_AFTER);
        let every = plant(&format!("symbols = [\"BTCUSDT\"]\n{LOCAL}"))
            .replace("ring = \"r\"", "ring = \"r\"\npublish = \"every-message\"");
        assert!(checked(&every).unwrap_err().contains("messages can be longer than a tick"));
    }

    #[test]
    fn faults_name_the_key_and_what_is_expected() {
        let symbols = "symbols = [\"BTCUSDT\"]\n";
        for (feed, says) in [
            (plant(LOCAL), "plant.toml:5:12: a venue's stream has no symbols"),
            (
                plant(&format!("symbols = [\"BTC*\"]\n{LOCAL}")),
                "plant.toml:6:11: \"BTC*\" is not a whole symbol",
            ),
            (plant(&format!("symbols = [\"BTC,USD\"]\n{LOCAL}")), "\"BTC,USD\" is not a symbol"),
            (plant(&format!("{symbols}url = \"stream.binance.com\"")), "begins with wss://"),
            (plant(&format!("{symbols}url = \"https://stream.binance.com\"")), "wss:// or ws:// is expected"),
            (plant(&format!("{symbols}{LOCAL}ca = \"ca.pem\"")), "ca is set, but no address asks for TLS"),
            (plant(&format!("{symbols}{LOCAL}file = \"x\"")), "feed f has a file"),
            (plant(&format!("{symbols}{LOCAL}market_by_order = true")), "has no orders"),
            (
                plant(&format!("{symbols}{LOCAL}[[feed.line]]\naddress = \"239.1.1.1:1\"\n")),
                "feed f has lines, and protocol \"binance\" is a venue's stream",
            ),
            (
                plant(&format!("{symbols}{LOCAL}")).replace("\"binance\"", "\"kraken\""),
                "snapshot_url is set, and protocol \"kraken\" has none",
            ),
            (
                plant(&format!("{LOCAL}[[feed.line]]\naddress = \"239.1.1.1:1\"\n"))
                    .replace("\"binance\"", "\"itch50-moldudp64\""),
                "url is set, and protocol \"itch50-moldudp64\" has no such address",
            ),
        ] {
            let said = checked(&feed).unwrap_err();
            assert!(said.contains(says), "{said}");
        }
    }
}
