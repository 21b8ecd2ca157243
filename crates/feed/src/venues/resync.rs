//! New snapshots for books that are apart, and which books a message concerns that cannot be read.
//!
//! The first snapshot is requested at once. If the book is soon apart again, the next request waits, for a quarter of a second and then twice as long
//! each time, up to half a minute: a venue whose messages are always wrong is not flooded with requests. A snapshot that was requested on the stream and
//! has not come for half a minute, as after a refusal, is requested again, by itself: some venues refuse a whole request for one symbol in it. This
//! holds for the subscriptions at the begin of a connection too.

use tapeline_nanos::Nanos;

use super::core::{Core, letter};
use super::instrument::Join;
use super::json::Reader;
use super::{CryptoVenue, GapKind, VenueGap, snapshot_symbol};
use super::{binance, bitmex, coinbase, kraken};

/// The first and the longest pause between two requests for the snapshot of one book.
const FIRST_PAUSE_NS: u64 = 250_000_000;
const LONGEST_PAUSE_NS: u64 = 30_000_000_000;
/// The pause between two requests for snapshots that have not come.
const LATE_PAUSE_NS: u64 = 250_000_000;

/// The requests for the snapshots of one book.
#[derive(Debug, Default)]
pub(super) struct Resync {
    /// `true` if a snapshot is to be requested as soon as the pause has passed.
    is_owed: bool,
    /// The pause after the last request, and the time at which it ends.
    pause_ns: u64,
    earliest: Nanos,
    /// `true` if the snapshot comes with a subscription whose time is not known yet.
    is_subscribed: bool,
    /// `true` if the book was joined on this connection: its subscription was accepted.
    was_joined: bool,
}

impl Resync {
    /// Returns `true` if a snapshot is to be requested now. A clock that was set back by more than the longest pause ends the pause.
    fn is_due(&self, now: Nanos) -> bool {
        self.is_owed && (now >= self.earliest || self.earliest.0 - now.0 > LONGEST_PAUSE_NS)
    }

    /// Returns `true` if what was requested should have come, or if the clock was set back.
    const fn is_late(&mut self, now: Nanos) -> bool {
        if self.is_subscribed {
            (self.is_subscribed, self.earliest) = (false, now);
        }
        now.0.abs_diff(self.requested_ns()) >= LONGEST_PAUSE_NS
    }

    /// When the snapshot was last requested.
    const fn requested_ns(&self) -> u64 {
        self.earliest.0.saturating_sub(self.pause_ns)
    }

    fn requested(&mut self, now: Nanos) {
        let has_rested = now.0.saturating_sub(self.earliest.0) > LONGEST_PAUSE_NS;
        self.pause_ns =
            if has_rested { 0 } else { self.pause_ns * 2 }.clamp(FIRST_PAUSE_NS, LONGEST_PAUSE_NS);
        self.earliest = Nanos(now.0.saturating_add(self.pause_ns));
        (self.is_owed, self.is_subscribed) = (false, false);
    }

    /// The book is joined.
    pub(super) const fn done(&mut self) {
        (self.is_owed, self.is_subscribed, self.was_joined) = (false, false, true);
    }
}

impl Core {
    /// The subscriptions of a new connection request the snapshots of all books, if they come on the stream.
    pub(super) fn subscribed(&mut self) {
        if self.settings.venue == CryptoVenue::Binance {
            return;
        }
        for it in &mut self.instruments {
            it.join = Join::Requested;
            it.resync.is_subscribed = true;
        }
        self.owes_requests = true;
    }

    /// Sets a book apart, and requests its snapshot, after a pause if one was requested just now.
    pub(super) fn resync(&mut self, at: usize) {
        let it = &mut self.instruments[at];
        (it.join, it.resync.is_owed) = (Join::Apart, true);
        self.owes_requests = true;
        self.request_due(self.arrived);
    }

