//! What a configuration file becomes: names with values or with more names below, each with its line.

pub(super) use crate::xml::Fault;

/// A setting, or a block of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) name: String,
    /// From 1.
    pub(super) line: usize,
    pub(super) value: Option<String>,
    pub(super) children: Vec<Node>,
}

/// Blocks within blocks at most: EMA's files have eight.
pub(super) const MOST_DEEP: usize = 16;
/// Settings in a file at most.
pub(super) const MOST_NODES: usize = 100_000;

impl Node {
    pub(super) fn new(name: &str, line: usize) -> Self {
        Self { name: name.to_owned(), line, value: None, children: Vec::new() }
    }

    /// The setting of this name.
    pub(super) fn child(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.name == name)
    }

    /// The value of the setting of this name; an empty one is none.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.child(name)?.value.as_deref().filter(|value| !value.is_empty())
    }

    /// The same as a number.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }

    /// The same as yes or no.
    pub(super) fn flag(&self, name: &str) -> Option<bool> {
        Some(self.number(name)? != 0)
    }

    /// The value's own name, without that of its type: `RSSL_SOCKET` of `ChannelType::RSSL_SOCKET`.
    pub(super) fn code(&self, name: &str) -> Option<&str> {
        self.text(name).map(bare)
    }
}

/// A code's own name.
pub(super) fn bare(code: &str) -> &str {
    code.rsplit_once("::").map_or(code, |(_, name)| name)
}
