//! Processor time of threads, to the nanosecond.

use std::path::Path;

/// What the calling thread has used so far, ns; `None` where the kernel does not say (`CONFIG_SCHED_INFO`).
pub(crate) fn of_this_thread() -> Option<u64> {
    of(Path::new("/proc/thread-self"))
}

/// What each thread of a process has used so far: its name and ns.
pub(crate) fn of_threads(pid: u32) -> Vec<(String, u64)> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let named = threads.flatten().filter_map(|thread| {
        let name = std::fs::read_to_string(thread.path().join("comm")).ok()?;
        Some((name.trim_end().to_owned(), of(&thread.path())?))
    });
    named.collect()
}

fn of(folder: &Path) -> Option<u64> {
    std::fs::read_to_string(folder.join("schedstat")).ok()?.split(' ').next()?.parse().ok()
}
