//! A plant with a hub, its output, and a witness: a client that must not be affected by the others.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Map, Value};

use crate::hub_faults::stage::{Place, remains, tapeline};

/// The busiest stocks of the simulated exchange are always the same.
pub(crate) const STOCKS: [&str; 3] = ["TAPE", "SENA", "RIMU"];
/// Default session of `feed replay` for a file that names none.
const SESSION: &str = "TAPELINE";

/// A process whose output is read as it is written, so that it never blocks on the test. It ends with the test.
pub(crate) struct Process {
    pub(crate) child: Child,
    said: Receiver<String>,
    talk: Receiver<String>,
    /// Lines on standard error that were read while waiting for another line.
    heard: Vec<String>,
}

impl Process {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut child = tapeline(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let said = lines(child.stdout.take().unwrap());
        let talk = lines(child.stderr.take().unwrap());
        Self { child, said, talk, heard: Vec::new() }
    }

    /// Waits for the next line of JSON; `None` when the process has ended.
    pub(crate) fn may_say(&mut self) -> Option<Value> {
        let line = self.said.recv().ok()?;
        Some(serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}")))
    }

    pub(crate) fn says(&mut self) -> Value {
        self.may_say().unwrap_or_else(|| panic!("it ended: {:?}", self.rest_of_talk()))
    }

    /// Waits for the next line on standard error with all of these parts; earlier lines stay queued.
    pub(crate) fn tells(&mut self, all: &[&str]) -> String {
        let is_it = |line: &String| all.iter().all(|part| line.contains(part));
        if let Some(at) = self.heard.iter().position(is_it) {
            return self.heard.remove(at);
        }
        while let Ok(line) = self.talk.recv() {
            if is_it(&line) {
                return line;
            }
            self.heard.push(line);
        }
        panic!("it ended without a word of {all:?}: {:#?}", self.heard);
    }

    /// The remaining lines on standard error until the process ends.
    pub(crate) fn rest_of_talk(&mut self) -> Vec<String> {
        self.heard.drain(..).chain(self.talk.iter()).collect()
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), signal).unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        remains::remove(self.child.id());
    }
}

fn lines(from: impl Read + Send + 'static) -> Receiver<String> {
    let (send, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            // Reads on without a receiver, so that the process does not block.
            let _ = send.send(line);
        }
    });
    lines
}

/// The images and updates of each item, in order.
type Streams = BTreeMap<String, Vec<(String, Map<String, Value>)>>;

/// The images and updates in a program's remaining output.
fn streams(process: &mut Process, kind: &str) -> Streams {
    let mut streams = Streams::new();
    while let Some(said) = process.may_say() {
        let (Some(kind), Some(item)) = (said[kind].as_str(), said["item"].as_str()) else { continue };
        if matches!(kind, "refresh" | "update") {
            let fields = said["fields"].as_object().cloned().unwrap_or_default();
            streams.entry(item.to_owned()).or_default().push((kind.to_owned(), fields));
        }
    }
    streams
}

/// A plant with a hub on its own port, and a witness that reads normally.
pub(crate) struct Market {
    pub(crate) place: Place,
    pub(crate) plant: Process,
    pub(crate) server: String,
    /// The plant's stated limit of the hub's memory, in bytes.
    pub(crate) hub_memory: u64,
    witness: Process,
    published: Process,
}

impl Market {
    /// `hub`: more keys of the table `[hub]`. `client`: options of the witness.
    pub(crate) fn open(hub: &str, client: &[&str]) -> Self {
        Self::open_at(Place::new(1), hub, client)
    }

