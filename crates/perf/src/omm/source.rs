//! Where a tool's input comes from: a file that the user names, one of the guide's name, or what is built in.

use std::fmt;
use std::path::{Path, PathBuf};

use tapeline_console::paths;

/// A file, or what is built in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
    File(PathBuf),
    BuiltIn,
}

impl Source {
    /// The file that is `said`; without one, that of the guide's `name` in the working directory if it is there, as the
    /// public tools take it; else what is built in.
    pub(super) fn of(said: Option<&Path>, name: &str) -> Self {
        match said {
            Some(path) => Self::File(path.to_owned()),
            None if Path::new(name).is_file() => Self::File(name.into()),
            None => Self::BuiltIn,
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", paths::shown(path)),
            Self::BuiltIn => f.write_str("(built in)"),
        }
    }
}
