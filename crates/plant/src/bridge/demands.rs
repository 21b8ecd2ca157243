//! The demands of a plant below on the sources of the plant above, and their answers, over one TCP connection. All numbers are little-endian.
//!
//! The plant below connects to the catch-up server and sends a request of [`catch_up`](super::catch_up) with
//! [`Beginning::Demands`](super::catch_up::Beginning::Demands), and its session's epoch. Behind a reply with the outcome 0, messages go both ways:
//!
//! ```text
//!  length (4)  kind (1)  domain (1)  service (2)  ticket (8)  class (1)  length of the name (1)  count (2)  name
//!  then the OMM messages, each with its length (4) in front
//! ```
//! *Length* counts what follows it. What a kind does not need is zero. Class and count are the priority of an item.

use tapeline_omm::rwf::{Domain, Priority};

use crate::demand::{Answer, Demand, ItemName, Ticket};

/// The longest message of this protocol without its first length, in bytes: longer posts and answers do not travel.
pub const LONGEST: usize = 1 << 20;
/// Bytes of a message in front of its name.
const HEAD: usize = 20;
/// How often each side says that it is there, if it says nothing else, in ns.
pub const ALIVE_NS: u64 = 1_000_000_000;

mod kind {
    pub(super) const ALIVE: u8 = 0;
    pub(super) const OPEN: u8 = 1;
    pub(super) const CLOSE: u8 = 2;
    pub(super) const PRIORITY: u8 = 3;
    pub(super) const REFRESH: u8 = 4;
    pub(super) const POST: u8 = 5;
    pub(super) const GENERIC: u8 = 6;
    pub(super) const OPEN_PRIVATE: u8 = 7;
    pub(super) const PRIVATE: u8 = 8;
    pub(super) const CLOSE_PRIVATE: u8 = 9;
    pub(super) const SERVICE: u8 = 10;
    pub(super) const STATUS: u8 = 11;
    pub(super) const ACK: u8 = 12;
}

/// What a plant below says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FromBelow {
    /// It is there.
    Alive,
    /// A demand of its clients. Pauses do not travel: others may have the item open too.
    Demand(Demand),
}

/// What the plant above says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FromAbove {
    /// It is there. Before the first of these it has named its services.
    Alive,
    /// It has this service.
    Service {
        /// The service's number.
        id: u16,
        /// The service's name.
        name: Box<str>,
    },
    /// An answer of a source.
    Answer(Answer),
}

/// The reason why bytes are not of this protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotADemand {
    /// A message is announced that is longer than any, or shorter.
    #[error("a message of {0} bytes is announced; 16 to 1,048,576 are expected")]
    Length(usize),
    /// This side does not say that, or not in this version.
    #[error("a message of kind {0} is not expected here")]
    Kind(u8),
    /// A name is missing, or is not text.
    #[error("an item or a service has no valid name")]
    Name,
    /// The OMM messages are not as many or as long as they say.
    #[error("the OMM messages in it are cut off, or not as many as its kind has")]
    Messages,
}

/// A message that is longer than [`LONGEST`] and was not appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("longer than 1 MiB, which is the most between two plants")]
pub struct TooLongToTravel;

/// The parts in front of the OMM messages.
#[derive(Clone, Copy, Default)]
struct Head<'a> {
    kind: u8,
    domain: Domain,
    service: u16,
    ticket: u64,
    priority: Option<Priority>,
    name: &'a str,
}

impl<'a> Head<'a> {
    fn of(kind: u8, item: &'a ItemName) -> Self {
        Self { kind, domain: item.domain, service: item.service, name: &item.name, ..Self::default() }
    }

    fn ticket(kind: u8, ticket: Ticket) -> Self {
        Self { kind, ticket: ticket.0, ..Self::default() }
    }

    fn put(&self, messages: &[&[u8]], out: &mut Vec<u8>) -> Result<(), TooLongToTravel> {
        let length =
            HEAD - 4 + self.name.len() + messages.iter().map(|message| 4 + message.len()).sum::<usize>();
        let (Ok(name), false) = (u8::try_from(self.name.len()), length > LONGEST) else {
            return Err(TooLongToTravel);
        };
        // Lossless, as are the lengths below: at most `LONGEST`.
        out.extend_from_slice(&(length as u32).to_le_bytes());
        out.extend_from_slice(&[self.kind, self.domain.0]);
        out.extend_from_slice(&self.service.to_le_bytes());
        out.extend_from_slice(&self.ticket.to_le_bytes());
        let Priority { class, count } = self.priority.unwrap_or(Priority { class: 0, count: 0 });
        out.extend_from_slice(&[class, name]);
        out.extend_from_slice(&count.to_le_bytes());
        out.extend_from_slice(self.name.as_bytes());
        for message in messages {
            out.extend_from_slice(&(message.len() as u32).to_le_bytes());
            out.extend_from_slice(message);
        }
        Ok(())
    }
}

