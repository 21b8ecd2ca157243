//! Requests two fields of an item instead of all: `cargo run --example consumer_view -- localhost:14002 DIRECT_FEED IBM.N`

#![allow(clippy::print_stdout, reason = "a program")]

use tapeline_client::{Consumer, Event, Login, Request};
use tapeline_omm::fid;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [server, service, item] = arguments.as_slice() else {
        return Err("expected SERVER SERVICE ITEM".into());
    };
    let mut consumer = Consumer::connect(server, &Login::user("me"))?;
    consumer.request(&Request::new(service, item).view(&[fid::BID, fid::ASK]))?;
    loop {
        if let Event::Message(message) = consumer.next()? {
            println!("{message}");
        }
    }
}
