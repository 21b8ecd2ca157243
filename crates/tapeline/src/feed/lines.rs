//! Where a feed goes: one line or two that carry the same datagrams.

use std::net::SocketAddrV4;
use std::time::Duration;

use clap::Args;
use tapeline_measure::Clock;
use tapeline_wire::udp::{SendOptions, Sender};

use crate::failure::Hinted;
use crate::stop::Stop;

/// Datagrams of one batch: enough to make the system call cheap, few enough that the first does not wait for the last.
pub(super) const BATCH: usize = 64;

/// How long a sender waits for room before it looks whether it should stop.
const PATIENCE: Duration = Duration::from_millis(100);

/// The options that say how to send, beside the destination itself.
#[derive(Clone, Debug, Args)]
pub(super) struct Route {
    /// A second line (B) that carries the same datagrams
    #[arg(long, value_name = "GROUP:PORT")]
    pub(super) also: Option<SocketAddrV4>,
    /// The network interface, by name or address; nothing leaves this machine unless one is given
    #[arg(long, value_name = "NAME|ADDRESS", default_value = "127.0.0.1")]
    pub(super) interface: String,
    /// Routers that a multicast datagram may pass, plus one
    #[arg(long, default_value_t = 1)]
    pub(super) ttl: u8,
}

/// Datagrams that are ready to be sent, one behind the other.
pub(super) struct Staged {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Staged {
    /// Room for [`BATCH`] datagrams of `datagram_bytes`; more room is made as it is needed.
    pub(super) fn new(datagram_bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(BATCH * datagram_bytes), ends: Vec::with_capacity(BATCH) }
    }

    pub(super) fn push(&mut self, datagram: &[u8]) {
        self.bytes.extend_from_slice(datagram);
        self.ends.push(self.bytes.len());
    }

    /// Appends a datagram that `write` puts into the front of `most` bytes; it gives the length.
    pub(super) fn write<T>(&mut self, most: usize, write: impl FnOnce(&mut [u8]) -> (usize, T)) -> T {
        let start = self.bytes.len();
        self.bytes.resize(start + most, 0);
        let (length, outcome) = write(&mut self.bytes[start..]);
        self.bytes.truncate(start + length);
        self.ends.push(self.bytes.len());
        outcome
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn byte_count(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> + Clone {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.bytes[start..*end])
    }
}

/// What the lines have carried.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Carried {
    /// Datagrams, counted once for all lines.
    pub(super) datagrams: u64,
    /// Bytes of them, without UDP and IP headers.
    pub(super) bytes: u64,
    /// How often a socket had no room.
    pub(super) blocked: u64,
    /// Nanoseconds spent waiting for room.
    pub(super) blocked_ns: u64,
}

/// The open lines.
#[derive(Debug)]
pub(super) struct Lines {
    senders: Vec<Sender>,
    carried: Carried,
}

impl Lines {
    /// Opens line A to `to` and, if asked for, line B.
    pub(super) fn open(to: SocketAddrV4, route: &Route) -> anyhow::Result<Self> {
        let open = |destination| {
            let options = SendOptions {
                interface: route.interface.clone(),
                ttl: route.ttl,
                ..SendOptions::new(destination)
            };
            Sender::open(&options)
        };
        let senders = [Some(to), route.also].into_iter().flatten().map(open).collect::<Result<_, _>>();
        Ok(Self { senders: senders.map_err(hinted)?, carried: Carried::default() })
    }

    /// Sends a batch on every line, waiting for room where there is none: nothing is left out. `false` where the user
    /// asked to end in the middle of it.
    pub(super) fn send(&mut self, batch: &Staged, clock: &Clock, stop: &Stop) -> anyhow::Result<bool> {
        for sender in &mut self.senders {
            let mut done = 0;
            while done < batch.len() {
                let sent = sender.send_many(batch.iter().skip(done)).map_err(hinted)?;
                done += sent.count;
                if sent.blocked {
                    let since = clock.now();
                    sender.wait(PATIENCE);
                    self.carried.blocked += 1;
                    self.carried.blocked_ns += clock.now().0.saturating_sub(since.0);
                    if stop.requested() {
                        return Ok(false);
                    }
                }
            }
        }
        self.carried.datagrams += batch.len() as u64;
        self.carried.bytes += batch.byte_count() as u64;
        Ok(true)
    }

    /// Sends one datagram on every line.
    pub(super) fn send_one(&mut self, datagram: &[u8], clock: &Clock, stop: &Stop) -> anyhow::Result<bool> {
        let mut batch = Staged::new(datagram.len());
        batch.push(datagram);
        self.send(&batch, clock, stop)
    }

    pub(super) fn carried(&self) -> Carried {
        self.carried
    }

    /// How many lines there are.
    pub(super) fn count(&self) -> usize {
        self.senders.len()
    }

    /// The addresses, for people.
    pub(super) fn describe(&self) -> String {
        self.senders.iter().map(|sender| sender.destination().to_string()).collect::<Vec<_>>().join(" and ")
    }

    /// What the user should know about the sockets as they are.
    pub(super) fn advice(&self) -> Option<String> {
        self.senders.iter().find_map(Sender::advice)
    }
}

/// A socket's refusal with its hint.
pub(super) fn hinted(error: tapeline_wire::Error) -> anyhow::Error {
    match error.hint() {
        Some(hint) => Hinted::new(error.to_string(), hint).into(),
        None => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn staged_datagrams_keep_their_bounds() {
        let mut staged = Staged::new(4);
        staged.push(b"one");
        let outcome = staged.write(8, |room| {
            room[..2].copy_from_slice(b"no");
            (2, room.len())
        });
        staged.push(b"");
        assert_eq!(outcome, 8);
        assert_eq!(staged.iter().collect::<Vec<_>>(), [&b"one"[..], b"no", b""]);
        assert_eq!((staged.len(), staged.byte_count()), (3, 5));
        staged.clear();
        assert_eq!(staged.iter().count(), 0);
    }
}
