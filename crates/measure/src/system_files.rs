//! Reads the kernel's files about the machine under `/proc`, `/sys` and `/etc`.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::error::Error;

/// Small files of the running system or of a copy. Paths are those of the machine, without the leading `/`.
#[derive(Clone, Debug)]
pub struct SystemFiles {
    root: PathBuf,
}

/// The highest number of cores: the kernel's own limit.
const MOST_CORES: usize = 8_192;

impl SystemFiles {
    /// Returns the files of this machine.
    #[must_use]
    pub fn of_this_machine() -> Self {
        Self::under("/")
    }

    /// Returns the files of a copy whose `proc` and `sys` are in this folder.
    pub fn under(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Returns the path of a file.
    #[must_use]
    pub fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// Reads a whole file.
    ///
    /// # Errors
    /// [`Error::Read`], with the path as it is on the machine.
    pub fn text(&self, path: &str) -> Result<String, Error> {
        // Not all of the kernel's texts are UTF-8: the command line is passed on from the boot loader unchanged.
        let bytes = fs::read(self.path(path)).map_err(|source| unread(path, source))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Reads the first line of a file, trimmed; empty if the file is empty.
    ///
    /// # Errors
    /// As [`text`](Self::text).
    pub fn line(&self, path: &str) -> Result<String, Error> {
        Ok(self.text(path)?.lines().next().unwrap_or_default().trim().to_owned())
    }

    /// Reads a file that contains a number.
    ///
    /// # Errors
    /// As [`text`](Self::text); [`Error::Unexpected`] if it is not a whole number.
    pub fn number(&self, path: &str) -> Result<i64, Error> {
        self.line(path)?.parse().map_err(|_| Error::unexpected(path, "a whole number"))
    }

    /// Reads the choice in brackets: `always [madvise] never`.
    ///
    /// # Errors
    /// As [`text`](Self::text); [`Error::Unexpected`] without brackets.
    pub fn chosen(&self, path: &str) -> Result<String, Error> {
        let line = self.line(path)?;
        let word = line.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(word, _)| word);
        word.map(str::to_owned).ok_or_else(|| Error::unexpected(path, "a choice in brackets"))
    }

    /// Reads the cores (or nodes) that a file lists in the kernel's notation, `0-3,6`; empty if the file is empty or
    /// contains `(null)`.
    ///
    /// # Errors
    /// As [`text`](Self::text); [`Error::Unexpected`] in another notation.
    pub fn cores(&self, path: &str) -> Result<Vec<usize>, Error> {
        listed(&self.line(path)?).ok_or_else(|| Error::unexpected(path, "a list such as 0-3,6"))
    }

    /// Returns the names in a folder, sorted.
    ///
    /// # Errors
    /// [`Error::Read`], with the path as it is on the machine.
    pub fn names(&self, folder: &str) -> Result<Vec<String>, Error> {
        let entries = fs::read_dir(self.path(folder)).map_err(|source| unread(folder, source))?;
        let mut names: Vec<String> =
            entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        Ok(names)
    }

    /// Returns the online cores.
    ///
    /// # Errors
    /// As [`cores`](Self::cores).
    pub fn online(&self) -> Result<Vec<usize>, Error> {
        self.cores("sys/devices/system/cpu/online")
    }

    /// Returns the cores that the kernel reserves for pinned threads (`isolcpus`).
    ///
    /// # Errors
    /// As [`cores`](Self::cores).
    pub fn isolated(&self) -> Result<Vec<usize>, Error> {
        self.cores("sys/devices/system/cpu/isolated")
    }

    /// Returns the cores without a periodic tick (`nohz_full`).
    ///
    /// # Errors
    /// As [`cores`](Self::cores); a kernel built without the feature has no such file.
    pub fn tickless(&self) -> Result<Vec<usize>, Error> {
        self.cores("sys/devices/system/cpu/nohz_full")
    }

    /// Returns the frequency governor of a core.
    ///
    /// # Errors
    /// As [`line`](Self::line); the file is absent if the host controls the frequency.
    pub fn governor(&self, core: usize) -> Result<String, Error> {
        self.line(&format!("sys/devices/system/cpu/cpu{core}/cpufreq/scaling_governor"))
    }

    /// Returns `true` if sibling hyper-threads are on.
    ///
    /// # Errors
    /// As [`line`](Self::line).
    pub fn hyper_threads(&self) -> Result<bool, Error> {
        Ok(self.line("sys/devices/system/cpu/smt/active")? == "1")
    }

    /// Returns the kernel's clock source.
    ///
    /// # Errors
    /// As [`line`](Self::line).
    pub fn clock_source(&self) -> Result<String, Error> {
        self.line("sys/devices/system/clocksource/clocksource0/current_clocksource")
    }

    /// Returns the setting of transparent huge pages: `always`, `madvise` or `never`.
    ///
    /// # Errors
    /// As [`chosen`](Self::chosen).
    pub fn huge_pages(&self) -> Result<String, Error> {
        self.chosen("sys/kernel/mm/transparent_hugepage/enabled")
    }
}

impl Error {
    /// Creates the error for a file that has not the expected form; `path` as in [`SystemFiles`].
    #[must_use]
    pub fn unexpected(path: &str, expected: &'static str) -> Self {
        Self::Unexpected { path: Path::new("/").join(path), expected }
    }

