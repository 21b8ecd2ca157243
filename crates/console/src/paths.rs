//! Paths from users. They are made absolute where they are read, so that no folder is joined twice.
//!
//! A path on the command line is relative to the current folder ([`FilePath`]), a path in a configuration to the
//! configuration's folder (`Source::beside`). Only this file reads the current folder.

use std::ffi::OsString;
use std::fmt;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// An absolute path from the command line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct FilePath(PathBuf);

impl FilePath {
    /// The path; a relative one starts at the current folder.
    pub fn of(given: impl AsRef<Path>) -> Self {
        Self(absolute(given))
    }
}

impl From<OsString> for FilePath {
    fn from(given: OsString) -> Self {
        Self::of(given)
    }
}

impl Deref for FilePath {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl AsRef<Path> for FilePath {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

/// Makes a path absolute with the current folder. `..` remains, because its meaning depends on links in the file
/// system. An empty path stays empty: it names no file.
pub fn absolute(given: impl AsRef<Path>) -> PathBuf {
    let given = given.as_ref();
    std::path::absolute(given).unwrap_or_else(|_| given.to_owned())
}

/// A path for display: relative to the current folder if it lies below that.
pub fn short(path: &Path) -> &Path {
    let current = std::env::current_dir().ok();
    let below = current.and_then(|current| path.strip_prefix(current).ok());
    below.filter(|below| !below.as_os_str().is_empty()).unwrap_or(path)
}

/// The same, as printable text.
pub fn shown(path: &(impl AsRef<Path> + ?Sized)) -> impl fmt::Display {
    short(path.as_ref()).display()
}
