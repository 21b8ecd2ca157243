//! Posts a bid to an item, on its stream and without a stream of the item: `cargo run --example consumer_post -- localhost:14002 DIRECT_FEED IBM.N`

#![allow(clippy::print_stdout, reason = "a program")]

use tapeline_client::{Consumer, Event, Login, Payload};
use tapeline_omm::{Real, fid};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [server, service, item] = arguments.as_slice() else {
        return Err("expected SERVER SERVICE ITEM".into());
    };
    let mut consumer = Consumer::connect(server, &Login::user("me"))?;
    consumer.subscribe(service, &[item])?;
    let bid = Payload::update(&[(fid::BID, Real::decimal(4000, 2).into())])?;
    let mut answers = 0;
    while answers < 2 {
        match consumer.next()? {
            Event::Message(message) if message.is_image() => {
                let id = message.id;
                let on_stream = consumer.post(id, Some(1), &bid)?;
                let off_stream = consumer.post_off_stream(service, "CLOSED.N", Some(2), &bid)?;
                println!("{on_stream:?} {off_stream:?}");
            }
            Event::Ack { post, refusal, .. } => {
                answers += 1;
                match refusal {
                    None => println!("post {post} is accepted"),
                    Some(refusal) => println!("post {post} is refused: {} {}", refusal.code, refusal.text),
                }
            }
            _ => {}
        }
    }
    consumer.close();
    Ok(())
}
