//! A connected UDP socket: batches out, back pressure as an outcome.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{self, sockopt};

use super::message::{self, OutgoingArrays};
use super::receiver::{is_from_the_network, place};
use super::{BufferSize, MAX_SLOTS, NETWORK_ERRORS_A_CALL, interface_of, local_address, option};
use crate::Error;
use crate::error::Operation;
use crate::impls::{has_descriptor, shown};
use crate::interface::Interface;
use crate::tcp::poll_for;

/// Maximum number of datagrams of one [`UdpSender::send_segmented`] (`UDP_MAX_SEGMENTS` of kernels up to 6.8; later ones
/// allow more).
pub const MAX_SEGMENTS: usize = 64;

/// Maximum number of bytes of one: those of a datagram.
const MAX_SEGMENTED_BYTES: usize = 65_507;

/// Options of a sender.
#[derive(Clone, Debug)]
pub struct SendOptions {
    /// A multicast group or a unicast address.
    pub destination: SocketAddrV4,
    /// The interface to send on, by name or IPv4 address. Empty: the routing table decides. With a unicast destination
    /// the interface's address becomes the source address.
    pub interface: String,
    /// Time to live of a multicast datagram, in hops: 1 stays on the local network. Unicast uses the system's value.
    pub ttl: u8,
    /// The kernel's send buffer in bytes.
    pub send_buffer: usize,
}

impl SendOptions {
    /// Creates the usual options: TTL 1, a 4 MiB buffer, the routing table's interface.
    pub fn new(destination: SocketAddrV4) -> Self {
        Self { destination, interface: String::new(), ttl: 1, send_buffer: 4 << 20 }
    }
}

/// The result of a send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct UdpSent {
    /// Number of datagrams that the kernel accepted, from the first on. Continue with the next one.
    pub count: usize,
    /// `true` if the send stopped early: the buffer was full (back pressure; wait with [`UdpSender::wait`]), or the
    /// network answered every attempt with an error.
    pub blocked: bool,
}

/// A UDP socket that sends datagrams, one by one or in batches, to one destination, without waiting.
pub struct UdpSender {
    socket: OwnedFd,
    destination: SocketAddrV4,
    local: SocketAddrV4,
    interface: Option<Interface>,
    buffer: BufferSize,
    outgoing: OutgoingArrays,
    /// Whether the device is not known to refuse segments.
    can_segment: bool,
    network_errors: u64,
}

impl UdpSender {
    /// Opens the socket and sets its destination. Datagrams to a group also reach receivers on this machine.
    ///
    /// # Errors
    /// The interface is unknown or down; no route leads to the destination.
    pub fn open(options: &SendOptions) -> Result<Self, Error> {
        let destination = options.destination;
        let interface = interface_of(&options.interface)?;
        let failed = |operation| {
            let place = place(destination, interface.as_ref(), None);
            move |errno| Error::socket(operation, place, errno)
        };
        let refused = |option, value: usize| Error::option(option, value, destination);

        let socket = super::open().map_err(failed(Operation::Open))?;
        let fd = socket.as_fd();
        // The kernel takes an int and doubles it, and reports the double (`socket(7)`).
        let asked = options.send_buffer.min(i32::MAX as usize / 2);
        let buffer = sockopt::set_socket_send_buffer_size_force(fd, asked)
            .or_else(|_| sockopt::set_socket_send_buffer_size(fd, asked))
            .and_then(|()| sockopt::socket_send_buffer_size(fd))
            .map(|doubled| BufferSize { asked, got: doubled / 2 })
            .map_err(refused("SO_SNDBUF", asked))?;

        if destination.ip().is_multicast() {
            if let Some(i) = &interface {
                let own = i.address.unwrap_or(Ipv4Addr::UNSPECIFIED);
                sockopt::set_ip_multicast_if_with_ifindex(fd, &Ipv4Addr::UNSPECIFIED, &own, i.index)
                    .map_err(refused("IP_MULTICAST_IF", i.index as usize))?;
            }
            sockopt::set_ip_multicast_ttl(fd, u32::from(options.ttl))
                .map_err(refused("IP_MULTICAST_TTL", usize::from(options.ttl)))?;
            // Without this option the kernel silently drops datagrams that do not fit into a full device
            // queue. Not for unicast: there it would also collect other machines' errors until they are read.
            option::set_int(fd, libc::IPPROTO_IP, libc::IP_RECVERR, 1).map_err(refused("IP_RECVERR", 1))?;
            sockopt::set_ip_multicast_loop(fd, true).map_err(refused("IP_MULTICAST_LOOP", 1))?;
        } else if let Some(i) = &interface {
            let own = i.address.ok_or_else(|| Error::NoInterfaceAddress {
                name: i.name.clone(),
                needed_for: "sending to a unicast address",
            })?;
            net::bind(fd, &SocketAddrV4::new(own, 0)).map_err(failed(Operation::Bind))?;
        }
        net::connect(fd, &destination).map_err(failed(Operation::Connect))?;
        let local = local_address(fd).map_err(failed(Operation::Connect))?;
        let outgoing = OutgoingArrays::new(MAX_SLOTS);
        Ok(Self {
            socket,
            destination,
            local,
            interface,
            buffer,
            outgoing,
            can_segment: true,
            network_errors: 0,
        })
    }