    /// Returns `true` if the file does not exist; `false` for any other error, such as an unreadable or malformed file.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Read { source, .. } if source.kind() == ErrorKind::NotFound)
    }
}

/// The value on the first line `key <separator> value`.
pub(crate) fn value_of<'a>(text: &'a str, key: &str, separator: char) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(separator)?;
        (name.trim() == key).then(|| value.trim())
    })
}

/// The bytes on the first line `key: number kB`.
pub(crate) fn kibibytes(text: &str, key: &str) -> Option<u64> {
    value_of(text, key, ':')?.strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

fn unread(path: &str, source: std::io::Error) -> Error {
    Error::Read { path: Path::new("/").join(path), source }
}

fn listed(text: &str) -> Option<Vec<usize>> {
    let mut cores = Vec::new();
    if text.is_empty() || text == "(null)" {
        return Some(cores);
    }
    for range in text.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (first.trim().parse::<usize>().ok()?, last.trim().parse::<usize>().ok()?);
        if first > last || last >= MOST_CORES {
            return None;
        }
        cores.extend(first..=last);
    }
    cores.sort_unstable();
    cores.dedup();
    Some(cores)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_kernel_s_lists() {
        assert_eq!(listed("0-3,6"), Some(vec![0, 1, 2, 3, 6]));
        assert_eq!(listed("2,0-2"), Some(vec![0, 1, 2]));
        assert_eq!((listed(""), listed("(null)")), (Some(vec![]), Some(vec![])));
        for text in ["3-1", "x", "0,", "0-99999999999", "-"] {
            assert_eq!(listed(text), None, "{text}");
        }
    }

    #[test]
    fn says_of_the_machine_s_own_path_what_is_wrong() {
        let folder = std::env::temp_dir().join(format!("test-system-files-{}", std::process::id()));
        fs::create_dir_all(folder.join("sys")).unwrap();
        fs::write(folder.join("sys/choice"), "always [madvise] never\n").unwrap();
        fs::write(folder.join("sys/number"), " 65\nmore").unwrap();
        let files = SystemFiles::under(&folder);
        assert_eq!(files.chosen("sys/choice").unwrap(), "madvise");
        assert_eq!(files.number("sys/number").unwrap(), 65);
        assert_eq!(files.names("sys").unwrap(), ["choice", "number"]);
        let error = files.number("sys/choice").unwrap_err();
        assert_eq!(error.to_string(), "/sys/choice: expected a whole number");
        assert!(!error.is_absent());
        let error = files.line("sys/none").unwrap_err();
        assert_eq!(error.to_string(), "cannot read /sys/none");
        assert!(error.is_absent());
        fs::remove_dir_all(folder).unwrap();
    }
}
