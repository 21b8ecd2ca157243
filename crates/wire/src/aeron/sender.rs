//! A publication: datagrams out, back pressure as an outcome.

use std::ffi::CString;

use rusteron_client::{
    Aeron, AeronAsyncAddExclusivePublication, AeronCError, AeronExclusivePublication, AeronOfferError,
};
use tapeline_nanos::Nanos;

use super::connection::{AeronConnection, AeronStream};
use super::{AeronChange, AeronOptions};
use crate::Error;
use crate::impls::shown;

/// Attempts for one datagram while Aeron turns to its next term.
const ATTEMPTS: usize = 4;

/// The result of a send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct AeronSent {
    /// Number of datagrams that Aeron took, or that nobody listens for.
    pub count: usize,
    /// Number of datagrams that flow control refused.
    pub back_pressured: usize,
    /// Number of datagrams refused for another reason: no driver, a closed stream, a datagram longer than the channel's terms allow.
    pub refused: usize,
}

/// What a media driver counts for a publication.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AeronSending {
    /// NAKs received: requests to send again what was lost.
    pub naks: u64,
    /// Bytes that the driver may send beyond what it has sent: the window of the receiver that sets the pace, as flow control has it.
    pub window: u64,
}

/// An exclusive publication of one stream, which opens by itself and again.
pub struct AeronSender {
    connection: AeronConnection<AeronExclusivePublication>,
    channel: String,
}

impl AeronStream for AeronExclusivePublication {
    type Pending = AeronAsyncAddExclusivePublication;

    fn add(client: &Aeron, channel: &CString, stream: i32) -> Result<Self::Pending, AeronCError> {
        client.async_add_exclusive_publication(channel, stream)
    }

    fn poll(pending: &Self::Pending) -> Result<Option<Self>, AeronCError> {
        pending.poll()
    }

    fn is_closed(&self) -> bool {
        Self::is_closed(self)
    }

    fn registration(&self) -> Result<i64, AeronCError> {
        Ok(self.get_constants()?.registration_id)
    }
}

impl AeronSender {
    /// Creates a sender that is not connected yet.
    ///
    /// # Errors
    /// The channel or the folder contains a zero byte.
    pub fn new(options: &AeronOptions) -> Result<Self, Error> {
        Ok(Self { connection: AeronConnection::new(options)?, channel: options.channel.clone() })
    }

    /// Connects, keeps the connection, and finds out when it is lost. Call at least once a second. Costs a comparison most of the time.
    #[inline]
    pub fn turn(&mut self, now: Nanos) -> Option<AeronChange> {
        self.connection.turn(now)
    }

    /// Offers each datagram once, in order, without waiting. What is not taken is not kept. Allocates nothing.
    pub fn send_many<'a>(&mut self, datagrams: impl Iterator<Item = &'a [u8]>) -> AeronSent {
        let mut sent = AeronSent::default();
        let Some(publication) = self.connection.stream() else {
            sent.refused = datagrams.count();
            return sent;
        };
        let mut is_over = false;
        for datagram in datagrams {
            match offer(publication, datagram) {
                Ok(_) | Err(AeronOfferError::NotConnected) => sent.count += 1,
                Err(AeronOfferError::BackPressured | AeronOfferError::AdminAction) => {
                    sent.back_pressured += 1;
                }
                Err(error) => {
                    is_over |= matches!(error, AeronOfferError::MaxPositionExceeded);
                    sent.refused += 1;
                }
            }
        }
        if is_over {
            self.connection.close();
        }
        sent
    }

    /// Whether the driver has opened the stream.
    pub const fn is_open(&self) -> bool {
        self.connection.stream().is_some()
    }

    /// Whether a receiver is there.
    pub fn is_heard(&self) -> bool {
        self.connection.stream().is_some_and(AeronExclusivePublication::is_connected)
    }

    /// Returns what the driver counts for the stream; `None` while it is not open, or if it stays on this host (`aeron:ipc`). Reads all counters of
    /// the driver: for once a second.
    pub fn figures(&self) -> Option<AeronSending> {
        let counters = self.connection.counters()?;
        Some(AeronSending { naks: counters.naks_received(), window: counters.window()? })
    }

    /// Returns how often the driver or the stream was lost.
    pub fn losses(&self) -> u64 {
        self.connection.losses()
    }

    /// Returns the channel.
    pub fn channel(&self) -> &str {
        &self.channel
    }
}

fn offer(publication: &AeronExclusivePublication, datagram: &[u8]) -> Result<i64, AeronOfferError> {
    let mut result = publication.offer(datagram);
    for _ in 1..ATTEMPTS {
        if !matches!(result, Err(AeronOfferError::AdminAction)) {
            break;
        }
        result = publication.offer(datagram);
    }
    result
}

shown!(AeronSender, it => channel: it.channel, losses: it.losses());
