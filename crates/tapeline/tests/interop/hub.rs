//! Unmodified clients of third parties with a plant's hub.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::json;

use crate::column::{Column, Outcome, Scenario};
use crate::consuming::{follow, note};
use crate::program::{Place, Program, free_port};
use crate::way::Way;

/// One transport and compression of each kind: the provider's tests cover all of them.
const OF_EMA: [Way; 7] = [
    Way::new("tcp", "none"),
    Way::new("tcp", "lz4"),
    Way::new("ws-rwf", "none"),
    Way::new("ws-json", "none"),
    Way::new("tls", "none"),
    Way::new("tls-ws-rwf", "none"),
    Way::new("tls-ws-json", "none"),
];
const OF_WEBSOCKET: [Way; 3] =
    [Way::new("ws-json", "none"), Way::new("ws-json-v2", "none"), Way::new("tls-ws-json", "none")];
/// The one transport that the library uses.
const OF_LSEG_DATA: [Way; 1] = [Way::new("ws-json", "none")];

const EMA: [Scenario; 10] = [
    ("login", "login and directory"),
    ("dictionary", "dictionary downloaded"),
    ("batch", "batch in one message"),
    ("reissue", "reissue"),
    ("pause", "pause and resume"),
    ("items", "items requested, refreshed, updated, closed; one unknown"),
    ("view", "view"),
    ("snapshot", "snapshot"),
    ("reconnect", "plant killed and back"),
    ("password", "let in with a password; without, and with a wrong one, told why not"),
];
/// The scenarios of ETA's consumer.
const OF_ETA: [&str; 3] = ["batch", "reissue", "pause"];

const WEBSOCKET: [Scenario; 10] = [
    ("login", "login"),
    ("directory", "directory"),
    ("item", "an item by its domain's name, its number and without; without a service"),
    ("batch", "batch, one item unknown"),
    ("view", "view, and another one on the same stream"),
    ("snapshot", "snapshot"),
    ("ping", "ping and pong"),
    ("post", "posts on and off stream, answered"),
    ("errors", "garbage answered, and the connection goes on"),
    ("logout", "logout"),
];

const LSEG_DATA: [Scenario; 7] = [
    ("session_opens", "a deployed platform session"),
    ("pricing", "pricing streams: image, updates, an item that nobody has"),
    ("snapshot", "snapshots"),
    ("data_frame", "`get_data`: a data frame"),
    ("omm", "OMM stream"),
    ("contribution", "contributions on and off stream, answered"),
    ("reconnect", "plant killed and back"),
];

/// libzmq's subscribers, with each body format.
const OF_ZEROMQ: [Way; 2] = [Way::new("zeromq-rwf", "none"), Way::new("zeromq-json", "none")];
const ZEROMQ: [Scenario; 6] = [
    ("everything", "all topics, numbered without a gap"),
    ("prefix", "subscriptions by prefix, and unsubscribed"),
    ("image", "an image for who comes late, and every message behind it"),
    ("xsub", "an XSUB socket"),
    ("heartbeat", "libzmq's heartbeats answered"),
    ("reconnect", "plant killed and back"),
];

/// Number of stocks, and messages a second: each stock has some every second, and no client is busy.
const STOCKS: u32 = 100;
const RATE: &str = "5k";
const SECONDS: &str = "240s";

/// LSEG's consumers in Java.
pub(crate) fn ema() -> Column {
    Column {
        title: "EMA and ETA consumers, Tapeline hub",
        scenarios: &EMA,
        ways: &OF_EMA,
        explained: |_, _| None,
        session: |place, way| told(&EMA, at_a_hub(place, way, ema_consumers)),
        cells: BTreeMap::new(),
    }
}

/// A WebSocket client without an OMM library.
pub(crate) fn websocket() -> Column {
    Column {
        title: "`websocket-client` (Python), Tapeline hub",
        scenarios: &WEBSOCKET,
        ways: &OF_WEBSOCKET,
        explained: |_, _| None,
        session: |place, way| told(&WEBSOCKET, at_a_hub(place, way, websocket_client)),
        cells: BTreeMap::new(),
    }
}

/// LSEG's library in Python.
pub(crate) fn lseg_data() -> Column {
    Column {
        title: "`lseg-data` (Python), Tapeline hub",
        scenarios: &LSEG_DATA,
        ways: &OF_LSEG_DATA,
        explained: |_, _| None,
        session: |place, way| told(&LSEG_DATA, at_a_hub(place, way, lseg_data_client)),
        cells: BTreeMap::new(),
    }
}

