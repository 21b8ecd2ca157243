//! Lines of a dictionary file and their columns.

use super::error::Problem;

/// Line with content.
pub(super) enum Line<'a> {
    /// `!tag Name Value`.
    Tag(&'a str, &'a str),
    /// Columns, separated by blanks.
    Columns(Columns<'a>),
}

/// Returns the lines of `text` with their numbers, from 1. Comments and empty lines are skipped.
pub(super) fn lines(text: &str) -> impl Iterator<Item = (usize, Line<'_>)> {
    text.lines().enumerate().filter_map(|(index, line)| {
        let line = line.trim();
        let line = match line.strip_prefix('!') {
            Some(comment) => {
                let tag =
                    comment.strip_prefix("tag")?.strip_prefix(|c: char| c.is_ascii_whitespace())?.trim();
                let (name, value) = tag.split_once(|c: char| c.is_ascii_whitespace()).unwrap_or((tag, ""));
                Line::Tag(name, value.trim())
            }
            None if line.is_empty() => return None,
            None => Line::Columns(Columns { rest: line }),
        };
        Some((index + 1, line))
    })
}

/// Unread rest of a line.
#[derive(Clone, Copy)]
pub(super) struct Columns<'a> {
    rest: &'a str,
}

impl<'a> Columns<'a> {
    /// Returns the unread rest.
    pub(super) const fn rest(&self) -> &'a str {
        self.rest
    }

    /// Returns the next word without consuming it.
    pub(super) fn first(&self) -> &'a str {
        self.rest.split_ascii_whitespace().next().unwrap_or_default()
    }

    /// Consumes the next word.
    pub(super) fn word(&mut self, what: &'static str) -> Result<&'a str, Problem> {
        let end = self.rest.find(|c: char| c.is_ascii_whitespace()).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest.trim_start();
        if word.is_empty() { Err(Problem::Missing(what)) } else { Ok(word) }
    }

    /// Consumes the next column between two `mark`s; returns it without them.
    pub(super) fn between(&mut self, mark: char, what: &'static str) -> Result<&'a str, Problem> {
        let inner = self.rest.strip_prefix(mark).ok_or(Problem::Missing(what))?;
        let (text, rest) = inner.split_once(mark).ok_or(Problem::Unquoted(what))?;
        self.rest = rest.trim_start();
        Ok(text)
    }

    /// Consumes the next word as a number.
    pub(super) fn number<T: Bounded>(&mut self, what: &'static str) -> Result<T, Problem> {
        parse(self.word(what)?, what)
    }

    /// Consumes `( n )` if it is next.
    pub(super) fn parenthesised<T: Bounded>(&mut self, what: &'static str) -> Result<Option<T>, Problem> {
        if !self.rest.starts_with('(') {
            return Ok(None);
        }
        let (number, rest) = self.rest.split_once(')').ok_or(Problem::Unquoted(what))?;
        self.rest = rest.trim_start();
        parse(number.trim_start_matches('(').trim(), what).map(Some)
    }
}

fn parse<T: Bounded>(word: &str, what: &'static str) -> Result<T, Problem> {
    word.parse().map_err(|_| Problem::Number { what, found: word.to_owned(), least: T::LEAST, most: T::MOST })
}

/// Number type with bounds for error messages.
pub(super) trait Bounded: std::str::FromStr {
    const LEAST: i64;
    const MOST: i64;
}

impl Bounded for i16 {
    const LEAST: i64 = i16::MIN as i64;
    const MOST: i64 = i16::MAX as i64;
}

impl Bounded for u16 {
    const LEAST: i64 = 0;
    const MOST: i64 = u16::MAX as i64;
}
