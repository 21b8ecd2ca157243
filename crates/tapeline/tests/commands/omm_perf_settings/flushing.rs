//! Flushing by tools: after a burst, above the high-water mark, or after each message.

use std::path::Path;

use tapeline_wire::rssl::ConnectionSettings;
use tapeline_wire::tls::{Tls, TlsVersions};

use crate::omm_perf_settings::certificates;
use crate::omm_perf_settings::perf_peer::{Hub, Tool};
use crate::omm_perf_settings::tap::{Tap, Way};

/// Options of a tool, and the maximum length of its records in bytes; `None` if a record can be a whole burst.
type Told<'a> = (&'a [&'a str], Option<usize>);

/// A burst has 2,500 bytes or more, below the default mark of 6,144, so each is one record.
const BURST: usize = 1_500;
/// Bytes of several bursts.
const ENOUGH: usize = 10_000;

/// A mark of 500 bytes, the message above it, and the overhead of TLS; and the longest single message.
const ABOVE_MARK: Option<usize> = Some(1_000);
const ALONE: Option<usize> = Some(600);

/// Data that a full connection delayed comes in longer records, so only nine of ten must be short.
fn check(tool: &str, told: Told<'_>, records: &[usize]) {
    let longer = |than: usize| records.iter().filter(|length| **length > than).count();
    match told.1 {
        Some(most) => assert!(longer(most) * 10 <= records.len(), "{tool} {:?}: {records:?}", told.0),
        None => assert!(longer(BURST) > 0, "{tool} {:?}: {records:?}", told.0),
    }
}

/// Options for a client, with a TLS version whose handshake has no application data records.
fn to(port: u16, folder: &Path) -> Vec<String> {
    let ca = folder.join("ca.pem").display().to_string();
    let server = format!("localhost:{port}");
    ["--server", &server, "--tls", "--ca", &ca, "--tls-version", "1.2"].map(str::to_owned).to_vec()
}

fn serving(folder: &Path) -> Vec<String> {
    let [cert, key] = ["server.pem", "server.key"].map(|name| folder.join(name).display().to_string());
    ["--port", "0", "--cert", &cert, "--key", &key, "--tls-version", "1.2"].map(str::to_owned).to_vec()
}

fn start(words: &[&str], more: &[String], told: &[&str]) -> Tool {
    let more: Vec<&str> = more.iter().map(String::as_str).collect();
    Tool::start(&[words, &more, told].concat())
}

#[test]
fn an_ni_provider_flushes_when_it_is_told_to() {
    let folder = tempfile::tempdir().unwrap();
    certificates::write(folder.path());
    let file = |name| std::fs::read(folder.path().join(name)).unwrap();
    for told in [(&[][..], None), (&["--high-water-mark", "500"], ABOVE_MARK), (&["-directWrite"], ALONE)] {
        let tls = Tls::server(&file("server.pem"), &file("server.key"), TlsVersions::Both).unwrap();
        let mut hub = Hub::open_with(ConnectionSettings { tls: Some(tls), ..ConnectionSettings::default() });
        let tap = Tap::before(hub.port);
        let words =
            ["omm", "ni-provider", "--item-count", "10", "--tick-rate", "10", "--update-rate", "1000"];
        let mut tool = start(&words, &to(tap.port, folder.path()), told.0);
        hub.until(|hub| hub.heard(0).iter().filter(|heard| heard.is_update()).count() >= 400);
        check("ni-provider", told, &tap.until(Way::FromClient, BURST, &mut tool));
    }
}

#[test]
fn a_provider_and_a_consumer_flush_when_they_are_told_to() {
    let folder = tempfile::tempdir().unwrap();
    certificates::write(folder.path());
    let told: [[Told<'_>; 2]; 3] = [
        [(&[], None), (&["--high-water-mark", "0"], ALONE)],
        [(&["--high-water-mark", "500"], ABOVE_MARK), (&[], None)],
        [(&["-directWrite"], ALONE), (&["--high-water-mark", "500"], ABOVE_MARK)],
    ];
    for [by_provider, by_consumer] in told {
        let rates = ["--tick-rate", "10", "--update-rate", "1000"];
        let words = [&["omm", "provider"], &rates[..]].concat();
        let mut provider = start(&words, &serving(folder.path()), by_provider.0);
        let tap = Tap::before(provider.port());
        let words =
            ["omm", "consumer", "--tick-rate", "10", "--request-rate", "1000", "--item-count", "1000"];
        let mut consumer = start(&words, &to(tap.port, folder.path()), by_consumer.0);
        check("consumer", by_consumer, &tap.until(Way::FromClient, ENOUGH, &mut consumer));
        check("provider", by_provider, &tap.until(Way::FromServer, 5 * ENOUGH, &mut provider));
    }
}

#[test]
fn both_ends_of_a_transport_flush_when_they_are_told_to() {
    let folder = tempfile::tempdir().unwrap();
    certificates::write(folder.path());
    let told: [[Told<'_>; 2]; 3] = [
        [(&[], None), (&["--direct-write"], ALONE)],
        [(&["--high-water-mark", "500"], ABOVE_MARK), (&[], None)],
        [(&["--direct-write"], ALONE), (&["--high-water-mark", "500"], ABOVE_MARK)],
    ];
    for [by_server, by_client] in told {
        let words = |end| ["omm", "transport", end, "--tick-rate", "10", "--msg-rate", "500"];
        let mut server = start(&words("server"), &serving(folder.path()), by_server.0);
        let tap = Tap::before(server.port());
        let mut client = start(&words("client"), &to(tap.port, folder.path()), by_client.0);
        check("client", by_client, &tap.until(Way::FromClient, ENOUGH, &mut client));
        check("server", by_server, &tap.until(Way::FromServer, ENOUGH, &mut server));
    }
}
