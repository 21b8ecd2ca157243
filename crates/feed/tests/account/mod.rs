//! Keeps account of a feed: every message that the exchange sent is delivered once, in order and as it was; or lies in a
//! gap that was reported; or was lost behind everything that arrived of its session, which nobody can know of. Anything
//! else is a loss in silence.

#![allow(dead_code, reason = "the tests of arbitration and of whole plants each use some of it")]

mod epoch;
pub(crate) mod script;

use std::collections::BTreeMap;

pub(crate) use epoch::Epoch;
use epoch::Word;
use tapeline_feed::moldudp64::{MoldPacket, parse};

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
    /// Whether nothing has been delivered of the present epoch.
    just_begun: bool,
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
    /// Messages that were taken for those of the numbering before, as they fitted in a hole of it.
    pub(crate) mistaken: u64,
    /// Messages of numberings of which too little came to tell; they are among those beyond.
    pub(crate) untold: u64,
    /// How often a session or a numbering was believed in that there is not.
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
        if let MoldPacket::Data(data) = packet {
            for (sequence, bytes) in data.messages() {
                self.lies.entry((session.clone(), sequence)).or_default().push(bytes.to_vec());
            }
        } else {
            self.lies.entry((session, 0)).or_default();
        }
    }

    /// A packet on a line tells of the messages of an epoch, `from` to before `end`. Of one that is over the receiver is not
    /// interested any more, and packets of one that is to come may be strays.
    ///
    /// A heartbeat may be of more `epochs` than one: of the present one, if it can be.
    pub(crate) fn names(&mut self, epochs: &[usize], line: usize, packet: &[u8], (from, end): (u64, u64)) {
        let here = epochs.iter().find(|epoch| self.at == Some(**epoch));
        let Some(&epoch) = here.or(epochs.last()) else { return };
        let present = self.at.is_none_or(|at| at == epoch);
        let at = self.at.filter(|at| self.epochs[*at].session == self.epochs[epoch].session);
        let back = at.is_some_and(|at| from < self.epochs[at].accounted);
        let contradicts = at.is_some_and(|at| self.epochs[at].delivered.range(from..end).next().is_some());
        let again = epoch
            .checked_sub(1)
            .is_some_and(|before| self.epochs[before].session == self.epochs[epoch].session);
        let told = &mut self.epochs[epoch];
        told.heard_of = true;
        // A line that is far behind brings what is over.
        if !present && (told.next.is_some() || self.at.is_some_and(|at| epoch < at)) {
            return;
        }
        told.arrived.extend(from..end);
        let word = Word { line, packet: packet.to_vec(), from, end, back };
        match (present, again) {
            (true, false) => told.named_end = told.named_end.max(end),
            // Soon after numbers began again, what is far ahead has to be said three times.
            (true, true) => told.names_ahead(word),
            (false, _) => told.names_first(word, at.is_some(), contradicts, back),
        }
    }

    /// Whether damaged datagrams said what was not sent.
    pub(crate) fn is_lied_to(&self) -> bool {
        !self.lies.is_empty()
    }

    /// The receiver says that a session begins; or that one goes on, where it had believed in another.
    pub(crate) fn reset(&mut self, session: &str) {
        if self.deceived && self.at.is_some_and(|at| self.epochs[at].session == session) {
            // Back to where it was, if what comes does not say otherwise.
            (self.deceived, self.just_begun) = (false, true);
            return;
        }
        let after = self.at.map_or(0, |at| at + 1);
        let to_come = |(at, epoch): &(usize, &Epoch)| {
            let again = self.at.is_some_and(|at| self.epochs[at].session == session) && !self.deceived;
            epoch.session == session && epoch.next.is_none() && (!again || (*at >= after && epoch.heard_of))
        };
        let named = || self.epochs.iter().enumerate().filter(|(_, epoch)| epoch.session == session);
        let first = if self.joins && self.at.is_none() { 0 } else { 1 };
        let to = named().find(to_come).map(|(at, _)| at);
        let Some(to) = to else {
            // Damage made it leave, or begin again.
            let back = named().rfind(|(_, epoch)| epoch.next.is_some()).map(|(at, _)| at);
            match back {
                Some(at) if self.is_lied_to() || self.at != Some(at) => {
                    let again = !std::mem::take(&mut self.deceived) && self.at == Some(at);
                    if again {
                        self.deceptions += 1;
                        self.epochs[at].next = Some(1);
                    }
                    self.at = Some(at);
                }
                None if self.lies.keys().any(|(named, _)| named == session) => {
                    self.deceived = true;
                    self.deceptions += 1;
                }
                _ => self.wrong(format!("a reset to session {session:?}, which there is not")),
            }
            return;
        };
        self.deceived = false;
        self.epochs[to].next.get_or_insert(first);
        self.just_begun = self.at.replace(to).is_some();
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
        if let (Some(at), true) = (self.at, std::mem::take(&mut self.just_begun))
            && !self.epochs[at].sent(sequence, bytes)
            && let Some(to) = self.later(at, sequence, bytes)
        {
            // All of the epoch in between was lost.
            self.epochs[to].next = self.epochs[at].next.take();
            self.epochs[to].accounted = std::mem::take(&mut self.epochs[at].accounted);
            self.at = Some(to);
        }
        let Some((at, new)) = self.covers(sequence, sequence) else { return };
        let epoch = &self.epochs[at];
        if epoch.sent(sequence, bytes) {
            self.delivered += new;
            self.epochs[at].delivered.insert(sequence);
            return;
        }
        let lies = self.lies.get(&(epoch.session.clone(), sequence));
        if lies.is_some_and(|lies| lies.iter().any(|lie| lie == bytes)) {
            self.lied += if sequence < epoch.end() { new } else { 0 };
        } else if let Some(to) = self.later(at, sequence, bytes) {
            self.mistaken += 1;
            self.epochs[to].mistaken.insert(sequence);
        } else if self.is_lied_to() && self.epochs[..at].iter().any(|epoch| epoch.sent(sequence, bytes)) {
            // What contradicts a damaged copy speaks for another numbering.
            self.lied += if sequence < self.epochs[at].end() { new } else { 0 };
        } else {
            self.wrong(format!("message {sequence} is {bytes:02x?}, which was never sent under that number"));
        }
    }

    /// The epoch in which the present session sent a message, if it begins again after the present epoch.
    fn later(&self, at: usize, sequence: u64, bytes: &[u8]) -> Option<usize> {
        let session = &self.epochs[at].session;
        let after = self.epochs.iter().enumerate().skip(at + 1);
        after
            .take_while(|(_, epoch)| epoch.session == *session)
            .find(|(_, epoch)| epoch.sent(sequence, bytes))
            .map(|(to, _)| to)
    }

    /// The receiver is told that messages are missing.
    pub(crate) fn gap(&mut self, first: u64, last: u64) {
        if self.deceived {
            return;
        }
        let Some((at, new)) = self.covers(first, last) else { return };
        let end = self.epochs[at].end();
        // Who does not see that numbers begin again counts on.
        let session = &self.epochs[at].session;
        let counts_on = |epoch: &Epoch| epoch.session == *session && epoch.heard_of && last < epoch.end();
        if last >= end && self.lies.is_empty() && !self.epochs[at..].iter().any(counts_on) {
            self.wrong(format!("gap {first} to {last}, but {} is the last message", end - 1));
        }
        let first = (last + 1).saturating_sub(new);
        self.reported += (last + 1).min(end).saturating_sub(first);
    }

    /// The messages `first` to `last` of the present epoch are accounted for, which must be next; how many for the first time.
    fn covers(&mut self, first: u64, last: u64) -> Option<(usize, u64)> {
        let Some(at) = self.at else {
            self.wrong(format!("{first} to {last} without a session"));
            return None;
        };
        let next = self.epochs[at].next.replace(last + 1).filter(|next| *next > 0).unwrap_or(first);
        if first != next || last < first {
            self.wrong(format!("{first} to {last} in place of {next}"));
        }
        let accounted = &mut self.epochs[at].accounted;
        let new = (last + 1).saturating_sub(first.max(*accounted));
        *accounted = (*accounted).max(last + 1);
        Some((at, new))
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
            self.epochs[at].close();
            let epoch = &self.epochs[at];
            let (session, end, named_end) = (epoch.session.clone(), epoch.end(), epoch.named_end);
            // One who joins where nothing comes any more has missed nothing.
            let next = epoch.next.unwrap_or(1);
            let silent =
                |sequence: &u64| !epoch.mistaken.contains(sequence) && epoch.arrived.contains(sequence);
            let unseen = epoch.next.is_none() && !epoch.mistaken.is_empty();
            let lost = match unseen {
                // Nobody could see where it began; but what came of it must be there.
                true => (next..named_end).find(silent),
                // Who believes in what there is not has been told so by damage.
                false if self.deceptions > 0 => None,
                false => {
                    (next.max(1)..named_end).find(|sequence| next > 0 && !epoch.mistaken.contains(sequence))
                }
            };
            if epoch.next.is_none() && named_end == 0 {
                self.untold += epoch.arrived.len() as u64;
            }
            self.beyond += match unseen {
                true => end - 1 - epoch.mistaken.len() as u64,
                false => end.saturating_sub(next.max(named_end).max(epoch.accounted).max(1)),
            };
            if let Some(lost) = lost {
                self.wrong(format!(
                    "SILENT: messages {lost} to {} of session {session:?} neither delivered nor reported",
                    named_end - 1
                ));
            }
        }
    }

    fn wrong(&mut self, what: String) {
        self.wrong.push(what);
    }
}
