//! Files that a killed plant leaves behind: its ring, its counters and its configuration.

/// Removes the files in shared memory of a process that has ended.
pub(crate) fn remove(process: u32) {
    let rings = tapeline_ring::list().unwrap_or_default();
    for (name, ring) in rings.into_iter().filter_map(|entry| Some((entry.name, entry.ring.ok()?))) {
        // Another process may have continued the ring.
        if ring.publisher.pid != process || tapeline_ring::remove(&name, false).is_err() {
            continue;
        }
        for ending in ["stat", "stat-next", "images", "config"] {
            let _ = std::fs::remove_file(ring.path.with_file_name(format!("tapeline.{name}.{ending}")));
        }
    }
}
