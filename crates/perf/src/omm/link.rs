//! The link between a working thread and the main thread, which requests tallies and receives them, and events.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use super::tally::{Milestone, RunPhase, Tally, Terms};

/// A message of a working thread to the main thread.
#[derive(Debug)]
pub(super) enum Word {
    /// Counts and times since its last tally.
    Tally(Box<Tally>),
    Milestone(Milestone),
    /// The thread ended: no message follows. An error is the reason.
    Over(anyhow::Result<()>),
}

/// A working thread's side.
#[derive(Debug)]
pub(super) struct Link {
    thread: usize,
    is_over: Arc<AtomicBool>,
    fresh: Receiver<Box<Tally>>,
    words: Sender<(usize, Word)>,
    /// The current tally of the thread.
    pub(super) tally: Box<Tally>,
    /// For the change of phase.
    spare: Option<Box<Tally>>,
    terms: Terms,
}

/// All links between the main thread and the working threads.
#[derive(Debug)]
pub(super) struct Links {
    /// One for each working thread, which takes it.
    pub(super) threads: Vec<Link>,
    /// The main thread's, in the same order. An empty tally requests the current one, and replaces it: no allocation.
    pub(super) handles: Vec<Sender<Box<Tally>>>,
    /// Set by the main thread: all threads are to shut down.
    pub(super) is_over: Arc<AtomicBool>,
    /// Messages of the threads, with the thread's number.
    pub(super) said: Receiver<(usize, Word)>,
}

impl Links {
    pub(super) fn new(threads: usize, terms: Terms) -> Self {
        let (words, said) = channel();
        let is_over = Arc::new(AtomicBool::new(false));
        let pair = |thread| {
            let (sender, fresh) = channel();
            let link = Link {
                thread,
                is_over: Arc::clone(&is_over),
                fresh,
                words: words.clone(),
                tally: Box::new(Tally::new(terms)),
                spare: Some(Box::new(Tally::new(terms))),
                terms,
            };
            (link, sender)
        };
        let (threads, handles) = (0..threads).map(pair).unzip();
        Self { threads, handles, is_over, said }
    }
}

impl Link {
    /// Whether the thread is to shut down. Check in each turn of the thread's loop.
    pub(super) fn is_over(&self) -> bool {
        // Relaxed: the flag publishes no other data.
        self.is_over.load(Ordering::Relaxed)
    }

    /// Hands the tally over if requested. Call in each turn of the thread's loop.
    pub(super) fn settle(&mut self) {
        if let Ok(empty) = self.fresh.try_recv() {
            self.tally.asked = true;
            self.hand_over(empty);
        }
    }

    /// Hands over the tally of the phase that ends, and begins the next phase.
    pub(super) fn begin(&mut self, phase: RunPhase) {
        let empty = self.spare.take().unwrap_or_else(|| Box::new(Tally::new(self.terms)));
        self.hand_over(empty);
        self.tally.phase = phase;
    }

    fn hand_over(&mut self, mut empty: Box<Tally>) {
        empty.phase = self.tally.phase;
        let full = std::mem::replace(&mut self.tally, empty);
        self.say(Word::Tally(full));
    }

    /// Hands over the last tally and the thread's result.
    pub(super) fn end(self, how: anyhow::Result<()>) {
        let Self { thread, words, tally, .. } = self;
        // There is no receiver when the whole program ends.
        let _ = words.send((thread, Word::Tally(tally)));
        let _ = words.send((thread, Word::Over(how)));
    }

    /// Reports the end of a thread that panicked or returned without a report. The first report counts.
    pub(super) fn undertaker(&self) -> impl FnOnce(anyhow::Error) + use<> {
        let (thread, words) = (self.thread, self.words.clone());
        move |error| {
            let _ = words.send((thread, Word::Over(Err(error))));
        }
    }

    /// Sends a message to the main thread.
    pub(super) fn say(&self, word: Word) {
        // There is no receiver when the whole program ends.
        let _ = self.words.send((self.thread, word));
    }
}
