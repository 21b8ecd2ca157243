//! Between a working thread and the main one: the main thread asks for tallies and for the end, and is told what happens.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use super::tally::{Milestone, Phase, Tally, Terms};

/// What a working thread tells.
#[derive(Debug)]
pub(super) enum Word {
    /// What it did since its last tally.
    Tally(Box<Tally>),
    /// What happened.
    Milestone(Milestone),
    /// It is over: nothing more comes. An error is what made it end.
    Over(anyhow::Result<()>),
}

/// The main thread's side of one working thread.
#[derive(Debug)]
pub(super) struct Handle {
    fresh: Sender<Box<Tally>>,
}

impl Handle {
    /// Asks for the tally by sending an empty one: the thread goes on with that, and so never allocates.
    pub(super) fn ask(&self, empty: Box<Tally>) {
        // A thread that is over gives no more.
        let _ = self.fresh.send(empty);
    }
}

/// A working thread's side.
#[derive(Debug)]
pub(super) struct Link {
    thread: usize,
    is_over: Arc<AtomicBool>,
    fresh: Receiver<Box<Tally>>,
    words: Sender<(usize, Word)>,
    /// What the thread counts in now.
    pub(super) tally: Box<Tally>,
    /// For the change of phase.
    spare: Option<Box<Tally>>,
    terms: Terms,
}

/// Everything between the main thread and the working ones.
#[derive(Debug)]
pub(super) struct Links {
    /// One for each working thread, which it takes.
    pub(super) threads: Vec<Link>,
    /// The main thread's, in the same order.
    pub(super) handles: Vec<Handle>,
    /// Set by the main thread: all are to shut down.
    pub(super) is_over: Arc<AtomicBool>,
    /// What they say, with the thread's number.
    pub(super) said: Receiver<(usize, Word)>,
}

impl Links {
    /// For so many threads.
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
            (link, Handle { fresh: sender })
        };
        let (threads, handles) = (0..threads).map(pair).unzip();
        Self { threads, handles, is_over, said }
    }
}

impl Link {
    /// Whether the thread is to shut down. To be looked at in each turn of its loop.
    pub(super) fn is_over(&self) -> bool {
        // Relaxed: the flag publishes nothing but itself.
        self.is_over.load(Ordering::Relaxed)
    }

    /// Hands the tally over if it was asked for. To be called in each turn of the thread's loop.
    pub(super) fn settle(&mut self) {
        if let Ok(empty) = self.fresh.try_recv() {
            self.tally.asked = true;
            self.hand_over(empty);
        }
    }

    /// Hands over what was done in the phase that ends, and goes on in the next.
    pub(super) fn begin(&mut self, phase: Phase) {
        let empty = self.spare.take().unwrap_or_else(|| Box::new(Tally::new(self.terms)));
        self.hand_over(empty);
        self.tally.phase = phase;
    }

    fn hand_over(&mut self, mut empty: Box<Tally>) {
        empty.phase = self.tally.phase;
        let full = std::mem::replace(&mut self.tally, empty);
        self.say(Word::Tally(full));
    }

    /// Hands over the last tally, and how the thread ended.
    pub(super) fn end(self, how: anyhow::Result<()>) {
        let Self { thread, words, tally, .. } = self;
        // Nobody listens any more when the whole program ends.
        let _ = words.send((thread, Word::Tally(tally)));
        let _ = words.send((thread, Word::Over(how)));
    }

    /// What ends a thread that cannot do it itself, because it panicked or just returned. Of several ends the first counts.
    pub(super) fn undertaker(&self) -> impl FnOnce(anyhow::Error) + use<> {
        let (thread, words) = (self.thread, self.words.clone());
        move |error| {
            let _ = words.send((thread, Word::Over(Err(error))));
        }
    }

    /// Tells the main thread.
    pub(super) fn say(&self, word: Word) {
        // Nobody listens any more when the whole program ends.
        let _ = self.words.send((self.thread, word));
    }
}
