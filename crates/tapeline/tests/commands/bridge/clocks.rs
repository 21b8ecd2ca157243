//! A plant below states how far the clock of the plant above differs, and times hops between the two by that.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};

use serde_json::{Value, json};
use tapeline_measure::Nanos;
use tapeline_perf::path::{Hop, PathReport};
use tapeline_plant::bridge::clocks::{CLOCK_BYTES, ClockExchange};
use tapeline_plant::bridge::tcp_line::{datagram, put_datagram};

use super::tcp::{CERTIFICATE, FROM_THE_FIRST, TRUST, line_above, line_below};
use super::{JOURNAL, Scene, unbound};
use crate::certificates;
use crate::stage::{Running, tapeline};

/// How much the clock of the plant above seems to be ahead at the plant whose requests are redirected.
const AHEAD_NS: i64 = 3_000_000_000;

/// Shifts the clock in an answer; `None` for anything else.
fn later(bytes: &[u8]) -> Option<[u8; CLOCK_BYTES]> {
    let later = |at: Nanos| at + AHEAD_NS.unsigned_abs();
    let shift = |answer: ClockExchange| ClockExchange {
        received: later(answer.received),
        answered: later(answer.answered),
        ..answer
    };
    ClockExchange::decode(bytes).map(|answer| shift(answer).encode())
}

/// Passes requests on to the server, and shifts the server's clock in its answers. It ends with the test's process.
fn shifted(server: SocketAddrV4) -> SocketAddrV4 {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let SocketAddr::V4(address) = socket.local_addr().unwrap() else { unreachable!() };
    std::thread::spawn(move || {
        let (mut room, mut below) = ([0; 2_048], None);
        loop {
            // Nobody may listen yet.
            let Ok((length, source)) = socket.recv_from(&mut room) else { continue };
            if source != SocketAddr::V4(server) {
                below = Some(source);
                let _ = socket.send_to(&room[..length], server);
                continue;
            }
            let Some(below) = below else { continue };
            let _ = match later(&room[..length]) {
                Some(answer) => socket.send_to(&answer, below),
                None => socket.send_to(&room[..length], below),
            };
        }
    });
    address
}

/// The same for a line over TCP: one connection after the other.
fn shifted_line(above: SocketAddrV4) -> SocketAddrV4 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let SocketAddr::V4(address) = listener.local_addr().unwrap() else { unreachable!() };
    std::thread::spawn(move || {
        for below in listener.incoming() {
            let (mut below, mut above) = (below.unwrap(), TcpStream::connect(above).unwrap());
            let (mut from, mut into) = (below.try_clone().unwrap(), above.try_clone().unwrap());
            std::thread::spawn(move || _ = std::io::copy(&mut from, &mut into));
            let (mut room, mut bytes, mut out) = (vec![0; 65_536], Vec::new(), Vec::new());
            while let Ok(count @ 1..) = above.read(&mut room) {
                bytes.extend_from_slice(&room[..count]);
                let mut used = 0;
                while let Some(datagram) = datagram(&bytes[used..]).unwrap() {
                    used += 2 + datagram.len();
                    put_datagram(&mut out, later(datagram).as_ref().map_or(datagram, |answer| answer));
                }
                bytes.drain(..used);
                if below.write_all(&out).is_err() {
                    break;
                }
                out.clear();
            }
        }
    });
    address
}

fn stat(ring: &str) -> Value {
    let output = tapeline(&["stat", ring, "--format", "json"]).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_default()
}

/// Waits until a plant states the difference: the other clock less its own, and the bound.
fn difference(ring: &str) -> (i64, i64) {
    let mut stats = Running::start(&["stat", ring, "--format", "json", "--every", "100ms"]);
    loop {
        let clock = &stats.says()["upstream"]["clock"];
        if let (Some(ahead), Some(bound)) = (clock["ahead_ns"].as_i64(), clock["bound_ns"].as_i64()) {
            return (ahead, bound);
        }
    }
}

/// Measures a plant's ring, with the difference to the clock above if that is needed. A plant below begins its ring anew
/// after a loss that nobody fills (the plant above has no journal here), a busy machine loses datagrams, and it may get no
/// answer about the clock for so long that the difference is too old: then the ring is measured again.
fn measured(ring: &str, needs_difference: bool) -> PathReport {
    let arguments =
        ["plant", "measure", "--ring", ring, "--ticks", "100", "--wait-for-ring", "1m", "--format", "json"];
    let mut said = String::new();
    for _ in 0..50 {
        let output = tapeline(&arguments).output().unwrap();
        let [out, errors] = [&output.stdout, &output.stderr].map(|said| String::from_utf8_lossy(said));
        said = format!("{out}\n{errors}");
        if let Ok(report) = serde_json::from_slice::<PathReport>(&output.stdout)
            && (output.status.success(), report.received) == (true, 100)
            && (report.clock_above.is_some() || !needs_difference)
        {
            return report;
        }
    }
    panic!("{ring} was not measured in fifty attempts; the last said: {said}");
}

