//! A connection of a probe, and the messages on it: as the datagrams of a line over TCP they follow their lengths, with the head and the numbers
//! of the probe's datagrams over UDP.
//!
//! | kind | from | numbers |
//! |---|---|---|
//! | ping, pong | the asking end, the listening end | none |
//! | ask | the asking end | datagrams per second (0: as many as the path takes), bytes of each, duration in ns |
//! | data | the listening end | when it was due, by the clock there |
//! | counts | the listening end, behind the data | datagrams sent, and due but not sent |
//! | over | the asking end | none |

use std::time::Duration;

use anyhow::{Context, bail};
use tapeline_console::failure::{Hinted, of_socket};
use tapeline_console::stop::Stop;
use tapeline_measure::{Clock, Nanos};
use tapeline_plant::bridge::tcp_line::{LONGEST_PART, datagram, put_datagram};
use tapeline_wire::tcp::{Received, Stream};

use super::datagram::{COUNTS, Head, LEAST_BYTES, read_counts, write_counts};

/// The buffer of a connection, as that of a line.
pub(super) const INPUT_BYTES: usize = 4 * LONGEST_PART;
/// The longest wait before a signal is looked for.
pub(super) const LOOK: Duration = Duration::from_millis(100);

/// A connection.
pub(super) struct Peer {
    pub(super) stream: Stream,
    pub(super) clock: Clock,
    /// When bytes last came.
    heard: Nanos,
    /// The bytes of the message that was read last.
    used: usize,
    room: Box<[u8]>,
}

/// What the other end has said.
pub(super) struct ProbeMessage {
    pub(super) head: Head,
    pub(super) numbers: [u64; COUNTS],
    pub(super) bytes: usize,
    pub(super) heard: Nanos,
}

impl Peer {
    pub(super) fn new(stream: Stream) -> Self {
        let clock = Clock::calibrate();
        let (heard, room) = (clock.now(), vec![0; LONGEST_PART].into());
        Self { stream, clock, heard, used: 0, room }
    }

    /// Appends a message of `size` bytes.
    pub(super) fn put(&mut self, head: Head, numbers: [u64; COUNTS], size: usize) {
        head.write(&mut self.room);
        if let Some(front) = self.room.first_chunk_mut::<LEAST_BYTES>() {
            write_counts(front, numbers);
        }
        put_datagram(self.stream.output(), &self.room[..size]);
    }

    /// Sends everything. Returns `false` if a signal came first.
    ///
    /// # Errors
    /// The connection is broken, or the other end takes nothing for `patience`.
    pub(super) fn flush(&mut self, patience: Duration, stop: &Stop) -> anyhow::Result<bool> {
        let (mut unsent, mut moved) = (self.stream.unsent(), self.clock.now());
        while !self.stream.flush().map_err(of_socket)? {
            if stop.requested() {
                return Ok(false);
            }
            let now = self.clock.now();
            if self.stream.unsent() < unsent {
                (unsent, moved) = (self.stream.unsent(), now);
            }
            if now.since(moved).unsigned_abs() >= patience.as_nanos() as u64 {
                bail!("the other end takes nothing for {patience:?}");
            }
            self.stream.wait(LOOK);
        }
        Ok(true)
    }

    /// Waits for the next message; `None` if a signal came first.
    ///
    /// # Errors
    /// The connection is broken or closed, nothing comes for `patience`, or what comes is no probe's.
    pub(super) fn hear(&mut self, patience: Duration, stop: &Stop) -> anyhow::Result<Option<ProbeMessage>> {
        self.stream.consume(std::mem::take(&mut self.used));
        let begun = self.clock.now();
        loop {
            let foreign = || format!("{} is no end of a probe", self.stream.peer_address());
            if let Some(message) = datagram(self.stream.bytes()).with_context(foreign)? {
                let (Some(head), Some(numbers)) = (Head::read(message), read_counts(message)) else {
                    bail!(foreign());
                };
                self.used = 2 + message.len();
                return Ok(Some(ProbeMessage { head, numbers, bytes: message.len(), heard: self.heard }));
            }
            if stop.requested() {
                return Ok(None);
            }
            // Agreeing on TLS takes both.
            self.stream.flush().map_err(lost)?;
            match self.stream.receive().map_err(lost)? {
                Received::Bytes(_) => self.heard = self.clock.now(),
                Received::Closed => {
                    return Err(Hinted::new("the other end has closed the connection", HINT).into());
                }
                _ if self.clock.now().since(begun).unsigned_abs() >= patience.as_nanos() as u64 => {
                    return Err(
                        Hinted::new(format!("the other end says nothing for {patience:?}"), HINT).into()
                    );
                }
                _ => _ = self.stream.wait(LOOK),
            }
        }
    }
}

/// An error without advice of its own may be that of another end than is expected.
fn lost(error: tapeline_wire::Error) -> anyhow::Error {
    match error.hint() {
        Some(_) => of_socket(error),
        None => Hinted::new(error.to_string(), HINT).into(),
    }
}

const HINT: &str =
    "a listening end serves one measurement at a time; with --cert there, --tls is needed here";