/// libzmq.
pub(crate) fn zeromq() -> Column {
    Column {
        title: "libzmq (`pyzmq`), Tapeline plant",
        scenarios: &ZEROMQ,
        ways: &OF_ZEROMQ,
        explained: |_, _| None,
        session: |place, way| told(&ZEROMQ, at_a_hub(place, way, zeromq_client)),
        cells: BTreeMap::new(),
    }
}

pub(crate) type Seen = Vec<(&'static str, Outcome)>;

/// The outcomes, or the failure of the first scenario if the session could not begin.
pub(crate) fn told(scenarios: &'static [Scenario], seen: Result<Seen, String>) -> Seen {
    seen.unwrap_or_else(|why| vec![(scenarios[0].0, Outcome::Failed(why))])
}

/// A plant with a hub, which can be restarted at the same address.
struct Market<'a> {
    place: &'a Place,
    way: Way,
    port: u16,
    /// The port of the ZeroMQ socket, if there is one.
    zeromq: u16,
    config: String,
    day: &'a Day,
}

/// Writes a plant's configuration with a hub on a port for this transport; returns its path.
pub(crate) fn configure(place: &Place, way: Way, port: u16, keys: &str) -> String {
    let config = place.path(&format!("logs/hub-{port}.toml"));
    let mut text = format!(
        "[plant]\nring = \"interop-hub-{}-{port}\"\npublish = \"changes\"\n\n[hub]\nport = {port}\nunknown = \"closed\"\n",
        std::process::id(),
    );
    if way.is_encrypted() {
        let (cert, key) = (place.certificate("server.pem"), place.certificate("server.key"));
        let _ = writeln!(text, "cert = \"{cert}\"\nkey = \"{key}\"");
    }
    std::fs::write(&config, text + keys).unwrap();
    config
}

/// Starts a plant, and checks its hub's port.
pub(crate) fn start(place: &Place, config: &str, port: u16) -> Result<Program, String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tapeline"));
    command.args(["plant", "--config", config, "--format", "json"]);
    let mut plant = place.start(command, "plant.log");
    let ready = plant.event().ok_or_else(|| format!("the plant ended at once: {}", plant.last()))?;
    match ready["hub"] == json!(format!("127.0.0.1:{port}")) {
        true => Ok(plant),
        false => Err(format!("the hub's address in {ready}")),
    }
}

/// Starts a plant and runs clients against it.
fn at_a_hub(place: &Place, way: Way, clients: fn(&Market<'_>, Program, &mut Seen)) -> Result<Seen, String> {
    let (port, zeromq, day) = (free_port(), free_port(), day(place));
    let mut keys = format!(
        "[[feed]]\nname = \"itch\"\nprotocol = \"itch50-moldudp64\"\nstale_after = \"0s\"\nfile = \"{}\"\n\
         pace = \"recorded\"\n",
        day.file.display(),
    );
    if let Some((_, body)) = way.transport.split_once("zeromq-") {
        let _ = writeln!(keys, "[hub.zeromq]\nport = {zeromq}\nbody = \"{body}\"\nimages_every = \"200ms\"");
    }
    let config = configure(place, way, port, &keys);
    let market = Market { place, way, port, zeromq, config, day };
    let mut seen = Vec::new();
    clients(&market, market.open()?, &mut seen);
    Ok(seen)
}

impl Market<'_> {
    fn open(&self) -> Result<Program, String> {
        start(self.place, &self.config, self.port)
    }

    fn python(&self, program: &str, port: u16) -> Command {
        let mut command = self.place.python(program);
        command.args(["--server", &format!("localhost:{port}"), "--items", &self.day.busiest]);
        command
    }
}

fn ema_consumers(market: &Market<'_>, plant: Program, seen: &mut Seen) {
    let Market { place, way, port, day, .. } = market;
    let asks = |class: &str| {
        let mut command = place.java_client(class, *way, *port);
        // The last value of a repeated option counts.
        command.args(["--items", &STOCKS.to_string(), "--names", day.names.to_str().unwrap()]);
        command
    };
    let mut command = asks("EtaConsumer");
    command.args(["--dictionary", &place.dictionary()]).args(OF_ETA);
    let mut eta = place.start(command, "EtaConsumer.log");
    while let Some(event) = eta.event() {
        note(&EMA, seen, &event);
    }
    let mut command = asks("EmaConsumer");
    let steps = EMA.iter().map(|(name, _)| *name);
    let steps = steps.filter(|name| !OF_ETA.contains(name) && *name != "password");
    command.args(["--service", "TAPELINE"]).args(steps);
    let ema = place.start(command, "EmaConsumer.log");
    drop(follow(&EMA, ema, plant, &|| market.open(), seen));
    seen.push(("password", passwords(market).map_or_else(Outcome::Failed, |()| Outcome::Passed)));
}

