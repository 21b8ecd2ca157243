//! The network: each connection carries bytes in transit. It can stall, break in the middle of a message, or
//! become half-open: silent, with no peer.

use std::collections::VecDeque;
use std::net::SocketAddr;

use tapeline_wire::rssl::FarEnd;

use crate::chance::Chance;
use crate::trace::mix;

/// One end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Client = 0,
    Server = 1,
}

impl Side {
    pub(crate) const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LinkId(usize);

impl LinkId {
    /// The address of the client's end.
    pub(crate) fn address(self) -> SocketAddr {
        let [.., a, b, c] = (self.0 as u32).to_be_bytes();
        SocketAddr::from(([10, a, b, c], 1_024))
    }
}

/// The network's end of a connection of the plant or its hub; the other end is in their reactor.
#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) link: LinkId,
    side: Side,
    pub(crate) far: FarEnd,
    /// Bytes that the plant or hub has sent on it.
    pub(crate) sent: u64,
}

impl Port {
    pub(crate) const fn new(link: LinkId, side: Side, far: FarEnd) -> Self {
        Self { link, side, far, sent: 0 }
    }

    /// Passes bytes from the network to the reactor, unless its connection pauses the peer.
    pub(crate) fn hear(&self, now: u64, network: &mut Network) {
        if self.far.unread() == 0 {
            match network.read(now, self.link, self.side, usize::MAX) {
                Read::Nothing => {}
                Read::Bytes(bytes) => self.far.deliver(&bytes),
                Read::Closed => self.far.close(),
                Read::Broken => self.far.reset(),
            }
        }
        self.far.set_capacity(network.room(self.link, self.side));
    }

    /// Passes bytes from the reactor to the network. Returns whether the connection is still open.
    pub(crate) fn speak(&mut self, now: u64, network: &mut Network) -> bool {
        let bytes = self.far.take_sent();
        self.sent += bytes.len() as u64;
        if !bytes.is_empty() {
            network.send(now, self.link, self.side, bytes);
        }
        let is_over = self.far.is_finished();
        if is_over {
            network.close(self.link, self.side);
        }
        !is_over
    }
}

/// The properties of a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    /// The least and the greatest delay of bytes, in ns.
    pub(crate) delay: (u64, u64),
    /// Capacity for bytes in transit or unread, each way: the buffers of both kernels.
    pub(crate) room: usize,
}

/// Bytes from one end to the other.
#[derive(Debug, Default)]
struct Way {
    /// Pieces, each with its arrival time.
    pieces: VecDeque<(u64, Vec<u8>)>,
    /// Total bytes of the pieces.
    bytes: usize,
    /// Nothing arrives before this time.
    not_before: u64,
    is_closed: bool,
}

#[derive(Debug)]
struct Link {
    path: Path,
    /// Indexed by the sending side.
    ways: [Way; 2],
    /// The link broke: the remaining bytes can be read, then it ends.
    is_broken: bool,
    /// Nothing arrives any more, and neither end is notified.
    is_half_open: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Read {
    Nothing,
    Bytes(Vec<u8>),
    /// The other end has closed the link.
    Closed,
    Broken,
}

#[derive(Debug)]
pub(crate) struct Network {
    links: Vec<Link>,
    chance: Chance,
    /// Hash of all noted messages, in order.
    pub(crate) hash: u64,
}

impl Network {
    pub(crate) const fn new(chance: Chance) -> Self {
        Self { links: Vec::new(), chance, hash: 0 }
    }

    pub(crate) fn open(&mut self, path: Path) -> LinkId {
        let ways = [Way::default(), Way::default()];
        self.links.push(Link { path, ways, is_broken: false, is_half_open: false });
        LinkId(self.links.len() - 1)
    }

    /// The number of bytes that can be sent now.
    pub(crate) fn room(&self, link: LinkId, from: Side) -> usize {
        let link = &self.links[link.0];
        let way = &link.ways[from as usize];
        if link.is_broken || way.is_closed { 0 } else { link.path.room - way.bytes }
    }

    /// Sends bytes, at most as many as [`room`](Self::room) returns.
    pub(crate) fn send(&mut self, now: u64, link: LinkId, from: Side, bytes: Vec<u8>) {
        let link = &mut self.links[link.0];
        let (least, most) = link.path.delay;
        let way = &mut link.ways[from as usize];
        way.bytes += bytes.len();
        if link.is_half_open {
            // They fill the sender's buffer, because nothing acknowledges them.
            return;
        }
        let earliest = way.pieces.back().map_or(0, |(at, _)| *at).max(way.not_before);
        let at = (now + self.chance.within(least, most)).max(earliest);
        way.pieces.push_back((at, bytes));
    }

    /// Reads the bytes that have arrived at an end, at most `most`.
    pub(crate) fn read(&mut self, now: u64, link: LinkId, at: Side, most: usize) -> Read {
        let link = &mut self.links[link.0];
        let way = &mut link.ways[at.other() as usize];
        let mut bytes = Vec::new();
        while bytes.len() < most && now >= way.not_before {
            let Some((arrives, piece)) = way.pieces.front_mut() else { break };
            if *arrives > now {
                break;
            }
            let room = most - bytes.len();
            if piece.len() > room {
                bytes.extend(piece.drain(..room));
            } else {
                bytes.append(piece);
                way.pieces.pop_front();
            }
        }
        way.bytes -= bytes.len();
        match (bytes.is_empty(), way.pieces.is_empty()) {
            (false, _) => Read::Bytes(bytes),
            (true, true) if link.is_broken => Read::Broken,
            (true, true) if way.is_closed && !link.is_half_open => Read::Closed,
            _ => Read::Nothing,
        }
    }

    /// Closes the link at one end; bytes already sent still arrive.
    pub(crate) fn close(&mut self, link: LinkId, by: Side) {
        let link = &mut self.links[link.0];
        link.ways[by as usize].is_closed = true;
        // This end no longer reads.
        let way = &mut link.ways[by.other() as usize];
        (way.pieces, way.bytes) = (VecDeque::new(), 0);
    }

    /// Breaks the link: only a part of the bytes in transit arrives, which may end in the middle of a message.
    pub(crate) fn break_off(&mut self, link: LinkId) {
        let link = &mut self.links[link.0];
        link.is_broken = true;
        for way in &mut link.ways {
            let mut kept = self.chance.index(way.bytes + 1);
            way.pieces.retain_mut(|(_, piece)| {
                piece.truncate(kept);
                kept -= piece.len();
                !piece.is_empty()
            });
            way.bytes = way.pieces.iter().map(|(_, piece)| piece.len()).sum();
            way.not_before = 0;
        }
    }

    /// Makes the link half-open: from now on nothing arrives, and neither end is notified.
    pub(crate) fn fall_silent(&mut self, link: LinkId) {
        let link = &mut self.links[link.0];
        link.is_half_open = true;
        for way in &mut link.ways {
            way.pieces.clear();
        }
    }

    /// Stalls an end: nothing arrives there before `until`.
    pub(crate) fn stall(&mut self, link: LinkId, at: Side, until: u64) {
        let way = &mut self.links[link.0].ways[at.other() as usize];
        way.not_before = way.not_before.max(until);
    }

    /// Notes a message that is sent from an end, or received there.
    pub(crate) fn note(&mut self, link: LinkId, at: Side, message: u64) {
        self.hash = mix(mix(self.hash, link.0 as u64 * 2 + at as u64), message);
    }
}
