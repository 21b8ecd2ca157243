//! A configuration's text, and checks that many of its keys share.

use std::cell::RefCell;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tapeline_console::near::nearest;
use tapeline_console::{Hinted, arguments};
use toml::Spanned;

use super::SimulatedFeed;

/// A configuration's text, to locate faults in it.
pub(crate) struct Source<'a> {
    /// The file's name as shown to people.
    pub(crate) file: String,
    /// The file, absolute.
    pub(super) path: PathBuf,
    pub(super) text: &'a str,
    /// The faults found so far; checking continues after a fault.
    pub(super) faults: RefCell<Vec<anyhow::Error>>,
    /// The simulated exchanges found so far.
    pub(super) simulated: RefCell<Vec<SimulatedFeed>>,
}

impl Source<'_> {
    /// The end of the file: the position of missing settings.
    pub(crate) const fn end(&self) -> Range<usize> {
        self.text.len()..self.text.len()
    }

    /// The absolute path of a file named in the configuration; a relative path starts at the configuration's
    /// folder.
    pub(crate) fn beside(&self, file: &Path) -> PathBuf {
        self.path.parent().unwrap_or(&self.path).join(file)
    }

    pub(crate) fn first_fault(&self) -> Option<anyhow::Error> {
        let mut faults = self.faults.borrow_mut();
        (!faults.is_empty()).then(|| faults.swap_remove(0))
    }

    /// A position as file, line and column.
    pub(crate) fn at(&self, span: &Range<usize>) -> String {
        let before = &self.text.as_bytes()[..span.start.min(self.text.len())];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let column = before.iter().rev().take_while(|byte| **byte != b'\n').count() + 1;
        format!("{}:{line}:{column}", self.file)
    }

    /// An error at a position, with a hint.
    pub(crate) fn wrong(
        &self,
        span: Range<usize>,
        what: impl std::fmt::Display,
        hint: impl Into<String>,
    ) -> anyhow::Error {
        Hinted::new(format!("{}: {what}", self.at(&span)), hint).into()
    }

    /// Adds a fault: an error at a position, with a hint.
    pub(crate) fn fault(&self, span: Range<usize>, what: impl std::fmt::Display, hint: impl Into<String>) {
        self.faults.borrow_mut().push(self.wrong(span, what, hint));
    }

    /// The value of the word that a key has; the first of the two or more `words` if the key is left out.
    pub(crate) fn one_of<T: Copy, const N: usize>(
        &self,
        key: &str,
        given: &Option<Spanned<String>>,
        words: [(&str, T); N],
        hint: &str,
    ) -> anyhow::Result<T> {
        let Some(given) = given else { return Ok(words[0].1) };
        let found = words.iter().find(|(word, _)| word == given.get_ref());
        found.map(|(_, meaning)| *meaning).ok_or_else(|| {
            let quoted = words.map(|(word, _)| format!("\"{word}\""));
            let (others, last) = quoted.split_at(N - 1);
            let expected = format!("{} or {}", others.join(", "), last.concat());
            self.wrong(
                given.span(),
                format!("{key} is \"{}\"; {expected} is expected", given.get_ref()),
                hint,
            )
        })
    }

    /// As [`one_of`](Self::one_of); another word is a fault, and means the same as the first.
    pub(crate) fn word<T: Copy, const N: usize>(
        &self,
        key: &str,
        given: &Option<Spanned<String>>,
        words: [(&str, T); N],
        hint: &str,
    ) -> T {
        self.or(self.one_of(key, given, words, hint), words[0].1)
    }

    /// Whether to poll instead of waiting in the kernel.
    pub(crate) fn spins(&self, key: &str, given: &Option<Spanned<String>>) -> bool {
        let hint = "\"spin\" takes a whole core and saves the wake-up";
        self.word(key, given, [("block", false), ("spin", true)], hint)
    }

    /// A number from 1 to `most`, by default `usual`.
    pub(super) fn number(
        &self,
        key: &str,
        given: &Option<Spanned<usize>>,
        usual: usize,
        most: usize,
        hint: &str,
    ) -> anyhow::Result<usize> {
        match given {
            Some(given) if !(1..=most).contains(given.get_ref()) => {
                let what = format!("{key} is {}; 1 to {most} are expected", given.get_ref());
                Err(self.wrong(given.span(), what, hint))
            }
            given => Ok(given.as_ref().map_or(usual, |given| *given.get_ref())),
        }
    }

    /// Checks the length of a name of OMM.
    pub(super) fn name_fits(
        &self,
        key: &str,
        name: &str,
        span: Range<usize>,
        hint: &str,
    ) -> anyhow::Result<()> {
        if (1..=255).contains(&name.len()) {
            return Ok(());
        }
        Err(self.wrong(span, format!("{key} has {} bytes; 1 to 255 are expected", name.len()), hint))
    }

    /// The error that prevents the file from being parsed.
    pub(super) fn not_toml(&self, error: &toml::de::Error) -> anyhow::Error {
        let span = error.span().unwrap_or(0..0);
        let message = error.message();
        if message.starts_with("unknown field") {
            return self.unknown_key(span, message);
        }
        let message = message.replace("missing field", "missing key");
        self.wrong(span, message, "`tapeline plant sample` prints a whole file to compare with")
    }

    /// The error for a key that the configuration does not have.
    fn unknown_key(&self, span: Range<usize>, message: &str) -> anyhow::Error {
        let near = quoted(message).split_first().and_then(|(unknown, known)| nearest(unknown, known));
        let hint = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`tapeline plant sample` prints every key with its meaning".to_owned(),
        };
        self.wrong(span, message.replace("unknown field", "unknown key"), hint)
    }

    /// A time, if it is given; a fault if `parse` cannot read it.
    pub(crate) fn time(
        &self,
        given: &Option<Spanned<String>>,
        parse: impl Fn(&str) -> Result<Duration, String>,
        hint: &str,
    ) -> Option<Duration> {
        let given = given.as_ref()?;
        self.sound(parse(given.get_ref()).map_err(|error| self.wrong(given.span(), error, hint)))
    }

    /// The core that a thread is to be pinned to, if one is given.
    pub(crate) fn core(&self, cpu: &Option<Spanned<usize>>) -> Option<usize> {
        let cpu = cpu.as_ref()?;
        let cores = tapeline_measure::cores();
        if !cores.contains(cpu.get_ref()) {
            let what = format!("cpu is {}; this process may use {cores:?}", cpu.get_ref());
            self.fault(cpu.span(), what, "leave cpu out to let the kernel choose");
        }
        Some(*cpu.get_ref())
    }

    /// A number of bytes other than 0, by default `usual`; errors go to the faults.
    pub(crate) fn some_size(&self, given: &Option<Spanned<String>>, usual: usize) -> usize {
        let bytes = self.size_or(given, usual);
        if bytes == 0 {
            self.fault(span(given), "0 bytes are too few", "such as \"8MiB\"");
        }
        bytes
    }

    /// A number of bytes, by default `usual`; errors go to the faults.
    pub(crate) fn size_or(&self, given: &Option<Spanned<String>>, usual: usize) -> usize {
        self.or(self.size(given, usual), usual)
    }

    /// A number of bytes, if it is given; errors go to the faults.
    pub(super) fn given_size(&self, given: &Option<Spanned<String>>) -> Option<usize> {
        given.as_ref()?;
        self.sound(self.size(given, 0))
    }

    /// A number of bytes, by default `default`.
    pub(crate) fn size(&self, raw: &Option<Spanned<String>>, default: usize) -> anyhow::Result<usize> {
        let Some(raw) = raw else { return Ok(default) };
        let wrong = |error: String| self.wrong(raw.span(), error, "such as \"8MiB\" or \"512KiB\"");
        let bytes = arguments::size(raw.get_ref()).map_err(wrong)?;
        usize::try_from(bytes)
            .map_err(|_| wrong(format!("{bytes} bytes are more than this machine can address")))
    }
}

/// A part of a configuration's text.
pub(super) type Span = Range<usize>;

/// The position of a value; the beginning of the file if its key is left out.
pub(super) fn span<T>(given: &Option<Spanned<T>>) -> Range<usize> {
    given.as_ref().map_or(0..0, Spanned::span)
}

/// The texts between backquotes, in order.
pub(super) fn quoted(message: &str) -> Vec<&str> {
    message.split('`').skip(1).step_by(2).collect()
}
