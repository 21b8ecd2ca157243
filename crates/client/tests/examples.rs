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

/// Starts an example that listens. Returns it with its address.
fn listening(name: &str) -> (Example, String) {
    let mut provider = Example::start(name, &["127.0.0.1:0"]);
    let line = provider.line();
    let address = line.strip_prefix("listening at ").unwrap().to_owned();
    (provider, address)
}

/// Takes lines up to the first one that `is_last`.
fn up_to(example: &mut Example, is_last: impl Fn(&str) -> bool) -> Vec<String> {
    let mut lines = vec![example.line()];
    while !is_last(lines.last().unwrap()) {
        lines.push(example.line());
    }
    lines
}

fn bids(example: &mut Example) -> Vec<f64> {
    let bid = |line: String| line.split("BID=").nth(1).unwrap().parse::<f64>().unwrap();
    vec![bid(example.line()), bid(example.line()), bid(example.line())]
}

#[test]
fn a_consumer_prints_the_messages_of_a_provider_in_rwf_and_in_json() {
    let (_provider, address) = listening("provider");
    for server in [address.clone(), format!("{address}/json")] {
        let mut consumer = Example::start("consumer", &[&server, "DIRECT_FEED", "IBM.N"]);
        let bids = bids(&mut consumer);
        assert!(bids[0] >= 39.91 && bids[0] < bids[1] && bids[1] < bids[2], "{bids:?}");
    }
}

#[test]
fn a_consumer_prints_fields_by_name_and_type() {
    let (_provider, address) = listening("provider_fields");
    let mut consumer = Example::start("consumer_fields", &[&address, "DIRECT_FEED", "IBM.N"]);
    let lines = up_to(&mut consumer, |line| line.starts_with("Name: ASKSIZE"));
    assert_eq!(lines[..2], ["Item Name: IBM.N", "Service Name: DIRECT_FEED"]);
    assert!(lines[2].starts_with("Item State: OPEN/OK"), "{lines:?}");
    let fields = ["CURRENCY Value: USD", "HST_CLOSE Value: 39", "BID Value: 39.9"];
    for (line, field) in lines[3..].iter().zip(fields) {
        assert_eq!(*line, format!("Name: {field}"));
    }
    // The provider serves one item only.
    let mut second = Example::start("consumer", &[&address, "DIRECT_FEED", "TRI.N"]);
    let line = up_to(&mut second, |line| line.contains("Item not found")).pop().unwrap();
    assert!(line.contains("CLOSED/SUSPECT"), "{line}");
}

#[test]
fn a_consumer_prints_a_book_of_a_private_stream() {
    let (_provider, address) = listening("provider_domains");
    let mut consumer = Example::start("consumer_book", &[&address, "DIRECT_FEED", "BBH.ITC"]);
    let lines = up_to(&mut consumer, |line| line.starts_with("DELETE"));
    let book = [
        "BBH.ITC REFRESH",
        "ADD 39.91B ORDER_PRC=39.91 ACC_SIZE=10",
        "ADD 39.94A ORDER_PRC=39.94 ACC_SIZE=5",
        "BBH.ITC UPDATE",
        "DELETE 39.94A",
    ];
    assert_eq!(lines, book);
}

#[test]
fn a_consumer_prints_a_symbol_list() {
    let (_provider, address) = listening("provider_domains");
    let mut consumer = Example::start("consumer_symbol_list", &[&address, "DIRECT_FEED", ".AV.N"]);
    let lines = up_to(&mut consumer, |line| line == "ADD TRI.N");
    assert_eq!(lines[lines.len() - 2..], ["ADD IBM.N", "ADD TRI.N"]);
}

#[test]
fn a_consumer_and_a_provider_exchange_generic_messages() {
    let (_provider, address) = listening("provider_domains");
    let mut consumer = Example::start("consumer_generic", &[&address, "DIRECT_FEED", "IBM.XYZ"]);
    let lines = up_to(&mut consumer, |line| line.starts_with("sent 2"));
    assert_eq!(lines[lines.len() - 3..], ["sent 1: Queued", "answer = 42", "sent 2: Queued"]);
}

#[test]
fn a_view_has_two_fields() {
    let (_provider, address) = listening("provider_domains");
    let mut consumer = Example::start("consumer_view", &[&address, "DIRECT_FEED", "IBM.N"]);
    let image = up_to(&mut consumer, |line| line.contains("BID=")).pop().unwrap();
    assert!(image.ends_with("BID=39.91 ASK=39.94"), "{image}");
}

#[test]
fn a_token_is_renewed_when_the_server_says_so() {
    let (_provider, address) = listening("provider_domains");
    let arguments = [&*address, "DIRECT_FEED", "IBM.N", "TOKEN"];
    let mut consumer = Example::start("consumer_token", &arguments);
    for _ in 0..3 {
        up_to(&mut consumer, |line| line.starts_with("login OPEN/OK"));
    }
    let mut refused = Example::start("consumer_token", &[&address, "DIRECT_FEED", "IBM.N", "WRONG"]);
    let line = up_to(&mut refused, |line| line.starts_with("login")).pop().unwrap();
    assert!(line.contains("the token is not known"), "{line}");
}

#[test]
fn posts_are_answered() {
    let (_provider, address) = listening("provider_domains");
    let mut consumer = Example::start("consumer_post", &[&address, "DIRECT_FEED", "IBM.N"]);
    let lines = up_to(&mut consumer, |line| line.starts_with("post 2"));
    let refused = "post 2 is refused: DENIED_BY_SRC the item is closed";
    assert_eq!(lines, ["Queued Queued", "post 1 is accepted", refused]);
}

#[test]
fn a_publisher_publishes_an_image_and_updates() {
    let hub = Hub::listen();
    let _publisher = Example::start("publisher", &[&hub.address.to_string(), "NI_PUB", "IBM.N"]);
    let seen = hub.take(3);
    assert_eq!(seen[0], "image IBM.N BID=39.91 BIDSIZE=10");
    assert_eq!(seen[1], "update IBM.N BID=39.92 BIDSIZE=11");
    assert_eq!(seen[2], "update IBM.N BID=39.93 BIDSIZE=12");
}

#[cfg(feature = "tokio")]
#[test]
fn a_stream_has_the_prices_of_a_provider() {
    let (_provider, address) = listening("provider");
    let mut consumer = Example::start("stream", &[&address, "DIRECT_FEED", "IBM.N"]);
    let bid = |line: String| line.strip_prefix("IBM.N ").unwrap().parse::<f64>().unwrap();
    let bids = [bid(consumer.line()), bid(consumer.line())];
    assert!(bids[0] >= 39.91 && bids[0] < bids[1], "{bids:?}");
}
