//! The live page, and the module that it uses, in a real browser: quotes that change, a feed that stops, a plant that
//! restarts. `make interop` installs and requires the browser; elsewhere these tests are skipped without one.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
#![allow(clippy::print_stderr, reason = "why it was skipped")]

mod chromium;
mod client;
#[path = "../commands/remains/mod.rs"]
mod remains;
#[path = "../commands/stage/mod.rs"]
#[allow(dead_code, reason = "the tests of commands use more of it")]
mod stage;

use std::io::Write;
use std::net::SocketAddr;
use std::process::Stdio;

use chromium::Chromium;
use serde_json::json;
use stage::{Place, Running};

/// A browser; without one the test says that it is skipped.
fn browser() -> Option<Chromium> {
    let Some(program) = chromium::find() else {
        eprintln!("skipped: there is no Chromium; `make interop` installs one, CHROMIUM names one");
        return None;
    };
    Some(Chromium::start(&program))
}

/// A plant with a hub and a page, at these ports or at free ports.
fn plant(place: &Place, ports: Option<(u16, u16)>) -> (Running, SocketAddr, SocketAddr) {
    plant_with(place, "stale_after = \"1s\"", "unknown = \"wait\"", ports)
}

/// The same with these keys of the feed, and these keys of the hub with what follows them.
fn plant_with(
    place: &Place,
    feed: &str,
    hub_keys: &str,
    ports: Option<(u16, u16)>,
) -> (Running, SocketAddr, SocketAddr) {
    let config = place.config(feed);
    let (hub, web) = ports.unwrap_or_default();
    let mut text = std::fs::read_to_string(&config).unwrap();
    text.push_str(&format!(
        "[hub.web]\nport = {web}\nitems = [\"TAPE\", \"SENA\"]\n[hub]\nport = {hub}\n{hub_keys}\n"
    ));
    std::fs::write(&config, text).unwrap();
    let mut plant = Running::start(&["plant", "--config", &config, "--format", "json"]);
    let ready = plant.says();
    let at = |key: &str| ready[key].as_str().unwrap().parse().unwrap();
    let (hub, web) = (at("hub"), at("web"));
    (plant, hub, web)
}

/// A simulated exchange that runs until it is dropped.
fn exchange(place: &Place) -> Running {
    let to = place.lines[0].to_string();
    Running::start(&[
        "feed",
        "simulate",
        "--to",
        &to,
        "--symbols",
        "3",
        "--rate",
        "300",
        "--duration",
        "600s",
        "--format",
        "json",
    ])
}

/// The state of an item on the page.
fn state(item: &str) -> String {
    format!("document.querySelector('#quotes tr[data-item=\"{item}\"]').dataset.state")
}

/// The bid of an item and its number of updates.
fn quote(item: &str) -> String {
    format!(
        "[2, 7].map((cell) => document.querySelector('#quotes tr[data-item=\"{item}\"]').cells[cell].textContent)"
    )
}

