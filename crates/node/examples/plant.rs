//! A plant with a feed, a hub and a journal, which ends with its feed's session:
//! `cargo run --example plant -- RING 239.255.12.111:26477 127.0.0.1:14002 FOLDER`

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program")]

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;
use tapeline_feed::Protocol;
use tapeline_measure::Nanos;
use tapeline_node::config::{Feed, Line};
use tapeline_node::hub::HubConfig;
use tapeline_node::journal::JournalConfig;
use tapeline_node::{Config, Events, Plant, Stop};
use tapeline_ring::Name;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [ring, line, hub, folder] = &*arguments else { anyhow::bail!("expected RING LINE HUB FOLDER") };
    let day = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() / 86_400;
    let mut feed = Feed::new("itch", Protocol::ItchMoldUdp64, Nanos(day * 86_400_000_000_000));
    feed.lines.push(Line::new("A", line.parse().context("LINE is not ADDRESS:PORT")?));
    let mut config = Config::new("EXAMPLE", Name::new(ring)?);
    config.feeds.push(feed);
    config.hub = Some(HubConfig::new(hub.parse().context("HUB is not ADDRESS:PORT")?));
    config.journal = Some(JournalConfig::new(folder));

    let events = Events::new(|event| eprintln!("{event}"));
    let plant = Plant::open(config, &Stop::default(), &events)?;
    if let Some(hub) = plant.ready().hub {
        println!("clients connect to {hub}");
    }
    let ended = plant.run(true);
    let (messages, missing) = (ended.report.messages(), ended.report.missing_messages());
    println!("{messages} messages became {} ticks, {missing} are missing", ended.report.ticks);
    ended.refused.map_or(Ok(()), Err)?;
    Ok(ended.failed.map_or(Ok(()), Err)?)
}
