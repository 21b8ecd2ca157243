//! Programs that print lines of JSON, Tapeline's and the Java ones.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::remains;
use crate::way::Way;

/// A program that prints nothing for this long hangs: twice the longest wait of the programs of `tests/interop`.
const SILENCE: Duration = Duration::from_secs(480);

/// The folder that `make interop` filled, and the size of each run.
pub(crate) struct Place {
    pub(crate) built: PathBuf,
    /// The folder of LSEG's tools in C and C++; empty without them.
    pub(crate) tools: PathBuf,
    pub(crate) items: u32,
    pub(crate) updates: u32,
}

impl Place {
    pub(crate) fn logs(&self) -> PathBuf {
        self.built.join("logs")
    }

    pub(crate) fn path(&self, inside: &str) -> String {
        self.built.join(inside).to_str().unwrap().to_owned()
    }

    /// A Java program of `tests/interop`. For short runs: only the C1 compiler, the serial collector.
    pub(crate) fn java(&self, class: &str) -> Command {
        let mut command = Command::new("java");
        command.args(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m", "-cp"]);
        command.arg(format!("{}:{}", self.path("classes"), self.path("lib/*")));
        command.arg(format!("tapeline.interop.{class}"));
        command
    }

    /// A program of `tests/interop/python`, with the libraries that `make interop` installed.
    pub(crate) fn python(&self, name: &str) -> Command {
        let mut command = Command::new(self.path("python/bin/python"));
        let programs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/interop/python");
        command.arg(format!("{programs}/{name}.py"));
        command
    }

    /// A Java server for a transport on a port, with the dictionary.
    pub(crate) fn java_server(&self, class: &str, way: Way, port: u16) -> Command {
        let mut command = self.java(class);
        command.args(["--port", &port.to_string(), "--compression", way.compression]);
        command.args(["--dictionary", &self.path("dictionary")]);
        if way.is_encrypted() {
            command.args(["--keystore", &self.path("certificates/server.jks"), "--password", "interop"]);
        }
        command
    }

    /// A Java client for a transport.
    pub(crate) fn java_client(&self, class: &str, way: Way, port: u16) -> Command {
        let mut command = self.java(class);
        // By host name, which the certificate has.
        command.args(["--server", &format!("localhost:{port}")]);
        command.args(["--transport", way.transport, "--compression", way.compression]);
        if way.is_encrypted() {
            command.args(["--truststore", &self.path("certificates/trust.jks"), "--password", "interop"]);
        }
        command.args(["--items", &self.items.to_string(), "--updates", &self.updates.to_string()]);
        command
    }

    /// A server of `tapeline omm`.
    pub(crate) fn tapeline_server(&self, role: &str, way: Way, port: u16) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tapeline"));
        command.arg("omm").args(role.split(' ')).args(["--port", &port.to_string()]);
        command.args(["--compression", way.compression]);
        if way.is_encrypted() {
            command.args(["--cert", &self.certificate("server.pem")]);
            command.args(["--key", &self.certificate("server.key")]);
        }
        command
    }

    /// A client of `tapeline omm`.
    pub(crate) fn tapeline_client(&self, role: &str, way: Way, port: u16) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tapeline"));
        command.arg("omm").args(role.split(' ')).args(["--server", &format!("localhost:{port}")]);
        command.args(["--compression", way.compression, "--format", "json"]);
        if way.is_encrypted() {
            command.args(["--tls", "--ca", &self.certificate("ca.pem")]);
        }
        if let Some((_, protocol)) = way.transport.split_once("ws-") {
            command.args(["--websocket", protocol]);
        }
        command
    }

    /// A file with the names of `items` items, for the client of this port.
    pub(crate) fn item_file(&self, port: u16) -> String {
        let path = self.path(&format!("logs/items-{port}"));
        let names: String = (0..self.items).map(|number| format!("ITEM{number}\n")).collect();
        std::fs::write(&path, names).unwrap();
        path
    }

    /// A file that the program `certificates` made.
    pub(crate) fn certificate(&self, name: &str) -> String {
        self.path(&format!("certificates/{name}"))
    }

    /// The dictionary of LSEG's tools, as options of Tapeline's tools.
    pub(crate) fn tool_dictionary(&self) -> [String; 4] {
        let file = |name: &str| self.tools.join(name).to_str().unwrap().to_owned();
        ["--dictionary".into(), file("RDMFieldDictionary"), "--enums".into(), file("enumtype.def")]
    }

    pub(crate) fn dictionary(&self) -> String {
        self.path("dictionary")
    }

    /// Starts a program; its standard error is appended to this log.
    pub(crate) fn start(&self, command: Command, log: &str) -> Program {
        self.spawn(command, log, Stdio::null())
    }

    /// Starts a program that takes commands on its standard input.
    pub(crate) fn start_told(&self, command: Command, log: &str) -> Program {
        self.spawn(command, log, Stdio::piped())
    }

    fn spawn(&self, mut command: Command, log: &str, input: Stdio) -> Program {
        let log = File::options().create(true).append(true).open(self.logs().join(log)).unwrap();
        let mut child =
            command.stdin(input).stdout(Stdio::piped()).stderr(log).spawn().unwrap_or_else(|error| {
                panic!("{:?}: {error}", command.get_program());
            });
        let output = BufReader::new(child.stdout.take().unwrap());
        let (told, lines) = mpsc::channel();
        thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| told.send(line)));
        Program { child, lines, last: String::new() }
    }
}

/// A port that was free a moment ago.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

/// A running program. It ends with the session.
pub(crate) struct Program {
    child: Child,
    lines: Receiver<String>,
    last: String,
}

impl Program {
    /// Waits for the next event; `None` when the program has ended, or hangs and is killed.
    pub(crate) fn event(&mut self) -> Option<Value> {
        loop {
            let line = match self.lines.recv_timeout(SILENCE) {
                Ok(line) => line,
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {
                    self.last = format!("nothing for {SILENCE:?}; before: {}", self.last);
                    self.kill();
                    return None;
                }
            };
            self.last = line;
            // The library sometimes prints lines of its own.
            if let Ok(value @ Value::Object(_)) = serde_json::from_str(&self.last) {
                return Some(value);
            }
        }
    }

    /// Waits for a line with this beginning; returns the last line as an error if the program ends first.
    pub(crate) fn wait_for_line(&mut self, start: &str) -> Result<(), String> {
        while !self.last.starts_with(start) {
            let line = self.lines.recv_timeout(SILENCE);
            self.last = line.map_err(|_| format!("ended without '{start}': {}", self.last.trim_end()))?;
        }
        Ok(())
    }

    /// Waits for an event of this name; returns the last line as an error if the program ends first.
    pub(crate) fn wait_for(&mut self, name: &str) -> Result<Value, String> {
        loop {
            match self.event() {
                Some(event) if event["event"] == name => return Ok(event),
                Some(_) => {}
                None => return Err(format!("ended without {name}: {}", self.last.trim_end())),
            }
        }
    }

    pub(crate) fn last(&self) -> &str {
        self.last.trim_end()
    }

    /// Waits for its end; returns whether it succeeded.
    pub(crate) fn ended_well(&mut self) -> bool {
        self.child.wait().unwrap().success()
    }

    /// Sends a line to its standard input.
    pub(crate) fn tell(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Closes its standard input.
    pub(crate) fn leave_alone(&mut self) {
        self.child.stdin = None;
    }

    /// Sends SIGINT, like Ctrl-C.
    pub(crate) fn ask_to_end(&self) {
        let process = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
    }

    /// Kills it, without a message to its peers.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        remains::remove(self.child.id());
    }
}
