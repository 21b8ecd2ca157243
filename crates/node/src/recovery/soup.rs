//! Requests answered by a SoupBinTCP server: a login at the first message wanted, and out again when nothing is missing.

use std::net::SocketAddrV4;

use tapeline_feed::moldudp64::recover::Ask;
use tapeline_feed::moldudp64::{self, PacketBuilder};
use tapeline_feed::soupbintcp::{ClientEvent, Login, Password, Reject, Session, Username};
use tapeline_measure::Nanos;

use crate::soup::{Broken, Link};

/// Messages that are read and passed over on the way to the next one wanted, rather than log in anew.
const REACH: u64 = 10_000;
/// Bytes of a packet after which it is handed on, and room for one more message of any length.
const ENOUGH: usize = 32 << 10;
const PACKET_BYTES: usize = ENOUGH + (128 << 10);

/// The way to servers of one feed, one connection at a time.
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
    /// Something of what was last asked for has come.
    helped: bool,
}

/// Why nothing comes from a server.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failed {
    #[error(transparent)]
    Broken(#[from] Broken),
    #[error("the login to session \"{session}\" was refused: {reject}")]
    Refused { session: moldudp64::Session, reject: Reject },
    #[error("the server has no message before {first}; {wanted} was asked for")]
    NotHere { first: u64, wanted: u64 },
}

impl Soup {
    pub(super) fn new(username: Username, password: Password) -> Self {
        Self { username, password, link: None, packet: vec![0; PACKET_BYTES] }
    }

    /// Asks: on the connection that is there, if that server helps and will come to the message soon; or else on a new one.
    /// Whether one was made.
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
            session: Session(ask.request.session.0),
            sequence: ask.request.sequence,
        };
        let link = Link::connect(server, login, now)?;
        let next = ask.request.sequence;
        self.link = Some(Connected { link, server: ask.server, ask: *ask, next, helped: false });
        Ok(true)
    }

    /// What has come of what was last asked for, as a packet, and from which server.
    pub(super) fn receive(&mut self, now: Nanos) -> Result<Option<(usize, &[u8])>, Failed> {
        let Some(connected) = &mut self.link else { return Ok(None) };
        let outcome = connected.receive(now, &mut self.packet);
        let server = connected.server;
        // A session that is over has nothing more to give, and a link that failed is of no use.
        if !matches!(outcome, Ok((_, false))) {
            self.link = None;
        }
        let (length, _) = outcome?;
        Ok((length > 0).then(|| (server, &self.packet[..length])))
    }

    /// Leaves the server that is there.
    pub(super) fn log_out(&mut self) {
        if let Some(connected) = self.link.take() {
            connected.link.log_out();
        }
    }
}

impl Connected {
    /// Bytes of the packet that came, 0 for none, and whether the session is over.
    fn receive(&mut self, now: Nanos, buffer: &mut [u8]) -> Result<(usize, bool), Failed> {
        let request = self.ask.request;
        let (first, last) = (request.sequence, request.sequence + u64::from(request.count) - 1);
        if self.next > last {
            // What comes now nobody has asked for yet: it waits in the socket until the next request, or the end.
            return Ok((0, false));
        }
        let session = request.session;
        // Begun with the first message that is wanted.
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
