//! Options of the performance tools' connections: TLS versions, and the local interface. Each option is observed at the
//! other end, which is the test's own.
use crate::certificates;
use crate::stage;

use std::io::{BufRead, BufReader};
use std::net::IpAddr;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tapeline_measure::{Nanos, monotonic_ns};
use tapeline_wire::rssl::{ConnectionId, ConnectionSettings, Event, Reactor, SubProtocol};
use tapeline_wire::tls::{Tls, TlsVersions};

/// A tool in a folder with certificates.
struct Tool {
    child: Child,
    folder: tempfile::TempDir,
}

impl Tool {
    fn start(folder: tempfile::TempDir, words: &[&str], server: Option<&str>) -> Self {
        let mut command = stage::tapeline(&[&["omm"], words].concat());
        command.args(["--no-display-stats", "--run-folder", "run"]);
        command.args(server.map(|server| format!("--server={server}")));
        let child = command.current_dir(&folder).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        Self { child: child.unwrap(), folder }
    }

    /// The listening address.
    fn address(&mut self) -> std::net::SocketAddr {
        let mut line = String::new();
        BufReader::new(self.child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().rsplit_once(' ').and_then(|(_, address)| address.parse().ok());
        address.unwrap_or_else(|| panic!("where it listens: {line:?}"))
    }

    /// The first line on standard error.
    fn note(&mut self) -> String {
        let mut line = String::new();
        BufReader::new(self.child.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
        line
    }
}

impl Drop for Tool {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn place() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    certificates::write(folder.path());
    folder
}

/// The tools that connect, the tools that listen, and the RSSL protocol type of each.
const CLIENTS: [(&str, u8); 3] = [("consumer", 0), ("ni-provider", 0), ("transport client", 88)];
const SERVERS: [(&str, u8); 2] = [("provider", 0), ("transport server", 88)];

/// Settings of the test's own end.
fn settings(
    folder: &Path,
    is_server: bool,
    versions: TlsVersions,
    protocol_type: u8,
) -> Arc<ConnectionSettings> {
    let file = |name| std::fs::read(folder.join(name)).unwrap();
    let tls = match is_server {
        true => Tls::server(&file("server.pem"), &file("server.key"), versions),
        false => Tls::client(&file("ca.pem"), versions),
    };
    let host = "localhost".to_owned();
    Arc::new(ConnectionSettings {
        tls: Some(tls.unwrap()),
        protocol_type,
        host,
        ..ConnectionSettings::default()
    })
}

/// The next connection, or why it failed. Panics if the tool ends first.
fn connected(reactor: &mut Reactor, tool: &mut Tool) -> Result<ConnectionId, String> {
    loop {
        let mut outcome = None;
        reactor.each(Nanos(monotonic_ns()), |id, event, _| match event {
            Event::Connected(_) => _ = outcome.get_or_insert(Ok(id)),
            Event::Closed(reason) => _ = outcome.get_or_insert_with(|| Err(reason.to_string())),
            _ => {}
        });
        if let Some(outcome) = outcome {
            return outcome;
        }
        if let Some(status) = tool.child.try_wait().unwrap() {
            panic!("it ended with {status}: {}", tool.note());
        }
        reactor.wait(Duration::from_millis(100)).unwrap();
    }
}

/// The TLS version of the next connection, or why it failed.
fn spoken(reactor: &mut Reactor, tool: &mut Tool) -> Result<&'static str, String> {
    connected(reactor, tool).map(|id| reactor.tls_version(id).unwrap())
}

/// Both spellings of the option, each with the name of its version.
const VERSIONS: [(&str, &str); 2] = [("-spTLSv1.2", "TLSv1_2"), ("--tls-version=1.3", "TLSv1_3")];

#[test]
fn clients_offer_the_versions_of_tls_that_are_named() {
    for (tool, protocol_type) in CLIENTS {
        for (option, version) in VERSIONS {
            let folder = place();
            let mut reactor = Reactor::new(10).unwrap();
            let server = settings(folder.path(), true, TlsVersions::Both, protocol_type);
            let address = reactor.listen("127.0.0.1:0".parse().unwrap(), &server).unwrap();
            let words: Vec<&str> = tool.split(' ').chain(["--tls", "--ca=ca.pem", option]).collect();
            let mut running = Tool::start(folder, &words, Some(&format!("localhost:{}", address.port())));
            assert_eq!(spoken(&mut reactor, &mut running), Ok(version), "{tool} {option}");
        }
    }
}

#[test]
fn servers_take_the_versions_of_tls_that_are_named() {
    for (tool, protocol_type) in SERVERS {
        for (option, version) in VERSIONS {
            let words = ["--port=0", "--cert=server.pem", "--key=server.key", option];
            let mut tool = Tool::start(place(), &tool.split(' ').chain(words).collect::<Vec<_>>(), None);
            let address = tool.address();
            let other = if version == "TLSv1_2" { TlsVersions::V1_3 } else { TlsVersions::V1_2 };
            for versions in [TlsVersions::Both, other] {
                let mut reactor = Reactor::new(1).unwrap();
                let client = settings(tool.folder.path(), false, versions, protocol_type);
                reactor.connect(address, &client, Nanos(monotonic_ns())).unwrap();
                let spoken = spoken(&mut reactor, &mut tool);
                match versions {
                    TlsVersions::Both => assert_eq!(spoken, Ok(version), "{option}"),
                    _ => {
                        assert!(
                            spoken.as_ref().is_err_and(|why| why.contains("TLS")),
                            "{option}: {spoken:?}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn ends_without_a_version_in_common_say_so() {
    for (tool, protocol_type) in CLIENTS {
        let folder = place();
        let mut reactor = Reactor::new(10).unwrap();
        let server = settings(folder.path(), true, TlsVersions::V1_3, protocol_type);
        let address = reactor.listen("127.0.0.1:0".parse().unwrap(), &server).unwrap();
        let words: Vec<&str> = tool.split(' ').chain(["--tls", "--ca=ca.pem", "--tls-version=1.2"]).collect();
        let mut tool = Tool::start(folder, &words, Some(&format!("localhost:{}", address.port())));
        let why = spoken(&mut reactor, &mut tool).unwrap_err();
        let note = tool.note();
        assert!(note.contains("TLS: ") && note.contains("ProtocolVersion"), "{note}; here: {why}");
    }
}

#[test]
fn inside_tls_a_transport_speaks_what_it_is_told_to() {
    for (inside, protocol) in [("socket", None), ("websocket", Some(SubProtocol::Rwf))] {
        let folder = place();
        let mut reactor = Reactor::new(10).unwrap();
        let server = settings(folder.path(), true, TlsVersions::Both, 88);
        let address = reactor.listen("127.0.0.1:0".parse().unwrap(), &server).unwrap();
        let inside = format!("--encrypted-conn-type={inside}");
        let words = ["transport", "client", "--conn-type=encrypted", "--ca=ca.pem", &inside];
        let mut tool = Tool::start(folder, &words, Some(&format!("localhost:{}", address.port())));
        let id = connected(&mut reactor, &mut tool).unwrap();
        assert_eq!(reactor.negotiated(id).unwrap().websocket, protocol, "{inside}");
    }
}

#[test]
fn versions_of_tls_mean_nothing_without_it() {
    for tool in ["consumer", "ni-provider", "transport client", "provider", "transport server"] {
        let words: Vec<&str> = tool.split(' ').chain(["--tls-version=1.3"]).collect();
        let mut tool = Tool::start(place(), &words, None);
        assert_eq!(tool.note(), "error: --tls-version has no effect without TLS\n");
        assert!(!tool.child.wait().unwrap().success());
    }
}

#[test]
fn clients_connect_from_the_interface_that_is_named() {
    let config = r#"
        [[Consumer]]
        Name = "C"
        Channel = "Channel_1"
        [[Channel]]
        Name = "Channel_1"
        InterfaceName = "127.0.0.3"
    "#;
    for (words, from) in [
        ("consumer --interface 127.0.0.2", "127.0.0.2"),
        ("consumer -if 127.0.0.2", "127.0.0.2"),
        ("ni-provider -if 127.0.0.2", "127.0.0.2"),
        ("transport client -if 127.0.0.2", "127.0.0.2"),
        // By name, and from a file of settings.
        ("consumer --interface lo", "127.0.0.1"),
        ("consumer --config c.toml", "127.0.0.3"),
    ] {
        let folder = place();
        std::fs::write(folder.path().join("c.toml"), config).unwrap();
        let mut reactor = Reactor::new(10).unwrap();
        let protocol_type = if words.starts_with("transport") { 88 } else { 0 };
        let settings = Arc::new(ConnectionSettings { protocol_type, ..ConnectionSettings::default() });
        let server = reactor.listen("127.0.0.1:0".parse().unwrap(), &settings).unwrap().to_string();
        let mut tool = Tool::start(folder, &words.split(' ').collect::<Vec<_>>(), Some(&server));
        let id = connected(&mut reactor, &mut tool).unwrap();
        let peer = reactor.peer_address(id).unwrap();
        assert_eq!(peer.ip(), from.parse::<IpAddr>().unwrap(), "{words}");
    }
}
