//! Runs the programs of `examples/` as a user would start them.

use std::io::{BufRead, BufReader, Lines};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::hub::Hub;

/// An example that runs, until it is dropped.
struct Example {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Example {
    fn start(name: &str, arguments: &[&str]) -> Self {
        // Cargo builds the examples before any test runs, into a folder next to the folder of this test.
        let mut path: PathBuf = std::env::current_exe().unwrap();
        path.pop();
        path.pop();
        path.push("examples");
        path.push(name);
        let mut command = Command::new(&path);
        let mut process = command.args(arguments).stdout(Stdio::piped()).spawn().unwrap_or_else(|error| {
            panic!("{}: {error}; cargo test without a name builds it", path.display());
        });
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, lines }
    }

    fn line(&mut self) -> String {
        self.lines.next().expect("the example has ended").unwrap()
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_consumer_prints_the_prices_of_a_provider_in_rwf_and_in_json() {
    let mut provider = Example::start("provider", &["127.0.0.1:0"]);
    let listening = provider.line();
    let address = listening.strip_prefix("listening at ").unwrap().to_owned();
    for server in [address.clone(), format!("{address}/json")] {
        let mut consumer = Example::start("consumer", &[&server, "DIRECT_FEED", "IBM.N"]);
        let bids = [consumer.line(), consumer.line(), consumer.line()];
        let bid = |line: &String| line.strip_prefix("IBM.N ").unwrap().parse::<f64>().unwrap();
        let bids: Vec<f64> = bids.iter().map(bid).collect();
        assert!(bids[0] >= 39.91 && bids[0] < bids[1] && bids[1] < bids[2], "{bids:?}");
    }
}

#[test]
fn a_publisher_publishes_an_image_and_updates() {
    let hub = Hub::listen();
    let _publisher = Example::start("publisher", &[&hub.address.to_string(), "NI_PUB", "IBM.N"]);
    let seen = hub.take(3);
    assert_eq!(seen[0], "image IBM.N BID=39.91");
    assert_eq!(seen[1], "update IBM.N BID=39.92");
    assert_eq!(seen[2], "update IBM.N BID=39.93");
}