    /// Forbids that datagrams are split on their way, whatever the kernel has learned about the path. A longer one than the interface carries is
    /// [`Error::TooLong`] then; one that a later network does not carry is lost.
    ///
    /// # Errors
    /// [`Error::Option`].
    pub fn forbid_fragments(&self) -> Result<(), Error> {
        option::set_int(self.socket.as_fd(), libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE)
            .map_err(Error::option("IP_MTU_DISCOVER", "IP_PMTUDISC_PROBE", self.destination))
    }

    /// Sends one datagram.
    ///
    /// # Errors
    /// As [`send_many`](Self::send_many).
    pub fn send(&mut self, datagram: &[u8]) -> Result<UdpSent, Error> {
        let flags = net::SendFlags::DONTWAIT | net::SendFlags::NOSIGNAL;
        self.attempt(1, datagram.len(), |fd| net::send(fd, datagram, flags).map(|_| ()))
    }

    /// Sends `count` datagrams of `length` bytes with `send`, which sends all or none.
    #[inline]
    fn attempt(
        &mut self,
        count: usize,
        length: usize,
        send: impl Fn(BorrowedFd<'_>) -> Result<(), Errno>,
    ) -> Result<UdpSent, Error> {
        for _ in 0..NETWORK_ERRORS_A_CALL {
            let Err(errno) = send(self.socket.as_fd()) else { return Ok(UdpSent { count, blocked: false }) };
            if self.stops_at(errno, length)? {
                break;
            }
        }
        Ok(UdpSent { count: 0, blocked: true })
    }

    /// Sends datagrams in order: a slice of anything that holds bytes, or an iterator of references. Up to 1,024 go
    /// into one system call. Sending continues until all are sent or the kernel's buffer is full, and allocates
    /// nothing.
    ///
    /// A datagram accepted by the kernel can still be lost on its way: this is UDP.
    ///
    /// # Errors
    /// [`Error::TooLong`] when the next datagram (those before it were sent, uncounted) is longer than UDP or
    /// the path allows; [`Error::Socket`] when the machine refuses, such as for an interface that went down.
    /// Errors that other machines caused ("connection refused" after an earlier datagram) are counted in
    /// [`network_errors`](Self::network_errors) and skipped.
    pub fn send_many<'a, B: AsRef<[u8]> + ?Sized + 'a>(
        &mut self,
        datagrams: impl IntoIterator<Item = &'a B, IntoIter: Clone>,
    ) -> Result<UdpSent, Error> {
        let datagrams = datagrams.into_iter();
        let mut rest = datagrams.clone();
        let mut count = 0;
        let mut errors = 0;
        while errors < NETWORK_ERRORS_A_CALL {
            let start = rest.clone();
            let (taken, sent) = self.outgoing.send(self.socket.as_fd(), &mut rest);
            if taken == 0 {
                return Ok(UdpSent { count, blocked: false });
            }
            match sent {
                Ok(sent) if sent == taken => count += sent,
                // The kernel sent a part without a reason; it returns the error for the next datagram.
                Ok(sent) => {
                    count += sent;
                    errors = 0;
                    rest = start;
                    if let Some(last) = sent.checked_sub(1) {
                        rest.nth(last);
                    }
                }
                Err(errno) => {
                    errors += 1;
                    let length = start.clone().next().map_or(0, |datagram| datagram.as_ref().len());
                    if self.stops_at(errno, length)? {
                        break;
                    }
                    rest = start;
                }
            }
        }
        Ok(UdpSent { count, blocked: true })
    }

    /// Splits `bytes` into datagrams of `segment_bytes` each (the last may be shorter), which pass the kernel's stack
    /// as one: two to three times the throughput of [`send_many`](Self::send_many) over loopback (`cargo bench -p
    /// tapeline-wire`). Sends all or none. Needs Linux 4.18 and a device that computes checksums (loopback does).
    ///
    /// # Errors
    /// [`Error::TooLong`] for more than [`MAX_SEGMENTS`] datagrams, more than 65,507 bytes in all, or
    /// segments longer than the path carries; [`Error::Socket`] when the device cannot.
    pub fn send_segmented(&mut self, bytes: &[u8], segment_bytes: u16) -> Result<UdpSent, Error> {
        let segments = bytes.len().div_ceil(usize::from(segment_bytes.max(1)));
        if segments > MAX_SEGMENTS || bytes.len() > MAX_SEGMENTED_BYTES {
            return Err(Error::TooLong { length: bytes.len(), address: self.place() });
        }
        let segment_bytes = segment_bytes.max(1);
        self.attempt(segments, usize::from(segment_bytes), |fd| {
            // The count was checked above: the remaining cause of this error is a segment that the path would have to
            // fragment.
            message::send_segmented(fd, bytes, segment_bytes).map_err(|errno| match errno {
                Errno::INVAL => Errno::MSGSIZE,
                errno => errno,
            })
        })
    }

    /// Sends datagrams that stand one behind the other in `bytes`, each with its length in `lengths`. Those of one length that follow each other,
    /// and a shorter one behind them, pass the kernel's stack as one, if the device can ([`send_segmented`](Self::send_segmented)).
    ///
    /// # Errors
    /// As [`send_many`](Self::send_many), which sends what cannot go as one.
    ///
    /// # Panics
    /// `lengths` are longer than `bytes`.
    pub fn send_contiguous(&mut self, bytes: &[u8], lengths: &[usize]) -> Result<UdpSent, Error> {
        let (mut rest, mut count) = (bytes, 0);
        while let Some(&length) = lengths.get(count) {
            let run = if self.can_segment { run(&lengths[count..]) } else { lengths.len() - count };
            let (piece, behind) = rest.split_at(lengths[count..][..run].iter().sum());
            let mut apart = piece;
            let apart = lengths[count..][..run].iter().map(move |&length| {
                let (datagram, behind) = apart.split_at(length);
                apart = behind;
                datagram
            });
            let sent = match u16::try_from(length) {
                Ok(length) if self.can_segment && run > 1 => match self.send_segmented(piece, length) {
                    Err(error) => {
                        // Not where the path carries none of this length, or the interface is down for now.
                        self.can_segment &= !is_unsupported(&error);
                        self.send_many(apart)?
                    }
                    Ok(sent) => sent,
                },
                _ => self.send_many(apart)?,
            };
            count += sent.count;
            if sent.blocked {
                return Ok(UdpSent { count, blocked: true });
            }
            rest = behind;
        }
        Ok(UdpSent { count, blocked: false })
    }

    /// Waits until the socket's buffer has space; returns `false` if `timeout` passes first, or early when a
    /// signal arrives. It cannot wait for a full device queue behind the buffer.
    pub fn wait(&self, timeout: Duration) -> bool {
        poll_for(&mut [PollFd::new(&self.socket, PollFlags::OUT)], timeout)
    }

    /// Returns the destination.
    pub fn destination(&self) -> SocketAddrV4 {
        self.destination
    }

    /// Returns the source address that receivers see.
    pub fn local_address(&self) -> SocketAddrV4 {
        self.local
    }

    /// Returns the number of errors that the network reported for earlier datagrams, such as "connection refused" where
    /// no process listens.
    pub fn network_errors(&self) -> u64 {
        self.network_errors
    }

    /// Returns advice if the kernel granted a smaller buffer than requested.
    pub fn advice(&self) -> Option<String> {
        self.buffer.advice("net.core.wmem_max")
    }

    /// Counts an expected error. Returns `true` if it ends the call (no space), `false` to retry.
    fn stops_at(&mut self, errno: Errno, length: usize) -> Result<bool, Error> {
        match errno {
            // `ENOBUFS`: a device queue is full. Multicast only: for unicast the kernel drops such datagrams silently
            // (`udp(7)`).
            Errno::AGAIN | Errno::NOBUFS => Ok(true),
            Errno::INTR => Ok(false),
            Errno::MSGSIZE => Err(Error::TooLong { length, address: self.place() }),
            errno if is_from_the_network(errno) && errno != Errno::NETUNREACH => {
                self.network_errors += 1;
                Ok(false)
            }
            errno => Err(Error::socket(Operation::Send, self.place(), errno)),
        }
    }

    fn place(&self) -> String {
        place(self.destination, self.interface.as_ref(), None)
    }
}

/// Returns `true` if the device cannot send segments: `udp(7)`.
fn is_unsupported(error: &Error) -> bool {
    let Error::Socket { cause, .. } = error else { return false };
    matches!(Errno::from_io_error(cause), Some(Errno::IO | Errno::OPNOTSUPP | Errno::NOPROTOOPT))
}

/// Returns the number of datagrams, from the first on, that one [`UdpSender::send_segmented`] can send.
fn run(lengths: &[usize]) -> usize {
    // An empty datagram cannot be a segment.
    let Some(&first) = lengths.first().filter(|first| **first > 0) else { return lengths.len().min(1) };
    let most = (MAX_SEGMENTED_BYTES / first).clamp(1, MAX_SEGMENTS);
    let same = lengths.iter().take(most).take_while(|&&length| length == first).count();
    // The last may be shorter.
    let shorter = lengths.get(same).is_some_and(|length| (1..first).contains(length));
    if same < most && shorter { same + 1 } else { same }
}

has_descriptor!(UdpSender, socket);

shown!(UdpSender, it => destination: it.destination, local: it.local, buffer: it.buffer, network_errors: it.network_errors);
