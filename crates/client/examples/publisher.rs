//! Publishes an item to a hub without a request: `cargo run --example publisher -- localhost:14003 NI_PUB IBM.N`

use std::time::Duration;

use tapeline_client::{Login, Publisher};
use tapeline_omm::{Real, fid};

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [hub, service, item] = arguments.as_slice() else {
        anyhow::bail!("expected HUB SERVICE ITEM");
    };
    let mut publisher = Publisher::connect(hub, &Login::user("me"), 1, service)?;
    for bid in 3991.. {
        publisher.publish(item, &[(fid::BID, Real::decimal(bid, 2).into())])?;
        publisher.flush()?;
        publisher.turn(Duration::from_millis(100))?;
    }
    Ok(())
}
