//! Where interactive providers are: their names are looked up anew for each connection, each on a thread of its own, as that can
//! take seconds: neither the plant's thread nor another provider waits for it.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use tapeline_client::endpoint::resolve;
use tapeline_plant::sources::LinkId;
use tapeline_wire::rssl::Waker;

use crate::config::Host;

/// How a name becomes addresses, or why it does not.
type LookUp = fn(&str) -> Result<Vec<SocketAddr>, String>;

/// The hosts of all providers.
pub(super) struct Hosts {
    /// In the order of the providers.
    all: Vec<Vec<Host>>,
    look_up: LookUp,
    waker: Arc<Waker>,
    tell: Sender<Resolved>,
    found: Receiver<Resolved>,
    /// Those that wait for what is looked up now.
    waiting: BTreeSet<LinkId>,
    /// Of each provider whose name is being looked up what is to be looked up behind that, if anything: there are never more threads
    /// than providers, however long a name takes and however often its provider is given up meanwhile.
    busy: BTreeMap<LinkId, Option<Host>>,
}

/// A host as it was looked up.
pub(super) struct Resolved {
    pub(super) link: LinkId,
    pub(super) host: Host,
    /// Its addresses, or why there are none.
    pub(super) addresses: Result<Vec<SocketAddr>, String>,
}

impl Hosts {
    /// Those of all providers, in their order. `waker` has the plant look what was found.
    pub(super) fn new(all: Vec<Vec<Host>>, waker: Arc<Waker>) -> Self {
        Self::found_by(|server| resolve(server).map_err(|error| error.to_string()), all, waker)
    }

    fn found_by(look_up: LookUp, all: Vec<Vec<Host>>, waker: Arc<Waker>) -> Self {
        let (tell, found) = mpsc::channel();
        Self { all, look_up, waker, tell, found, waiting: BTreeSet::new(), busy: BTreeMap::new() }
    }

    /// The host of a provider that has its turn, with its address where that needs no look-up. Else it is [found](Self::next)
    /// later.
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

    /// A provider that no connection is wanted to any more.
    pub(super) fn forget(&mut self, link: LinkId) {
        self.waiting.remove(&link);
        if let Some(next) = self.busy.get_mut(&link) {
            *next = None;
        }
    }

    /// What was found. To be asked until there is nothing.
    pub(super) fn next(&mut self) -> Option<Resolved> {
        while let Ok(found) = self.found.try_recv() {
            // What came for a wish that was given up answers none that came later: the host may be another.
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
        let server = host.server.clone();
        let sought = host.clone();
        let begun = thread::Builder::new().name("tapeline-hosts".to_owned()).spawn(move || {
            let addresses = look_up(&sought.server);
            // The plant may have ended meanwhile.
            let _ = tell.send(Resolved { link, host: sought, addresses });
            // Without it the plant looks a few milliseconds later.
            let _ = waker.wake();
        });
        if let Err(cause) = begun {
            let _ = self.tell.send(Resolved { link, host, addresses: Err(no_thread(&server, &cause)) });
        }
    }
}

fn no_thread(server: &str, cause: &io::Error) -> String {
    format!("cannot find the server {server}: no thread to look it up: {cause}")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
mod tests {
    use std::sync::Mutex;

    use tapeline_wire::rssl::Reactor;

    use super::*;

    /// Held while a name that begins with "slow" is not to be found.
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
        // Given up and tried again while the first is still looked up: no second thread, and the first brings nothing.
        hosts.forget(slow);
        assert!(hosts.look_up(slow, 1).is_none() && hosts.look_up(quick, 1).is_none());
        assert_eq!(next(&mut hosts), "quick:2");
        assert_eq!(hosts.busy.len(), 1);
        drop(held);
        assert_eq!(next(&mut hosts), "slow:2");
        assert!(hosts.busy.is_empty() && hosts.next().is_none());
    }
}
