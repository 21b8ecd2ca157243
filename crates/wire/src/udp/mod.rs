//! UDP over IPv4: batches in, batches out.
//!
//! | file | owns |
//! |---|---|
//! | `receiver.rs` | a bound socket: groups, stamps, the kernel's drop counter, waiting |
//! | `sender.rs` | a connected socket: batches out, back pressure as an outcome |
//! | `control.rs` | the stamp and the drop count that come with a datagram |
//! | `message.rs` | `recvmmsg(2)`, `sendmmsg(2)`, their arrays, and the memory that a receive call fills: `unsafe` |
//! | `option.rs` | the socket options that no safe wrapper offers: `unsafe` |

mod control;
mod message;
mod option;
mod receiver;
mod sender;

use std::net::SocketAddrV4;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, ipproto};

use crate::Error;
use crate::interface::{self, Interface};
pub(crate) use message::Envelopes;
pub use message::{Batch, Datagram, MAX_SLOTS, SPARE_BYTES};
pub use receiver::{MAX_WAIT, ReceiveOptions, UdpReceiver, wait_any, wait_any_or};
pub use sender::{MAX_SEGMENTS, SendOptions, UdpSender, UdpSent};

/// The size of a socket buffer, as requested and as granted by the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferSize {
    /// Bytes requested.
    pub asked: usize,
    /// Bytes granted. The kernel's own bookkeeping also counts against them: several hundred bytes per datagram.
    pub got: usize,
}

impl BufferSize {
    /// Returns advice if the kernel granted less than requested; `limit` is the sysctl that bounds it.
    fn advice(self, limit: &str) -> Option<String> {
        (self.got < self.asked).then(|| {
            let Self { asked, got } = self;
            format!(
                "the kernel gave a socket buffer of {got} bytes where {asked} were asked for; \
                 `sysctl -w {limit}={asked}` lets it give more"
            )
        })
    }
}

/// Maximum number of network errors that one call counts and skips.
const NETWORK_ERRORS_A_CALL: usize = 16;

/// Opens a socket that never blocks.
fn open() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    net::socket_with(AddressFamily::INET, SocketType::DGRAM, flags, Some(ipproto::UDP))
}

/// Returns the address to which a socket is bound.
fn local_address(socket: impl AsFd) -> Result<SocketAddrV4, Errno> {
    SocketAddrV4::try_from(net::getsockname(socket)?).map_err(|_| Errno::AFNOSUPPORT)
}

/// Returns the interface of this name or address; none if it is empty: the routing table decides.
fn interface_of(asked: &str) -> Result<Option<Interface>, Error> {
    if asked.is_empty() { Ok(None) } else { interface::find(asked).map(Some) }
}
