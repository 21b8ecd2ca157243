//! Number of images in a burst, between two reads of the clock; due updates go first after each read.

use std::net::TcpListener;

use tapeline_wire::rssl::ConnectionSettings;

use crate::omm_perf_settings::end::End;
use crate::omm_perf_settings::perf_peer::{Heard, Peer, Provider, Tool};

/// Slices of a microsecond with an update each: a slice begins before any burst ends. All data fits into the buffers.
const PACE: [&str; 8] = [
    "--tick-rate",
    "1000000",
    "--update-rate",
    "1000000",
    "--latency-update-rate",
    "0",
    "--guaranteed-output-buffers",
    "10000",
];
/// Neither is the default.
const BURSTS: [&str; 2] = ["50", "100"];

#[test]
fn a_provider_s_bursts_of_images_are_as_long_as_it_is_told() {
    for burst in BURSTS {
        let provider = Provider::start(&[&PACE[..], &["--refresh-burst-size", burst]].concat());
        let mut peer = Peer::log_in(provider.port);
        // All are requested before the first gets its image, and so its first update.
        peer.open_together(120);
        let heard = peer.until(|heard| heard.iter().any(Heard::is_update));
        let first = heard.iter().take_while(|heard| !heard.is_update());
        assert_eq!(first.filter(|heard| heard.is_image()).count().to_string(), burst);
    }
}

#[test]
fn an_ni_provider_s_bursts_of_images_are_as_long_as_it_is_told() {
    for burst in BURSTS {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = format!("localhost:{}", listener.local_addr().unwrap().port());
        let words = ["omm", "ni-provider", "--server", &server, "--item-count", "120"];
        let mut tool = Tool::start(&[&words[..], &PACE, &["--refresh-burst-size", burst]].concat());
        let mut hub = End::accept(&listener, &mut tool, ConnectionSettings::default());
        let mut images = 0;
        loop {
            let message = hub.message().unwrap();
            hub.let_in(&message);
            let heard = Heard::new(&message);
            if heard.is_update() {
                break;
            }
            images += usize::from(heard.is_image());
        }
        assert_eq!(images.to_string(), burst);
    }
}
