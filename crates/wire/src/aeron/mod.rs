//! Datagrams over [Aeron](https://aeron.io): streams through a media driver, which recovers what the network loses and controls the flow.
//!
//! A [sender](AeronSender) and a [receiver](AeronReceiver) connect to the driver whose files are in a folder, and connect again after the
//! driver was lost. The driver is a process of its own (`aeronmd`), or runs in this process ([`EmbeddedAeronDriver`]). Neither end waits
//! for it: while no driver is there, the sender takes nothing and the receiver has nothing. All work for the driver is done in
//! [`turn`](AeronSender::turn), by the thread that sends or receives; no thread is started for a client.
//!
//! A message of Aeron is one datagram, of up to 65,507 bytes. The driver splits a longer one than the channel's `mtu`, and the receiver joins it.

mod connection;
mod counters;
mod driver;
mod receiver;
mod sender;
mod threads;

use std::fmt;
use std::path::PathBuf;

pub use self::connection::AeronChange;
pub use self::driver::EmbeddedAeronDriver;
pub use self::receiver::{AeronReceived, AeronReceiver};
pub use self::sender::{AeronSender, AeronSending, AeronSent};

/// A stream of Aeron, and the driver that carries it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AeronOptions {
    /// The channel, such as `aeron:udp?endpoint=239.255.14.1:14041|interface=10.0.0.5`.
    pub channel: String,
    /// The stream within the channel.
    pub stream: i32,
    /// The folder of the driver's files; `None` for the usual one, `aeron-USER` in `/dev/shm`, or what `AERON_DIR` says.
    pub folder: Option<PathBuf>,
}

impl fmt::Display for AeronOptions {
    /// Writes the channel and the stream.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, stream {}", self.channel, self.stream)
    }
}

/// Checks the form of a channel; what its parameters mean, only a driver knows.
///
/// # Errors
/// The reason why no driver would accept the channel.
pub fn check_channel(channel: &str) -> Result<(), String> {
    let rest = channel.strip_prefix("aeron:").ok_or("it does not begin with \"aeron:\"")?;
    let (media, parameters) = rest.split_once('?').unwrap_or((rest, ""));
    if !matches!(media, "udp" | "ipc") {
        return Err(format!("the medium is \"{media}\"; udp and ipc are expected"));
    }
    let mut has_address = media == "ipc";
    for parameter in parameters.split('|').filter(|_| !parameters.is_empty()) {
        let (key, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        if key.is_empty() || value.is_empty() || channel.contains('\0') {
            return Err(format!("\"{parameter}\" is not a parameter with a value"));
        }
        has_address |= matches!(key, "endpoint" | "control");
    }
    if has_address { Ok(()) } else { Err("it has no endpoint".to_owned()) }
}