/// A message as it was read.
struct Read<'a> {
    head: Head<'a>,
    priority: Priority,
    messages: &'a [u8],
}

impl<'a> Read<'a> {
    /// Reads the message at the front, and returns its length with it; `None` if it has not arrived whole.
    fn front(bytes: &'a [u8]) -> Result<Option<(Self, usize)>, NotADemand> {
        let Some((length, rest)) = bytes.split_first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_le_bytes(*length) as usize;
        if !(HEAD - 4..=LONGEST).contains(&length) {
            return Err(NotADemand::Length(length));
        }
        let Some(found) = rest.get(..length) else { return Ok(None) };
        let (head, rest) = found.split_at(HEAD - 4);
        let [kind, domain, s0, s1, ticket @ .., class, name, c0, c1] = head else { return Ok(None) };
        let ticket = ticket.try_into().map_or(0, u64::from_le_bytes);
        let (name, messages) = rest.split_at_checked(usize::from(*name)).ok_or(NotADemand::Length(length))?;
        let head = Head {
            kind: *kind,
            domain: Domain(*domain),
            service: u16::from_le_bytes([*s0, *s1]),
            ticket,
            priority: None,
            name: std::str::from_utf8(name).map_err(|_| NotADemand::Name)?,
        };
        let priority = Priority { class: *class, count: u16::from_le_bytes([*c0, *c1]) };
        Ok(Some((Self { head, priority, messages }, 4 + length)))
    }

    fn item(&self) -> Result<ItemName, NotADemand> {
        let Head { domain, service, name, .. } = self.head;
        if name.is_empty() {
            return Err(NotADemand::Name);
        }
        Ok(ItemName { service, domain, name: name.into() })
    }

    /// Takes the next OMM message.
    fn take(&mut self) -> Result<Box<[u8]>, NotADemand> {
        let (length, rest) = self.messages.split_first_chunk::<4>().ok_or(NotADemand::Messages)?;
        let length = u32::from_le_bytes(*length) as usize;
        let (message, rest) = rest.split_at_checked(length).ok_or(NotADemand::Messages)?;
        self.messages = rest;
        Ok(message.into())
    }

    /// The message has nothing more than what was read.
    fn end<T>(&self, found: T) -> Result<T, NotADemand> {
        if self.messages.is_empty() { Ok(found) } else { Err(NotADemand::Messages) }
    }
}

impl FromBelow {
    /// Appends the message.
    ///
    /// # Errors
    /// [`TooLongToTravel`]: nothing was appended.
    pub fn put(&self, out: &mut Vec<u8>) -> Result<(), TooLongToTravel> {
        let demand = match self {
            Self::Alive => return Head::default().put(&[], out),
            Self::Demand(demand) => demand,
        };
        match demand {
            Demand::Open { item, priority } => {
                Head { priority: Some(*priority), ..Head::of(kind::OPEN, item) }.put(&[], out)
            }
            Demand::Priority { item, priority } => {
                Head { priority: Some(*priority), ..Head::of(kind::PRIORITY, item) }.put(&[], out)
            }
            Demand::Refresh(item) => Head::of(kind::REFRESH, item).put(&[], out),
            Demand::Close(item) => Head::of(kind::CLOSE, item).put(&[], out),
            Demand::Pause(_) | Demand::Resume(_) => Ok(()),
            Demand::OpenPrivate { ticket, request } => {
                Head::ticket(kind::OPEN_PRIVATE, *ticket).put(&[request], out)
            }
            Demand::Private { ticket, message } => Head::ticket(kind::PRIVATE, *ticket).put(&[message], out),
            Demand::ClosePrivate(ticket) => Head::ticket(kind::CLOSE_PRIVATE, *ticket).put(&[], out),
            Demand::Post { ticket, service, item, message, more } => {
                let mut head = Head { kind: kind::POST, service: *service, ..Head::default() };
                if let Some(item) = item {
                    (head.domain, head.name) = (item.domain, &item.name);
                }
                // No ticket is 0: they are counted from 1.
                head.ticket = ticket.map_or(0, |ticket| ticket.0);
                let parts = std::iter::once(message).chain(more).map(|part| &**part);
                head.put(&parts.collect::<Vec<_>>(), out)
            }
            Demand::Generic { item, message } => Head::of(kind::GENERIC, item).put(&[message], out),
        }
    }

