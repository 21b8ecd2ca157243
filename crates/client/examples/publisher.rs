//! Publishes an item to a hub without a request: `cargo run --example publisher -- localhost:14003 NI_PUB IBM.N`

use std::time::Duration;

use tapeline_client::{Login, Publisher};
use tapeline_omm::{Real, fid};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [hub, service, item] = arguments.as_slice() else {
        return Err("expected HUB SERVICE ITEM".into());
    };
    let mut publisher = Publisher::connect(hub, &Login::user("me"), 1, service)?;
    for i in 0..60 {
        let fields =
            [(fid::BID, Real::decimal(3991 + i, 2).into()), (fid::BIDSIZE, Real::integer(10 + i).into())];
        publisher.publish(item, &fields)?;
        publisher.flush()?;
        publisher.turn(Duration::from_millis(100))?;
    }
    Ok(publisher.close(Duration::from_secs(5))?)
}
