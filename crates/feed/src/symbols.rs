//! The selection of a feed's symbols, applied before a message is decoded.
//!
//! [`Symbols`] is the selection by name, and [`Filter`] applies it to the messages of a protocol. If each message has the
//! symbol at a fixed place, the filter looks it up. If it has a number of the day instead, a [`NumberFilter`] learns once
//! for each number whether it is selected, so that nearly every message costs two bit tests (bench `symbols`).

use std::fmt;

use foldhash::fast::RandomState;
use hashbrown::HashSet;

use crate::itch::{self, MessageType};
use crate::{dbn, iex};

/// The longest name or prefix; exchanges use 8 to 21 characters (Databento's raw symbols have up to 70).
const MAX_PATTERN_BYTES: usize = 70;

/// The maximum number of patterns: more than the symbols on any exchange's feed.
pub const MAX_PATTERNS: usize = 1 << 20;

/// A set of symbols: names, and prefixes that end in `*`.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    names: HashSet<Box<str>, RandomState>,
    prefixes: Vec<Box<str>>,
}

/// The reason why a pattern is neither a name nor a prefix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadPattern {
    /// The pattern is empty.
    #[error("an empty symbol")]
    Empty,
    /// The pattern is longer than any symbol.
    #[error("symbol \"{0}\" is longer than {MAX_PATTERN_BYTES} bytes")]
    TooLong(String),
    /// The pattern has a star that is not the last character, or a character that no symbol has.
    #[error("\"{0}\" is neither a symbol nor the beginning of one with a * behind it")]
    Characters(String),
    /// There are more than [`MAX_PATTERNS`].
    #[error("more than {MAX_PATTERNS} symbols")]
    TooMany,
}

impl Symbols {
    /// Creates the set of all symbols that match any of `patterns`: `AAPL` is one symbol, `MSFT*` a prefix, `*` all.
    ///
    /// # Errors
    /// The first [`BadPattern`].
    pub fn new<'a>(patterns: impl IntoIterator<Item = &'a str>) -> Result<Self, BadPattern> {
        let mut symbols = Self::default();
        for pattern in patterns {
            symbols.add(pattern)?;
        }
        Ok(symbols)
    }

    /// Returns the whole names, in alphabetical order.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.names.iter().map(|name| &**name).collect();
        names.sort_unstable();
        names
    }

    /// Returns the prefixes, without their stars.
    pub fn prefixes(&self) -> impl Iterator<Item = &str> {
        self.prefixes.iter().map(|prefix| &**prefix)
    }

    /// Adds the symbols that match one more pattern.
    ///
    /// # Errors
    /// [`BadPattern`]; then nothing has been added.
    pub fn add(&mut self, pattern: &str) -> Result<(), BadPattern> {
        let (text, is_prefix) = match pattern.strip_suffix('*') {
            Some(prefix) => (prefix, true),
            None => (pattern, false),
        };
        if pattern.is_empty() {
            return Err(BadPattern::Empty);
        }
        if text.len() > MAX_PATTERN_BYTES {
            return Err(BadPattern::TooLong(pattern.to_owned()));
        }
        if text.bytes().any(|byte| byte == b'*' || !(byte.is_ascii_graphic() || byte == b' ')) {
            return Err(BadPattern::Characters(pattern.to_owned()));
        }
        if self.len() >= MAX_PATTERNS {
            return Err(BadPattern::TooMany);
        }
        if is_prefix {
            self.prefixes.push(text.into());
        } else {
            self.names.insert(text.into());
        }
        Ok(())
    }

    /// Returns `true` if a symbol is in the set. Costs one table lookup, and one comparison for each prefix.
    #[must_use]
    pub fn contains(&self, symbol: &str) -> bool {
        self.names.contains(symbol) || self.prefixes.iter().any(|prefix| symbol.starts_with(&**prefix))
    }

    /// Returns the patterns that match none of `known`, sorted; prefixes with their star.
    #[must_use]
    pub fn without_match(&self, known: &[&str]) -> Vec<String> {
        let exact: HashSet<&str, RandomState> = known.iter().copied().collect();
        let names = self.names.iter().filter(|name| !exact.contains(&***name)).map(ToString::to_string);
        let prefixes =
            self.prefixes.iter().filter(|prefix| !known.iter().any(|name| name.starts_with(&***prefix)));
        let mut patterns: Vec<String> = names.chain(prefixes.map(|prefix| format!("{prefix}*"))).collect();
        patterns.sort_unstable();
        patterns
    }

    /// Returns the number of patterns in the set.
    #[must_use]
    pub fn len(&self) -> usize {
        self.names.len() + self.prefixes.len()
    }

    /// Returns `true` if the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl fmt::Display for Symbols {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} symbols and {} prefixes", self.names.len(), self.prefixes.len())
    }
}

