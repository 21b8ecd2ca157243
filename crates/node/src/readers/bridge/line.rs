//! The lines out of a plant: each carries every datagram, over UDP or Aeron.

use std::fmt;
use std::time::Duration;

use tapeline_measure::Nanos;
use tapeline_plant::bridge::Packer;
#[cfg(feature = "aeron")]
use tapeline_wire::aeron::{AeronChange, AeronOptions, AeronSender};
use tapeline_wire::udp::{SendOptions, UdpSender};

use crate::Error;
use crate::events::{Events, Kind, Severity};
use crate::stat::snapshot::AeronSendingSnapshot;

/// How long a full socket may delay the datagrams; what it does not take then is lost, and requested again.
const FULL_SOCKET: Duration = Duration::from_millis(2);

/// A line to plants below.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum BridgeLine {
    /// Datagrams of UDP, to a group or one host.
    Udp(SendOptions),
    /// Messages of Aeron.
    #[cfg(feature = "aeron")]
    Aeron(AeronOptions),
}

impl fmt::Display for BridgeLine {
    /// Writes the address or the channel.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Udp(options) => options.destination.fmt(f),
            #[cfg(feature = "aeron")]
            Self::Aeron(options) => options.fmt(f),
        }
    }
}

impl From<SendOptions> for BridgeLine {
    fn from(options: SendOptions) -> Self {
        Self::Udp(options)
    }
}

#[cfg(feature = "aeron")]
impl From<AeronOptions> for BridgeLine {
    fn from(options: AeronOptions) -> Self {
        Self::Aeron(options)
    }
}

/// Datagrams that a line did not take.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Untaken {
    /// All of them.
    pub(super) unsent: u64,
    /// Those that the flow control of Aeron refused.
    pub(super) back_pressured: u64,
}

/// The sending end of a line.
pub(super) enum LineSender {
    Udp(Box<UdpSender>),
    #[cfg(feature = "aeron")]
    Aeron(Box<AeronSender>),
}

impl LineSender {
    /// Opens the socket, or begins to connect to the media driver.
    pub(super) fn open(line: &BridgeLine, events: &Events) -> crate::Result<Self> {
        let failed = |error: tapeline_wire::Error| {
            let hint = error.hint().unwrap_or_default();
            Error::hinted(format!("the bridge cannot send to {line}"), hint).because(error)
        };
        match line {
            BridgeLine::Udp(options) => {
                let sender = UdpSender::open(options).map_err(failed)?;
                if let Some(advice) = sender.advice() {
                    events.warning(format_args!("bridge, line to {line}: {advice}"));
                }
                Ok(Self::Udp(sender.into()))
            }
            #[cfg(feature = "aeron")]
            BridgeLine::Aeron(options) => Ok(Self::Aeron(AeronSender::new(options).map_err(failed)?.into())),
        }
    }

    /// Keeps the connection to a media driver, and tells its changes.
    #[inline]
    #[cfg_attr(not(feature = "aeron"), expect(unused_variables, reason = "UDP has no connection"))]
    pub(super) fn turn(&mut self, now: Nanos, events: &Events) {
        match self {
            Self::Udp(_) => {}
            #[cfg(feature = "aeron")]
            Self::Aeron(sender) => {
                if let Some(change) = sender.turn(now) {
                    tell(&change, format_args!("bridge, line to {}", sender.channel()), now, events);
                }
            }
        }
    }

    /// Sends the datagrams that were packed last. A full socket may delay them by [`FULL_SOCKET`]; Aeron's flow control delays nothing.
    pub(super) fn send_packed(&mut self, packer: &Packer, now: Nanos, events: &Events) -> Untaken {
        match self {
            Self::Udp(sender) => {
                let (bytes, lengths) = packer.padded();
                let unsent = send_to_socket(sender, bytes, lengths, now, events);
                Untaken { unsent: unsent as u64, back_pressured: 0 }
            }
            #[cfg(feature = "aeron")]
            Self::Aeron(sender) => {
                let sent = sender.send_many(packer.datagrams());
                let back_pressured = sent.back_pressured as u64;
                Untaken { unsent: back_pressured + sent.refused as u64, back_pressured }
            }
        }
    }

    /// Sends a datagram whose loss does not matter.
    pub(super) fn send(&mut self, datagram: &[u8]) {
        match self {
            Self::Udp(sender) => _ = sender.send(datagram),
            #[cfg(feature = "aeron")]
            Self::Aeron(sender) => _ = sender.send_many(std::iter::once(datagram)),
        }
    }

    /// Returns what a media driver counts for the line, if it has one.
    pub(super) fn of_driver(&self) -> Option<AeronSendingSnapshot> {
        match self {
            Self::Udp(_) => None,
            #[cfg(feature = "aeron")]
            Self::Aeron(sender) => sender
                .figures()
                .map(|figures| AeronSendingSnapshot { naks: figures.naks, window_bytes: figures.window }),
        }
    }

    /// Returns how often the line has lost its media driver.
    pub(super) fn drivers_lost(&self) -> u64 {
        match self {
            Self::Udp(_) => 0,
            #[cfg(feature = "aeron")]
            Self::Aeron(sender) => sender.losses(),
        }
    }
}

/// Sends datagrams that stand one behind the other, and returns how many the socket did not take.
fn send_to_socket(
    sender: &mut UdpSender,
    mut bytes: &[u8],
    mut lengths: &[usize],
    now: Nanos,
    events: &Events,
) -> usize {
    // What a full socket does not take in time counts as lost on the way.
    for may_wait in [true, false] {
        match sender.send_contiguous(bytes, lengths) {
            Ok(sent) => {
                let (gone, left) = lengths.split_at(sent.count);
                (bytes, lengths) = (&bytes[gone.iter().sum()..], left);
                if !sent.blocked || !may_wait || !sender.wait(FULL_SOCKET) {
                    break;
                }
            }
            Err(error) => {
                events.peer(now, Kind::Bridge, Severity::Warning, format_args!("bridge: {error}"));
                break;
            }
        }
    }
    lengths.len()
}

/// Tells a change of the connection to a media driver.
#[cfg(feature = "aeron")]
#[cold]
pub(crate) fn tell(change: &AeronChange, place: fmt::Arguments<'_>, now: Nanos, events: &Events) {
    match change {
        AeronChange::Connected => events.info(format_args!("{place}: connected to the media driver")),
        AeronChange::Lost(reason) => {
            let said = format_args!("{place}: the media driver is lost, and is looked for again: {reason}");
            events.peer(now, Kind::Bridge, Severity::Warning, said);
        }
        AeronChange::Waiting(reason) => {
            let said = format_args!(
                "{place}: no connection yet: {reason}; aeronmd, or embedded = true in [aeron], is a driver"
            );
            events.peer(now, Kind::Bridge, Severity::Warning, said);
        }
    }
}
