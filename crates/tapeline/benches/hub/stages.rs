//! Each stage alone: what it carries with a core of its own, and nothing to wait for.

use std::time::Duration;

use tapeline_measure::monotonic_ns;

use crate::clients::Clients;
use crate::served::Slow;
use crate::tap::Tap;
use crate::{Bench, ITEMS, Ran, TURN, USUAL_RATE, at_us, item_names, say, since, spent};

/// Updates that are kept for the client, and how many of them come a second: the tap takes them easily beside their publisher.
const KEPT: u64 = 200_000;
const KEPT_RATE: u64 = 400_000;

/// What the stages do alone, ticks a second.
#[derive(Clone, Copy, Default)]
pub(crate) struct Alone {
    /// The hub, from a ring that always has something to a client that is never late.
    pub(crate) hub_per_s: f64,
    /// The share of its core that it had meanwhile.
    pub(crate) hub_cores: f64,
    /// The share of the other core that publisher and client had.
    pub(crate) beside_cores: f64,
    /// Tapeline's consumer, from a socket that is always full.
    pub(crate) client_per_s: f64,
    /// The share of its core that it had meanwhile.
    pub(crate) client_cores: f64,
}

impl Bench {
    /// The hub alone, and a client alone.
    pub(crate) fn alone(&mut self) -> anyhow::Result<()> {
        let hub = self.hub_alone()?;
        let both = self.client_alone(hub)?;
        self.figures.alone.push(both);
        Ok(())
    }

    /// Publisher and client share a core, and take less of it than the hub of the other one: they wait for the hub.
    fn hub_alone(&mut self) -> anyhow::Result<Alone> {
        say("the hub alone");
        let (mut market, served) = self.begin(ITEMS, Slow::Cut)?;
        let mut clients = Clients::new(u64::MAX)?;
        clients.connect(served.address, item_names(0..ITEMS), true)?;
        clients.until("the last image", |clients| clients.tally.images >= ITEMS as u64)?;
        let before = served.usage()?;
        let Ran { clients, published, used_ns } =
            self.beside(clients, |come| market.flat_out(self.seconds, &self.messages, come))?;
        let spent = served.usage()?.since(&before);
        anyhow::ensure!(clients.tally.updates == published.updates, "the client has missed something");
        market.end()?;
        served.end()?;
        Ok(Alone {
            hub_per_s: published.updates as f64 / published.seconds,
            hub_cores: spent.cores,
            beside_cores: used_ns.iter().sum::<u64>() as f64 / 1e9 / published.seconds,
            ..Alone::default()
        })
    }

    /// The client gets what the hub has sent once, over and over, as fast as it takes that.
    fn client_alone(&mut self, hub: Alone) -> anyhow::Result<Alone> {
        say("a client alone");
        let (mut market, served) = self.begin(ITEMS, Slow::Cut)?;
        let tap = Tap::begin(served.address, self.far)?;
        let mut clients = Clients::new(u64::MAX)?;
        clients.connect(tap.address, item_names(0..ITEMS), true)?;
        clients.until("the last image", |clients| clients.tally.images >= ITEMS as u64)?;
        // What the client has yet to say, it says now.
        clients.turn(TURN)?;
        tap.keep();
        let time = Duration::from_secs_f64(KEPT as f64 / KEPT_RATE as f64);
        market.updates(KEPT_RATE, time, &self.messages)?;
        tap.repeat();
        clients.tally.begin();
        clients.until("what was kept", |clients| clients.tally.updates > 0)?;
        clients.tally.begin();
        let (begun, before) = (monotonic_ns(), spent::of_this_thread());
        let mut took = Duration::ZERO;
        while took < self.seconds {
            clients.turn(TURN)?;
            took = Duration::from_nanos(monotonic_ns() - begun);
        }
        let used = since(before);
        let client_per_s = clients.tally.updates as f64 / took.as_secs_f64();
        tap.end()?;
        drop(clients);
        market.end()?;
        served.end()?;
        Ok(Alone { client_per_s, client_cores: used as f64 / took.as_nanos() as f64, ..hub })
    }

    /// The response time of a client, and the same beside one that has the same items open and reads nothing.
    pub(crate) fn neighbour(&mut self) -> anyhow::Result<()> {
        say("a stalled neighbour");
        let mut p99_us = [0.0; 2];
        let mut median_us = [0.0; 2];
        for is_there in [false, true] {
            let (mut market, served) = self.begin(WITNESSED, Slow::Conflate)?;
            let mut stalled = Clients::new(0)?;
            if is_there {
                stalled.connect(served.address, item_names(0..WITNESSED), true)?;
                stalled.until("the last image", |clients| clients.tally.images >= WITNESSED as u64)?;
            }
            let mut witness = Clients::new(USUAL_RATE)?;
            witness.connect(served.address, item_names(0..WITNESSED), true)?;
            witness.until("the last image", |clients| clients.tally.images >= WITNESSED as u64)?;
            let Ran { clients, published, .. } = self.run(&mut market, witness, USUAL_RATE)?;
            anyhow::ensure!(clients.tally.updates == published.updates, "the witness has missed something");
            p99_us[usize::from(is_there)] = at_us(&clients, 0.99);
            median_us[usize::from(is_there)] = at_us(&clients, 0.5);
            market.end()?;
            let report = served.end()?;
            let conflated = report["conflated"].as_u64().unwrap_or(0);
            anyhow::ensure!(!is_there || conflated > 0, "the neighbour was not stalled: {report}");
            drop(stalled);
        }
        self.figures.witness_p99_us.push(p99_us);
        self.figures.witness_median_us.push(median_us);
        Ok(())
    }
}

/// Items of the witness and of its neighbour.
const WITNESSED: usize = 1_000;
