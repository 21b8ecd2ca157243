//! The lines into a plant, over UDP, TCP or Aeron.

use std::fmt;
use std::net::{SocketAddr, SocketAddrV4};
use std::os::fd::{AsFd, BorrowedFd};

use tapeline_measure::Nanos;
use tapeline_plant::Seq;
use tapeline_plant::bridge::BridgeSession;
use tapeline_plant::bridge::clocks::ClockExchange;
#[cfg(feature = "aeron")]
use tapeline_wire::aeron::{AeronOptions, AeronReceiver};
use tapeline_wire::tcp::Interest;
use tapeline_wire::udp::{Batch, ReceiveOptions, UdpReceiver};

use super::UpstreamConfig;
use super::tcp_line::TcpLineReceiver;
use crate::Error;
use crate::config::Line;
use crate::events::Events;
use crate::stat::snapshot::AeronReceivedSnapshot;

/// A line of the plant above.
#[derive(Debug)]
#[non_exhaustive]
pub enum UpstreamLine {
    /// Datagrams of UDP.
    Udp(Line),
    /// Datagrams over TCP, with or without TLS: the address of the plant above.
    Tcp(SocketAddr),
    /// Messages of Aeron.
    #[cfg(feature = "aeron")]
    Aeron(AeronOptions),
}

impl fmt::Display for UpstreamLine {
    /// Writes the address or the channel.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Udp(line) => line.address.fmt(f),
            Self::Tcp(server) => write!(f, "tcp://{server}"),
            #[cfg(feature = "aeron")]
            Self::Aeron(options) => options.fmt(f),
        }
    }
}

impl From<Line> for UpstreamLine {
    fn from(line: Line) -> Self {
        Self::Udp(line)
    }
}

#[cfg(feature = "aeron")]
impl From<AeronOptions> for UpstreamLine {
    fn from(options: AeronOptions) -> Self {
        Self::Aeron(options)
    }
}

/// The receiving end of a line.
pub(super) enum LineReceiver {
    Udp(UdpReceiver),
    Tcp(Box<TcpLineReceiver>),
    #[cfg(feature = "aeron")]
    Aeron(Box<AeronReceiver>),
}

/// A datagram of a line.
pub(super) struct Received<'a> {
    pub(super) bytes: &'a [u8],
    /// The kernel's time stamp, if there is one.
    pub(super) at: Option<Nanos>,
    /// The sender, if the carrier tells it.
    pub(super) source: Option<SocketAddrV4>,
}

impl LineReceiver {
    /// Opens the socket, or begins to connect to the media driver.
    pub(super) fn open(config: &UpstreamConfig, line: &UpstreamLine, events: &Events) -> crate::Result<Self> {
        let failed = |error: tapeline_wire::Error| {
            let hint = error.hint().unwrap_or_default();
            Error::hinted(format!("upstream {}: cannot receive on {line}", config.name), hint).because(error)
        };
        match line {
            UpstreamLine::Udp(line) => {
                let options = ReceiveOptions {
                    interface: line.interface.clone(),
                    source: line.source,
                    receive_buffer: config.receive_buffer,
                    joined: true,
                    ..ReceiveOptions::new(line.address)
                };
                let receiver = UdpReceiver::open(&options).map_err(failed)?;
                if let Some(advice) = receiver.advice() {
                    events.warning(format_args!("upstream {}, line {}: {advice}", config.name, line.name));
                }
                Ok(Self::Udp(receiver))
            }
            UpstreamLine::Tcp(server) => {
                Ok(Self::Tcp(TcpLineReceiver::new(*server, config.tls.clone()).into()))
            }
            #[cfg(feature = "aeron")]
            UpstreamLine::Aeron(options) => {
                Ok(Self::Aeron(AeronReceiver::new(options).map_err(failed)?.into()))
            }
        }
    }

    /// Keeps a connection, and tells its changes. `wanted`: the session and the first tick that the lines are to bring, if they are.
    #[inline]
    pub(super) fn turn(
        &mut self,
        wanted: Option<(BridgeSession, Seq)>,
        now: Nanos,
        upstream: &str,
        events: &Events,
    ) {
        match self {
            Self::Udp(_) => {}
            Self::Tcp(line) => line.turn(wanted, now, upstream, events),
            #[cfg(feature = "aeron")]
            Self::Aeron(receiver) => {
                if let Some(change) = receiver.turn(now) {
                    let place = format_args!("upstream {upstream}, line {}", receiver.channel());
                    crate::readers::bridge::line::tell(&change, place, now, events);
                }
            }
        }
    }

