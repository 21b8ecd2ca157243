//! Paths as users give them: absolute from where they are read, so that nobody joins a folder to one a second time.
//!
//! A path on the command line starts at the current folder ([`FilePath`]), a path in a configuration at the configuration's folder
//! (`Source::beside`). Only this file asks for the current folder.

use std::ffi::OsString;
use std::fmt;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// A path of the command line, absolute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct FilePath(PathBuf);

impl FilePath {
    /// The path, from the current folder on where it is relative.
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

/// A path with the current folder before it, where it is relative. `..` stays: what it leads to is the file system's to say, which may
/// have links. An empty path stays empty: it names no file.
pub fn absolute(given: impl AsRef<Path>) -> PathBuf {
    let given = given.as_ref();
    std::path::absolute(given).unwrap_or_else(|_| given.to_owned())
}

/// A path as people read it: without the current folder where it lies below that.
pub fn short(path: &Path) -> &Path {
    let current = std::env::current_dir().ok();
    let below = current.and_then(|current| path.strip_prefix(current).ok());
    below.filter(|below| !below.as_os_str().is_empty()).unwrap_or(path)
}

/// The same, to be printed.
pub fn shown(path: &(impl AsRef<Path> + ?Sized)) -> impl fmt::Display {
    short(path.as_ref()).display()
}