/// The state of a number in a [`NumberFilter`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Its symbol is wanted.
    Wanted,
    /// Its symbol is not wanted.
    Unwanted,
    /// No message has named its symbol yet.
    Unknown,
}

/// The numbers of a feed's instruments for the day, and whether each is wanted.
///
/// Bounded: 16 KiB for numbers of 16 bits. Larger numbers are always [`Verdict::Unknown`].
#[derive(Clone, Debug)]
pub struct NumberFilter {
    symbols: Symbols,
    known: Box<[u64; WORDS]>,
    wanted: Box<[u64; WORDS]>,
    passed_over: u64,
}

/// 65,536 numbers, one bit each.
const WORDS: usize = 1_024;

impl NumberFilter {
    /// Creates a filter without numbers.
    #[must_use]
    pub fn new(symbols: Symbols) -> Self {
        Self { symbols, known: Box::new([0; WORDS]), wanted: Box::new([0; WORDS]), passed_over: 0 }
    }

    /// Returns the state of a number.
    #[inline]
    #[must_use]
    pub fn verdict(&self, number: u16) -> Verdict {
        let (at, bit) = place(number);
        if self.wanted[at] & bit != 0 {
            Verdict::Wanted
        } else if self.known[at] & bit != 0 {
            Verdict::Unwanted
        } else {
            Verdict::Unknown
        }
    }

    /// Assigns `symbol` to a number. Returns `true` if the symbol is wanted.
    pub fn learn(&mut self, number: u16, symbol: &str) -> bool {
        let (at, bit) = place(number);
        let is_wanted = self.symbols.contains(symbol);
        self.known[at] |= bit;
        if is_wanted {
            self.wanted[at] |= bit;
        } else {
            self.wanted[at] &= !bit;
        }
        is_wanted
    }

    /// Counts a skipped message.
    #[inline]
    pub fn pass_over(&mut self) {
        self.passed_over += 1;
    }

    /// Returns the number of skipped messages.
    #[must_use]
    pub const fn passed_over(&self) -> u64 {
        self.passed_over
    }

    /// Returns the wanted symbols.
    #[must_use]
    pub const fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    /// Drops the numbers at the start of a session. The count stays.
    pub fn clear(&mut self) {
        self.known.fill(0);
        self.wanted.fill(0);
    }
}

/// A filter that decides for each message of a feed whether it is wanted, from its first bytes alone.
///
/// A message without a symbol, or with a symbol that is not known yet, is wanted. Messages that are too short to decide are left
/// to the decoder to count.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Filter {
    /// ITCH: by the locate, learnt from the directory or from the first message that names the stock.
    Itch(NumberFilter),
    /// IEX: by the symbol in the message.
    Iex {
        /// The wanted symbols.
        symbols: Symbols,
        /// Skipped messages.
        passed_over: u64,
    },
    /// DBN: by the instrument's number, which the file's metadata names.
    Dbn(dbn::DbnFilter),
    /// Venues: the symbols are selected by subscription, so every message is wanted.
    Subscribed,
}

impl Filter {
    /// Returns `true` if a message is wanted; otherwise counts it.
    #[inline]
    pub fn wants(&mut self, message: &[u8]) -> bool {
        match self {
            Self::Itch(numbers) => wants_itch(numbers, message),
            Self::Iex { symbols, passed_over } => {
                let wanted = iex::symbol(message).is_none_or(|symbol| symbols.contains(symbol.as_str()));
                *passed_over += u64::from(!wanted);
                wanted
            }
            Self::Dbn(numbers) => numbers.wants(message),
            Self::Subscribed => true,
        }
    }

    /// Returns the number of skipped messages.
    #[must_use]
    pub const fn passed_over(&self) -> u64 {
        match self {
            Self::Itch(numbers) => numbers.passed_over(),
            Self::Iex { passed_over, .. } => *passed_over,
            Self::Dbn(numbers) => numbers.passed_over(),
            Self::Subscribed => 0,
        }
    }

    /// Starts a session: numbers may stand for other symbols.
    pub fn clear(&mut self) {
        if let Self::Itch(numbers) = self {
            numbers.clear();
        }
    }
}

#[inline]
fn wants_itch(numbers: &mut NumberFilter, message: &[u8]) -> bool {
    let [kind, high, low, ..] = *message else { return true };
    let number = u16::from_be_bytes([high, low]);
    let is_directory = kind == MessageType::StockDirectory as u8;
    match numbers.verdict(number) {
        Verdict::Wanted if !is_directory => true,
        Verdict::Unwanted if !is_directory => {
            numbers.pass_over();
            false
        }
        _ if number == 0 => true,
        _ => learn_itch(numbers, number, message),
    }
}

/// Learns from a directory entry, or from a message about a stock before its entry.
#[cold]
fn learn_itch(numbers: &mut NumberFilter, number: u16, message: &[u8]) -> bool {
    let wanted = match itch::decode(message) {
        Ok(message) => message.stock().is_none_or(|stock| numbers.learn(number, stock.as_str())),
        Err(_) => true,
    };
    if !wanted {
        numbers.pass_over();
    }
    wanted
}

