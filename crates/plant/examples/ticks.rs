//! Prints the bids on a plant's ring, live: `cargo run --example ticks -- tapeline`

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program")]

use std::time::Duration;

use anyhow::{Context, bail};
use tapeline_omm::FieldList;
use tapeline_omm::fid;
use tapeline_omm::rwf::{DataType, MessageView};
use tapeline_plant::tick::Tick;
use tapeline_ring::{Name, Poll, Start, Subscriber, Wait};

fn main() -> anyhow::Result<()> {
    let ring = std::env::args().nth(1).context("expected the name of a plant's ring")?;
    let mut subscriber = Subscriber::join(&Name::new(&ring)?, Start::Oldest)?;
    eprintln!("joined");
    loop {
        match subscriber.next() {
            Poll::Frame(frame) => print(&Tick::parse(frame.bytes())?)?,
            Poll::Empty => _ = subscriber.wait(Wait::Park, Duration::from_millis(100)),
            Poll::Ended => return Ok(()),
            lost => bail!("{lost:?}"),
        }
    }
}

/// The plant's sequence, the item and its bid, where the tick has one.
fn print(tick: &Tick<'_>) -> anyhow::Result<()> {
    let message = MessageView::parse(tick.body)?;
    if message.container() == DataType::FIELD_LIST
        && let Some(field) = FieldList::parse(message.payload())?.find(fid::BID)?
        && let Some(bid) = field.real()?
    {
        println!("{} {} {bid}", tick.header.seq.0, tick.name);
    }
    Ok(())
}
