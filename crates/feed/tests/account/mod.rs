//! Keeps account of a feed: every message that the exchange sent is delivered once, in order and as it was; or lies in a
//! gap that was reported; or was lost behind everything that arrived of its session, which nobody can know of. Anything
//! else is a loss in silence.

#![allow(dead_code, reason = "the tests of arbitration and of whole plants each use some of it")]

pub(crate) mod script;

use std::collections::BTreeMap;

use tapeline_feed::moldudp64::{Packet, parse};

/// One numbering of the exchange's: a session, or what came between two resets in one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Epoch {
    pub(crate) session: String,
    /// The messages, from number 1 on.
    pub(crate) messages: Vec<Vec<u8>>,
    /// One more than the last message that the receiver can know of.
    pub(crate) named_end: u64,
    /// The line and the bytes of a single packet, and what it says of that.
    stray: Option<(usize, Vec<u8>, u64)>,
    /// The message that comes next, once the receiver has heard that the epoch begins; 0 where it may be any.
    next: Option<u64>,
}

impl Epoch {
    pub(crate) fn new(session: String) -> Self {
        Self { session, ..Self::default() }
    }

    /// One more than the number of the last message.
    pub(crate) fn end(&self) -> u64 {
        self.messages.len() as u64 + 1
    }
}

/// Where the messages went.
#[derive(Clone, Debug, Default)]
pub(crate) struct Account {
    pub(crate) epochs: Vec<Epoch>,
    /// What damaged datagrams say that was not sent.
    lies: BTreeMap<(String, u64), Vec<Vec<u8>>>,
    /// The epoch that is being delivered.
    at: Option<usize>,
    /// Whether the receiver believes in a session that only damaged datagrams name.
    deceived: bool,
    /// Whether the first epoch may begin anywhere.
    pub(crate) joins: bool,
    /// Messages that were delivered as they were sent.
    pub(crate) delivered: u64,
    /// Messages in whose place a damaged one was delivered, as nobody could tell.
    pub(crate) lied: u64,
    /// Messages in gaps that were reported.
    pub(crate) reported: u64,
    /// Messages lost behind everything that arrived of their session.
    pub(crate) beyond: u64,
    /// How often a session was believed in that there is not.
    pub(crate) deceptions: u64,
    /// What must not be.
    pub(crate) wrong: Vec<String>,
}

impl Account {
    pub(crate) fn new(epochs: Vec<Epoch>) -> Self {
        Self { epochs, ..Self::default() }
    }

    /// A damaged datagram arrives, which may be believed.
    pub(crate) fn lie(&mut self, datagram: &[u8]) {
        let Ok(packet) = parse(datagram) else { return };
        let session = packet.session().to_string();
        if let Packet::Data(data) = packet {
            for (sequence, bytes) in data.messages() {
                self.lies.entry((session.clone(), sequence)).or_default().push(bytes.to_vec());
            }
        } else {
            self.lies.entry((session, 0)).or_default();
        }
    }

    /// A packet on a line tells that messages of an epoch exist, up to before `end`. Of one that is over the receiver is not
    /// interested any more, and a packet of one that is to come may be a stray: the same once more proves nothing.
    pub(crate) fn names(&mut self, epoch: usize, line: usize, packet: &[u8], end: u64) {
        let present = self.at.is_none_or(|at| at == epoch);
        let Epoch { named_end, stray, next, .. } = &mut self.epochs[epoch];
        let same = |stray: &(usize, Vec<u8>, u64)| stray.0 == line && stray.1 == packet;
        // A line that is far behind brings what is over.
        if !present && (next.is_some() || self.at.is_some_and(|at| epoch < at)) {
            return;
        }
        if !present && stray.as_ref().is_none_or(same) {
            *stray = Some((line, packet.to_vec(), end));
            return;
        }
        *named_end = end.max(*named_end).max(stray.take().map_or(0, |(_, _, end)| end));
    }

    /// Whether damaged datagrams said what was not sent.
    pub(crate) fn is_lied_to(&self) -> bool {
        !self.lies.is_empty()
    }

