//! `tapeline bridge probe` over loopback: both ends as real processes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddrV4, TcpListener, TcpStream};
use std::process::{Child, ExitStatus, Output, Stdio};

use serde_json::{Value, json};

use super::lossy::Lossy;
use super::{free_port, unbound};
use crate::certificates;
use crate::stage::tapeline;

/// A listening end, which ends with the test.
struct Listening(Child);

impl Listening {
    fn wait(&mut self) -> std::io::Result<ExitStatus> {
        self.0.wait()
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a listening end for one measurement, and waits until it listens.
fn listener(address: &str) -> Listening {
    listening(&["--listen", address], address)
}

/// The same, with these arguments.
fn listening(arguments: &[&str], address: &str) -> Listening {
    let fixed = ["bridge", "probe", "--once"];
    let mut child = tapeline(&[&fixed[..], arguments].concat()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    BufReader::new(child.stderr.as_mut().unwrap()).read_line(&mut said).unwrap();
    assert_eq!(said, format!("listening at {address}\n"));
    Listening(child)
}

fn probe(to: &str, arguments: &[&str]) -> String {
    let fixed = ["bridge", "probe", "--to", to, "--rates", "500,5k", "--step", "200ms"];
    let output = tapeline(&[&fixed[..], arguments].concat()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn one_host_answers_for_size_round_trips_and_rates() {
    let address = format!("127.0.0.1:{}", free_port());
    let mut listening = listener(&address);
    let probed: Value = serde_json::from_str(&probe(&address, &["--format", "json"])).unwrap();
    assert!(listening.wait().unwrap().success());
    // Loopback's MTU is 65,536, and UDP's own limit is below it.
    assert_eq!((&probed["to"], &probed["largest_datagram"]), (&json!(address), &json!(65_507)), "{probed}");
    let [listener] = &probed["listeners"].as_array().unwrap()[..] else { panic!("{probed}") };
    assert_eq!(listener["address"], json!(address));
    let trip = &listener["round_trip"];
    assert_eq!(trip["asked"], json!(100), "{probed}");
    assert!(trip["least_ns"].as_u64().unwrap() <= trip["median_ns"].as_u64().unwrap(), "{probed}");
    let steps = listener["steps"].as_array().unwrap();
    assert_eq!(
        steps.iter().map(|step| &step["rate"]).collect::<Vec<_>>(),
        [&json!(500), &json!(5_000)],
        "{probed}"
    );
    for (step, sent) in steps.iter().zip([100, 1_000]) {
        assert_eq!((&step["sent"], &step["datagram_bytes"]), (&json!(sent), &json!(1_400)), "{probed}");
        assert_eq!((&step["duplicates"], &step["reordered"]), (&json!(0), &json!(0)), "{probed}");
        let arrived = step["received"].as_u64().unwrap() + step["lost"].as_u64().unwrap();
        assert_eq!(arrived, sent, "{probed}");
    }
}

#[test]
fn what_a_path_loses_is_counted() {
    let address = unbound();
    let mut listening = listener(&address.to_string());
    let lossy = Lossy::new(address, 7);
    let probed = probe(&lossy.address().to_string(), &["--format", "json", "--size", "200"]);
    assert!(listening.wait().unwrap().success());
    let probed: Value = serde_json::from_str(&probed).unwrap();
    let [listener] = &probed["listeners"].as_array().unwrap()[..] else { panic!("{probed}") };
    for (step, sent) in listener["steps"].as_array().unwrap().iter().zip([100, 1_000]) {
        let lost = step["lost"].as_u64().unwrap();
        // One of seven, and the relay may be slower than the probe.
        assert!(lost >= sent / 7 && step["received"].as_u64().unwrap() == sent - lost, "{probed}");
    }
    assert!(listener["round_trip"]["lost"].as_u64().unwrap() > 0, "{probed}");
}

#[test]
fn a_listener_whose_asking_end_was_killed_ends_by_itself() {
    let address = unbound();
    let mut listening = listener(&address.to_string());
    let lossy = Lossy::new(address, 3);
    let to = lossy.address().to_string();
    let mut asking = tapeline(&["bridge", "probe", "--to", &to, "--rates", "2k", "--step", "10m"])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // More than a third of what is sent before the first step.
    while lossy.lost() < 500 {
        std::thread::yield_now();
    }
    asking.kill().unwrap();
    asking.wait().unwrap();
    assert!(listening.wait().unwrap().success());
    let mut said = String::new();
    listening.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("the asking end has been silent for 10 s"), "{said}");
}

#[test]
fn a_group_has_several_listeners_in_one_table_each() {
    let address = format!("239.255.14.77:{}", free_port());
    let mut listening = [listener(&address), listener(&address)];
    let table = probe(&address, &["--size", "300"]);
    for listener in &mut listening {
        assert!(listener.wait().unwrap().success());
    }
    assert!(table.starts_with("path         from 127.0.0.1:"), "{table}");
    assert!(table.contains(&format!(" to {address}, ")), "{table}");
    assert!(table.contains("\nround trip   ") && table.contains("\n500 "), "{table}");
}

#[test]
fn a_path_without_a_listener_is_told_with_what_to_start() {
    let address = format!("127.0.0.1:{}", free_port());
    let output = tapeline(&["bridge", "probe", "--to", &address, "--patience", "300ms"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(said.contains(&format!("nobody answers at {address}")), "{said}");
    assert!(said.contains(&format!("tapeline bridge probe --listen {address}")), "{said}");
}

fn probe_tcp(to: &str, arguments: &[&str]) -> Output {
    let fixed = ["bridge", "probe", "--tcp", to, "--step", "200ms"];
    tapeline(&[&fixed[..], arguments].concat()).output().unwrap()
}

fn found(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_path_over_tcp_has_a_time_to_connect_round_trips_and_what_it_carries() {
    let address = unbound().to_string();
    let mut listener = listening(&["--listen-tcp", &address], &address);
    let probed = found(&probe_tcp(&address, &["--rates", "500,5k", "--format", "json"]));
    assert!(listener.wait().unwrap().success());
    assert_eq!((&probed["to"], &probed["tls"]), (&json!(address), &json!(false)), "{probed}");
    assert!(probed["connect_ns"].as_u64().unwrap() > 0, "{probed}");
    let trip = &probed["round_trip"];
    assert_eq!((&trip["asked"], &trip["lost"]), (&json!(100), &json!(0)), "{probed}");
    let [least, median, p99] = ["least_ns", "median_ns", "p99_ns"].map(|rank| trip[rank].as_u64().unwrap());
    assert!(least <= median && median <= p99, "{probed}");
    let steps = probed["steps"].as_array().unwrap();
    let rates: Vec<_> = steps.iter().map(|step| &step["rate"]).collect();
    assert_eq!(rates, [&json!(null), &json!(500), &json!(5_000)], "{probed}");
    for step in steps {
        assert_eq!(step["sent"], step["received"], "{probed}");
        assert_eq!(step["datagram_bytes"], json!(1_400), "{probed}");
    }
    assert!(steps[0]["received_bytes_per_second"].as_f64().unwrap() > 1e6, "{probed}");
    for (step, due) in steps[1..].iter().zip([100, 1_000]) {
        assert_eq!(step["sent"].as_u64().unwrap() + step["unsent"].as_u64().unwrap(), due, "{probed}");
    }
}

#[test]
fn a_path_over_tls_is_measured_and_what_does_not_fit_is_told() {
    let folder = tempfile::tempdir().unwrap();
    certificates::write(folder.path());
    let [ca, cert, key] =
        ["ca.pem", "server.pem", "server.key"].map(|name| folder.path().join(name).display().to_string());
    let address = unbound().to_string();
    let mut listener = listening(&["--listen-tcp", &address, "--cert", &cert, "--key", &key], &address);
    let without = probe_tcp(&address, &[]);
    let said = String::from_utf8_lossy(&without.stderr);
    assert!(!without.status.success() && said.contains("--tls is needed here"), "{said}");
    let other_name = probe_tcp(&address, &["--tls", "--ca", &ca, "--server-name", "ny1"]);
    let said = String::from_utf8_lossy(&other_name.stderr);
    assert!(!other_name.status.success() && said.contains("not valid for name"), "{said}");
    let output = probe_tcp(&address, &["--tls", "--ca", &ca, "--server-name", "localhost", "--rates", "1k"]);
    assert!(listener.wait().unwrap().success());
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(
        table.starts_with(&format!("path         to {address} over TCP, with TLS\nconnected")),
        "{table}"
    );
    assert!(table.contains("\nround trip   ") && table.contains("\nas it goes "), "{table}");
    assert!(table.contains("; the path takes ") && table.contains("backlog: how much"), "{table}");
}

/// Forwards one connection, with two system calls for each 40 bytes.
fn slow(to: SocketAddrV4) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let (mut below, _) = listener.accept().unwrap();
        let mut above = TcpStream::connect(to).unwrap();
        // Otherwise round trips include delayed acknowledgements, and a backlog no longer than a round trip counts as steady.
        [&below, &above].into_iter().for_each(|end| end.set_nodelay(true).unwrap());
        let (mut from, mut into) = (below.try_clone().unwrap(), above.try_clone().unwrap());
        std::thread::spawn(move || _ = std::io::copy(&mut from, &mut into));
        let mut room = [0; 40];
        while let Ok(count @ 1..) = above.read(&mut room) {
            if below.write_all(&room[..count]).is_err() {
                return;
            }
        }
    });
    address
}

#[test]
fn a_path_that_is_too_slow_for_a_rate_has_a_backlog() {
    let address = unbound();
    let mut listener = listening(&["--listen-tcp", &address.to_string()], &address.to_string());
    let probed = found(&probe_tcp(&slow(address), &["--rates", "50k", "--format", "json"]));
    assert!(listener.wait().unwrap().success());
    let step = &probed["steps"][1];
    assert_eq!(step["is_carried"], json!(false), "{probed}");
    assert!(step["latest_ns"].as_u64().unwrap() > 10_000_000, "{probed}");
}

#[test]
fn a_path_over_tcp_without_a_listener_or_with_keys_of_udp_is_told() {
    let address = unbound().to_string();
    let output = probe_tcp(&address, &["--patience", "300ms"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains(&format!("nobody answers at {address}")), "{said}");
    assert!(said.contains(&format!("tapeline bridge probe --listen-tcp {address}")), "{said}");
    let output = tapeline(&["bridge", "probe", "--tcp", &address, "--interface", "lo"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}
