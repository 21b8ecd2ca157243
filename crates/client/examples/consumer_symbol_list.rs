//! Prints the names of a symbol list as they come and go: `cargo run --example consumer_symbol_list -- localhost:14002 DIRECT_FEED .AV.N`

#![allow(clippy::print_stdout, reason = "a program")]

use tapeline_client::{Consumer, Event, Login, Request};
use tapeline_omm::domain::symbol_list;
use tapeline_omm::rwf::{DataType, Domain};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [server, service, list] = arguments.as_slice() else {
        return Err("expected SERVER SERVICE LIST".into());
    };
    let mut consumer = Consumer::connect(server, &Login::user("me"))?;
    consumer.request(&Request::new(service, list).domain(Domain::SYMBOL_LIST))?;
    loop {
        match consumer.next()? {
            Event::Message(message) if message.message.container() == DataType::MAP => {
                for name in symbol_list::names(message.message.payload())? {
                    let (action, name) = name?;
                    println!("{action} {}", String::from_utf8_lossy(name));
                }
            }
            Event::State { item, state, .. } => println!("{item} {state}"),
            _ => {}
        }
    }
}
