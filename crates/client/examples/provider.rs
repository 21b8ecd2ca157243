//! Serves any item that is requested, with a bid that changes: `cargo run --example provider -- 127.0.0.1:14002`

#![allow(clippy::print_stdout, reason = "a program")]

use std::time::Duration;

use tapeline_client::{Provider, ProviderEvent};
use tapeline_omm::{Real, fid};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:14002".to_owned());
    let mut provider = Provider::listen(address.parse()?, "DIRECT_FEED")?;
    println!("listening at {}", provider.address());
    let mut items = Vec::new();
    for bid in 3991.. {
        while let Some(event) = provider.poll(Duration::from_millis(100))? {
            println!("{event:?}");
            if let ProviderEvent::Opened { item, .. } = event {
                items.push(item);
            }
        }
        for item in &items {
            provider.publish(item, &[(fid::BID, Real::decimal(bid, 2).into())])?;
        }
    }
    Ok(())
}
