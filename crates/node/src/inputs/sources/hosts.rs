//! The hosts of interactive providers: a name is looked up again for each connection, on a thread of its own,
//! because that can take seconds: neither the plant's thread nor another provider waits for it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use tapeline_client::endpoint::resolve;
use tapeline_plant::sources::LinkId;
use tapeline_wire::rssl::Waker;

use crate::config::Host;

/// Resolves a name to addresses, or returns the reason for a failure.
type LookUp = fn(&str) -> Result<Vec<SocketAddr>, String>;

pub(super) struct Hosts {
    /// Indexed by provider.
    all: Vec<Vec<Host>>,
    look_up: LookUp,
    waker: Arc<Waker>,
    tell: Sender<Resolved>,
    found: Receiver<Resolved>,
    /// Providers that wait for the result of a look-up.
    waiting: BTreeSet<LinkId>,
    /// Providers whose name is being looked up, each with the host to look up next, if any. There are never
    /// more threads than providers, however long a look-up takes and however often its provider is given up
    /// meanwhile.
    busy: BTreeMap<LinkId, Option<Host>>,
}

/// The result of a look-up.
pub(super) struct Resolved {
    pub(super) link: LinkId,
    pub(super) host: Host,
    /// The addresses, or the reason for a failure.
    pub(super) addresses: Result<Vec<SocketAddr>, String>,
}

impl Hosts {
    /// The hosts of all providers, in order. `waker` makes the plant look at results.
    pub(super) fn new(all: Vec<Vec<Host>>, waker: Arc<Waker>) -> Self {
        Self::found_by(|server| resolve(server).map_err(|error| error.to_string()), all, waker)
    }

    fn found_by(look_up: LookUp, all: Vec<Vec<Host>>, waker: Arc<Waker>) -> Self {
        let (tell, found) = mpsc::channel();
        Self { all, look_up, waker, tell, found, waiting: BTreeSet::new(), busy: BTreeMap::new() }
    }

    /// Returns the host for a provider's connection attempt if its address needs no look-up. Otherwise
    /// [`next`](Self::next) returns it later.
    pub(super) fn look_up(&mut self, link: LinkId, attempt: u32) -> Option<Resolved> {
        let hosts = self.all.get(link.0 as usize)?;
        let host = hosts.get(attempt as usize % hosts.len().max(1))?.clone();
        if let Ok(address) = host.server.parse() {
            return Some(Resolved { link, host, addresses: Ok(vec![address]) });
        }
        self.waiting.insert(link);
        if let Some(next) = self.busy.get_mut(&link) {
            *next = Some(host);
        } else {
            self.begin(link, host);
        }
        None
    }

    /// No connection to this provider is wanted any more.
    pub(super) fn forget(&mut self, link: LinkId) {
        self.waiting.remove(&link);
        if let Some(next) = self.busy.get_mut(&link) {
            *next = None;
        }
    }

    /// Returns the next result. Call until it returns `None`.
    pub(super) fn next(&mut self) -> Option<Resolved> {
        while let Ok(found) = self.found.try_recv() {
            // A result for a request that was given up does not answer a later request: the host may differ.
            match self.busy.remove(&found.link).flatten() {
                Some(host) => self.begin(found.link, host),
                None if self.waiting.remove(&found.link) => return Some(found),
                None => {}
            }
        }
        None
    }

    fn begin(&mut self, link: LinkId, host: Host) {
        self.busy.insert(link, None);
        let (look_up, tell, waker) = (self.look_up, self.tell.clone(), Arc::clone(&self.waker));
        let sought = host.clone();
        let begun = thread::Builder::new().name("tapeline-hosts".to_owned()).spawn(move || {
            let addresses = look_up(&sought.server);
            // The plant may have ended meanwhile.
            let _ = tell.send(Resolved { link, host: sought, addresses });
            // If this fails, the plant looks a few milliseconds later.
            let _ = waker.wake();
        });
        if let Err(cause) = begun {
            let server = &host.server;
            let why = format!("cannot find the server {server}: no thread to look it up: {cause}");
            let _ = self.tell.send(Resolved { link, host, addresses: Err(why) });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tapeline_wire::rssl::Reactor;

    use super::*;

    /// Locked to delay the look-up of names that start with "slow".
    static SLOW: Mutex<()> = Mutex::new(());

    fn look_up(server: &str) -> Result<Vec<SocketAddr>, String> {
        if server.starts_with("slow") {
            drop(SLOW.lock());
        }
        Err(server.to_owned())
    }

    fn next(hosts: &mut Hosts) -> String {
        loop {
            if let Some(found) = hosts.next() {
                return found.addresses.unwrap_err();
            }
            thread::yield_now();
        }
    }

    #[test]
    fn a_name_that_takes_long_holds_up_no_other() {
        let host = |server: &str| Host { server: server.to_owned(), transport: Arc::default() };
        let all = vec![vec![host("slow:1"), host("slow:2")], vec![host("quick:1"), host("quick:2")]];
        let reactor = Reactor::new(1).unwrap();
        let mut hosts = Hosts::found_by(look_up, all, Arc::new(reactor.waker().unwrap()));
        let (slow, quick) = (LinkId(0), LinkId(1));
        let held = SLOW.lock().unwrap();
        assert!(hosts.look_up(slow, 0).is_none() && hosts.look_up(quick, 0).is_none());
        assert_eq!(next(&mut hosts), "quick:1");
        // Given up and tried again during the first look-up: no second thread, and the first look-up has no
        // result.
        hosts.forget(slow);
        assert!(hosts.look_up(slow, 1).is_none() && hosts.look_up(quick, 1).is_none());
        assert_eq!(next(&mut hosts), "quick:2");
        assert_eq!(hosts.busy.len(), 1);
        drop(held);
        assert_eq!(next(&mut hosts), "slow:2");
        assert!(hosts.busy.is_empty() && hosts.next().is_none());
    }
}
