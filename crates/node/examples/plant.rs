//! A plant with a feed, a hub and a journal in one program: `cargo run --example plant -- RING 239.255.12.111:26477 127.0.0.1:14002 FOLDER`
//!
//! Ends when the feed ends its session.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program")]

use std::time::{SystemTime, UNIX_EPOCH};

use tapeline_feed::Protocol;
use tapeline_measure::Nanos;
use tapeline_node::config::{Feed, Line};
use tapeline_node::hub::HubConfig;
use tapeline_node::journal::JournalConfig;
use tapeline_node::{Config, Ended, Events, Plant, Stop};
use tapeline_ring::Name;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [ring, line, hub, folder] = arguments.as_slice() else {
        anyhow::bail!("expected RING LINE HUB FOLDER")
    };
    let day = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() / 86_400;
    let mut feed = Feed::new("itch", Protocol::ItchMoldUdp64, Nanos(day * 86_400_000_000_000));
    feed.lines.push(Line::new("A", line.parse()?));

    let mut config = Config::new("EXAMPLE", Name::new(ring)?);
    config.feeds.push(feed);
    config.hub = Some(HubConfig::new(hub.parse()?));
    config.journal = Some(JournalConfig::new(folder));

    let events = Events::new(|event| eprintln!("{event}"));
    let plant = Plant::open(config, &Stop::default(), &events)?;
    println!(
        "ready: clients connect to {}",
        plant.ready().hub.map(|address| address.to_string()).unwrap_or_default()
    );
    let Ended { report, refused, failed } = plant.run(true);
    println!(
        "{} messages became {} ticks, {} are missing",
        report.messages(),
        report.ticks,
        report.missing_messages()
    );
    refused.map_or(Ok(()), Err)?;
    Ok(failed.map_or(Ok(()), Err)?)
}
