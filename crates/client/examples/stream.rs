//! Prints the bid of items as it changes, on tokio: `cargo run --features tokio --example stream -- localhost:14002 DIRECT_FEED IBM.N`

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program")]

use tapeline_client::{Consumer, Event, Login};
use tapeline_omm::fid;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [server, service, items @ ..] = arguments.as_slice() else {
        return Err("expected SERVER SERVICE ITEM…".into());
    };
    let mut consumer = Consumer::connect(server, &Login::user("me"))?;
    let items: Vec<&str> = items.iter().map(String::as_str).collect();
    consumer.subscribe(service, &items)?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    runtime.block_on(async {
        let mut events = consumer.into_stream()?;
        while let Some(event) = events.next().await {
            match event?.event() {
                Event::Message(message) => {
                    if let Some(bid) = message.real(fid::BID) {
                        println!("{} {bid}", message.item);
                    }
                }
                other => eprintln!("{other:?}"),
            }
        }
        Ok(())
    })
}
