//! The epochs of a journal: which session numbered its ticks, and from which sequence on. A file `bridge-epochs` beside the segments has one
//! line for each: the session and its first sequence.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tapeline_plant::Seq;
use tapeline_plant::bridge::{BridgeSession, Epoch};

use crate::Error;

/// The file's name, in the folder of a journal.
pub const FILE: &str = "bridge-epochs";
/// Older epochs are forgotten: a plant below that has missed so many starts of the plant above begins with images.
const MOST: usize = 64;

/// The epochs of a plant, oldest first; of a plant without a journal only the present one.
#[derive(Debug, Default)]
pub struct Epochs {
    file: Option<PathBuf>,
    /// Each session with its first sequence.
    known: Vec<(BridgeSession, Seq)>,
}

/// The place of a sequence that a plant below asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EpochFound {
    /// In the present epoch.
    Present,
    /// In this epoch, which ended before this sequence.
    Over(BridgeSession, Seq),
    /// In an epoch that ended here before the sequence.
    Parted(Seq),
    /// Nowhere: this plant never had the epoch.
    Nowhere,
}

impl Epochs {
    /// Reads the epochs of the journal in a folder; none if there is no journal.
    ///
    /// # Errors
    /// The file cannot be read, or has something else in it.
    pub fn of(folder: Option<&Path>) -> crate::Result<Self> {
        let Some(file) = folder.map(|folder| folder.join(FILE)) else { return Ok(Self::default()) };
        let failed = |what| {
            let hint = "a plant writes this file; without it the plants below begin with images";
            Error::hinted(format!("cannot use the epochs in {}{what}", file.display()), hint)
        };
        let text = match fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(failed("").because(error)),
        };
        let line = |line: &str| {
            let (session, first) = line.split_once(' ')?;
            Some((session.parse().ok()?, Seq(first.parse().ok()?)))
        };
        let known: Option<Vec<_>> = text.lines().map(line).collect();
        let known = known.ok_or_else(|| failed(": a line is not a session and a sequence"))?;
        Ok(Self { file: Some(file), known })
    }

    /// Returns the present session; `None` before the first.
    pub fn present(&self) -> Option<BridgeSession> {
        self.known.last().map(|(session, _)| *session)
    }

    /// Returns the first sequence of the present epoch.
    pub fn first(&self) -> Seq {
        self.known.last().map_or(Seq(1), |(_, first)| *first)
    }

    /// Returns the session in which a tick was numbered; `None` if that is not known.
    pub fn of_tick(&self, seq: Seq) -> Option<BridgeSession> {
        self.known.iter().rev().find(|(_, first)| *first <= seq).map(|(session, _)| *session)
    }

    /// Returns an epoch that is later than all before.
    pub fn later(&self, now: Epoch) -> Epoch {
        self.known.iter().fold(now, |now, (session, _)| now.max(Epoch(session.epoch.0 + 1)))
    }

    /// Begins an epoch with the tick `first`, and writes that down: no tick of it may be published before.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn begin(&mut self, session: BridgeSession, first: Seq) -> crate::Result<()> {
        // An epoch without a tick is known too: a plant below may be in it. Unless the one before goes on after it.
        self.known.retain(|(_, before)| *before <= first);
        let known = self.known.iter().position(|(before, _)| *before == session);
        match known.filter(|at| self.known[at + 1..].iter().all(|(_, before)| *before == first)) {
            Some(at) => self.known.truncate(at + 1),
            None => self.known.push((session, first)),
        }
        if self.known.len() > MOST {
            let empty = self.known.windows(2).position(|two| two[0].1 == two[1].1);
            self.known.remove(empty.unwrap_or(0));
        }
        let Some(file) = &self.file else { return Ok(()) };
        let text: String =
            self.known.iter().map(|(session, first)| format!("{session} {}\n", first.0)).collect();
        let new = file.with_extension("new");
        let written = fs::File::create(&new).and_then(|mut out| {
            out.write_all(text.as_bytes())?;
            out.sync_all()?;
            fs::rename(&new, file)
        });
        written.map_err(|error| {
            let hint =
                "the file is beside the journal's segments, whose folder the plant must be able to write";
            Error::hinted(format!("cannot write {}", file.display()), hint).because(error)
        })
    }

    /// Finds where the sequence `next` of an epoch belongs.
    pub fn find(&self, epoch: Epoch, next: Seq) -> EpochFound {
        let Some(mut at) = self.known.iter().position(|(session, _)| session.epoch == epoch) else {
            return EpochFound::Nowhere;
        };
        // If everything of an epoch is there already, the next tick is the first of the following one.
        while self.known.get(at + 1).is_some_and(|(_, end)| next == *end) {
            at += 1;
        }
        match self.known.get(at + 1) {
            None => EpochFound::Present,
            Some((_, end)) if next < *end => EpochFound::Over(self.known[at].0, *end),
            Some((_, end)) => EpochFound::Parted(*end),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(epoch: u64) -> BridgeSession {
        BridgeSession { plant: "A".parse().unwrap(), epoch: Epoch(epoch) }
    }

    #[test]
    fn epochs_follow_one_another_and_are_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut epochs = Epochs::of(Some(folder.path())).unwrap();
        assert_eq!((epochs.present(), epochs.first()), (None, Seq(1)));
        for (epoch, first) in [(5, 1), (6, 11), (7, 11), (8, 21)] {
            epochs.begin(session(epoch), Seq(first)).unwrap();
        }
        let epochs = Epochs::of(Some(folder.path())).unwrap();
        assert_eq!((epochs.present(), epochs.first()), (Some(session(8)), Seq(21)));
        assert_eq!(epochs.later(Epoch(3)), Epoch(9));
        let of_ticks = [0, 1, 10, 11, 20, 21].map(|seq| epochs.of_tick(Seq(seq)).map_or(0, |it| it.epoch.0));
        assert_eq!(of_ticks, [0, 5, 5, 7, 7, 8]);
        for (epoch, next, found) in [
            (8, 500, EpochFound::Present),
            (7, 15, EpochFound::Over(session(7), Seq(21))),
            (7, 21, EpochFound::Present),
            (7, 22, EpochFound::Parted(Seq(21))),
            (5, 3, EpochFound::Over(session(5), Seq(11))),
            (5, 11, EpochFound::Over(session(7), Seq(21))),
            (6, 11, EpochFound::Over(session(7), Seq(21))),
            (6, 12, EpochFound::Parted(Seq(11))),
            (4, 11, EpochFound::Nowhere),
        ] {
            assert_eq!(epochs.find(Epoch(epoch), Seq(next)), found, "{epoch} {next}");
        }
        fs::write(folder.path().join(FILE), "what\n").unwrap();
        assert!(Epochs::of(Some(folder.path())).is_err());
    }

    #[test]
    fn an_epoch_goes_on_behind_one_that_has_come_to_nothing() {
        let mut epochs = Epochs::of(None).unwrap();
        for (epoch, first) in [(5, 1), (6, 11), (5, 11), (5, 15), (7, 21)] {
            epochs.begin(session(epoch), Seq(first)).unwrap();
        }
        assert_eq!(epochs.known, [(session(5), Seq(1)), (session(7), Seq(21))]);
    }

    #[test]
    fn of_too_many_epochs_those_without_a_tick_are_forgotten_first() {
        let mut epochs = Epochs::of(None).unwrap();
        let firsts = [1, 11, 11, 21].into_iter().chain(std::iter::repeat_n(31, MOST));
        for (epoch, first) in (1..).zip(firsts) {
            epochs.begin(session(epoch), Seq(first)).unwrap();
        }
        assert_eq!(epochs.known.len(), MOST);
        assert_eq!(epochs.find(Epoch(1), Seq(5)), EpochFound::Over(session(1), Seq(11)));
        assert_eq!(epochs.find(Epoch(2), Seq(11)), EpochFound::Nowhere);
        assert_eq!(epochs.find(Epoch(4), Seq(31)), EpochFound::Present);
    }
}
