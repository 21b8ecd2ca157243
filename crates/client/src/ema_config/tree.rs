//! A configuration file as a tree: names with values or with children, each with its line.

pub(super) use crate::xml::Fault;

/// A setting, or a block of settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) name: String,
    /// The line, from 1.
    pub(super) line: usize,
    pub(super) value: Option<String>,
    pub(super) children: Vec<Node>,
}

/// The deepest nesting of blocks: EMA's files have eight levels.
pub(super) const MOST_DEEP: usize = 16;
/// The most settings in a file.
pub(super) const MOST_NODES: usize = 100_000;

impl Node {
    pub(super) fn new(name: &str, line: usize) -> Self {
        Self { name: name.to_owned(), line, value: None, children: Vec::new() }
    }

    /// Returns the first setting of this name.
    pub(super) fn child(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.name == name)
    }

    /// Returns the value of the setting of this name; `None` if it is empty.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.child(name)?.value.as_deref().filter(|value| !value.is_empty())
    }

    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }

    pub(super) fn flag(&self, name: &str) -> Option<bool> {
        Some(self.number(name)? != 0)
    }

    /// Returns the code without the name of its type: `RSSL_SOCKET` of `ChannelType::RSSL_SOCKET`.
    pub(super) fn code(&self, name: &str) -> Option<&str> {
        self.text(name).map(bare)
    }
}

/// Returns a code without the name of its type.
pub(super) fn bare(code: &str) -> &str {
    code.rsplit_once("::").map_or(code, |(_, name)| name)
}

/// Returns the names of a comma-separated list.
pub(super) fn names(list: Option<&str>) -> impl Iterator<Item = &str> {
    list.unwrap_or_default().split(',').map(str::trim).filter(|name| !name.is_empty())
}