    pub(crate) fn open_at(place: Place, hub: &str, client: &[&str]) -> Self {
        let config = place.config("");
        let mut text = std::fs::read_to_string(&config).unwrap();
        text.push_str(&format!("[hub]\nport = 0\nunknown = \"wait\"\n{hub}\n"));
        std::fs::write(&config, text).unwrap();
        let mut plant = Process::start(&["plant", "--config", &config, "--format", "json"]);
        let ready = plant.says();
        let hub_memory = ready["hub_memory_bytes"].as_u64().unwrap();
        let server = ready["hub"].as_str().unwrap().replace("127.0.0.1", "localhost");
        let ring = &place.ring;
        let watch = ["plant", "watch", "--ring", ring, "--from", "oldest", "--format", "json"];
        let published = Process::start(&watch);
        let consumer = ["omm", "watch", "--server", &server, "--service", "TAPELINE", "--attempts", "1"];
        let witness = ["--user", "witness"];
        let mut witness = Process::start(&[&consumer, &witness[..], &STOCKS, client].concat());
        // A heartbeat without a message: the service is up, and the items wait for an image.
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let heartbeat = [format!("{SESSION:10}").as_bytes(), &1u64.to_be_bytes(), &[0, 0]].concat();
        socket.send_to(&heartbeat, place.lines[0]).unwrap();
        let mut asked = 0;
        while asked < STOCKS.len() {
            let said = witness.says();
            let text = said["state"]["text"].as_str();
            asked +=
                usize::from(said["item"].is_string() && text.is_some_and(|text| text.contains("no image")));
        }
        Self { place, plant, server, hub_memory, witness, published }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        let port = self.server.rsplit(':').next().and_then(|port| port.parse().ok()).unwrap();
        SocketAddr::from((Ipv4Addr::LOCALHOST, port))
    }

    /// Starts to replay a simulated day at this many messages a second.
    pub(crate) fn replay(&self, messages: &str, rate: &str) -> Feeder {
        let file = self.place.folder.path().join("day.itch");
        let day = file.to_str().unwrap();
        if !file.exists() {
            let write = ["feed", "simulate", "--symbols", "3", "--messages", messages, "--write", day];
            let output = tapeline(&write).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        let to = self.place.lines[0].to_string();
        Feeder::start(tapeline(&["feed", "replay", day, "--to", &to, "--rate", rate]))
    }

    /// Another client of the same kind as the witness.
    pub(crate) fn consumer(&self, options: &[&str]) -> Process {
        let fixed = ["omm", "watch", "--server", &self.server, "--service", "TAPELINE", "--attempts", "1"];
        Process::start(&[&fixed, &STOCKS[..], options].concat())
    }

    /// Peak memory of the plant's process, in bytes.
    pub(crate) fn peak_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.plant.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        1024 * line.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
    }

    /// Waits until the witness has received this many more images and updates.
    pub(crate) fn witness_gets(&mut self, messages: usize) -> Streams {
        let mut got = Streams::new();
        let mut count = 0;
        while count < messages {
            let said = self.witness.says();
            let (Some(kind), Some(item)) = (said["event"].as_str(), said["item"].as_str()) else { continue };
            if matches!(kind, "refresh" | "update") {
                let fields = said["fields"].as_object().cloned().unwrap_or_default();
                got.entry(item.to_owned()).or_default().push((kind.to_owned(), fields));
                count += 1;
            }
        }
        got
    }

    /// Ends the plant. Checks that the witness received every image and every update of the plant once, in order and
    /// unchanged: those in `before`, and the rest. Returns the plant's report, and its remaining lines on standard
    /// error.
    pub(crate) fn end(mut self, before: Streams) -> (Value, Vec<String>) {
        self.plant.signal(rustix::process::Signal::TERM);
        let mut got = before;
        for (item, more) in streams(&mut self.witness, "event") {
            got.entry(item).or_default().extend(more);
        }
        let mut published = streams(&mut self.published, "kind");
        published.retain(|item, _| STOCKS.contains(&item.as_str()));
        assert_eq!(published.len(), STOCKS.len(), "{:?}", published.keys());
        for (item, published) in &published {
            let got = &got[item];
            assert_eq!(got.len(), published.len(), "{item}");
            for (number, (got, published)) in got.iter().zip(published).enumerate() {
                assert_eq!(got, published, "{item}: message {number}");
            }
        }
        let report = self.plant.says();
        let talk = self.plant.rest_of_talk();
        assert!(self.plant.child.wait().unwrap().success(), "{talk:#?}");
        (report, talk)
    }
}

/// A replay in progress. It ends with the test.
pub(crate) struct Feeder(Child);

impl Feeder {
    fn start(mut command: Command) -> Self {
        Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    /// Waits until everything is sent.
    pub(crate) fn finish(mut self) {
        assert!(self.0.wait().unwrap().success());
    }

    pub(crate) fn kill(self) {}
}

impl Drop for Feeder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
