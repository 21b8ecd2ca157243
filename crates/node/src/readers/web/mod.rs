//! `[hub.web]`: metrics, health and the live page over HTTP, on its own thread. It reads only the plant's
//! counters, so that requests cost the plant and the hub nothing.

pub(crate) mod health;
pub(crate) mod metrics;

use std::net::SocketAddr;
use std::sync::Arc;

use tapeline_measure::{Clock, Nanos};
use tapeline_wire::http::{HttpRequest, HttpSettings, Response, Server};

use crate::Error;
use crate::hub::HubConfig;
use crate::readers::counting::LatestSnapshot;
use crate::stat::snapshot::Snapshot;

/// Settings of metrics, health and the live page.
#[derive(Debug)]
pub struct WebConfig {
    /// Address of the listener; port 0 selects a free port.
    pub address: SocketAddr,
    /// Names under which browsers reach this server, in addition to the addresses, `localhost` and the
    /// machine's own name.
    pub names: Vec<String>,
    /// Items that the page shows initially.
    pub items: Vec<String>,
}

/// The page's files, embedded in the program; `tapeline.js` is also a module for the pages of others.
const FILES: [(&str, &str, &str); 4] = [
    ("/", "text/html; charset=utf-8", include_str!("page.html")),
    ("/page.css", "text/css; charset=utf-8", include_str!("page.css")),
    ("/page.js", "text/javascript; charset=utf-8", include_str!("page.js")),
    ("/tapeline.js", "text/javascript; charset=utf-8", include_str!("client/tapeline.js")),
];

/// Starts the web server, if the hub's configuration has one, and allows pages from it under the configured
/// names to connect to the hub.
///
/// # Errors
/// The port is in use, or the address does not belong to this machine.
pub(crate) fn open(hub: &mut HubConfig, latest: &Arc<LatestSnapshot>) -> crate::Result<Option<Server>> {
    let Some(config) = &hub.web else { return Ok(None) };
    let (latest, clock) = (Arc::clone(latest), Clock::calibrate());
    let settings = HttpSettings { names: config.names.clone(), ..HttpSettings::default() };
    let answer = move |request: &HttpRequest<'_>| answer(request, &latest.read(), clock.now());
    let server = Server::start(config.address, settings, answer).map_err(|error| {
        Error::of_port(format!("cannot serve the live page at {}", config.address), "[hub.web]", error)
    })?;
    let port = server.address().port();
    let origins: Vec<String> = config.names.iter().map(|name| format!("http://{name}:{port}")).collect();
    hub.let_in(origins);
    Ok(Some(server))
}

fn answer(request: &HttpRequest<'_>, snapshot: &Snapshot, now: Nanos) -> Response {
    let text = |status, content_type, body: String| Response {
        status,
        content_type,
        body: body.into_bytes(),
        headers: Vec::new(),
    };
    const JSON: &str = "application/json";
    match request.path {
        "/metrics" => text(200, "text/plain; version=0.0.4; charset=utf-8", metrics::of(snapshot, now)),
        "/health" => {
            let (is_well, said) = health::of(snapshot, now);
            text(if is_well { 200 } else { 503 }, JSON, said.to_string())
        }
        "/stat.json" => match serde_json::to_string(snapshot) {
            Ok(said) if !snapshot.layout.is_empty() => text(200, JSON, said),
            _ => text(503, JSON, "{\"error\":\"the plant is starting\"}".to_owned()),
        },
        path => match FILES.iter().find(|(name, ..)| *name == path) {
            Some((_, content_type, body)) => Response {
                status: 200,
                content_type,
                body: body.as_bytes().to_vec(),
                headers: vec![("content-security-policy", policy(request.host, snapshot))],
            },
            None => text(
                404,
                "text/plain; charset=utf-8",
                "there is /, /tapeline.js, /metrics, /health, /stat.json".to_owned(),
            ),
        },
    }
}

/// What the page may access: its own files, this server, and the hub's port of the same host. No foreign
/// script runs, and no other page may show this one in a frame.
fn policy(host: &str, snapshot: &Snapshot) -> String {
    let hub = snapshot.hub.as_ref().and_then(|hub| hub.address.rsplit_once(':'));
    let quotes = hub.map_or_else(String::new, |(_, port)| format!(" ws://{host}:{port} wss://{host}:{port}"));
    format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'{quotes}; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stat::snapshot::{Hub, LAYOUT};

    fn ask(path: &str, snapshot: &Snapshot) -> Response {
        answer(&HttpRequest { path, host: "127.0.0.1" }, snapshot, Nanos(0))
    }

    #[test]
    fn the_page_may_talk_to_its_host_alone() {
        let hub = Hub { address: "0.0.0.0:14002".to_owned(), ..Hub::default() };
        let page = ask("/", &Snapshot { hub: Some(hub), ..Snapshot::default() });
        assert_eq!(page.status, 200);
        let (_, policy) = &page.headers[0];
        assert!(policy.contains("default-src 'none'"), "{policy}");
        assert!(
            policy.contains("connect-src 'self' ws://127.0.0.1:14002 wss://127.0.0.1:14002;"),
            "{policy}"
        );
        // Nothing in the page needs more than that allows.
        let page = String::from_utf8(page.body).unwrap();
        for forbidden in ["<style", "style=", "onclick", "http://", "https://", "<script>"] {
            assert!(!page.contains(forbidden), "{forbidden}");
        }
    }

    #[test]
    fn what_comes_from_outside_is_set_as_text() {
        for (name, _, script) in FILES.iter().filter(|(name, ..)| name.ends_with(".js")) {
            for dangerous in
                ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function("]
            {
                assert!(!script.contains(dangerous), "{name}: {dangerous}");
            }
        }
    }

    #[test]
    fn the_package_is_the_module() {
        let package: serde_json::Value = serde_json::from_str(include_str!("client/package.json")).unwrap();
        assert_eq!(package["version"], env!("CARGO_PKG_VERSION"));
        assert_eq!(package["license"], env!("CARGO_PKG_LICENSE"));
        let served = ask("/tapeline.js", &Snapshot::default());
        assert_eq!((served.status, served.content_type), (200, "text/javascript; charset=utf-8"));
        let module = String::from_utf8(served.body).unwrap();
        assert!(module.contains("export class Consumer"));
        // It has neither a dependency nor a build step.
        assert!(!module.contains("import "), "{package}");
    }

    #[test]
    fn before_the_plant_is_there_it_says_so() {
        assert_eq!(ask("/stat.json", &Snapshot::default()).status, 503);
        assert_eq!(ask("/health", &Snapshot::default()).status, 503);
        assert_eq!(
            ask("/stat.json", &Snapshot { layout: LAYOUT.to_owned(), ..Snapshot::default() }).status,
            200
        );
        assert_eq!(ask("/../etc/passwd", &Snapshot::default()).status, 404);
    }
}
