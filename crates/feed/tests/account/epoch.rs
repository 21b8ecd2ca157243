//! One numbering of the exchange's, and what a receiver can know of it.

use std::collections::BTreeSet;

/// A session, or what came between two resets in one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Epoch {
    pub(crate) session: String,
    /// The messages, from number 1 on.
    pub(crate) messages: Vec<Vec<u8>>,
    /// One more than the last message that the receiver can know of.
    pub(crate) named_end: u64,
    /// Packets that came before the receiver was to believe in it, and those that contradict what it had before.
    words: Vec<Word>,
    contradictions: usize,
    /// Packets far ahead that were not said three times.
    ahead: Vec<Word>,
    /// The message that comes next, once the receiver has heard that the epoch begins; 0 where it may be any.
    pub(super) next: Option<u64>,
    /// One more than the last message that was accounted for, ever: damage makes a receiver begin again.
    pub(super) accounted: u64,
    /// Messages that were delivered as what they are.
    pub(super) delivered: BTreeSet<u64>,
    /// Messages that were taken for those of the epoch before, in whose holes they fitted.
    pub(super) mistaken: BTreeSet<u64>,
    /// Whether a packet of it arrived.
    pub(crate) heard_of: bool,
    /// Messages that arrived, as far as it was not over.
    pub(super) arrived: BTreeSet<u64>,
}

/// A packet, and what it tells of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) line: usize,
    pub(super) packet: Vec<u8>,
    pub(super) from: u64,
    pub(super) end: u64,
    /// Whether it goes back behind what the receiver has.
    pub(super) back: bool,
}

/// So many packets in a row on one line tell of another numbering where nothing contradicts them.
const UNCONTRADICTED: usize = 8;

impl Epoch {
    pub(crate) fn new(session: String) -> Self {
        Self { session, ..Self::default() }
    }

    /// Whether a message of this number was this one.
    pub(super) fn sent(&self, sequence: u64, bytes: &[u8]) -> bool {
        let place = usize::try_from(sequence).ok().and_then(|sequence| sequence.checked_sub(1));
        place.and_then(|place| self.messages.get(place)).is_some_and(|sent| sent == bytes)
    }

    /// One more than the number of the last message.
    pub(crate) fn end(&self) -> u64 {
        self.messages.len() as u64 + 1
    }

    /// A packet that comes before the receiver has said that it begins. The same once more proves nothing. Where only the
    /// numbers begin again, it takes two that contradict what the receiver has.
    pub(super) fn names_first(&mut self, word: Word, again: bool, contradicts: bool, back: bool) {
        if self.named_end == 0 {
            if self.words.iter().any(|other| other.line == word.line && other.packet == word.packet) {
                return;
            }
            self.contradictions += usize::from(contradicts);
            let word = Word { back, ..word.clone() };
            self.words.push(word.clone());
            let here: Vec<&Word> = self
                .words
                .iter()
                .filter(|other| other.line == word.line && other.back && other.from < other.end)
                .collect();
            let in_a_row = here.windows(2).rev().take_while(|pair| pair[0].end == pair[1].from).count()
                + usize::from(back);
            let known = if again {
                self.contradictions > 1 || in_a_row >= UNCONTRADICTED
            } else {
                self.words.len() > 1
            };
            if !known {
                return;
            }
        }
        // A heartbeat that is said once may be of what was before.
        let sure = |word: &Word| !again || word.from < word.end;
        let told = self.words.drain(..).chain([word]).filter(sure).map(|word| word.end).max();
        self.named_end = self.named_end.max(told.unwrap_or_default());
    }

    /// A packet that comes when the receiver has said that it begins: far ahead wants three words.
    pub(super) fn names_ahead(&mut self, word: Word) {
        if word.from <= self.named_end {
            self.ahead.clear();
            self.named_end = self.named_end.max(word.end);
            return;
        }
        if self.ahead.last().is_some_and(|last| last.end != word.from) {
            self.ahead.clear();
        }
        self.ahead.push(word);
        if self.ahead.len() > 2 {
            let told = self.ahead.drain(..).map(|word| word.end).max();
            self.named_end = self.named_end.max(told.unwrap_or_default());
        }
    }

    /// Nothing more comes.
    pub(super) fn close(&mut self) {
        if self.next.is_some() {
            // What began after all was known.
            let told = self.words.drain(..).filter(|word| word.from < word.end).map(|word| word.end).max();
            self.named_end = self.named_end.max(told.unwrap_or_default());
        }
    }
}
