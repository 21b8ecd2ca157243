//! Limits what clients may take of one turn of the loop, and of the memory for incoming messages.
//!
//! The loop that serves a plant's kdb+ clients also reads its ring. A client's messages cost bytes, received
//! and sent; when a turn has cost enough, the rest waits for the next one.

/// Maximum bytes of one client in a turn, about 0.1 ms; the last message may exceed it.
const CLIENT_BYTES: usize = 256 << 10;
/// Maximum bytes of all clients in a turn.
const TURN_BYTES: usize = 1 << 20;
/// The minimum cost of a message.
const LEAST_COST: usize = 64;

/// What clients have cost in this turn.
#[derive(Debug, Default)]
pub(super) struct Spent {
    all: usize,
}

impl Spent {
    /// Records a message of `taken` bytes, for which `sent` bytes were sent. Returns its cost.
    pub(super) fn add(&mut self, taken: usize, sent: usize) -> usize {
        let cost = taken.saturating_add(sent).max(LEAST_COST);
        self.all = self.all.saturating_add(cost);
        cost
    }

    /// Whether the next message must wait for another turn, after what this client has cost in this one.
    pub(super) const fn is_enough_for(&self, client: usize) -> bool {
        client >= CLIENT_BYTES || self.is_enough()
    }

    /// Whether all clients must wait for another turn.
    pub(super) const fn is_enough(&self) -> bool {
        self.all >= TURN_BYTES
    }
}

/// Memory of incoming messages, in bytes, over all connections.
#[derive(Debug)]
pub(super) struct Held {
    bytes: usize,
    /// The bound.
    pub(super) most: usize,
}

impl Held {
    pub(super) const fn most(most: usize) -> Self {
        Self { bytes: 0, most }
    }

    /// Records a change of a connection's bytes. Returns whether the bound is exceeded.
    pub(super) const fn change(&mut self, before: usize, now: usize) -> bool {
        self.bytes = self.bytes.saturating_sub(before).saturating_add(now);
        self.bytes > self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_client_leaves_a_part_of_the_turn_to_others() {
        let mut spent = Spent::default();
        let mut client = 0;
        while !spent.is_enough_for(client) {
            client += spent.add(0, 0);
        }
        assert_eq!(client, CLIENT_BYTES);
        assert!(!spent.is_enough() && !spent.is_enough_for(0));
        // A message is always handled completely, whatever its cost.
        spent.add(18, 4 << 20);
        assert!(spent.is_enough() && spent.is_enough_for(0));
    }

    #[test]
    fn what_is_held_is_a_sum() {
        let mut held = Held::most(100);
        assert!(!held.change(0, 60) && !held.change(0, 40) && held.change(40, 41));
        assert!(!held.change(60, 0));
        assert_eq!(held.bytes, 41);
    }
}
