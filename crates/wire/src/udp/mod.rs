//! UDP over IPv4: batches in, batches out.
//!
//! | file | owns |
//! |---|---|
//! | `receiver.rs` | a bound socket: groups, stamps, the kernel's drop counter, waiting |
//! | `batch.rs` | the memory that a receive call fills, and the view of each datagram |
//! | `sender.rs` | a connected socket: batches out, back pressure as an outcome |
//! | `control.rs` | the stamp and the drop count that come with a datagram |
//! | `message.rs` | `recvmmsg(2)`, `sendmmsg(2)` and their arrays: `unsafe` |
//! | `option.rs` | the socket options that no safe wrapper offers: `unsafe` |

mod batch;
mod control;
mod message;
mod option;
mod receiver;
mod sender;

pub use batch::{Batch, Datagram, MAX_SLOTS, SPARE_BYTES};
pub(crate) use message::Envelopes;
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
