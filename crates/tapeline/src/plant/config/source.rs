//! A configuration's text, and checks that many of its keys share.

use std::cell::RefCell;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tapeline_console::arguments;
use tapeline_console::failure::Hinted;
use tapeline_console::near::nearest;
use toml::Spanned;

/// A configuration's text, to locate faults in it.
pub(crate) struct Source<'a> {
    /// The file's name as shown to people.
    pub(crate) file: String,
    /// The file, absolute.
    pub(super) path: PathBuf,
    pub(super) text: &'a str,
    /// The faults found so far; checking continues after a fault.
    pub(super) faults: RefCell<Vec<anyhow::Error>>,
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

    /// The first fault.
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

    /// The value of the word that a key has; the first of `words` if the key is left out.
    pub(crate) fn one_of<T: Copy>(
        &self,
        key: &str,
        given: Option<&Spanned<String>>,
        words: &[(&str, T)],
        hint: &str,
    ) -> anyhow::Result<T> {
        let found = match given {
            None => words.first(),
            Some(given) => words.iter().find(|(word, _)| word == given.get_ref()),
        };
        found.map(|(_, meaning)| *meaning).ok_or_else(|| {
            let other = given.map_or("", |given| given.get_ref());
            let quoted: Vec<_> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
            let expected = match quoted.split_last() {
                Some((last, [])) => last.clone(),
                Some((last, others)) => format!("{} or {last}", others.join(", ")),
                None => String::new(),
            };
            let what = format!("{key} is \"{other}\"; {expected} is expected");
            self.wrong(given.map_or(0..0, Spanned::span), what, hint)
        })
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

    /// A time, by default `usual`; errors go to the faults.
    pub(crate) fn time(&self, given: Option<&Spanned<String>>, usual: Duration, hint: &str) -> Duration {
        let Some(given) = given else { return usual };
        let time =
            arguments::duration(given.get_ref()).map_err(|error| self.wrong(given.span(), error, hint));
        self.or(time, usual)
    }

    /// Checks a core that a thread is to be pinned to.
    pub(crate) fn core(&self, cpu: &Spanned<usize>) -> anyhow::Result<()> {
        let cores = tapeline_measure::cores();
        if cores.contains(cpu.get_ref()) {
            return Ok(());
        }
        let what = format!("cpu is {}; this process may use {cores:?}", cpu.get_ref());
        Err(self.wrong(cpu.span(), what, "leave cpu out to let the kernel choose"))
    }

    /// A number of bytes other than 0, by default `usual`.
    pub(crate) fn some_size(&self, given: Option<&Spanned<String>>, usual: usize) -> anyhow::Result<usize> {
        match (self.size(given, usual)?, given) {
            (0, Some(given)) => Err(self.wrong(given.span(), "0 bytes are too few", "such as \"8MiB\"")),
            (bytes, _) => Ok(bytes),
        }
    }

    /// A number of bytes, by default `default`.
    pub(crate) fn size(&self, raw: Option<&Spanned<String>>, default: usize) -> anyhow::Result<usize> {
        let Some(raw) = raw else { return Ok(default) };
        let wrong = |error: String| self.wrong(raw.span(), error, "such as \"8MiB\" or \"512KiB\"");
        let bytes = arguments::size(raw.get_ref()).map_err(wrong)?;
        usize::try_from(bytes)
            .map_err(|_| wrong(format!("{bytes} bytes are more than this machine can address")))
    }
}

/// The texts between backquotes, in order.
pub(super) fn quoted(message: &str) -> Vec<&str> {
    message.split('`').skip(1).step_by(2).collect()
}