/// The same plant, now with passwords.
fn passwords(market: &Market<'_>) -> Result<(), String> {
    let Market { place, way, port, .. } = market;
    let users = place.path(&format!("logs/users-{port}"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_tapeline"));
    command.args(["plant", "passwd", "me", "--users", &users]).stdin(Stdio::piped()).stderr(Stdio::null());
    let mut passwd = command.spawn().unwrap();
    passwd.stdin.take().unwrap().write_all(b"correct horse\n").unwrap();
    assert!(passwd.wait().unwrap().success());
    let text = std::fs::read_to_string(&market.config).unwrap();
    let access = format!("[hub.access]\nlogin = \"password\"\nusers = \"{users}\"\n");
    std::fs::write(&market.config, text + &access).unwrap();
    let _plant = market.open()?;
    for (password, refusal) in [
        (Some("correct horse"), None),
        (Some("wrong horse"), Some("The name or the password is wrong")),
        (None, Some("A password is needed to log in here")),
    ] {
        let mut command = place.java_client("EmaConsumer", *way, *port);
        command.args(["--user", "me", "--service", "TAPELINE", "login"]);
        if let Some(password) = password {
            command.args(["--login-password", password]);
        }
        let mut client = place.start(command, "EmaConsumer.log");
        let said = match refusal {
            None => client.wait_for("step")?,
            Some(_) => client.wait_for("failed")?,
        };
        let is_so = match refusal {
            None => said["passed"] == true,
            Some(text) => said["text"].as_str().is_some_and(|said| said.contains(text)),
        };
        if !is_so {
            return Err(format!("with {password:?}: {said}"));
        }
    }
    Ok(())
}

fn websocket_client(market: &Market<'_>, plant: Program, seen: &mut Seen) {
    let mut command = market.python("websocket_client", market.port);
    command.args(["--protocol", market.way.sub_protocol().unwrap()]);
    if market.way.is_encrypted() {
        command.args(["--ca", &market.place.certificate("ca.pem")]);
    }
    command.args(WEBSOCKET.map(|(name, _)| name));
    let client = market.place.start(command, "websocket_client.log");
    follow(&WEBSOCKET, client, plant, &|| market.open(), seen);
}

fn lseg_data_client(market: &Market<'_>, plant: Program, seen: &mut Seen) {
    let mut command = market.python("lseg_data_client", market.port);
    command.args(LSEG_DATA.map(|(name, _)| name));
    let client = market.place.start(command, "lseg_data_client.log");
    follow(&LSEG_DATA, client, plant, &|| market.open(), seen);
}

fn zeromq_client(market: &Market<'_>, plant: Program, seen: &mut Seen) {
    let mut command = market.python("zeromq_client", market.zeromq);
    let body = market.way.transport.trim_start_matches("zeromq-");
    command.args(["--body", body]).args(ZEROMQ.map(|(name, _)| name));
    let client = market.place.start(command, "zeromq_client.log");
    follow(&ZEROMQ, client, plant, &|| market.open(), seen);
}

/// The input of the plants' feed.
struct Day {
    file: PathBuf,
    /// A file with the names of the stocks, the busiest first.
    names: PathBuf,
    /// The first three names, as an argument.
    busiest: String,
}

/// A day of a simulated exchange, made once.
fn day(place: &Place) -> &'static Day {
    static DAY: OnceLock<Day> = OnceLock::new();
    DAY.get_or_init(|| {
        let file = place.logs().join("day.itch");
        let mut command = Command::new(env!("CARGO_BIN_EXE_tapeline"));
        command.args(["feed", "simulate", "--symbols", &STOCKS.to_string(), "--rate", RATE]);
        command.args(["--duration", SECONDS, "--write"]).arg(&file);
        assert!(command.output().unwrap().status.success(), "{command:?}");
        let names = stocks(&std::fs::read(&file).unwrap());
        assert_eq!(names.len(), STOCKS as usize);
        let list = place.logs().join("stocks");
        std::fs::write(&list, names.join("\n")).unwrap();
        Day { file, names: list, busiest: names[..3].join(",") }
    })
}

/// The stocks in a file of length-prefixed ITCH messages: a directory message, `R`, has the name in eight bytes from
/// its twelfth byte on (NASDAQ TotalView-ITCH 5.0, section 1.2.1).
fn stocks(mut file: &[u8]) -> Vec<String> {
    let mut names = Vec::new();
    while let Some((length, rest)) = file.split_first_chunk::<2>() {
        let (message, rest) = rest.split_at(usize::from(u16::from_be_bytes(*length)));
        if message[0] == b'R' {
            names.push(String::from_utf8_lossy(&message[11..19]).trim_end().to_owned());
        }
        file = rest;
    }
    names
}
