//! The system's limits for a process, and its overall profile.

use tapeline_measure::{Error, figures};

use super::finding::Finding;
use super::machine::{Check, Found, Machine};
use super::memory::limit;

pub(super) const CHECKS: [Check; 4] = [
    ("tuned profile", tuned),
    ("share of the processors", processor_share),
    ("open files", open_files),
    ("real-time throttling", real_time_throttling),
];

/// Four times the connections of a hub (default 1,000) and the other open files of a plant.
const OPEN_FILES: u64 = 4_096;
/// Profiles of tuned for low latency (tuned's own list, `tuned-adm list`).
const PROFILES: [&str; 5] =
    ["network-latency", "latency-performance", "realtime", "realtime-virtual-guest", "cpu-partitioning"];

fn tuned(machine: &Machine) -> Found {
    let profile = machine.files.line("etc/tuned/active_profile")?;
    // Several can be active.
    let is_good = profile.split_whitespace().any(|word| PROFILES.contains(&word));
    let found = if profile.is_empty() { "none".to_owned() } else { profile };
    let why =
        "sets governor, sleep states, huge pages, balancing and busy polling together (tuned-profiles(7))";
    Ok(Finding::judged(is_good, found, "network-latency", why).by("sudo tuned-adm profile network-latency"))
}

fn processor_share(machine: &Machine) -> Found {
    let groups = machine.files.text("proc/self/cgroup")?;
    let folder = |controller: &str| {
        groups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?);
            controllers.split(',').any(|one| one == controller).then(|| path.trim_matches('/').to_owned())
        })
    };
    let (quota, period, file) = match folder("cpu") {
        // Version 1 of control groups.
        Some(path) => {
            let folder = joined("sys/fs/cgroup/cpu", &path);
            let file = format!("{folder}/cpu.cfs_quota_us");
            let quota = machine.files.number(&file)?;
            (quota, machine.files.number(&format!("{folder}/cpu.cfs_period_us"))?, file)
        }
        None => match limiting_group(machine, &folder("").unwrap_or_default())? {
            Some(found) => found,
            None => return Ok(Finding::good("no limit")),
        },
    };
    if quota < 0 {
        return Ok(Finding::good("no limit"));
    }
    let ms = |us: i64| figures::duration(us.unsigned_abs().saturating_mul(1_000));
    let found = format!("{} in each {}, by /{file}", ms(quota), ms(period));
    let why = "who has had its share of a period is stopped until the next one, whatever waits for it (kernel, \
               scheduler/sched-bwc)";
    let none = if file.ends_with("cpu.max") { "max" } else { "-1" };
    Ok(Finding::improvable(found, "no limit", why).by(format!("echo {none} | sudo tee /{file}")))
}

/// For version 2 of control groups: quota and period in microseconds, and the file, of the first group with a limit
/// among this group and its ancestors.
fn limiting_group(machine: &Machine, group: &str) -> Result<Option<(i64, i64, String)>, Error> {
    let mut group = group;
    let mut said = None;
    loop {
        let file = format!("{}/cpu.max", joined("sys/fs/cgroup", group));
        match machine.files.line(&file) {
            Ok(line) => match line.split_whitespace().collect::<Vec<_>>().as_slice() {
                ["max", ..] => said = Some(()),
                [quota, period] => {
                    let pair = quota.parse().ok().zip(period.parse().ok());
                    let expected = "two numbers of microseconds, or max";
                    let (quota, period) = pair.ok_or_else(|| Error::unexpected(&file, expected))?;
                    return Ok(Some((quota, period, file)));
                }
                _ => {}
            },
            // The root group has no limit and no `cpu.max`; it has this file.
            Err(error) if group.is_empty() => {
                let is_there = machine.files.path("sys/fs/cgroup/cgroup.controllers").exists();
                return if said.is_some() || is_there { Ok(None) } else { Err(error) };
            }
            Err(_) => {}
        }
        if group.is_empty() {
            return Ok(None);
        }
        group = group.rsplit_once('/').map_or("", |(above, _)| above);
    }
}

fn joined(folder: &str, path: &str) -> String {
    if path.is_empty() { folder.to_owned() } else { format!("{folder}/{path}") }
}

fn open_files(machine: &Machine) -> Found {
    let limit = limit(machine, "Max open files")?;
    let found = limit.map_or("no limit".to_owned(), figures::thousands);
    let why = "a hub lets in 1,000 clients unless told otherwise, and each is an open file; beyond the limit nobody is let in \
               (getrlimit(2))";
    let is_good = limit.is_none_or(|limit| limit >= OPEN_FILES);
    Ok(Finding::judged(is_good, found, figures::thousands(OPEN_FILES), why)
        .by("sudo prlimit --pid $$ --nofile=65536"))
}

fn real_time_throttling(machine: &Machine) -> Found {
    let stat = machine.files.line("proc/self/stat")?;
    // Field 41; field 2, a name in brackets, may contain blanks (proc(5)).
    let policy = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(41 - 3));
    let policy = policy.ok_or_else(|| Error::unexpected("proc/self/stat", "52 fields"))?;
    if !["1", "2"].contains(&policy) {
        return Ok(Finding::good("does not matter: this process is under no real-time policy"));
    }
    let (share, period) = (
        machine.files.number("proc/sys/kernel/sched_rt_runtime_us")?,
        machine.files.number("proc/sys/kernel/sched_rt_period_us")?,
    );
    if share < 0 || share >= period {
        return Ok(Finding::good("off"));
    }
    let found = format!("{share} µs of each {period}");
    let why = "a thread that polls under SCHED_FIFO is stopped for the rest of each period (kernel, scheduler/sched-rt-group)";
    Ok(Finding::improvable(found, "off, with a core left for the system", why)
        .by_sysctl("kernel.sched_rt_runtime_us=-1"))
}
