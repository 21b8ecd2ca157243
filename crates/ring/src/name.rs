//! Names of rings, and where their segments are.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::Error;

/// The file system of shared memory, which every Linux provides.
pub(crate) const DIRECTORY: &str = "/dev/shm";
/// The prefix of every segment's file name, which distinguishes rings from other programs' files.
pub(crate) const PREFIX: &str = "tapeline-";
const LONGEST: usize = 64;

/// A ring's name: 1 to 64 characters of `A-Z a-z 0-9 . _ -`, so that it is a single file name and needs no quoting.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

impl Name {
    /// Checks a name and creates it.
    ///
    /// # Errors
    /// [`Error::BadName`].
    pub fn new(name: &str) -> Result<Self, Error> {
        let bad = |why| Err(Error::BadName { name: name.to_owned(), why });
        if name.is_empty() {
            return bad("it is empty");
        }
        if name.len() > LONGEST {
            return bad("it is longer than 64 characters");
        }
        if !name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-')) {
            return bad("it has a character other than A-Z a-z 0-9 . _ -");
        }
        Ok(Self(name.to_owned()))
    }

    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the segment's path.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("{DIRECTORY}/{PREFIX}{}", self.0))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Name {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::new(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_single_plain_file_names() {
        for good in ["a", "smem", "A.b_c-9", &"x".repeat(64)] {
            assert_eq!(Name::new(good).unwrap().as_str(), good);
        }
        for bad in ["", "a/b", "a b", "ä", "..\0", &"x".repeat(65)] {
            assert!(matches!(Name::new(bad), Err(Error::BadName { .. })), "{bad:?}");
        }
        assert_eq!(Name::new("smem").unwrap().path().to_str(), Some("/dev/shm/tapeline-smem"));
    }
}
