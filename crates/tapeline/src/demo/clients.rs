//! Clients of the plant's hub that do not use shared memory: Tapeline's own consumer over TCP, and over a WebSocket
//! in JSON, as the page uses it. They have a few busy items open; the subscribers take everything.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context;
use serde::Deserialize;
use serde_json::Value;
use tapeline_console::part::Part;
use tapeline_console::stop::Stop;
use tapeline_measure::Recorder;
use tapeline_node::hub::ClientReport;
use tapeline_perf::path::from_hex;

use super::words;

/// The items that the clients have open: with hundreds of symbols, three of the busier ones with a fiftieth of all
/// messages, so that the clients' work does not distort what is measured at the subscribers; with few symbols, the
/// busiest. The simulated exchange always uses these names.
pub(super) const fn items(symbols: u16) -> [&'static str; 3] {
    if symbols >= 100 { ["TUTA", "SATU", "RESO"] } else { ["TAPE", "SENA", "RIMU"] }
}

/// A kind of client: its name, which is also its user, its transport, and the options for it.
struct Kind {
    name: &'static str,
    over: &'static str,
    options: &'static [&'static str],
}

const KINDS: [Kind; 2] = [
    Kind { name: "tcp client", over: "RSSL over TCP", options: &[] },
    Kind { name: "page", over: "WebSocket, JSON", options: &["--websocket", "json"] },
];

#[derive(Debug)]
pub(super) struct Clients(Vec<Part>);

#[derive(Debug)]
pub(super) struct Client {
    pub(super) name: &'static str,
    pub(super) over: &'static str,
    /// Images and updates.
    pub(super) received: u64,
    /// The age of updates, from due to the client.
    pub(super) age: Recorder,
}

/// The used part of a consumer's summary.
#[derive(Debug, Deserialize)]
struct End {
    refreshes: u64,
    updates: u64,
    age: Age,
}

#[derive(Debug, Deserialize)]
struct Age {
    histogram: String,
}

impl Clients {
    /// Starts one client of each kind, connected.
    pub(super) fn start(
        hub: SocketAddr,
        items: [&str; 3],
        warm_up: &str,
        limit: Duration,
        stop: &Stop,
    ) -> anyhow::Result<Self> {
        let mut parts = Vec::new();
        for Kind { name, options, .. } in KINDS {
            // The client ends with the plant.
            let mut words = words(&format!(
                "omm watch --server {hub} --service DEMO --until-closed --quiet --format json --timed {warm_up} --user"
            ));
            words.push(name.to_owned());
            words.extend(options.iter().chain(&items).map(|word| (*word).to_owned()));
            let mut part = Part::start(name, &words)?;
            while part.says::<Value>(limit, stop, || {})?["event"] != "connected" {}
            parts.push(part);
        }
        Ok(Self(parts))
    }

    pub(super) fn parts(&mut self) -> impl Iterator<Item = &mut Part> {
        self.0.iter_mut()
    }

    /// Collects the results of the clients, which end with the plant.
    pub(super) fn end(&mut self, limit: Duration, stop: &Stop) -> anyhow::Result<Vec<Client>> {
        let mut clients = Vec::new();
        for (part, Kind { name, over, .. }) in self.0.iter_mut().zip(KINDS) {
            let end = loop {
                let said: Value = part.says(limit, stop, || {})?;
                if said["event"] == "end" {
                    break said;
                }
            };
            let end: End = serde_json::from_value(end)
                .with_context(|| format!("cannot read the {name}'s final report"))?;
            let age = from_hex(&end.age.histogram).context("a histogram is not hexadecimal")?;
            let (received, age) = (end.refreshes + end.updates, Recorder::decode(&age)?);
            clients.push(Client { name, over, received, age });
        }
        Ok(clients)
    }
}

impl Client {
    /// Messages that were published for this client and never reached it: the hub counts what it sent to the
    /// session and what it left out. For a client that disconnected before the end, the rest was not counted: the
    /// loss is given as one.
    pub(super) fn lost(&self, sessions: &[ClientReport]) -> u64 {
        match sessions.iter().find(|session| session.user == self.name) {
            Some(session) => {
                let sent = session.refreshes + session.updates;
                sent.saturating_sub(self.received) + session.conflated + session.dropped
            }
            None => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_did_not_come_is_lost() {
        let client = Client { name: "page", over: "", received: 90, age: Recorder::new() };
        let session = ClientReport {
            user: "page".to_owned(),
            refreshes: 3,
            updates: 90,
            conflated: 5,
            ..ClientReport::default()
        };
        assert_eq!(client.lost(std::slice::from_ref(&session)), 8);
        assert_eq!(client.lost(&[ClientReport { refreshes: 3, updates: 87, conflated: 0, ..session }]), 0);
        assert_eq!(client.lost(&[]), 1, "it was cut");
    }
}