#[inline]
const fn place(number: u16) -> (usize, u64) {
    ((number >> 6) as usize, 1 << (number & 63))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_prefixes() {
        let symbols = Symbols::new(["AAPL", "MSFT*", "BRK.A", "BF B"]).unwrap();
        for wanted in ["AAPL", "MSFT", "MSFTW", "BRK.A", "BF B"] {
            assert!(symbols.contains(wanted), "{wanted}");
        }
        for other in ["AAP", "AAPLW", "MSF", "BRK.B", "", "aapl"] {
            assert!(!symbols.contains(other), "{other}");
        }
        assert!(Symbols::new(["*"]).unwrap().contains("ANY"));
        assert!(!Symbols::default().contains("ANY"));
        let known = ["AAPL", "MSFTW", "IBM"];
        assert_eq!(symbols.without_match(&known), ["BF B", "BRK.A"]);
        assert_eq!(symbols.without_match(&[]), ["AAPL", "BF B", "BRK.A", "MSFT*"]);
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        let refused = |pattern: &str| Symbols::new([pattern]).unwrap_err();
        assert_eq!(refused(""), BadPattern::Empty);
        assert_eq!(refused("A*B"), BadPattern::Characters("A*B".into()));
        assert_eq!(refused("A**"), BadPattern::Characters("A**".into()));
        assert_eq!(refused("Ä"), BadPattern::Characters("Ä".into()));
        assert_eq!(refused("A\n"), BadPattern::Characters("A\n".into()));
        assert!(matches!(refused(&"A".repeat(71)), BadPattern::TooLong(_)));
    }

    #[test]
    fn every_number_is_learnt_by_itself() {
        let mut filter = NumberFilter::new(Symbols::new(["A*"]).unwrap());
        for number in 0..=u16::MAX {
            assert_eq!(filter.verdict(number), Verdict::Unknown);
            let is_wanted = number % 3 == 0;
            assert_eq!(filter.learn(number, if is_wanted { "AB" } else { "BA" }), is_wanted);
        }
        for number in 0..=u16::MAX {
            let expected = if number % 3 == 0 { Verdict::Wanted } else { Verdict::Unwanted };
            assert_eq!(filter.verdict(number), expected, "{number}");
        }
        assert!(!filter.learn(3, "B"));
        assert_eq!(filter.verdict(3), Verdict::Unwanted);
        filter.clear();
        assert_eq!(filter.verdict(3), Verdict::Unknown);
    }

    #[test]
    fn itch_is_filtered_by_locate() {
        use crate::itch::encode::{LONGEST, OrderDelete, PrefixFields, StockDirectory, SystemEvent, text};
        let mut message = [0; LONGEST];
        let prefix = |locate| PrefixFields { locate, tracking: 0, ts_ns: 1 };
        let mut filter = Filter::Itch(NumberFilter::new(Symbols::new(["AAPL"]).unwrap()));
        let mut wants = |message: &[u8]| filter.wants(message);
        let directory = |stock: &str| StockDirectory { stock: text(stock), ..StockDirectory::default() };
        let len = directory("AAPL").encode(prefix(13), &mut message).unwrap();
        assert!(wants(&message[..len]));
        let len = directory("MSFT").encode(prefix(14), &mut message).unwrap();
        assert!(!wants(&message[..len]));
        for (locate, wanted) in [(13, true), (14, false), (15, true)] {
            let len = OrderDelete { reference: 7 }.encode(prefix(locate), &mut message).unwrap();
            assert_eq!(wants(&message[..len]), wanted, "{locate}");
        }
        let len = SystemEvent { event: b'O' }.encode(prefix(0), &mut message).unwrap();
        assert!(wants(&message[..len]) && wants(&[]) && wants(b"D"));
        // The number now stands for another stock.
        let len = directory("AAPL").encode(prefix(14), &mut message).unwrap();
        assert!(wants(&message[..len]));
        assert_eq!(filter.passed_over(), 2);
    }

    #[test]
    fn iex_is_filtered_by_symbol() {
        let symbols = Symbols::new(["ZIEXT", "ZX*"]).unwrap();
        let mut filter = Filter::Iex { symbols, passed_over: 0 };
        let message =
            |symbol: &[u8; 8]| [&b"Q\0\x01\x02\x03\x04\x05\x06\x07\x08"[..], symbol, &[0; 24]].concat();
        assert!(filter.wants(&message(b"ZIEXT   ")) && filter.wants(&message(b"ZXZZT   ")));
        assert!(!filter.wants(&message(b"ZIEXTA  ")));
        assert!(filter.wants(&message(b"Q\0\x01\x02\x03\x04\x05\x06")[..10]));
        assert_eq!(filter.passed_over(), 1);
    }
}
