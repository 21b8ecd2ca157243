//! This process's identity, for the segment's tables.

/// When this process started, in clock ticks since boot (proc(5), `/proc/pid/stat`, field 22); 0 where the system
/// does not provide it.
pub(crate) fn start_ticks() -> u64 {
    let Ok(stat) = std::fs::read_to_string("/proc/self/stat") else { return 0 };
    // Field 2 is the command in parentheses and may contain anything, so count from the last parenthesis.
    let Some((_, fields)) = stat.rsplit_once(')') else { return 0 };
    fields.split_ascii_whitespace().nth(19).and_then(|field| field.parse().ok()).unwrap_or(0)
}

/// The command's name (proc(5), `/proc/pid/comm`): a subscriber's label unless it gives another.
pub(crate) fn command() -> String {
    std::fs::read_to_string("/proc/self/comm").map(|name| name.trim_end().to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_kernel_tells_the_start() {
        assert!(super::start_ticks() > 0);
        assert!(!super::command().is_empty());
    }
}
