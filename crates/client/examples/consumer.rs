//! Prints each message of items: `cargo run --example consumer -- localhost:14002 DIRECT_FEED IBM.N`
//!
//! With `/json` after the server, such as `localhost:14002/json`: the same over a WebSocket in simplified JSON.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program")]

use tapeline_client::{Consumer, Endpoint, Event, Login};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [server, service, items @ ..] = arguments.as_slice() else {
        return Err("expected SERVER SERVICE ITEM…".into());
    };
    let endpoint = match server.strip_suffix("/json") {
        Some(server) => Endpoint::json(server),
        None => Endpoint::plain(server),
    };
    let mut consumer = Consumer::new(vec![endpoint], &Login::user("me"), Default::default())?;
    let items: Vec<&str> = items.iter().map(String::as_str).collect();
    consumer.subscribe(service, &items)?;
    loop {
        match consumer.next()? {
            Event::Message(message) => println!("{message}"),
            other => eprintln!("{other:?}"),
        }
    }
}
