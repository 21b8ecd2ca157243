//! `[otlp]`: the collector of OpenTelemetry to which metrics are pushed.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use tapeline_console::arguments;
use tapeline_node::otlp::{self, OtlpConfig};
use tapeline_wire::web_client::Url;
use toml::Spanned;

use super::Source;

/// Where a collector on this machine listens (opentelemetry.io, "OTLP Specification", default port and path).
const USUAL: &str = "http://127.0.0.1:4318/v1/metrics";
const USUAL_EVERY: Duration = Duration::from_secs(10);
/// Counters are made once a second.
const SHORTEST: Duration = Duration::from_secs(1);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawOtlp {
    endpoint: Spanned<String>,
    every: Option<Spanned<String>>,
    ca: Option<Spanned<PathBuf>>,
    headers_file: Option<Spanned<PathBuf>>,
}

impl Source<'_> {
    pub(super) fn otlp(&self, raw: &RawOtlp) -> anyhow::Result<OtlpConfig> {
        let hint = "every = \"10s\" is the default";
        let every = self.time(&raw.every, arguments::duration, hint).unwrap_or(USUAL_EVERY);
        if let Some(given) = raw.every.as_ref().filter(|_| every < SHORTEST) {
            let what = format!("every is \"{}\"; a second at least is expected", given.get_ref());
            self.fault(given.span(), what, "counters are made once a second");
        }
        let place = raw.endpoint.span();
        let endpoint = self.url("endpoint", &Some(raw.endpoint.clone()), USUAL, false)?;
        let tls = self.tls_for(endpoint.is_encrypted(), &raw.ca, &place, "endpoint = \"https://…\"")?;
        if endpoint.path() == "/" {
            let what = format!("endpoint is \"{}\", without a path", raw.endpoint.get_ref());
            return Err(self.wrong(place, what, format!("collectors take metrics at {USUAL}")));
        }
        let headers = raw.headers_file.as_ref().map(|file| self.headers(file, &endpoint)).transpose()?;
        Ok(OtlpConfig { endpoint, every, tls, headers })
    }

    /// A file of headers that can be read, and that nobody between here and the endpoint can read.
    fn headers(&self, file: &Spanned<PathBuf>, endpoint: &Url) -> anyhow::Result<PathBuf> {
        let is_here = endpoint.host() == "localhost"
            || endpoint.host().parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback());
        if !endpoint.is_encrypted() && !is_here {
            let what = format!("headers_file is set, and {endpoint} is not encrypted");
            return Err(self.wrong(
                file.span(),
                what,
                "headers go to https://, or to a collector on this machine",
            ));
        }
        let path = self.beside(file.get_ref());
        let hint = "one header a line, such as `Authorization: Bearer KEY`";
        otlp::read_headers(&path).map_err(|what| self.wrong(file.span(), what, hint))?;
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plant::config::testing::{PLANT, checked};

    fn plant(otlp: &str) -> String {
        format!("{PLANT}[otlp]\n{otlp}\n")
    }

    #[test]
    fn a_collector_has_an_address_with_a_path() {
        for (otlp, expected) in [
            ("endpoint = \"127.0.0.1:4318\"", "an address begins with"),
            ("endpoint = \"ws://127.0.0.1:4318/v1/metrics\"", "https:// or http:// is expected"),
            ("endpoint = \"http://127.0.0.1:4318\"", "without a path"),
            ("endpoint = \"http://h/v1/metrics\"\nca = \"ca.pem\"", "no address asks for TLS"),
            (
                "endpoint = \"http://h/v1/metrics\"\nheaders_file = \"/dev/null\"",
                "headers_file is set, and http://h/v1/metrics is not encrypted",
            ),
            ("endpoint = \"http://127.0.0.1/v1/metrics\"\nheaders_file = \"none\"", "cannot read "),
            (
                "endpoint = \"http://localhost/v1/metrics\"\nheaders_file = \"/dev/zero\"",
                "the headers are longer than 4096 bytes",
            ),
            ("endpoint = \"http://h/v1/metrics\"\nevery = \"10ms\"", "a second at least is expected"),
        ] {
            let fault = checked(&plant(otlp)).unwrap_err();
            assert!(fault.contains(expected), "{otlp}: {fault}");
        }
        let config =
            checked(&plant("endpoint = \"http://localhost:4318/v1/metrics\"")).unwrap().otlp.unwrap();
        assert_eq!((config.endpoint.authority().as_str(), config.every), ("localhost:4318", USUAL_EVERY));
    }
}
