//! Prints the name and the value of each field: `cargo run --example consumer_fields -- localhost:14002 DIRECT_FEED IBM.N`

#![allow(clippy::print_stdout, reason = "a program")]

use tapeline_client::{Consumer, Event, ItemMessage, Login};
use tapeline_omm::Value;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [server, service, item] = arguments.as_slice() else {
        return Err("expected SERVER SERVICE ITEM".into());
    };
    let mut consumer = Consumer::connect(server, &Login::user("me"))?;
    consumer.subscribe(service, &[item])?;
    loop {
        if let Event::Message(message) = consumer.next()? {
            println!("Item Name: {}\nService Name: {}", message.item, message.service);
            if let Some(state) = message.state() {
                println!("Item State: {state}");
            }
            print_fields(&message)?;
        }
    }
}

fn print_fields(message: &ItemMessage<'_>) -> Result<(), Box<dyn std::error::Error>> {
    let dictionary = message.dictionary();
    for field in message.fields()?.iter() {
        let field = field?;
        let Some(definition) = dictionary.field(field.fid) else { continue };
        let text = match field.value(definition.data_type)? {
            Value::Blank => "blank".to_owned(),
            Value::Real(real) => real.to_f64().to_string(),
            Value::Enum(code) => {
                dictionary.display(field.fid, code).map_or(code.to_string(), |text| text.trim().to_owned())
            }
            // Dates, times, numbers and texts have their usual form.
            value => value.to_string(),
        };
        println!("Name: {} Value: {text}", definition.name);
    }
    Ok(())
}
