//! `tapeline bridge probe` over loopback: both ends as real processes.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use super::lossy::Lossy;
use super::{free_port, unbound};
use crate::stage::tapeline;

/// Starts a listening end for one measurement, and waits until it listens.
fn listener(address: &str) -> Child {
    let mut child =
        tapeline(&["bridge", "probe", "--listen", address, "--once"]).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    BufReader::new(child.stderr.as_mut().unwrap()).read_line(&mut said).unwrap();
    assert_eq!(said, format!("listening at {address}\n"));
    child
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
