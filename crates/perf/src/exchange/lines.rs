//! The destinations of a feed: one or two lines that carry the same datagrams, except for requested faults.

use std::net::SocketAddrV4;
use std::time::Duration;

use clap::Args;
use tapeline_console::arguments;
use tapeline_console::failure::of_socket;
use tapeline_console::stop::Stop;
use tapeline_measure::{Clock, Nanos, Pacer, Waiting};
use tapeline_wire::udp::{SendOptions, UdpSender};

use super::faults::{Done, FaultArgs, Faults};

/// Datagrams in one batch: enough to make the system call cheap, few enough that the first does not wait for the last.
pub(super) const BATCH: usize = 64;

/// How long a sender waits for socket capacity before it checks for a stop request.
const PATIENCE: Duration = Duration::from_millis(100);

/// The options for sending, except the destination itself.
#[derive(Clone, Debug, Args)]
pub struct Route {
    /// Second line (B), which carries the same datagrams
    #[arg(long, value_name = "GROUP:PORT", value_parser = arguments::address::<SocketAddrV4>)]
    pub(super) also: Option<SocketAddrV4>,
    /// Network interface, by name or address; with the default, nothing leaves this machine
    #[arg(long, value_name = "NAME|ADDRESS", default_value = "127.0.0.1")]
    pub(super) interface: String,
    /// Multicast TTL: the number of routers that a datagram may pass, plus one
    #[arg(long, default_value_t = 1)]
    pub(super) ttl: u8,
    #[command(flatten)]
    pub(super) faults: FaultArgs,
}

impl Route {
    /// Without faults.
    pub fn plain(also: Option<SocketAddrV4>, interface: &str, ttl: u8) -> Self {
        Self { also, interface: interface.to_owned(), ttl, faults: FaultArgs::default() }
    }
}

/// Datagrams to send, stored one after the other.
#[derive(Debug)]
pub(super) struct Staged {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Staged {
    /// Allocates for [`BATCH`] datagrams of `datagram_bytes`; grows on demand.
    pub(super) fn new(datagram_bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(BATCH * datagram_bytes), ends: Vec::with_capacity(BATCH) }
    }

    pub(super) fn push(&mut self, datagram: &[u8]) {
        self.bytes.extend_from_slice(datagram);
        self.ends.push(self.bytes.len());
    }

    /// Appends a datagram that `write` puts at the front of `most` bytes; `write` returns the length.
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

/// Totals of the lines.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Carried {
    /// Datagrams, counted once for all lines.
    pub(super) datagrams: u64,
    /// Bytes of these datagrams, without UDP and IP headers.
    pub(super) bytes: u64,
    /// How often a socket was full.
    pub(super) blocked: u64,
    /// Nanoseconds spent waiting for a full socket.
    pub(super) blocked_ns: u64,
}

/// The open lines.
#[derive(Debug)]
pub struct Lines {
    senders: Vec<UdpSender>,
    pub(super) carried: Carried,
    faults: Option<Faults>,
    /// A batch on one line after its faults.
    left: Staged,
}

impl Lines {
    /// Opens line A to `to` and, if requested, line B.
    pub fn open(to: SocketAddrV4, route: &Route) -> anyhow::Result<Self> {
        let open = |destination| {
            let options = SendOptions {
                interface: route.interface.clone(),
                ttl: route.ttl,
                ..SendOptions::new(destination)
            };
            UdpSender::open(&options)
        };
        let senders = [Some(to), route.also].into_iter().flatten().map(open).collect::<Result<_, _>>();
        let senders: Vec<UdpSender> = senders.map_err(of_socket)?;
        let faults = Faults::of(&route.faults, senders.len())?;
        Ok(Self { senders, carried: Carried::default(), faults, left: Staged::new(0) })
    }

    /// Sends a batch on every line and waits while a socket is full: only faults drop datagrams. Returns `false` if the
    /// user stopped it before the end.
    pub(super) fn send(&mut self, batch: &Staged, clock: &Clock, stop: &Stop) -> anyhow::Result<bool> {
        let sent = if self.faults.is_some() {
            self.send_left(clock, stop, |faults, line, left| faults.pass(line, batch, clock.now(), left))?
        } else {
            let mut sent = true;
            for sender in &mut self.senders {
                sent = sent && send_on(sender, batch, &mut self.carried, clock, stop)?;
            }
            sent
        };
        self.carried.datagrams += batch.len() as u64;
        self.carried.bytes += batch.byte_count() as u64;
        Ok(sent)
    }

    /// Sends the datagrams whose delay is over.
    pub(super) fn release(&mut self, clock: &Clock, stop: &Stop) -> anyhow::Result<bool> {
        if self.next_release().is_none_or(|at| at > clock.now()) {
            return Ok(true);
        }
        self.send_left(clock, stop, |faults, line, left| faults.release(line, clock.now(), left))
    }

    /// When the next delay is over: call [`release`](Self::release) then.
    pub(super) fn next_release(&self) -> Option<Nanos> {
        self.faults.as_ref().and_then(Faults::next_release)
    }

    /// Sends the datagrams that faults still buffer, each at its time: no more follow.
    pub(super) fn finish(&mut self, clock: &Clock, stop: &Stop) -> anyhow::Result<bool> {
        let pacer = Pacer::per_second(1, clock.now());
        let mut sent =
            self.send_left(clock, stop, |faults, line, left| faults.finish(line, clock.now(), left))?;
        while let Some(at) = self.next_release().filter(|_| sent && !stop.requested()) {
            pacer.wait(clock, at.min(clock.now() + PATIENCE.as_nanos() as u64), Waiting::Sleep);
            sent = self.release(clock, stop)?;
        }
        if let Some(faults) = &mut self.faults {
            faults.settle()?;
        }
        Ok(sent && !stop.requested())
    }

    /// Sends on each line the datagrams that `take` stages for it from the faults.
    fn send_left(
        &mut self,
        clock: &Clock,
        stop: &Stop,
        mut take: impl FnMut(&mut Faults, usize, &mut Staged),
    ) -> anyhow::Result<bool> {
        let Some(faults) = &mut self.faults else { return Ok(true) };
        for (line, sender) in self.senders.iter_mut().enumerate() {
            self.left.clear();
            take(faults, line, &mut self.left);
            if !send_on(sender, &self.left, &mut self.carried, clock, stop)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Counts of applied faults, if there are faults.
    pub(super) fn done(&self) -> Option<Done> {
        self.faults.as_ref().map(|faults| faults.done().clone())
    }

    pub(super) fn count(&self) -> usize {
        self.senders.len()
    }

    /// The addresses, for people.
    pub fn describe(&self) -> String {
        self.senders.iter().map(|sender| sender.destination().to_string()).collect::<Vec<_>>().join(" and ")
    }

    /// Advice on the socket settings, if any.
    pub fn advice(&self) -> Option<String> {
        self.senders.iter().find_map(UdpSender::advice)
    }
}

/// Sends a batch on one line and waits while the socket is full; returns `false` if the user stopped it.
fn send_on(
    sender: &mut UdpSender,
    batch: &Staged,
    carried: &mut Carried,
    clock: &Clock,
    stop: &Stop,
) -> anyhow::Result<bool> {
    let mut done = 0;
    while done < batch.len() {
        let sent = sender.send_many(batch.iter().skip(done)).map_err(of_socket)?;
        done += sent.count;
        if sent.blocked {
            let since = clock.now();
            sender.wait(PATIENCE);
            carried.blocked += 1;
            carried.blocked_ns += clock.now().0.saturating_sub(since.0);
            if stop.requested() {
                return Ok(false);
            }
        }
    }
    Ok(true)
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