    /// The receiver says that a session begins; or that one goes on, where it had believed in another.
    pub(crate) fn reset(&mut self, session: &str) {
        let begun = |epoch: &Epoch| epoch.next.is_some();
        let named = self.epochs.iter().enumerate().filter(|(_, epoch)| epoch.session == session);
        let Some(to) = named.min_by_key(|(_, epoch)| begun(epoch)).map(|(at, _)| at) else {
            if self.lies.keys().any(|(named, _)| named == session) {
                self.deceived = true;
                self.deceptions += 1;
            } else {
                self.wrong(format!("a reset to session {session:?}, which there is not"));
            }
            return;
        };
        self.deceived = false;
        let first = if self.joins && self.at.is_none() { 0 } else { 1 };
        self.epochs[to].next.get_or_insert(first);
        self.at = Some(to);
    }

    /// The receiver gets a message.
    pub(crate) fn message(&mut self, sequence: u64, bytes: &[u8]) {
        if self.deceived {
            let lies = self.lies.iter().filter(|((_, number), _)| *number == sequence);
            if !lies.flat_map(|(_, lies)| lies).any(|lie| lie == bytes) {
                self.wrong(format!("message {sequence} of a session that there is not"));
            }
            return;
        }
        let Some(at) = self.covers(sequence, sequence) else { return };
        let epoch = &self.epochs[at];
        let sent = usize::try_from(sequence).ok().and_then(|place| epoch.messages.get(place.checked_sub(1)?));
        if sent.is_some_and(|sent| sent == bytes) {
            self.delivered += 1;
            return;
        }
        let lies = self.lies.get(&(epoch.session.clone(), sequence));
        if lies.is_some_and(|lies| lies.iter().any(|lie| lie == bytes)) {
            self.lied += u64::from(sent.is_some());
        } else {
            self.wrong(format!("message {sequence} is {bytes:02x?}, which was never sent under that number"));
        }
    }

    /// The receiver is told that messages are missing.
    pub(crate) fn gap(&mut self, first: u64, last: u64) {
        if self.deceived {
            return;
        }
        let Some(at) = self.covers(first, last) else { return };
        let end = self.epochs[at].end();
        if last >= end && self.lies.is_empty() {
            self.wrong(format!("gap {first} to {last}, but {} is the last message", end - 1));
        }
        self.reported += (last + 1).min(end).saturating_sub(first);
    }

    /// The messages `first` to `last` of the present epoch are accounted for, which must be next.
    fn covers(&mut self, first: u64, last: u64) -> Option<usize> {
        let Some(at) = self.at else {
            self.wrong(format!("{first} to {last} without a session"));
            return None;
        };
        let next = self.epochs[at].next.replace(last + 1).filter(|next| *next > 0).unwrap_or(first);
        if first != next || last < first {
            self.wrong(format!("{first} to {last} in place of {next}"));
        }
        Some(at)
    }

    /// The receiver is told that the session is over.
    pub(crate) fn end_of_session(&mut self, next: u64) {
        let known = self.at.and_then(|at| self.epochs[at].next);
        if !self.deceived && known.is_some_and(|known| known > 0 && known != next) {
            self.wrong(format!("the session's end at {next}, when {known:?} was to come"));
        }
    }

    /// Nothing more comes: all must be accounted for.
    pub(crate) fn finish(&mut self) {
        for at in 0..self.epochs.len() {
            let epoch = &self.epochs[at];
            let (session, end, named_end) = (epoch.session.clone(), epoch.end(), epoch.named_end);
            // One who joins where nothing comes any more has missed nothing.
            let next = epoch.next.unwrap_or(1);
            if next > 0 && next < named_end {
                self.wrong(format!(
                    "SILENT: messages {next} to {} of session {session:?} neither delivered nor reported",
                    named_end - 1
                ));
            }
            self.beyond += end.saturating_sub(next.max(named_end).max(1));
        }
    }

    fn wrong(&mut self, what: String) {
        self.wrong.push(what);
    }
}
