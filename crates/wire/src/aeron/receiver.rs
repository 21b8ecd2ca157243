//! A subscription: the datagrams of all publishers of one stream.

use std::ffi::CString;

use rusteron_client::{
    Aeron, AeronAsyncAddSubscription, AeronCError, AeronFragmentClosureAssembler, AeronHeader,
    AeronSubscription, Handlers,
};
use tapeline_nanos::Nanos;

use super::connection::{AeronConnection, AeronStream, text};
use super::{AeronChange, AeronOptions};
use crate::Error;
use crate::impls::shown;

/// What a media driver counts for a subscription, of the senders that are there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AeronReceived {
    /// NAKs sent: requests to send again what was lost.
    pub naks: u64,
    /// Bytes that have arrived and are not read, with those that are missing among them.
    pub unread: u64,
}

/// A subscription to one stream, which opens by itself and again.
pub struct AeronReceiver {
    connection: AeronConnection<AeronSubscription>,
    assembler: AeronFragmentClosureAssembler,
    channel: String,
}

impl AeronStream for AeronSubscription {
    type Pending = AeronAsyncAddSubscription;

    fn add(client: &Aeron, channel: &CString, stream: i32) -> Result<Self::Pending, AeronCError> {
        client.async_add_subscription(channel, stream, Handlers::NONE, Handlers::NONE)
    }

    fn poll(pending: &Self::Pending) -> Result<Option<Self>, AeronCError> {
        pending.poll()
    }

    fn is_closed(&self) -> bool {
        Self::is_closed(self)
    }

    fn registration(&self) -> Result<i64, AeronCError> {
        Ok(self.get_constants()?.registration_id())
    }
}

impl AeronReceiver {
    /// Creates a receiver that is not connected yet.
    ///
    /// # Errors
    /// The channel or the folder contains a zero byte.
    pub fn new(options: &AeronOptions) -> Result<Self, Error> {
        let failed = |error: AeronCError| Error::Aeron {
            what: format!("use {}", options.channel),
            cause: text(error.get_last_err_message()),
        };
        Ok(Self {
            connection: AeronConnection::new(options)?,
            assembler: AeronFragmentClosureAssembler::new().map_err(failed)?,
            channel: options.channel.clone(),
        })
    }

    /// Connects, keeps the connection, and finds out when it is lost. Call at least once a second. Costs a comparison most of the time.
    #[inline]
    pub fn turn(&mut self, now: Nanos) -> Option<AeronChange> {
        self.connection.turn(now)
    }

    /// Passes on the datagrams that have arrived, from up to `limit` fragments. Returns the number of fragments: fewer than `limit` if all
    /// was read.
    #[inline]
    pub fn receive<F: FnMut(&[u8])>(&mut self, limit: usize, mut each: F) -> usize {
        let Some(subscription) = self.connection.stream() else { return 0 };
        let pass = |each: &mut F, datagram: &[u8], _: AeronHeader| each(datagram);
        // A failed poll has nothing; if the subscription is closed, the next turn finds that out.
        self.assembler
            .poll(subscription, &mut each, pass, limit)
            .map_or(0, |fragments| fragments.unsigned_abs() as usize)
    }

    /// Whether the driver has opened the stream.
    pub const fn is_open(&self) -> bool {
        self.connection.stream().is_some()
    }

    /// Whether a sender is there.
    pub fn is_connected(&self) -> bool {
        self.connection.stream().is_some_and(AeronSubscription::is_connected)
    }

    /// Returns what the driver counts for the stream; `None` while it is not open. Reads all counters of the driver: for once a second.
    pub fn figures(&self) -> Option<AeronReceived> {
        let counters = self.connection.counters()?;
        Some(AeronReceived { naks: counters.naks_sent(), unread: counters.unread() })
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

shown!(AeronReceiver, it => channel: it.channel, losses: it.losses());
