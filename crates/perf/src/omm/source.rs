//! The source of a tool's input: a file that the user names, a file with the guide's name, or a built-in.

use std::fmt;
use std::path::{Path, PathBuf};

use tapeline_console::paths;

/// A file or the built-in input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum InputSource {
    File(PathBuf),
    BuiltIn,
}

impl InputSource {
    /// The file `said`; else the one with the guide's `name`, if the working directory has it; else the built-in input.
    pub(super) fn of(said: Option<&Path>, name: &str) -> Self {
        match said {
            Some(path) => Self::File(path.to_owned()),
            None if Path::new(name).is_file() => Self::File(name.into()),
            None => Self::BuiltIn,
        }
    }
}

impl fmt::Display for InputSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", paths::shown(path)),
            Self::BuiltIn => f.write_str("(built in)"),
        }
    }
}
