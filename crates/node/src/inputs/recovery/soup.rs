//! Requests answered by a SoupBinTCP server: a login at the first missing message, and a logout when nothing
//! is missing.

use std::net::SocketAddrV4;

use tapeline_feed::moldudp64::recover::Ask;
use tapeline_feed::moldudp64::{self, PacketBuilder};
use tapeline_feed::soupbintcp::{ClientEvent, Login, Password, Reject, SoupSession, Username};
use tapeline_measure::Nanos;

use crate::soup::{Broken, Link};

/// Messages that are read and skipped on the way to the next missing one, instead of a new login.
const REACH: u64 = 10_000;
/// Bytes after which a packet is passed on, and the buffer with capacity for one more message of any length.
const ENOUGH: usize = 32 << 10;
const PACKET_BYTES: usize = ENOUGH + (128 << 10);

/// A connection to the servers of one feed, one server at a time.
pub(super) struct Soup {
    username: Username,
    password: Password,
    link: Option<Connected>,
    packet: Vec<u8>,
}

struct Connected {
    link: Link,
    server: usize,
    ask: Ask,
    /// The sequence of the next message.
    next: u64,
    /// Some of the messages last requested have arrived.
    helped: bool,
}

/// Why a server delivers nothing.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failed {
    #[error(transparent)]
    Broken(#[from] Broken),
    #[error("the login to session \"{session}\" was refused: {reject}")]
    Refused { session: moldudp64::MoldSession, reject: Reject },
    #[error("the server has no message before {first}; {wanted} was asked for")]
    NotHere { first: u64, wanted: u64 },
}

impl Soup {
    pub(super) fn new(username: Username, password: Password) -> Self {
        Self { username, password, link: None, packet: vec![0; PACKET_BYTES] }
    }

    /// Sends a request: on the current connection, if that server delivers and will reach the message soon;
    /// otherwise on a new one. Returns whether a new connection was made.
    pub(super) fn ask(&mut self, ask: &Ask, server: SocketAddrV4, now: Nanos) -> Result<bool, Failed> {
        if let Some(connected) = &mut self.link {
            let wanted = ask.request.sequence;
            let ahead = wanted.checked_sub(connected.next).is_some_and(|ahead| ahead <= REACH);
            if connected.server == ask.server && connected.helped && ahead {
                (connected.ask, connected.helped) = (*ask, false);
                return Ok(false);
            }
            self.log_out();
        }
        let login = Login {
            username: self.username,
            password: self.password,
            session: SoupSession(ask.request.session.0),
            sequence: ask.request.sequence,
        };
        let link = Link::connect(server, login, now)?;
        let next = ask.request.sequence;
        self.link = Some(Connected { link, server: ask.server, ask: *ask, next, helped: false });
        Ok(true)
    }

    /// Returns the received messages of the last request as a packet, with the server.
    pub(super) fn receive(&mut self, now: Nanos) -> Result<Option<(usize, &[u8])>, Failed> {
        let Some(connected) = &mut self.link else { return Ok(None) };
        let outcome = connected.receive(now, &mut self.packet);
        let server = connected.server;
        // An ended session delivers nothing more, and a failed link is of no use.
        if !matches!(outcome, Ok((_, false))) {
            self.link = None;
        }
        let (length, _) = outcome?;
        Ok((length > 0).then(|| (server, &self.packet[..length])))
    }

    pub(super) fn log_out(&mut self) {
        if let Some(connected) = self.link.take() {
            connected.link.log_out();
        }
    }
}

impl Connected {
    /// Returns the bytes of the received packet, 0 for none, and whether the session is over.
    fn receive(&mut self, now: Nanos, buffer: &mut [u8]) -> Result<(usize, bool), Failed> {
        let request = self.ask.request;
        let (first, last) = (request.sequence, request.sequence + u64::from(request.count) - 1);
        if self.next > last {
            // Further messages were not requested yet: they wait in the socket until the next request, or the
            // end.
            return Ok((0, false));
        }
        let session = request.session;
        // Starts with the first requested message.
        let mut packet: Option<PacketBuilder<'_>> = None;
        let mut buffer = Some(buffer);
        let mut failed = None;
        let next = &mut self.next;
        let over = self.link.step(now, |event| match event {
            ClientEvent::Accepted { sequence, .. } => {
                *next = sequence;
                if sequence > last {
                    failed = Some(Failed::NotHere { first: sequence, wanted: first });
                }
                failed.is_none()
            }
            ClientEvent::Rejected(reject) => {
                failed = Some(Failed::Refused { session, reject });
                false
            }
            ClientEvent::Message { sequence, bytes } => {
                *next = sequence + 1;
                if sequence < first {
                    return true;
                }
                if packet.is_none() {
                    packet = buffer.take().and_then(|buffer| {
                        PacketBuilder::with_limit(buffer, session, sequence, PACKET_BYTES).ok()
                    });
                }
                let Some(packet) = &mut packet else { return false };
                packet.push(bytes).is_ok() && sequence < last && packet.bytes() < ENOUGH
            }
            _ => true,
        })?;
        if let Some(failed) = failed {
            return Err(failed);
        }
        let length = packet.map_or(0, PacketBuilder::finish);
        self.helped |= length > 0;
        Ok((length, over))
    }
}