#[test]
fn the_page_shows_quotes_doubts_and_recovers() {
    let Some(mut page) = browser() else { return };
    let place = Place::new(1);
    let (running, hub, web) = plant(&place, None);
    let feed = exchange(&place);
    page.open(&format!("http://{web}/"));

    // The items of the configuration, with quotes that change.
    page.wait_for(&format!("{} === 'ok' && {} === 'ok'", state("TAPE"), state("SENA")));
    let before = page.evaluate(&quote("TAPE"));
    page.wait_for(&format!("{}[0] !== '' && {}[1] !== {}", quote("TAPE"), quote("TAPE"), before[1]));
    // The counters, with this page's own session among others.
    page.wait_for("document.querySelector('#sessions').textContent.includes('websocket tr_json2')");
    page.wait_for("document.querySelector('#feeds').textContent.includes('live')");
    page.wait_for("document.querySelector('#latency').textContent.includes('wire → sent')");
    assert_eq!(page.evaluate("document.getElementById('alarm').hidden"), true);

    // Adds items: one that exists, and one whose name would be markup if it were not escaped.
    page.evaluate(
        "document.getElementById('item').value = 'RIMU <img/src=x/onerror=document.title=\"broken\">'; \
         document.querySelector('#add button').click()",
    );
    page.wait_for(&format!("{} === 'ok'", state("RIMU")));
    assert_eq!(page.evaluate("document.querySelectorAll('#quotes img').length"), 0);
    assert_eq!(page.evaluate("document.querySelectorAll('#quotes tbody tr').length"), 4);
    page.evaluate("document.querySelectorAll('#quotes tbody tr')[3].querySelector('button').click()");
    assert_eq!(page.evaluate("document.querySelectorAll('#quotes tbody tr').length"), 3);
    // Long enough for a curve in the screenshot.
    if std::env::var_os("SCREENSHOTS").is_some() {
        page.wait_for("document.querySelector('#timeline') && performance.now() > 12000");
    }
    page.picture("live");
    page.resize(390, 844);
    page.wait_for("document.documentElement.scrollWidth <= window.innerWidth");
    page.picture("live-phone");
    page.resize(1280, 1400);

    // The feed stops: the page marks its quotes as suspect.
    drop(feed);
    page.wait_for(&format!("{} === 'suspect' && {} === 'suspect'", state("TAPE"), state("RIMU")));
    page.wait_for("!document.getElementById('alarm').hidden && document.getElementById('alarm').textContent.includes('suspect')");
    page.wait_for("document.querySelector('#feeds').textContent.includes('stale')");
    page.picture("suspect");

    // The plant dies: the quotes are old, and the connection is down.
    drop(running);
    page.wait_for(&format!("{} === 'old'", state("TAPE")));
    page.wait_for("document.getElementById('link').textContent.includes('WebSocket down')");
    page.wait_for("document.getElementById('alarm').textContent.includes('these quotes are old')");
    assert_eq!(page.evaluate("document.getElementById('quotes-note').textContent"), "");
    page.picture("down");

    // The plant restarts: the quotes recover without any action on the page.
    let (_running, ..) = plant(&place, Some((hub.port(), web.port())));
    // Before its feed begins, it refuses them: the page asks again.
    page.wait_for(&format!("{} === 'closed'", state("TAPE")));
    let _feed = exchange(&place);
    page.wait_for(&format!("{} === 'ok' && {} === 'ok'", state("TAPE"), state("RIMU")));
    let before = page.evaluate(&quote("TAPE"));
    page.wait_for(&format!("{}[1] !== {}", quote("TAPE"), before[1]));
    page.wait_for("document.getElementById('alarm').hidden");
}

#[test]
fn a_page_of_another_host_gets_nothing() {
    let Some(mut page) = browser() else { return };
    let place = Place::new(1);
    let (_running, hub, web) = plant(&place, None);
    let port = hub.port();
    let connects = format!(
        "new Promise((done) => {{ const socket = new WebSocket('ws://127.0.0.1:{port}/WebSocket', 'tr_json2'); \
         socket.onopen = () => done('open'); socket.onerror = () => done('refused'); }})"
    );
    // A page without a host.
    assert_eq!(page.evaluate(&connects), "refused");
    // A page of this machine under another host name than that of the hub's address.
    page.open(&format!("http://localhost:{}/health", web.port()));
    page.wait_for("location.hostname === 'localhost' && document.readyState === 'complete'");
    assert_eq!(page.evaluate(&connects), "refused");
    // The browser does not let another page read the answer to an HTTP request.
    let fetches =
        format!("fetch('http://127.0.0.1:{}/stat.json').then(() => 'read', () => 'refused')", web.port());
    assert_eq!(page.evaluate(&fetches), json!("refused"));
    page.open(&format!("http://127.0.0.1:{}/health", web.port()));
    page.wait_for("location.hostname === '127.0.0.1' && document.readyState === 'complete'");
    assert_eq!(page.evaluate(&connects), "open");
}