    /// Reads the message at the front of `bytes`, and returns its length with it; `None` if it has not arrived whole.
    ///
    /// # Errors
    /// [`NotADemand`].
    pub fn read(bytes: &[u8]) -> Result<Option<(Self, usize)>, NotADemand> {
        let Some((mut read, length)) = Read::front(bytes)? else { return Ok(None) };
        let ticket = Ticket(read.head.ticket);
        let demand = match read.head.kind {
            kind::ALIVE => return read.end(Some((Self::Alive, length))),
            kind::OPEN => Demand::Open { item: read.item()?, priority: read.priority },
            kind::PRIORITY => Demand::Priority { item: read.item()?, priority: read.priority },
            kind::REFRESH => Demand::Refresh(read.item()?),
            kind::CLOSE => Demand::Close(read.item()?),
            kind::OPEN_PRIVATE => Demand::OpenPrivate { ticket, request: read.take()? },
            kind::PRIVATE => Demand::Private { ticket, message: read.take()? },
            kind::CLOSE_PRIVATE => Demand::ClosePrivate(ticket),
            kind::POST => {
                let item = if read.head.name.is_empty() { None } else { Some(read.item()?) };
                let message = read.take()?;
                let mut more = Vec::new();
                while !read.messages.is_empty() {
                    more.push(read.take()?);
                }
                let ticket = Some(ticket).filter(|ticket| ticket.0 > 0);
                Demand::Post { ticket, service: read.head.service, item, message, more }
            }
            kind::GENERIC => Demand::Generic { item: read.item()?, message: read.take()? },
            other => return Err(NotADemand::Kind(other)),
        };
        read.end(Some((Self::Demand(demand), length)))
    }
}

impl FromAbove {
    /// Appends the message.
    ///
    /// # Errors
    /// [`TooLongToTravel`]: nothing was appended.
    pub fn put(&self, out: &mut Vec<u8>) -> Result<(), TooLongToTravel> {
        match self {
            Self::Alive => Head::default().put(&[], out),
            Self::Service { id, name } => {
                Head { kind: kind::SERVICE, service: *id, name, ..Head::default() }.put(&[], out)
            }
            Self::Answer(Answer::Status { item, message }) => {
                Head::of(kind::STATUS, item).put(&[message], out)
            }
            Self::Answer(Answer::Generic { item, message }) => {
                Head::of(kind::GENERIC, item).put(&[message], out)
            }
            Self::Answer(Answer::Private { ticket, message }) => {
                Head::ticket(kind::PRIVATE, *ticket).put(&[message], out)
            }
            Self::Answer(Answer::Ack { ticket, message }) => {
                Head::ticket(kind::ACK, *ticket).put(&[message], out)
            }
        }
    }