    /// Requests the snapshots whose pause has passed; without a time, all.
    pub(super) fn request_due(&mut self, now: Option<Nanos>) {
        if !std::mem::take(&mut self.owes_requests) {
            return;
        }
        // Binance's snapshots come by HTTPS: who fetches them says when one has failed.
        let is_awaited = self.settings.venue != CryptoVenue::Binance;
        let (mut due, mut late) = (Vec::new(), None::<(u64, usize)>);
        let asks_late = |now: Nanos| is_awaited && now.0.abs_diff(self.late_requested.0) >= LATE_PAUSE_NS;
        for (at, it) in self.instruments.iter_mut().enumerate() {
            if now.map_or(it.resync.is_owed, |now| it.resync.is_due(now)) {
                due.push(at);
            } else if let Some(now) = now
                && is_awaited
                && it.join == Join::Requested
                && it.resync.is_late(now)
                && asks_late(now)
            {
                // The one that has waited for longest: books that never come do not keep others back.
                let waiting = (it.resync.requested_ns(), at);
                late = Some(late.map_or(waiting, |late| late.min(waiting)));
            }
            self.owes_requests |= it.resync.is_owed || is_awaited && it.join == Join::Requested;
        }
        self.request_again(&due, now, false);
        if let Some((_, at)) = late {
            self.late_requested = now.unwrap_or_default();
            // Its whole subscription may have been refused.
            self.request_again(&[at], now, !self.instruments[at].resync.was_joined);
        }
    }

    /// Requests the snapshots of these books, and their trades too where the stream has both in one request.
    fn request_again(&mut self, books: &[usize], now: Option<Nanos>, with_trades: bool) {
        if books.is_empty() {
            return;
        }
        for at in books {
            let it = &mut self.instruments[*at];
            it.resync.requested(now.unwrap_or_default());
            it.join = Join::Requested;
        }
        // With time these may be late.
        self.owes_requests |= self.settings.venue != CryptoVenue::Binance;
        match self.settings.venue {
            CryptoVenue::Binance => binance::resubscribe(self, books),
            CryptoVenue::Coinbase => coinbase::resubscribe(self, books, with_trades),
            CryptoVenue::Kraken => kraken::resubscribe(self, books),
            CryptoVenue::Bitmex => bitmex::resubscribe(self, books, with_trades),
        }
    }

    /// Handles a message that could not be read or applied: sets the books apart that it may concern, and requests their snapshots. The joined ones
    /// among them are reported as a gap.
    #[cold]
    pub(super) fn unreadable(&mut self, bytes: &[u8]) {
        if matches!(self.kind, letter::TRADE | letter::QUOTE) {
            return;
        }
        let (mut joined, mut count) = (None, 0);
        for at in self.concerned(bytes) {
            let it = &mut self.instruments[at];
            if it.is_joined() {
                it.counters.gaps += 1;
                self.counters.gaps += 1;
                joined = Some(at);
                count += 1;
            }
            (it.join, it.resync.is_owed) = (Join::Apart, true);
            self.owes_requests = true;
        }
        if let Some(at) = joined {
            let symbol = (count == 1).then(|| self.instruments[at].symbol.clone());
            self.report(VenueGap { symbol, kind: GapKind::Unreadable });
        }
        self.request_due(self.arrived);
    }

    /// Returns the books that an unreadable message may concern: those that it names; all if the text is damaged or names none. On Binance a book
    /// that is not named is left alone, because the next number shows the gap, and the snapshots of all books would take minutes.
    fn concerned(&self, bytes: &[u8]) -> Vec<usize> {
        if let Some(symbol) = snapshot_symbol(bytes) {
            return self.index_of(symbol).into_iter().collect();
        }
        let mut is_named = vec![false; self.instruments.len()];
        let mut reader = Reader::new(bytes);
        let read = reader.strings(&mut |text| {
            if let Some(at) = self.index_of(text) {
                is_named[at] = true;
            }
        });
        let is_whole = read.and_then(|()| reader.end()).is_ok() && is_named.contains(&true);
        let are_all = !is_whole && self.settings.venue != CryptoVenue::Binance;
        (0..is_named.len()).filter(|at| are_all || is_named[*at]).collect()
    }
}