/// Two feeds, one of which stops: the other's items stay good.
#[test]
fn the_page_doubts_the_feed_that_stopped_alone() {
    let Some(mut page) = browser() else { return };
    let place = Place::new(2);
    let feeds: String = place
        .lines
        .iter()
        .zip(["A", "B"])
        .map(|(line, name)| {
            format!(
                "[[feed]]\nname = \"{name}\"\nprotocol = \"itch50-moldudp64\"\nstale_after = \"1s\"\nstart = \"from-one\"\n\
                 [[feed.line]]\naddress = \"{line}\"\ninterface = \"127.0.0.1\"\n"
            )
        })
        .collect();
    let config = place.folder.path().join("plant.toml");
    let text = format!(
        "[plant]\nring = \"{}\"\n{feeds}[hub]\nport = 0\nunknown = \"wait\"\n[hub.web]\nport = 0\n\
         items = [\"TAPE.A\", \"TAPE.B\"]\n",
        place.ring
    );
    std::fs::write(&config, text).unwrap();
    let mut running = Running::start(&["plant", "--config", config.to_str().unwrap(), "--format", "json"]);
    let web = running.says()["web"].as_str().unwrap().to_owned();
    let to = |line: usize| {
        let to = place.lines[line].to_string();
        let fixed = ["feed", "simulate", "--to", &to, "--symbols", "3", "--rate", "300"];
        Running::start(&[&fixed[..], &["--duration", "600s", "--format", "json"]].concat())
    };
    let (_goes_on, stops) = (to(0), to(1));
    page.open(&format!("http://{web}/"));
    page.wait_for(&format!("{} === 'ok' && {} === 'ok'", state("TAPE.A"), state("TAPE.B")));
    drop(stops);
    page.wait_for(&format!("{} === 'suspect'", state("TAPE.B")));
    page.wait_for("document.getElementById('alarm').textContent.includes('suspect')");
    // Updated after the feed stopped, so both states are current.
    let before = page.evaluate(&quote("TAPE.A"));
    page.wait_for(&format!("{}[1] !== {}", quote("TAPE.A"), before[1]));
    page.wait_for(&format!("{} === 'ok' && {} === 'suspect'", state("TAPE.A"), state("TAPE.B")));
}

/// The page asks for a password if the hub requires one.
#[test]
fn the_page_asks_for_a_password() {
    let Some(mut page) = browser() else { return };
    let place = Place::new(1);
    add_alice(&place);
    let keys = "unknown = \"wait\"\n[hub.access]\nlogin = \"password\"\nusers = \"users.txt\"";
    let (_running, _, web) = plant_with(&place, "", keys, None);
    let _feed = exchange(&place);
    page.open(&format!("http://{web}/"));
    let refused = |why: &str| {
        format!(
            "!document.getElementById('login').hidden && \
             document.getElementById('link').textContent.includes('{why}')"
        )
    };
    page.wait_for(&refused("A password is needed"));
    let try_it = |password: &str| {
        format!(
            "document.getElementById('user').value = 'alice'; \
             document.getElementById('password').value = '{password}'; \
             document.querySelector('#login button').click()"
        )
    };
    page.evaluate(&try_it("wrong horse"));
    page.wait_for(&refused("the password is wrong"));
    page.evaluate(&try_it("correct horse"));
    page.wait_for(&format!("{} === 'ok' && document.getElementById('login').hidden", state("TAPE")));
    assert_eq!(page.evaluate("document.getElementById('password').value"), "");
}

/// Adds a user with a password to the file of users.
fn add_alice(place: &Place) {
    let users = place.folder.path().join("users.txt");
    let mut passwd = stage::tapeline(&["plant", "passwd", "alice", "--users", users.to_str().unwrap()])
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    passwd.stdin.take().unwrap().write_all(b"correct horse\n").unwrap();
    assert!(passwd.wait().unwrap().success());
}
