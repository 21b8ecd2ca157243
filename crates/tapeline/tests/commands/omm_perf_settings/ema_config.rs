//! Per-thread entries of `EmaConfig.xml`, by number: `NAME_2` for the second thread of `NAME_1`.

use std::net::TcpListener;

use crate::omm_perf_settings::perf_peer::Tool;
use crate::omm_perf_settings::stage;

/// A file with a consumer, a provider and an NI provider for each of two threads, at these ports.
fn config(ports: [u16; 2]) -> String {
    let of = |group: &str, kind: &str, place: &str| {
        let entry = |number| {
            format!("<{kind}><Name value=\"P_{number}\"/><{place} value=\"{place}_{number}\"/></{kind}>")
        };
        format!("<{group}Group><{kind}List>{}{}</{kind}List></{group}Group>", entry(1), entry(2))
    };
    let at = |kind: &str| {
        let entry = |number: usize| {
            let port = ports[number - 1];
            format!("<{kind}><Name value=\"{kind}_{number}\"/><Port value=\"{port}\"/></{kind}>")
        };
        format!("<{kind}Group><{kind}List>{}{}</{kind}List></{kind}Group>", entry(1), entry(2))
    };
    [
        "<EmaConfig>",
        &of("Consumer", "Consumer", "Channel"),
        &of("NiProvider", "NiProvider", "Channel"),
        &of("IProvider", "IProvider", "Server"),
        &at("Channel"),
        &at("Server"),
        "</EmaConfig>",
    ]
    .concat()
}

#[test]
fn each_thread_connects_as_the_settings_of_its_number_say() {
    let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    for listener in &listeners {
        listener.set_nonblocking(true).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("EmaConfig.xml");
    let ports = listeners.each_ref().map(|listener| listener.local_addr().unwrap().port());
    std::fs::write(&file, config(ports)).unwrap();
    let file = file.to_str().unwrap();
    for tool in ["consumer", "ni-provider"] {
        for (threads, expected) in [("-1", [1, 0]), ("-1,-1", [1, 1]), ("-1,-1,-1", [2, 1])] {
            let usual = ["omm", tool, "--config", file, "--config-name", "P_1"];
            let _running = Tool::start(&[&usual[..], &["--threads", threads]].concat());
            // A connection whose handshake is unanswered stays open and is not retried, so each counts once.
            let (mut counts, mut held) = ([0, 0], Vec::new());
            while held.len() < threads.split(',').count() {
                for (listener, count) in listeners.iter().zip(&mut counts) {
                    if let Ok((socket, _)) = listener.accept() {
                        held.push(socket);
                        *count += 1;
                    }
                }
                std::thread::yield_now();
            }
            assert_eq!(counts, expected, "{tool} {threads}");
        }
    }
}

#[test]
fn a_provider_that_is_to_listen_at_several_ports_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("EmaConfig.xml"), config([0, 0])).unwrap();
    let mut command = stage::tapeline(&["omm", "provider", "-providerName", "P", "-threads", "-1,-1"]);
    let ended = command.current_dir(folder.path()).output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(!ended.status.success(), "{said}");
    assert!(
        said.contains("the configuration has P_2 for thread 2, and all threads listen at one port"),
        "{said}"
    );
}
