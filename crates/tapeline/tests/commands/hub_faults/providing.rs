//! Providers behind the hub that die, and a provider whose client does not read.

use serde_json::Value;
use tapeline_omm::rwf::{MessageClass, MessageView};

use crate::hub_faults::market::{Market, Process};
use crate::hub_faults::peer::Peer;
use crate::hub_faults::{count, day, timed};

/// Number of the provider's service.
const FEED: u16 = 7;

/// An interactive provider at this port (0 takes a free port), with its actual port.
fn provider(port: &str, rate: &str) -> (Process, String) {
    let options = ["--service", "FEED", "--update-rate", rate, "--format", "json"];
    let mut provider = Process::start(&[&["omm", "serve", "--port", port], &options[..]].concat());
    let port = provider.says()["port"].to_string();
    (provider, port)
}

/// Configuration of a service with a provider at this port.
fn served(port: &str) -> String {
    format!(
        "[[service]]\nname = \"FEED\"\nid = {FEED}\nproviders = [\"p\"]\n\
         [[provider]]\nname = \"p\"\nservers = [\"127.0.0.1:{port}\"]"
    )
}

/// Waits for the next line for which `is` returns true.
fn wait_for(process: &mut Process, is: impl Fn(&Value) -> bool) -> Value {
    loop {
        let said = process.says();
        if is(&said) {
            return said;
        }
    }
}

#[test]
fn a_provider_that_is_killed_is_asked_again_when_it_is_back() {
    let (first, port) = provider("0", "200");
    let (report, _) = day(Market::open(&served(&port), &[]), |market| {
        let server = market.server.clone();
        let fixed = ["omm", "watch", "IBM.N", "--server", &server, "--service", "FEED"];
        let mut client = Process::start(&[&fixed[..], &["--attempts", "1", "--format", "json"]].concat());
        wait_for(&mut client, |said| said["event"] == "refresh");
        wait_for(&mut client, |said| said["event"] == "update");
        drop(first);
        timed("a provider is killed: its client hears that its item is suspect", || {
            wait_for(&mut client, |said| said["item"] == "IBM.N" && said["state"]["data"] == "SUSPECT");
        });
        let back = provider(&port, "200");
        let image = timed("a provider is started again: its item has an image", || {
            wait_for(&mut client, |said| said["event"] == "refresh")
        });
        assert_eq!(image["state"]["data"], "OK");
        wait_for(&mut client, |said| said["event"] == "update");
        drop(back);
    });
    assert_eq!((count(&report, "sessions"), count(&report, "cut")), (2, 0), "{report}");
}

/// An item with a single client waits for that client instead of queueing updates; an image replaces missed updates.
#[test]
fn a_provider_pauses_while_the_one_client_of_its_item_does_not_read() {
    let (provider, port) = provider("0", "20k");
    let hub = "slow = \"block\"\nslow_time = \"1h\"\nping_timeout = \"255s\"\nslow_bytes = \"1GiB\"\nslow_messages = 100000000";
    let (report, _) = day(Market::open(&format!("{hub}\n{}", served(&port)), &[]), |market| {
        let mut client = Peer::log_in(market.address(), "stalled");
        client.ask_of(FEED, 5, "IBM.N");
        let mut next_image = |plant: &mut Process| {
            let mut has_come = false;
            while !has_come {
                let is_image = |message: &MessageView<'_>| {
                    (message.stream_id(), message.class()) == (5, MessageClass::REFRESH)
                };
                let is_open = client.read(&mut |message| has_come |= is_image(message));
                assert!(is_open, "{}", plant.tells(&["gone stalled"]));
            }
        };
        next_image(&mut market.plant);
        let ring = &market.place.ring;
        let mut seen = Process::start(&["stat", ring, "--every", "50ms", "--format", "json"]);
        timed("the one client of an item does not read: its provider is held back", || {
            wait_for(&mut seen, |seen| seen["hub"]["totals"]["held"].as_u64() >= Some(1));
        });
        timed("it reads: the provider goes on, with an image", || next_image(&mut market.plant));
        // A plant that is asked to end while the ring is full of its messages leaves out the rest.
        drop(provider);
        wait_for(&mut seen, |seen| seen["sources"][0]["state"] == "away");
    });
    assert_eq!((count(&report, "sessions"), count(&report, "cut")), (2, 0), "{report}");
}
