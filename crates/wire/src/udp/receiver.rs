//! A bound UDP socket: groups, stamps, the kernel's count of drops, waiting.

use std::borrow::Borrow;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{self, sockopt};

use super::option::{self, set_int};
use super::{Batch, BufferSize, NETWORK_ERRORS_A_CALL, interface_of, local_address};
use crate::Error;
use crate::error::Operation;
use crate::impls::{has_descriptor, shown};
use crate::interface::Interface;
use crate::tcp::poll_for;

/// Maximum number of receivers that [`wait_any`] waits for at once.
pub const MAX_WAIT: usize = 64;

/// Options of a receiver.
#[derive(Clone, Debug)]
pub struct ReceiveOptions {
    /// A multicast group to join, or an address of this machine. Port 0 takes a free one.
    pub group_or_address: SocketAddrV4,
    /// The interface on which a group arrives, by name or IPv4 address. Empty: the routing table decides. For a unicast
    /// address it matters only if that is `0.0.0.0`: the socket is then bound to the interface's address.
    pub interface: String,
    /// Receive a group's datagrams from this sender only (source-specific multicast, RFC 4607); `None` means any
    /// sender.
    pub source: Option<Ipv4Addr>,
    /// The kernel's receive buffer in bytes. Its size must cover the datagrams that arrive while the reader
    /// is busy. The kernel charges at least 768 bytes per datagram, so 8 MiB is enough for some 20,000 small
    /// ones.
    pub receive_buffer: usize,
    /// `true` to have the kernel stamp each datagram's arrival.
    pub stamps: bool,
    /// `true` to have the kernel join datagrams of one length that it has at once, up to 65,507 bytes (`UDP_GRO`, Linux 5.0 and later; an older
    /// kernel joins none). They need slots as long, and [`Batch::apart`]. The kernel's drops are counted before they are taken apart.
    pub joined: bool,
}

impl ReceiveOptions {
    /// Creates the usual options: any sender, an 8 MiB buffer, stamps, the routing table's interface.
    pub fn new(group_or_address: SocketAddrV4) -> Self {
        Self {
            group_or_address,
            interface: String::new(),
            source: None,
            receive_buffer: 8 << 20,
            stamps: true,
            joined: false,
        }
    }
}

/// A UDP socket that receives datagrams in batches.
///
/// Several processes can listen to one group on one port; each gets every datagram. The socket is bound to the group's
/// own address, so it gets no datagrams of other groups on the same port.
pub struct UdpReceiver {
    socket: OwnedFd,
    local: SocketAddrV4,
    interface: Option<Interface>,
    buffer: BufferSize,
    drops: DropCounter,
    network_errors: u64,
}

impl UdpReceiver {
    /// Opens the socket, binds it, and joins the group if the address is one.
    ///
    /// # Errors
    /// The interface is unknown or down; the address is taken or not this machine's; the group cannot be
    /// joined.
    pub fn open(options: &ReceiveOptions) -> Result<Self, Error> {
        let address = options.group_or_address;
        let group = address.ip().is_multicast();
        if options.source.is_some() && !group {
            return Err(Error::SourceWithoutGroup { address: address.to_string() });
        }
        let interface = interface_of(&options.interface)?;
        let failed = |operation| {
            let place = place(address, interface.as_ref(), options.source);
            move |errno| Error::socket(operation, place, errno)
        };
        let refused = |option, value: usize| Error::option(option, value, address);

        let socket = super::open().map_err(failed(Operation::Open))?;
        let fd = socket.as_fd();
        // Before the bind, so that the first datagram already has its stamp and its count.
        if options.stamps {
            set_int(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1).map_err(refused("SO_TIMESTAMPNS", 1))?;
        }
        set_int(fd, libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1).map_err(refused("SO_RXQ_OVFL", 1))?;
        if options.joined {
            // An older kernel delivers the datagrams one by one.
            let _ = set_int(fd, libc::SOL_UDP, libc::UDP_GRO, 1);
        }
        // Beyond the system's limit if this process may, otherwise up to the limit. The kernel takes an int, doubles it
        // for its own overhead, and reports the double (`socket(7)`).
        let asked = options.receive_buffer.min(i32::MAX as usize / 2);
        let buffer = sockopt::set_socket_recv_buffer_size_force(fd, asked)
            .or_else(|_| sockopt::set_socket_recv_buffer_size(fd, asked))
            .and_then(|()| sockopt::socket_recv_buffer_size(fd))
            .map(|doubled| BufferSize { asked, got: doubled / 2 })
            .map_err(refused("SO_RCVBUF", asked))?;

        if group {
            sockopt::set_socket_reuseaddr(fd, true).map_err(refused("SO_REUSEADDR", 1))?;
            // Receives only this socket's own groups, not every group that some process of this machine has
            // joined.
            set_int(fd, libc::IPPROTO_IP, libc::IP_MULTICAST_ALL, 0)
                .map_err(refused("IP_MULTICAST_ALL", 0))?;
        }
        let bound = match interface.as_ref().and_then(|i| i.address) {
            Some(own) if address.ip().is_unspecified() => SocketAddrV4::new(own, address.port()),
            _ => address,
        };
        net::bind(fd, &bound).map_err(failed(Operation::Bind))?;
        if group {
            join(fd, *address.ip(), interface.as_ref(), options.source, failed(Operation::Join))?;
        }
        let local = local_address(fd).map_err(failed(Operation::Bind))?;
        Ok(Self { socket, local, interface, buffer, drops: DropCounter::default(), network_errors: 0 })
    }

