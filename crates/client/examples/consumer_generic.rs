//! Exchanges generic messages with a provider, in a domain of its own:
//! `cargo run --example consumer_generic -- localhost:14002 DIRECT_FEED IBM.XYZ`

#![allow(clippy::print_stdout, reason = "a program")]

use tapeline_client::{Consumer, Event, Login, Payload, Request};
use tapeline_omm::Value;
use tapeline_omm::rwf::{Container, Domain};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [server, service, item] = arguments.as_slice() else {
        return Err("expected SERVER SERVICE ITEM".into());
    };
    let mut consumer = Consumer::connect(server, &Login::user("me"))?;
    let item = consumer.request(&Request::new(service, item).domain(Domain(200)))?;
    let mut count = 0;
    loop {
        let Event::Message(message) = consumer.next()? else { continue };
        if message.is_generic()
            && let Container::ElementList(list) = message.message.open()?
        {
            for element in list.iter() {
                let element = element?;
                println!("{} = {}", String::from_utf8_lossy(element.name), element.value()?);
            }
        } else if message.is_image() {
            println!("{message}");
        } else {
            continue;
        }
        count += 1;
        let sent = consumer.generic(item, &Payload::elements(&[("value", Value::Int(count))])?)?;
        println!("sent {count}: {sent:?}");
    }
}