fn median(report: &PathReport, hop: Hop) -> Option<u64> {
    let latencies = report.latencies().unwrap();
    let (_, recorder) = latencies.iter().find(|(of, _)| *of == hop)?;
    recorder.value_at(0.5)
}

/// Checks the difference of a plant whose answers are shifted, and the hops that follow from it.
fn far_is_ahead(ring: &str) {
    let (ahead, bound) = difference(ring);
    assert!((ahead - AHEAD_NS).abs() <= bound, "{ahead} ns, ± {bound}");
    let far = measured(ring, true);
    let taken = median(&far, Hop::SequencedToReceived).unwrap();
    // By the difference of that time: on a busy host its bound is greater than a moment ago.
    let bound = far.clock_above.unwrap().bound_ns;
    assert!(taken > AHEAD_NS.unsigned_abs() - bound, "{taken} ns, ± {bound}");
    let inside = median(&far, Hop::WireToDecoded);
    assert!(inside < Some(AHEAD_NS.unsigned_abs()), "a hop of one host is as it was: {inside:?}");
}

#[test]
fn hops_from_another_host_are_corrected_by_its_clock_or_not_stated() {
    let scene = Scene::new("clocks");
    scene.day_at("500", "5m");
    let lines = [unbound(), unbound(), unbound()];
    // With a journal a plant below that has lost datagrams on a busy machine goes on behind them; otherwise it would begin again.
    let _above = scene.above(&lines, JOURNAL, &[]);
    let ring = |name: &str| format!("{}-{name}", scene.name);
    let _near = scene.below("near", &lines[..1], "", &[]);
    let requests = format!("requests = [\"{}\"]", shifted(scene.server));
    let _far = scene.below("far", &lines[1..2], &requests, &[]);
    // Nobody answers here.
    let requests = format!("requests = [\"{}\"]", unbound());
    let _unknown = scene.below("unknown", &lines[2..], &requests, &[]);

    let (ahead, bound) = difference(&ring("near"));
    assert!(ahead.abs() <= bound, "one host has one clock: {ahead} ns, ± {bound}");
    let near = measured(&ring("near"), true);
    assert!(near.stamped_above && near.clock_above.is_some(), "{near:?}");

    far_is_ahead(&ring("far"));

    let unknown = measured(&ring("unknown"), false);
    assert_eq!((unknown.stamped_above, unknown.clock_above.is_some()), (true, false));
    assert!(median(&unknown, Hop::DecodedToSequenced).is_some(), "{unknown:?}");
    for hop in [Hop::SequencedToReceived, Hop::WireToReceived, Hop::DueToReceived] {
        assert_eq!(median(&unknown, hop), None, "{hop}");
    }
    assert_eq!(stat(&ring("unknown"))["upstream"]["clock"], json!(null));

    let above = measured(&ring("above"), false);
    assert!(!above.stamped_above && median(&above, Hop::WireToReceived).is_some(), "{above:?}");
}

#[test]
fn a_line_over_tcp_compares_the_clocks_where_there_are_no_requests() {
    let scene = Scene::new("clocks-tcp");
    scene.day_at("2k", "60s");
    let tcp = unbound();
    let _above = scene.above_tcp("", &line_above(tcp), &[]);
    let _near = scene.below_tcp("near", FROM_THE_FIRST, &line_below(tcp), &[]);
    let _far = scene.below_tcp("far", FROM_THE_FIRST, &line_below(shifted_line(tcp)), &[]);
    let (ahead, bound) = difference(&format!("{}-near", scene.name));
    assert!(ahead.abs() <= bound, "one host has one clock: {ahead} ns, ± {bound}");
    far_is_ahead(&format!("{}-far", scene.name));
}

#[test]
fn a_line_over_tls_compares_them_too_beside_lines_of_datagrams() {
    let scene = Scene::new("clocks-tls");
    scene.day_at("2k", "60s");
    certificates::write(scene.folder.path());
    let (datagrams, tcp) = (unbound(), unbound());
    let lines = format!("[[bridge.line]]\naddress = \"{datagrams}\"\n{}", line_above(tcp));
    let _above = scene.above_tcp(CERTIFICATE, &lines, &[]);
    let keys = format!("{TRUST}{FROM_THE_FIRST}");
    let _below = scene.below_tcp("below", &keys, &line_below(tcp), &[]);
    let (ahead, bound) = difference(&format!("{}-below", scene.name));
    assert!(ahead.abs() <= bound, "{ahead} ns, ± {bound}");
}