    /// Receives the available datagrams, up to the number of slots of `batch`, without waiting, and returns their
    /// number; 0 if there are none. The batch's previous contents are overwritten.
    ///
    /// One system call, no allocation (`cargo bench -p tapeline-wire`). Errors caused by other machines (ICMP) are
    /// counted in [`network_errors`](Self::network_errors) and skipped.
    ///
    /// # Errors
    /// [`Error::Socket`] when the machine refuses, such as for an interface that went away.
    pub fn receive(&mut self, batch: &mut Batch) -> Result<usize, Error> {
        self.receive_with(|fd| batch.fill(fd))
    }

    /// Receives with `fill`, which returns the number of datagrams and the kernel's drop count, if one came
    /// with them.
    pub(crate) fn receive_with(
        &mut self,
        mut fill: impl FnMut(BorrowedFd<'_>) -> Result<(usize, Option<u32>), Errno>,
    ) -> Result<usize, Error> {
        for _ in 0..NETWORK_ERRORS_A_CALL {
            match fill(self.socket.as_fd()) {
                Ok((count, dropped)) => {
                    if let Some(dropped) = dropped {
                        self.drops.observe(dropped);
                    }
                    return Ok(count);
                }
                Err(Errno::AGAIN) => return Ok(0),
                Err(Errno::INTR) => {}
                Err(errno) if is_from_the_network(errno) => self.network_errors += 1,
                Err(errno) => return Err(Error::socket(Operation::Receive, self.place(), errno)),
            }
        }
        Ok(0)
    }

    /// Waits until a datagram is available; returns `false` if `timeout` passes first. Also returns `false` early when
    /// a signal arrives, so that the caller can check whether to stop.
    pub fn wait(&self, timeout: Duration) -> bool {
        wait_any(&[self], timeout)
    }

    /// Sends a datagram from this socket, so that an answer comes back to the socket. Returns `false` if the buffer is
    /// full or the network refused an earlier datagram (counted in [`network_errors`](Self::network_errors)). Does not
    /// wait. A sent datagram can still be lost on its way.
    ///
    /// # Errors
    /// [`Error::TooLong`]; [`Error::Socket`] when the machine refuses, such as where no route leads there.
    pub fn send_to(&mut self, datagram: &[u8], destination: SocketAddrV4) -> Result<bool, Error> {
        for _ in 0..NETWORK_ERRORS_A_CALL {
            match net::sendto(self.socket.as_fd(), datagram, net::SendFlags::empty(), &destination) {
                Ok(_) => return Ok(true),
                Err(Errno::AGAIN | Errno::NOBUFS) => return Ok(false),
                Err(Errno::INTR) => {}
                Err(Errno::MSGSIZE) => {
                    return Err(Error::TooLong { length: datagram.len(), address: destination.to_string() });
                }
                Err(errno) if is_from_the_network(errno) && errno != Errno::NETUNREACH => {
                    self.network_errors += 1;
                }
                Err(errno) => return Err(Error::socket(Operation::Send, destination, errno)),
            }
        }
        Ok(false)
    }

    /// Returns the address at which the socket listens, with the port assigned if port 0 was requested.
    pub fn local_address(&self) -> SocketAddrV4 {
        self.local
    }

    /// Returns the number of datagrams that the kernel has dropped since the socket was opened (full buffer, bad
    /// checksum), as known when the last received one was queued. Costs nothing; see
    /// [`ask_kernel_drops`](Self::ask_kernel_drops).
    pub fn kernel_drops(&self) -> u64 {
        self.drops.total
    }

    /// Reads the kernel's current drop count and returns it as [`kernel_drops`](Self::kernel_drops) does. Costs one
    /// system call: use it at the end of a run and in idle moments, when no datagram carries the count.
    pub fn ask_kernel_drops(&mut self) -> u64 {
        // On a kernel without SO_MEMINFO (before 4.12) the count from the datagrams stays.
        if let Ok(dropped) = option::dropped(self.socket.as_fd()) {
            self.drops.observe(dropped);
        }
        self.drops.total
    }

    /// Returns the number of errors that the network reported on this socket (ICMP unreachable and the like).
    pub fn network_errors(&self) -> u64 {
        self.network_errors
    }

    /// Returns the size of the kernel's receive buffer, as requested and as granted.
    pub fn receive_buffer(&self) -> BufferSize {
        self.buffer
    }

    /// Returns advice if the kernel granted a smaller buffer than requested.
    pub fn advice(&self) -> Option<String> {
        self.buffer.advice("net.core.rmem_max")
    }

    fn place(&self) -> String {
        place(self.local, self.interface.as_ref(), None)
    }
}

has_descriptor!(UdpReceiver, socket);

shown!(UdpReceiver, it => local: it.local, buffer: it.buffer, kernel_drops: it.drops.total);

/// Waits until one of `receivers` has a datagram; returns `false` if `timeout` passes first. Also returns `false` early
/// when a signal arrives. Waits for the first [`MAX_WAIT`] receivers only.
pub fn wait_any<R: Borrow<UdpReceiver>>(receivers: &[R], timeout: Duration) -> bool {
    let Some(first) = receivers.first() else { return false };
    let all = receivers.iter().take(MAX_WAIT).map(|receiver| receiver.borrow().as_fd());
    wait_for(all, first.borrow().as_fd(), timeout)
}

/// Waits as [`wait_any`] does for `receivers`, which may be empty, and for another object with a descriptor, such as a
/// [`Reactor`](crate::rssl::Reactor).
pub fn wait_any_or<R: Borrow<UdpReceiver>>(receivers: &[R], other: &impl AsFd, timeout: Duration) -> bool {
    let all = receivers.iter().take(MAX_WAIT).map(|receiver| receiver.borrow().as_fd());
    wait_for(std::iter::once(other.as_fd()).chain(all), other.as_fd(), timeout)
}

/// Waits for any of `all`; `first` is any one of them, to fill unused places.
fn wait_for<'fd>(
    all: impl Iterator<Item = BorrowedFd<'fd>>,
    first: BorrowedFd<'fd>,
    timeout: Duration,
) -> bool {
    // On the stack, since a plant waits often: unused places repeat the first descriptor and are not polled.
    let mut polled: [PollFd<'_>; MAX_WAIT + 1] =
        std::array::from_fn(|_| PollFd::from_borrowed_fd(first, PollFlags::IN));
    let mut used = 0;
    for (place, fd) in polled.iter_mut().zip(all) {
        *place = PollFd::from_borrowed_fd(fd, PollFlags::IN);
        used += 1;
    }
    poll_for(&mut polled[..used], timeout)
}

fn join(
    fd: BorrowedFd<'_>,
    group: Ipv4Addr,
    interface: Option<&Interface>,
    source: Option<Ipv4Addr>,
    failed: impl FnOnce(Errno) -> Error,
) -> Result<(), Error> {
    let own = interface.and_then(|i| i.address);
    let joined = match (source, interface) {
        // This option identifies an interface only by its address.
        (Some(_), Some(i)) if own.is_none() => {
            return Err(Error::NoInterfaceAddress {
                name: i.name.clone(),
                needed_for: "source-specific multicast",
            });
        }
        (Some(source), _) => {
            sockopt::set_ip_add_source_membership(fd, &group, &own.unwrap_or(Ipv4Addr::UNSPECIFIED), &source)
        }
        (None, _) => sockopt::set_ip_add_membership_with_ifindex(
            fd,
            &group,
            &own.unwrap_or(Ipv4Addr::UNSPECIFIED),
            interface.map_or(0, |i| i.index),
        ),
    };
    joined.map_err(failed)
}

/// Formats an address for an error.
pub(super) fn place(
    address: SocketAddrV4,
    interface: Option<&Interface>,
    source: Option<Ipv4Addr>,
) -> String {
    let mut text = address.to_string();
    if let Some(source) = source {
        text.push_str(&format!(" from {source}"));
    }
    if let Some(interface) = interface {
        text.push_str(&format!(" on {interface}"));
    }
    text
}

/// Returns `true` for an error that another machine or a router caused; `udp(7)` and `ip(7)`.
pub(super) fn is_from_the_network(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::CONNREFUSED
            | Errno::HOSTUNREACH
            | Errno::NETUNREACH
            | Errno::HOSTDOWN
            | Errno::PROTO
            | Errno::NOPROTOOPT
    )
}

/// Extends the kernel's 32-bit drop count to a count that does not wrap.
#[derive(Debug, Default)]
struct DropCounter {
    last: u32,
    total: u64,
}

impl DropCounter {
    /// A datagram carries the count from the time at which it was queued, so older counts can arrive after
    /// the kernel was asked directly. A count less than half the range ahead is progress; any other is an
    /// older one.
    fn observe(&mut self, dropped: u32) {
        let ahead = dropped.wrapping_sub(self.last);
        if ahead < 1 << 31 {
            self.total += u64::from(ahead);
            self.last = dropped;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_are_counted_across_the_wrap_and_older_counts_ignored() {
        let mut counter = DropCounter::default();
        for (seen, total) in [(5, 5), (5, 5), (3, 5), (9, 9)] {
            counter.observe(seen);
            assert_eq!(counter.total, total);
        }
        let mut counter = DropCounter { last: u32::MAX - 1, total: 1 << 40 };
        counter.observe(3);
        assert_eq!(counter.total, (1 << 40) + 5);
        counter.observe(u32::MAX);
        assert_eq!(counter.total, (1 << 40) + 5);
    }
}
