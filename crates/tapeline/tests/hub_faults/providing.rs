//! Providers behind the hub that die.

use serde_json::Value;

use crate::market::{Market, Process};
use crate::{count, day, timed};

/// An interactive provider at this port, 0 for a free one: which.
fn provider(port: &str) -> (Process, String) {
    let options = ["--service", "FEED", "--update-rate", "200", "--format", "json"];
    let mut provider = Process::start(&[&["omm", "provider", "--port", port], &options[..]].concat());
    let port = provider.says()["port"].to_string();
    (provider, port)
}

/// The next line that `is` so.
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
    let (first, port) = provider("0");
    let hub = format!(
        "[[service]]\nname = \"FEED\"\nid = 7\nproviders = [\"p\"]\n\
         [[provider]]\nname = \"p\"\nservers = [\"127.0.0.1:{port}\"]"
    );
    let (report, _) = day(Market::open(&hub, &[]), |market| {
        let server = market.server.clone();
        let fixed = ["omm", "consumer", "IBM.N", "--server", &server, "--service", "FEED"];
        let mut client = Process::start(&[&fixed[..], &["--attempts", "1", "--format", "json"]].concat());
        wait_for(&mut client, |said| said["event"] == "refresh");
        wait_for(&mut client, |said| said["event"] == "update");
        drop(first);
        timed("a provider is killed: its client hears that its item is suspect", || {
            wait_for(&mut client, |said| said["item"] == "IBM.N" && said["state"]["data"] == "SUSPECT");
        });
        let back = provider(&port);
        let image = timed("a provider is started again: its item has an image", || {
            wait_for(&mut client, |said| said["event"] == "refresh")
        });
        assert_eq!(image["state"]["data"], "OK");
        wait_for(&mut client, |said| said["event"] == "update");
        drop(back);
    });
    assert_eq!((count(&report, "sessions"), count(&report, "cut")), (2, 0), "{report}");
}
