//! A reactor with both ends of its connections, and a record of their events.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tapeline_measure::Nanos;
use tapeline_wire::rssl::{ConnectionId, ConnectionSettings, Event, Negotiated, Reactor, Sent};

/// Far longer than loopback ever needs: a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(20);
pub(crate) const NOW: Nanos = Nanos(1_000_000_000_000);
/// Opens a connection as a client: a request for version 14.
pub(crate) const REQUEST: [u8; 19] = [0, 19, 0, 0, 0, 0, 0x17, 0, 17, 0, 30, 0, 0, 14, 1, 0, 0, 1, 0];
pub(crate) const SECOND: u64 = 1_000_000_000;

pub(crate) fn settings(change: impl FnOnce(&mut ConnectionSettings)) -> Arc<ConnectionSettings> {
    let mut settings = ConnectionSettings::default();
    change(&mut settings);
    Arc::new(settings)
}

/// A reactor with a record of the events on its connections.
pub(crate) struct World {
    pub(crate) reactor: Reactor,
    pub(crate) now: Nanos,
    pub(crate) connected: Vec<(ConnectionId, Negotiated)>,
    pub(crate) messages: HashMap<ConnectionId, Vec<Vec<u8>>>,
    pub(crate) closed: HashMap<ConnectionId, String>,
    pub(crate) rooms: u32,
    /// The connection whose messages are sent back.
    pub(crate) echoing: Option<ConnectionId>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self {
            reactor: Reactor::new(100).unwrap(),
            now: NOW,
            connected: Vec::new(),
            messages: HashMap::new(),
            closed: HashMap::new(),
            rooms: 0,
            echoing: None,
        }
    }

    /// Returns a listener and a connected client: the client's end, then the server's.
    pub(crate) fn pair(
        server: &Arc<ConnectionSettings>,
        client: &Arc<ConnectionSettings>,
    ) -> (Self, ConnectionId, ConnectionId) {
        let mut world = Self::new();
        let address = world.reactor.listen("127.0.0.1:0".parse().unwrap(), server).unwrap();
        let near = world.reactor.connect(address, client, world.now).unwrap();
        world.until(|world| world.connected.len() == 2);
        let far = world.connected.iter().map(|(id, _)| *id).find(|id| *id != near).unwrap();
        (world, near, far)
    }

    /// Runs until the condition is met.
    pub(crate) fn until(&mut self, mut so: impl FnMut(&mut Self) -> bool) {
        let mut idle = Duration::ZERO;
        while !so(self) {
            assert!(idle < PATIENCE, "nothing happens: {:?}", self.closed);
            self.reactor.wait(Duration::from_millis(100)).unwrap();
            idle += Duration::from_millis(100);
            while let Some((id, event, mut sender)) = self.reactor.next(self.now) {
                idle = Duration::ZERO;
                match event {
                    Event::Connected(negotiated) => self.connected.push((id, negotiated.clone())),
                    Event::Message(message) => {
                        if self.echoing == Some(id) {
                            assert_eq!(sender.send(message), Sent::Queued);
                        }
                        self.messages.entry(id).or_default().push(message.to_vec());
                    }
                    Event::Closed(reason) => {
                        self.closed.insert(id, reason.to_string());
                    }
                    Event::Room => self.rooms += 1,
                    _ => {}
                }
            }
        }
    }

    /// Sends messages of these lengths to the far end, which returns them; then closes.
    pub(crate) fn echo(&mut self, near: ConnectionId, far: ConnectionId, lengths: &[usize]) {
        self.echoing = Some(far);
        let sent: Vec<Vec<u8>> = lengths.iter().map(|length| bytes(*length, 3)).collect();
        for (index, message) in sent.iter().enumerate() {
            assert_eq!(self.reactor.sender(near).unwrap().send(message), Sent::Queued);
            self.until(|world| world.received(far).len() > index);
        }
        self.until(|world| world.received(near).len() == sent.len());
        assert!(self.received(far) == sent && self.received(near) == sent);
        self.reactor.close(near);
        self.until(|world| world.closed.contains_key(&far));
        // The connection closed without an error.
        assert_eq!(self.closed[&far], "the peer closed the connection");
    }

    /// Advances the simulated time by `seconds`, one at a time.
    pub(crate) fn pass(&mut self, seconds: u32) {
        for _ in 0..seconds {
            self.now = self.now + SECOND;
            let mut turns = 0;
            self.until(|_| {
                turns += 1;
                turns > 3
            });
        }
    }

    pub(crate) fn received(&self, id: ConnectionId) -> &[Vec<u8>] {
        self.messages.get(&id).map_or(&[], Vec::as_slice)
    }
}

/// Returns `count` bytes that compress a little.
pub(crate) fn bytes(count: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 60) as u8
    };
    (0..count).map(|_| next()).collect()
}
