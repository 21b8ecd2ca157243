//! LSEG's performance tools in C and C++, which a user built from the public repository: `make interop-rtsdk`.
//!
//! They end with status 0 in any case, and print their counts at the end: the tests check these, and the counts of
//! Tapeline's program at the other end.

pub(crate) mod consumers;
mod ema_config;
pub(crate) mod ni_providers;
pub(crate) mod opaque;
pub(crate) mod providers;
pub(crate) mod through;

use std::fs::File;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::column::Outcome;
use crate::program::Place;
use crate::way::Way;

/// Files that the tools read from their working folder.
const FILES: [&str; 4] = ["RDMFieldDictionary", "enumtype.def", "MsgData.xml", "350k.xml"];
/// Seconds until a tool that would not end is stopped: EMA's without a server are such.
const PATIENCE: &str = "60";
/// For every tool: print statistics every second; a longer interval would delay the end of the run.
const OFTEN: [&str; 2] = ["-writeStatsInterval", "1"];

/// A run of a tool in its own folder.
pub(crate) struct Tool<'a> {
    place: &'a Place,
    way: Way,
    folder: PathBuf,
    command: Command,
}

impl<'a> Tool<'a> {
    /// A tool that runs until it is killed.
    pub(crate) fn lasting(place: &'a Place, name: &str, scenario: &str, way: Way) -> Self {
        let program = place.tools.join(name);
        Self::new(place, Command::new(program), scenario, way)
    }

    /// A tool that ends by itself.
    pub(crate) fn ending(place: &'a Place, name: &str, scenario: &str, way: Way) -> Self {
        let mut command = Command::new("timeout");
        command.arg(PATIENCE).arg(place.tools.join(name));
        Self::new(place, command, scenario, way)
    }

    fn new(place: &'a Place, mut command: Command, scenario: &str, way: Way) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        // Columns run at the same time, and may use the same scenario name.
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = place.logs().join(format!("{scenario}-{}-{}-{count}", way.transport, way.compression));
        std::fs::create_dir_all(&folder).unwrap();
        for file in FILES {
            // It may exist from an earlier run.
            let _ = symlink(place.tools.join(file), folder.join(file));
        }
        command.current_dir(&folder).args(OFTEN);
        Self { place, way, folder, command }
    }

    pub(crate) fn with(mut self, arguments: &[&str]) -> Self {
        self.command.args(arguments);
        self
    }

    /// For ETA's tools: the server to connect to, and the transport.
    pub(crate) fn to(self, port: u16) -> Self {
        let port = port.to_string();
        let trusted = self.place.certificate("ca.pem");
        let (kind, carrier) = match (self.way.is_encrypted(), self.way.sub_protocol()) {
            (true, Some(_)) => ("encrypted", "websocket"),
            (true, None) => ("encrypted", "socket"),
            (false, Some(_)) => ("websocket", ""),
            (false, None) => ("socket", ""),
        };
        let protocol = self.way.sub_protocol();
        let mut tool = self.with(&["-h", "localhost", "-p", &port, "-connType", kind]);
        if !carrier.is_empty() {
            tool = tool.with(&["-encryptedConnType", carrier, "-castore", &trusted]);
        }
        if let Some(protocol) = protocol {
            tool = tool.with(&["-pl", protocol]);
        }
        tool
    }

    /// For ETA's tools: the port to listen on, and the transport.
    pub(crate) fn at(self, port: u16) -> Self {
        let (key, certificate) = (self.place.certificate("server.key"), self.place.certificate("server.pem"));
        let is_encrypted = self.way.is_encrypted();
        let tool = self.with(&["-p", &port.to_string(), "-pl", "rssl.rwf, tr_json2, rssl.json.v2"]);
        if is_encrypted {
            tool.with(&["-connType", "encrypted", "-keyfile", &key, "-cert", &certificate])
        } else {
            tool
        }
    }

    /// For EMA's tools: the same, in a file.
    pub(crate) fn with_ema(self, port: u16) -> Self {
        let text = ema_config::text(self.place, self.way, port);
        std::fs::write(self.folder.join("EmaConfig.xml"), text).unwrap();
        self
    }

    /// Runs it to its end, and returns its output.
    pub(crate) fn run(mut self) -> Told {
        let output = self.command.stdin(Stdio::null()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        std::fs::write(self.folder.join("said"), &text).unwrap();
        Told(text)
    }

    /// Starts it; it runs until the result is dropped.
    pub(crate) fn start(mut self) -> AtWork {
        let said = File::create(self.folder.join("said")).unwrap();
        AtWork(self.command.stdin(Stdio::null()).stdout(said).spawn().unwrap())
    }
}

/// A running tool.
pub(crate) struct AtWork(Child);

impl Drop for AtWork {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A tool's output.
pub(crate) struct Told(pub(crate) String);

impl Told {
    /// The last figure after these words; 0 without them.
    pub(crate) fn count(&self, words: &str) -> u64 {
        let figure = |line: &str| {
            line.trim().strip_prefix(words)?.strip_prefix(':')?.trim().split('.').next()?.parse().ok()
        };
        self.0.lines().filter_map(figure).next_back().unwrap_or(0)
    }

    pub(crate) fn says(&self, words: &str) -> bool {
        self.0.contains(words)
    }

    /// Its counts, on one line.
    pub(crate) fn summary(&self) -> String {
        let lines = self.0.lines().map(str::trim);
        let counts = ["sent:", "received:", "Sent:", "Received:", "rror"];
        let telling = lines.filter(|line| counts.iter().any(|word| line.contains(word)));
        telling.map(|line| line.chars().take(200).collect::<String>()).collect::<Vec<_>>().join("; ")
    }
}

/// ConsPerf and ProvPerf have no option for compression.
fn no_compression(way: Way) -> Option<&'static str> {
    (way.compression != "none").then_some("`ConsPerf` and `ProvPerf` cannot be told to compress")
}

/// The first good outcome, or the last one.
fn tried(times: u32, one: impl Fn() -> Outcome) -> Outcome {
    let again = (1..times).try_fold(one(), |before, _| match before {
        Outcome::Passed => Err(before),
        _ => Ok(one()),
    });
    again.unwrap_or_else(|good| good)
}
