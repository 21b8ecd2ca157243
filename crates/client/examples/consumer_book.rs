//! Prints a book by price on a private stream, for a minute: `cargo run --example consumer_book -- localhost:14002 DIRECT_FEED BBH.ITC`

#![allow(clippy::print_stdout, reason = "a program")]

use std::time::{Duration, Instant};

use tapeline_client::{Consumer, Event, Login, Request};
use tapeline_omm::FieldList;
use tapeline_omm::rwf::{Container, Domain, MapAction};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [server, service, item] = arguments.as_slice() else {
        return Err("expected SERVER SERVICE ITEM".into());
    };
    let mut consumer = Consumer::connect(server, &Login::user("me"))?;
    consumer.request(&Request::new(service, item).domain(Domain::MARKET_BY_PRICE).private())?;
    let end = Instant::now() + Duration::from_secs(60);
    while Instant::now() < end {
        let Some(event) = consumer.poll(Duration::from_millis(10))? else { continue };
        let Event::Message(message) = event else { continue };
        println!("{} {}", message.item, message.message.class());
        let Container::Map(map) = message.message.open()? else { continue };
        let sets = map.sets()?;
        for entry in map.iter() {
            let entry = entry?;
            print!("{} {}", entry.action, String::from_utf8_lossy(entry.key));
            if entry.action != MapAction::DELETE {
                print!(" {}", FieldList::parse_with(entry.data, &sets)?.render(message.dictionary()));
            }
            println!();
        }
    }
    consumer.close();
    Ok(())
}
