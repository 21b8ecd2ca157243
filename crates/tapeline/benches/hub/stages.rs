//! Each stage alone: what it would carry with a core of its own, and nothing to wait for.

use std::time::Duration;

use tapeline_measure::monotonic_ns;

use crate::clients::Clients;
use crate::served::Slow;
use crate::tap::Tap;
use crate::{Bench, ITEMS, Ran, TURN, USUAL_RATE, at_us, item_names, say, since, spent};

/// What the stages do alone, ticks a second.
#[derive(Clone, Copy, Default)]
pub(crate) struct Alone {
    /// The hub's thread, from a ring that is always full to a client that reads and does no more.
    pub(crate) hub_per_s: f64,
    /// The share of its core that it had meanwhile.
    pub(crate) hub_cores: f64,
    /// The share of the time in which the ring was full.
    pub(crate) ring_full: f64,
    /// Tapeline's consumer, from a socket that is always full.
    pub(crate) client_per_s: f64,
    /// The share of its core that it had meanwhile.
    pub(crate) client_cores: f64,
}

impl Bench {
    /// The hub alone, and a client alone.
    pub(crate) fn alone(&mut self) -> anyhow::Result<()> {
        say("the hub alone");
        let (mut market, served) = self.begin(ITEMS, Slow::Cut)?;
        let tap = Tap::begin(served.address, self.near, self.far)?;
        let mut clients = Clients::new(u64::MAX)?;
        clients.connect(tap.address, item_names(0..ITEMS), true)?;
        clients.until("the last image", |clients| clients.tally.images >= ITEMS as u64)?;
        // What the client has yet to say, it says now.
        clients.turn(TURN)?;
        tap.keep();
        let before = served.usage()?;
        let published = market.flat_out(self.seconds, &self.messages)?;
        let spent = served.usage()?.since(&before);

        say("a client alone");
        clients.tally.begin();
        tap.repeat();
        clients.until("what was kept", |clients| clients.tally.updates > 0)?;
        clients.tally.begin();
        let (begun, before) = (monotonic_ns(), spent::of_this_thread());
        let mut took = Duration::ZERO;
        while took < self.seconds {
            clients.turn(TURN)?;
            took = Duration::from_nanos(monotonic_ns() - begun);
        }
        let used = since(before);
        self.figures.alone.push(Alone {
            hub_per_s: published.updates as f64 / published.seconds,
            hub_cores: spent.cores,
            ring_full: published.held_back,
            client_per_s: clients.tally.updates as f64 / took.as_secs_f64(),
            client_cores: used as f64 / took.as_nanos() as f64,
        });
        tap.end()?;
        drop(clients);
        market.end()?;
        served.end()?;
        Ok(())
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
