//! Serves one item with fields of several types, and refuses all others: `cargo run --example provider_fields -- 127.0.0.1:14002`

#![allow(clippy::print_stdout, reason = "a program")]

use std::time::Duration;

use tapeline_client::{LoginAnswer, Provider, ProviderEvent};
use tapeline_omm::{Fid, Real, Value, fid};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:14002".to_owned());
    let mut provider = Provider::listen(address.parse()?, "DIRECT_FEED")?;
    provider.check_logins(|request| match request.user {
        b"nobody" => LoginAnswer::Refuse("nobody may not log in".to_owned()),
        _ => LoginAnswer::Accept,
    });
    println!("listening at {}", provider.address());
    let mut served = None;
    for i in 0.. {
        while let Some(event) = provider.poll(Duration::from_millis(100))? {
            let ProviderEvent::Opened { item, .. } = event else { continue };
            if served.is_some() {
                provider.close_item(&item, "Item not found");
                continue;
            }
            let image = [
                (fid::CURRENCY, Value::Enum(840)),
                (Fid(21), Real::decimal(3900, 2).into()),
                (fid::BID, Real::decimal(3990, 2).into()),
                (fid::ASK, Real::decimal(3994, 2).into()),
                (fid::BIDSIZE, Real::integer(9).into()),
                (fid::ASKSIZE, Real::integer(19).into()),
            ];
            provider.publish(&item, &image)?;
            served = Some(item);
        }
        if let Some(item) = &served {
            let update = [
                (fid::BID, Real::decimal(3991 + i, 2).into()),
                (fid::ASK, Real::decimal(3994 + i, 2).into()),
                (fid::BIDSIZE, Real::integer(10 + i).into()),
                (fid::ASKSIZE, Real::integer(19 + i).into()),
            ];
            provider.publish(item, &update)?;
        }
    }
    Ok(())
}