    /// Takes up to `batch` datagrams of UDP, `limit` of TCP, or `limit` fragments of Aeron. Returns their number.
    #[inline]
    pub(super) fn receive(
        &mut self,
        batch: &mut Batch,
        limit: usize,
        mut each: impl FnMut(Received<'_>),
    ) -> Result<usize, tapeline_wire::Error> {
        match self {
            Self::Udp(receiver) => {
                let got = receiver.receive(batch)?;
                for datagram in batch.apart() {
                    each(Received {
                        bytes: datagram.bytes,
                        at: datagram.received,
                        source: Some(datagram.source),
                    });
                }
                Ok(got)
            }
            Self::Tcp(line) => {
                Ok(line.receive(limit, |bytes, source| each(Received { bytes, at: None, source })))
            }
            #[cfg(feature = "aeron")]
            Self::Aeron(receiver) => {
                Ok(receiver.receive(limit, |bytes| each(Received { bytes, at: None, source: None })))
            }
        }
    }

    /// Asks the plant above for the time, if the line is a connection that can. Returns whether it was asked.
    pub(super) fn ask_time(&mut self, request: &ClockExchange) -> bool {
        match self {
            Self::Tcp(line) => line.ask_time(request),
            _ => false,
        }
    }

    /// Takes the answer to the last request for the time, if it has come.
    #[inline]
    pub(super) fn take_time(&mut self) -> Option<ClockExchange> {
        match self {
            Self::Tcp(line) => line.take_time(),
            _ => None,
        }
    }

    /// Whether the line has what is sent on it from now on. One over TCP is connected later, and goes on where it is told.
    pub(super) fn hears(&self) -> bool {
        match self {
            Self::Udp(_) | Self::Tcp(_) => true,
            #[cfg(feature = "aeron")]
            Self::Aeron(receiver) => receiver.is_connected(),
        }
    }

    /// Returns what to wait for, if the line has a socket.
    pub(super) fn readiness(&self) -> Option<(BorrowedFd<'_>, Interest)> {
        match self {
            Self::Udp(receiver) => Some((receiver.as_fd(), Interest::Read)),
            Self::Tcp(line) => line.readiness(),
            #[cfg(feature = "aeron")]
            Self::Aeron(_) => None,
        }
    }

    /// Whether the line must be looked at, because nothing can be waited for.
    pub(super) const fn is_polled(&self) -> bool {
        match self {
            Self::Udp(_) | Self::Tcp(_) => false,
            #[cfg(feature = "aeron")]
            Self::Aeron(_) => true,
        }
    }

    /// Returns the number of datagrams that the kernel dropped.
    pub(super) fn kernel_drops(&mut self) -> u64 {
        match self {
            Self::Udp(receiver) => receiver.ask_kernel_drops(),
            Self::Tcp(_) => 0,
            #[cfg(feature = "aeron")]
            Self::Aeron(_) => 0,
        }
    }

    /// Returns what a media driver counts for the line, if it has one.
    pub(super) fn of_driver(&self) -> Option<AeronReceivedSnapshot> {
        match self {
            Self::Udp(_) | Self::Tcp(_) => None,
            #[cfg(feature = "aeron")]
            Self::Aeron(receiver) => receiver
                .figures()
                .map(|figures| AeronReceivedSnapshot { naks: figures.naks, unread_bytes: figures.unread }),
        }
    }

    /// Returns how often the line has lost its media driver.
    pub(super) fn drivers_lost(&self) -> u64 {
        match self {
            Self::Udp(_) | Self::Tcp(_) => 0,
            #[cfg(feature = "aeron")]
            Self::Aeron(receiver) => receiver.losses(),
        }
    }

    /// Returns how often the line has lost its connection over TCP, or got none.
    pub(super) const fn connections_lost(&self) -> u64 {
        match self {
            Self::Tcp(line) => line.losses(),
            _ => 0,
        }
    }
}
