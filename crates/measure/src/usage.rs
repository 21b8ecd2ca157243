//! Resource usage of a process.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::monotonic_ns;
use crate::error::Error;
use crate::system_files::kibibytes;

/// CPU time and memory of a process at one moment. The difference of two readings is a [`Spent`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Time of the reading, on CLOCK_MONOTONIC, in nanoseconds.
    pub monotonic_ns: u64,
    /// CPU time in user mode of all threads, in nanoseconds; the kernel usually counts in steps of 10 ms.
    pub user_ns: u64,
    /// CPU time in the kernel in nanoseconds.
    pub system_ns: u64,
    /// Resident memory in bytes, including touched shared segments.
    pub resident_bytes: u64,
    /// The part of [`resident_bytes`](Self::resident_bytes) in shared memory. A page counts once for each place where it is
    /// mapped: a ring's frames, which are mapped twice in a row, count twice.
    #[serde(default)]
    pub shared_bytes: u64,
    /// The highest resident memory so far, in bytes.
    pub peak_resident_bytes: u64,
    /// Number of threads.
    pub threads: u64,
    /// Number of open descriptors: files, sockets, pipes; 0 if they cannot be counted, for instance in another user's
    /// process.
    pub descriptors: u64,
}

/// What a process used between two readings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    /// Wall-clock time in nanoseconds.
    pub elapsed_ns: u64,
    /// CPU time in user mode in nanoseconds.
    pub user_ns: u64,
    /// CPU time in the kernel in nanoseconds.
    pub system_ns: u64,
    /// Cores kept busy: 1.0 is one core all the time.
    pub cores: f64,
    /// The highest resident memory in bytes, up to the later reading.
    pub peak_resident_bytes: u64,
}

impl Usage {
    /// Reads the usage of this process.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub fn now() -> Result<Self, Error> {
        Self::read("self")
    }

    /// Reads the usage of another process, such as a child. Reads two files and a folder under `/proc`.
    ///
    /// # Errors
    /// [`Error::Read`] when there is no such process (any more), [`Error::Unexpected`] when `/proc` reads strangely.
    pub fn of(pid: u32) -> Result<Self, Error> {
        Self::read(&pid.to_string())
    }

    fn read(process: &str) -> Result<Self, Error> {
        let path = |name: &str| PathBuf::from(format!("/proc/{process}/{name}"));
        let text = |name: &str| {
            std::fs::read_to_string(path(name)).map_err(|source| Error::Read { path: path(name), source })
        };
        let [user, system, threads] = cpu_ticks(&text("stat")?)
            .ok_or_else(|| Error::Unexpected { path: path("stat"), expected: "at least 20 numbers" })?;
        let status = text("status")?;
        let ns_per_tick = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
        Ok(Self {
            monotonic_ns: monotonic_ns(),
            user_ns: user.saturating_mul(ns_per_tick),
            system_ns: system.saturating_mul(ns_per_tick),
            // A process that has ended and was not waited for has no memory lines.
            resident_bytes: kibibytes(&status, "VmRSS").unwrap_or(0),
            shared_bytes: kibibytes(&status, "RssShmem").unwrap_or(0),
            peak_resident_bytes: kibibytes(&status, "VmHWM").unwrap_or(0),
            threads,
            descriptors: descriptors(&path("fd"), process == "self"),
        })
    }

    /// Returns the usage since an earlier reading of the same process.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Spent {
        let elapsed_ns = self.monotonic_ns.saturating_sub(earlier.monotonic_ns);
        let user_ns = self.user_ns.saturating_sub(earlier.user_ns);
        let system_ns = self.system_ns.saturating_sub(earlier.system_ns);
        let busy = Duration::from_nanos(user_ns.saturating_add(system_ns)).as_secs_f64();
        let cores = if elapsed_ns == 0 { 0.0 } else { busy / Duration::from_nanos(elapsed_ns).as_secs_f64() };
        Spent { elapsed_ns, user_ns, system_ns, cores, peak_resident_bytes: self.peak_resident_bytes }
    }
}

/// The number of open descriptors. The listing itself takes one, which is not counted if a process reads its own.
fn descriptors(folder: &Path, is_own: bool) -> u64 {
    let count = std::fs::read_dir(folder).map_or(0, |entries| entries.count() as u64);
    count.saturating_sub(u64::from(is_own))
}

/// User time, system time (both in clock ticks) and threads: fields 14, 15 and 20 of `/proc/<pid>/stat`
/// (proc_pid_stat(5)). The second field is the program's name in parentheses, which may contain spaces and parentheses;
/// the text after the last parenthesis is regular.
fn cpu_ticks(stat: &str) -> Option<[u64; 3]> {
    let (_, rest) = stat.rsplit_once(')')?;
    // The first of these is field 3.
    let mut fields = rest.split_ascii_whitespace().skip(14 - 3);
    let user = fields.next()?.parse().ok()?;
    let system = fields.next()?.parse().ok()?;
    let threads = fields.nth(20 - 16)?.parse().ok()?;
    Some([user, system, threads])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_line_with_a_hostile_name() {
        let stat = "7 (a) b (c)) S 1 7 7 0 -1 4194304 100 0 0 0 250 31 0 0 20 0 5 0 100 1000 50 18446744073709551615";
        assert_eq!(cpu_ticks(stat), Some([250, 31, 5]));
        for broken in ["", ")", "7 (x) S 1 2 3", "7 (x) S 1 7 7 0 -1 4194304 100 0 0 0 many 31 0 0 20 0 5"] {
            assert!(cpu_ticks(broken).is_none(), "{broken:?}");
        }
        assert_eq!(kibibytes("VmHWM:\t  12 kB\nVmRSS:\t     10 kB\n", "VmRSS"), Some(10_240));
        assert_eq!(kibibytes("Name: x\n", "VmRSS"), None);
    }

    #[test]
    fn work_shows() {
        let before = Usage::now().unwrap();
        let mut number = 1_u64;
        let after = loop {
            for k in 0..1_000_000 {
                number = std::hint::black_box(number.wrapping_mul(k | 1));
            }
            let now = Usage::now().unwrap();
            if now.user_ns > before.user_ns {
                break now;
            }
        };
        let spent = after.since(&before);
        assert!(spent.cores > 0.0 && spent.elapsed_ns > 0 && spent.user_ns > 0, "{spent:?}");
        assert!(after.resident_bytes > 0 && after.peak_resident_bytes >= after.resident_bytes / 2);
        assert!(after.threads >= 1);
        assert!(after.descriptors >= 3, "{after:?}");
        // Other tests open and close files meanwhile, so the test relies only on the files that it has open
        // itself.
        let held: Vec<_> = (0..200).map(|_| std::fs::File::open("/proc/self/stat").unwrap()).collect();
        let held = held.len() as u64;
        assert!(after.descriptors < held, "{after:?}");
        assert!(Usage::now().unwrap().descriptors >= held);
    }

    #[test]
    fn another_process_can_be_read_and_an_absent_one_is_an_error() {
        let own = Usage::of(std::process::id()).unwrap();
        assert!(own.resident_bytes > 0);
        let error = Usage::of(u32::MAX).unwrap_err();
        assert!(error.to_string().contains("/proc/4294967295/stat"), "{error}");
    }
}