    /// Reads the message at the front of `bytes`, and returns its length with it; `None` if it has not arrived whole.
    ///
    /// # Errors
    /// [`NotADemand`].
    pub fn read(bytes: &[u8]) -> Result<Option<(Self, usize)>, NotADemand> {
        let Some((mut read, length)) = Read::front(bytes)? else { return Ok(None) };
        let ticket = Ticket(read.head.ticket);
        let answer = match read.head.kind {
            kind::ALIVE => return read.end(Some((Self::Alive, length))),
            kind::SERVICE => {
                let service = Self::Service { id: read.head.service, name: read.item()?.name };
                return read.end(Some((service, length)));
            }
            kind::STATUS => Answer::Status { item: read.item()?, message: read.take()? },
            kind::GENERIC => Answer::Generic { item: read.item()?, message: read.take()? },
            kind::PRIVATE => Answer::Private { ticket, message: read.take()? },
            kind::ACK => Answer::Ack { ticket, message: read.take()? },
            other => return Err(NotADemand::Kind(other)),
        };
        read.end(Some((Self::Answer(answer), length)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(name: &str) -> ItemName {
        ItemName { service: 7, domain: Domain::MARKET_PRICE, name: name.into() }
    }

    fn bytes(text: &str) -> Box<[u8]> {
        text.as_bytes().into()
    }

    #[test]
    fn a_demand_has_these_bytes() {
        let mut out = Vec::new();
        let priority = Priority { class: 1, count: 0x203 };
        FromBelow::Demand(Demand::Open { item: item("IBM.N"), priority }).put(&mut out).unwrap();
        let open = b"\x15\0\0\0\x01\x06\x07\0\0\0\0\0\0\0\0\0\x01\x05\x03\x02IBM.N";
        assert_eq!(out, open);
        out.clear();
        let (ticket, message, more) = (Some(Ticket(9)), bytes("ab"), vec![bytes("c")]);
        let post = Demand::Post { ticket, service: 7, item: None, message, more };
        FromBelow::Demand(post).put(&mut out).unwrap();
        assert_eq!(out, b"\x1b\0\0\0\x05\0\x07\0\x09\0\0\0\0\0\0\0\0\0\0\0\x02\0\0\0ab\x01\0\0\0c");
    }

    #[test]
    fn what_was_written_is_read_once_it_is_whole() {
        let (ticket, message, priority) = (Ticket(9), bytes("omm"), Priority { class: 2, count: 3 });
        let below = [
            FromBelow::Alive,
            FromBelow::Demand(Demand::Open { item: item("A"), priority }),
            FromBelow::Demand(Demand::Priority { item: item("A"), priority }),
            FromBelow::Demand(Demand::Refresh(item("A"))),
            FromBelow::Demand(Demand::Close(item("A"))),
            FromBelow::Demand(Demand::OpenPrivate { ticket, request: message.clone() }),
            FromBelow::Demand(Demand::Private { ticket, message: message.clone() }),
            FromBelow::Demand(Demand::ClosePrivate(ticket)),
            FromBelow::Demand(Demand::Generic { item: item("A"), message: message.clone() }),
            FromBelow::Demand(Demand::Post {
                ticket: None,
                service: 7,
                item: Some(item("A")),
                message: message.clone(),
                more: vec![bytes(""), message.clone()],
            }),
        ];
        for said in below {
            let mut out = Vec::new();
            said.put(&mut out).unwrap();
            for short in 0..out.len() {
                assert_eq!(FromBelow::read(&out[..short]), Ok(None));
            }
            let length = out.len();
            out.push(0);
            assert_eq!(FromBelow::read(&out), Ok(Some((said, length))));
        }
        let above = [
            FromAbove::Alive,
            FromAbove::Service { id: 7, name: "FEED".into() },
            FromAbove::Answer(Answer::Status { item: item("A"), message: message.clone() }),
            FromAbove::Answer(Answer::Generic { item: item("A"), message: message.clone() }),
            FromAbove::Answer(Answer::Private { ticket, message: message.clone() }),
            FromAbove::Answer(Answer::Ack { ticket, message }),
        ];
        for said in above {
            let mut out = Vec::new();
            said.put(&mut out).unwrap();
            let length = out.len();
            assert_eq!(FromAbove::read(&out[..length - 1]), Ok(None));
            assert_eq!(FromAbove::read(&out), Ok(Some((said, length))));
        }
    }

    #[test]
    fn what_is_no_demand_is_refused() {
        let mut open = Vec::new();
        let priority = Priority { class: 1, count: 1 };
        FromBelow::Demand(Demand::Open { item: item("A"), priority }).put(&mut open).unwrap();
        let damaged = |at: usize, value: u8| {
            let mut bytes = open.clone();
            bytes[at] = value;
            FromBelow::read(&bytes)
        };
        assert_eq!(damaged(0, 15), Err(NotADemand::Length(15)));
        assert_eq!(damaged(3, 1), Err(NotADemand::Length(0x0100_0011)));
        assert_eq!(damaged(4, kind::ACK), Err(NotADemand::Kind(kind::ACK)));
        assert_eq!(damaged(4, kind::GENERIC), Err(NotADemand::Messages));
        assert_eq!(damaged(17, 2), Err(NotADemand::Length(17)));
        assert_eq!(damaged(17, 0), Err(NotADemand::Name));
        assert_eq!(damaged(20, 0xff), Err(NotADemand::Name));
        let long = Demand::Generic { item: item("A"), message: vec![0; LONGEST].into() };
        let mut out = Vec::new();
        assert_eq!((FromBelow::Demand(long).put(&mut out), out.len()), (Err(TooLongToTravel), 0));
    }
}
