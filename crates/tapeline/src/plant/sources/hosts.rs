//! Where interactive providers are: their names are looked up anew for each connection, on a thread of its own, as that can take
//! seconds and the plant's thread waits for nothing.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use anyhow::Context;
use tapeline_plant::sources::LinkId;
use tapeline_wire::rssl::Waker;

use crate::omm::resolve;
use crate::plant::config::sources::Host;

/// The hosts of all providers.
pub(super) struct Hosts {
    /// In the order of the providers.
    all: Vec<Vec<Host>>,
    names: Sender<(LinkId, Host)>,
    found: Receiver<Found>,
    /// Those that wait: each has one name looked up at a time, so that there are never more than providers.
    waiting: BTreeSet<LinkId>,
}

/// A host as it was looked up.
pub(super) struct Found {
    pub(super) link: LinkId,
    pub(super) host: Host,
    /// Its addresses, or why there are none.
    pub(super) addresses: Result<Vec<SocketAddr>, String>,
}

impl Hosts {
    /// Begins the thread, which `waker` has the plant's look what was found. It ends with the last name that was asked for.
    pub(super) fn new(all: Vec<Vec<Host>>, waker: Arc<Waker>) -> anyhow::Result<Self> {
        let (names, wanted) = mpsc::channel::<(LinkId, Host)>();
        let (tell, found) = mpsc::channel();
        let look_up = move || {
            for (link, host) in wanted {
                let addresses = resolve(&host.server).map_err(|error| error.to_string());
                if tell.send(Found { link, host, addresses }).is_err() {
                    return;
                }
                // Without it the plant looks a few milliseconds later.
                let _ = waker.wake();
            }
        };
        if all.iter().flatten().any(|host| host.server.parse::<SocketAddr>().is_err()) {
            thread::Builder::new()
                .name("tapeline-hosts".to_owned())
                .spawn(look_up)
                .context("cannot begin the thread that looks up providers' hosts")?;
        }
        Ok(Self { all, names, found, waiting: BTreeSet::new() })
    }

    /// The host of a provider that has its turn, with its address where that needs no look-up. Else it is [found](Self::next)
    /// later.
    pub(super) fn look_up(&mut self, link: LinkId, attempt: u32) -> Option<Found> {
        let hosts = self.all.get(link.0 as usize)?;
        let host = hosts.get(attempt as usize % hosts.len().max(1))?.clone();
        if let Ok(address) = host.server.parse() {
            return Some(Found { link, host, addresses: Ok(vec![address]) });
        }
        self.waiting.insert(link);
        // The thread ends with this side alone.
        let _ = self.names.send((link, host));
        None
    }

    /// A provider that no connection is wanted to any more.
    pub(super) fn forget(&mut self, link: LinkId) {
        self.waiting.remove(&link);
    }

    /// What was found. To be asked until there is nothing.
    pub(super) fn next(&mut self) -> Option<Found> {
        self.found.try_iter().find(|found| self.waiting.remove(&found.link))
    }
}
