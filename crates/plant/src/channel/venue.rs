//! The channel of a crypto venue's stream: its connection instead of lines, and gaps by the venue's own rules.
//!
//! The channel numbers the venue's messages from 1 in the order of arrival. Missing messages take one number, however many they are: venues do not
//! say. The channel is live while it is connected and every book is joined with its snapshot, recovering while a book waits for a snapshot, and stale
//! without a connection. A joined book is right again, so a gap makes data suspect only until then.

use tapeline_feed::normalise::Normaliser;
use tapeline_feed::venues::{VenueFeed, VenueGap, VenueSettings};
use tapeline_measure::Nanos;

use super::Channel;
use crate::publish::{Publish, Refused};
use crate::sequencer::{Sequencer, Time};
use crate::state::{Seen, State};

/// The connection to a venue.
#[derive(Debug, Default)]
pub struct VenueConnection {
    /// The number of the last message.
    sequence: u64,
    is_connected: bool,
    connections: u64,
}

impl VenueConnection {
    /// Returns `true` while the feed is connected to the venue.
    #[must_use]
    pub const fn is_connected(&self) -> bool {
        self.is_connected
    }

    /// Returns the number of connections so far; each after the first is a reconnect.
    #[must_use]
    pub const fn connections(&self) -> u64 {
        self.connections
    }
}

impl Channel {
    /// Sets the symbols and limits of a venue's feed. No effect for other protocols.
    pub fn follow_venue(&mut self, settings: VenueSettings) {
        if let Normaliser::Venue(feed) = &mut self.stage.normaliser {
            **feed = VenueFeed::new(settings);
            self.venue = Some(VenueConnection::default());
        }
    }

    /// Returns the venue's feed, for its requests; `None` for other protocols.
    pub fn venue(&mut self) -> Option<&mut VenueFeed> {
        match &mut self.stage.normaliser {
            Normaliser::Venue(feed) => Some(feed),
            _ => None,
        }
    }

    /// Returns the connection and the feed of a venue, to look at; `None` for other protocols.
    #[must_use]
    pub fn venue_view(&self) -> Option<(&VenueConnection, &VenueFeed)> {
        match &self.stage.normaliser {
            Normaliser::Venue(feed) => Some((self.venue.as_ref()?, feed)),
            _ => None,
        }
    }

    /// Begins a connection: the feed [requests](VenueFeed::next_request) its subscriptions.
    pub fn venue_connected(&mut self) {
        if let Some(connection) = &mut self.venue {
            connection.is_connected = true;
            connection.connections += 1;
        }
        if let Some(feed) = self.venue() {
            feed.connected();
        }
    }

    /// Ends a connection: the channel is stale, and messages are missing.
    ///
    /// # Errors
    /// As [`datagram`](Self::datagram).
    pub fn venue_disconnected<P: Publish>(
        &mut self,
        time: &impl Time,
        to: &mut Sequencer<P>,
    ) -> Result<(), Refused> {
        let Some(connection) = &mut self.venue else { return Ok(()) };
        let was_connected = std::mem::replace(&mut connection.is_connected, false);
        if let Some(feed) = self.venue() {
            feed.disconnected();
        }
        if was_connected && self.stage.state != State::Initial {
            let missing = self.next_venue_sequence();
            self.stage.gap(missing, missing, time, to)?;
            self.stage.see(Seen::Silent, missing, time, to)?;
        }
        Ok(())
    }

    fn next_venue_sequence(&mut self) -> u64 {
        let Some(connection) = &mut self.venue else { return 0 };
        connection.sequence += 1;
        connection.sequence
    }

    /// Handles a message of the venue, which arrived at `wire`. `told` gets each gap that the message shows. A malformed message is counted, and is a gap
    /// of the books that it may concern; then the result is `false`.
    ///
    /// # Errors
    /// As [`datagram`](Self::datagram).
    pub fn venue_message<P: Publish>(
        &mut self,
        bytes: &[u8],
        wire: Nanos,
        time: &impl Time,
        to: &mut Sequencer<P>,
        mut told: impl FnMut(VenueGap),
    ) -> Result<bool, Refused> {
        let mut sequence = self.next_venue_sequence();
        self.stage.counters.messages += 1;
        self.stage.counters.message_bytes += bytes.len() as u64;
        if let Some(feed) = self.venue() {
            feed.arrives(wire);
        }
        let applied = self.stage.normaliser.apply(bytes);
        while let Some(gap) = self.venue().and_then(VenueFeed::next_gap) {
            self.stage.gap(sequence, sequence, time, to)?;
            // One number stands for all.
            let counters = &mut self.stage.counters;
            counters.missing = counters.missing.saturating_add(gap.kind.missing() - 1);
            self.stage.see(Seen::Hole, sequence, time, to)?;
            told(gap);
            sequence = self.next_venue_sequence();
        }
        let seen = self.seen(wire);
        if seen == Seen::Whole {
            self.stage.damaged_from = None;
        }
        if seen != Seen::Silent {
            self.stage.see(seen, sequence, time, to)?;
        }
        // Messages may be longer than a tick: they are never a tick's source.
        let source = &[];
        let Ok(applied) = applied else {
            self.stage.malformed(sequence, source, wire, time, to)?;
            return Ok(false);
        };
        self.stage.applied(&applied, sequence, source, wire, time, to)?;
        while let Some(applied) = self.stage.normaliser.more() {
            self.stage.applied(&applied, sequence, source, wire, time, to)?;
        }
        Ok(true)
    }

    /// Returns the condition of a venue's channel.
    pub(super) fn venue_seen(&self, connection: &VenueConnection) -> Seen {
        let is_whole = match &self.stage.normaliser {
            Normaliser::Venue(feed) => feed.is_whole(),
            _ => true,
        };
        match (connection.is_connected, is_whole) {
            (false, _) => Seen::Silent,
            (true, false) => Seen::Hole,
            (true, true) => Seen::Whole,
        }
    }
}
