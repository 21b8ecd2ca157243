//! A tool's loop in the test's own thread, and the other tool in another thread: the loop allocates nothing per
//! message.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::thread::{self, JoinHandle};

use tapeline_wire::rssl::{ConnectionSettings, Reactor};

use super::link::{Link, Links, Word};
use super::tally::{Tally, Terms};
use super::{consumer, provider};

/// A provider and a consumer on one connection; the test steps one of them itself.
pub(super) struct Pair {
    /// The provider's reactor, which listens.
    pub(super) reactor: Option<Reactor>,
    pub(super) port: u16,
    links: Vec<Link>,
    is_over: Arc<AtomicBool>,
    other: Option<JoinHandle<()>>,
    /// Unused by the test: without tally requests, a thread keeps its tally.
    _handles: Vec<Sender<Box<Tally>>>,
    _said: Receiver<(usize, Word)>,
}

impl Pair {
    pub(super) fn new() -> Self {
        let mut reactor = Reactor::new(1).unwrap();
        // Capacity for a stall of the other thread: posts to send back are queued.
        let settings =
            ConnectionSettings { guaranteed_output_buffers: 5_000, ..ConnectionSettings::default() };
        let address = reactor.listen((Ipv4Addr::LOCALHOST, 0).into(), &Arc::new(settings)).unwrap();
        let Links { threads, handles, is_over, said } = Links::new(2, Terms::default());
        Self {
            reactor: Some(reactor),
            port: address.port(),
            links: threads,
            is_over,
            other: None,
            _handles: handles,
            _said: said,
        }
    }

    /// The link of one tool.
    pub(super) fn link(&mut self) -> Link {
        self.links.pop().unwrap()
    }

    /// Starts the other tool as a consumer with these options.
    pub(super) fn consume(&mut self, options: &str) {
        let (options, link) = (format!("{options} --server localhost:{}", self.port), self.link());
        self.other = Some(thread::spawn(move || consumer::consume(&options, link)));
    }

    /// Starts the other tool as a provider with these options.
    pub(super) fn serve(&mut self, options: &str) {
        let (options, link) = (options.to_owned(), self.link());
        let reactor = self.reactor.take().unwrap();
        self.other = Some(thread::spawn(move || provider::serve(&options, reactor, link)));
    }

    /// Ends the other tool while this one continues.
    pub(super) fn end(mut self, mut step: impl FnMut()) {
        self.is_over.store(true, Ordering::Relaxed);
        let other = self.other.take().unwrap();
        while !other.is_finished() {
            step();
        }
        other.join().unwrap();
    }
}
