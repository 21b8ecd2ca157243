//! Memory: pages, swapping, the limit of locked memory, and space for rings.

use tapeline_measure::Error;

use super::finding::{Finding, Lasting};
use super::machine::{Check, Found, Machine};

pub(super) const CHECKS: [Check; 9] = [
    ("huge pages", huge_pages),
    ("huge pages in the making", defragmenting),
    ("huge pages of rings", huge_pages_of_rings),
    ("reserved huge pages", reserved_huge_pages),
    ("room for rings", room_for_rings),
    ("rings of who logs out", rings_of_who_logs_out),
    ("swapping", swapping),
    ("zone reclaim", zone_reclaim),
    ("locked memory", locked_memory),
];

const MIB: u64 = 1 << 20;
/// Space for a plant with `images` on and a few further rings: the default size of a ring is 8 MiB.
const ROOM_FOR_RINGS: u64 = 256 * MIB;
/// Several times the need of `ring pub --lock-memory` for a ring of the default size.
const LOCKED: u64 = 64 * MIB;

fn huge_pages(machine: &Machine) -> Found {
    let choice = machine.files.huge_pages()?;
    if choice == "madvise" {
        return Ok(Finding::good("to whoever asks (madvise)"));
    }
    let why = "order books ask for them, and are a quarter to a third slower without (docs/adr/0006); given to all, any thread \
               may wait while one is made (kernel, admin-guide/mm/transhuge)";
    Ok(Finding::improvable(choice, "madvise", why)
        .by_writing("madvise", "sys/kernel/mm/transparent_hugepage/enabled"))
}

fn defragmenting(machine: &Machine) -> Found {
    let choice = machine.files.chosen("sys/kernel/mm/transparent_hugepage/defrag")?;
    let why = "a thread that touches new memory waits while the kernel moves pages together (kernel, admin-guide/mm/transhuge: \
               defrag)";
    let is_good = choice != "always";
    Ok(Finding::judged(is_good, choice, "defer+madvise: only for those that ask", why)
        .by_writing("defer+madvise", "sys/kernel/mm/transparent_hugepage/defrag"))
}

fn huge_pages_of_rings(machine: &Machine) -> Found {
    let choice = machine.files.chosen("sys/kernel/mm/transparent_hugepage/shmem_enabled")?;
    let why = "ring pub --huge-pages has none for shared memory otherwise (kernel, admin-guide/mm/transhuge: shmem_enabled)";
    let is_good = choice != "never" && choice != "deny";
    Ok(Finding::judged(is_good, choice, "advise", why)
        .by_writing("advise", "sys/kernel/mm/transparent_hugepage/shmem_enabled"))
}

fn reserved_huge_pages(machine: &Machine) -> Found {
    let reserved = machine.files.number("proc/sys/vm/nr_hugepages")?;
    let free = in_table(machine, "proc/meminfo", "HugePages_Free:")?;
    if free == 0 {
        return Ok(Finding::good(if reserved == 0 {
            "none".to_owned()
        } else {
            format!("{reserved}, all in use")
        }));
    }
    let why = "nothing else can have them, and Tapeline takes none of this kind (kernel, admin-guide/mm/hugetlbpage)";
    let better = "as many as the programs that ask for them use";
    let setting = format!("vm.nr_hugepages={}", reserved.saturating_sub_unsigned(free));
    Ok(Finding::improvable(format!("{reserved}, of which {free} are idle"), better, why).by_sysctl(setting))
}

fn room_for_rings(machine: &Machine) -> Found {
    let path = machine.files.path("dev/shm");
    let room = rustix::fs::statvfs(&path)
        .map_err(|errno| Error::Read { path: "/dev/shm".into(), source: errno.into() })?;
    Ok(room_text(room.f_blocks.saturating_mul(room.f_frsize), room.f_bavail.saturating_mul(room.f_frsize)))
}

/// Judges the size of `/dev/shm` and its free space, in bytes.
pub(super) fn room_text(size: u64, free: u64) -> Finding {
    let found = format!("{} of {} MiB are free in /dev/shm", free / MIB, size / MIB);
    let why = "a ring is 8 MiB unless told otherwise, and one that finds no room is not made; containers have 64 MiB unless told \
               otherwise (--shm-size)";
    Finding::judged(free >= ROOM_FOR_RINGS, found, format!("{} MiB free", ROOM_FOR_RINGS / MIB), why)
        .by("sudo mount -o remount,size=1G /dev/shm")
}

fn rings_of_who_logs_out(machine: &Machine) -> Found {
    if machine.files.line("proc/1/comm")? != "systemd" {
        return Ok(Finding::good("they stay: no systemd here"));
    }
    // The last setting counts; drop-ins are read after the file (logind.conf(5)).
    let folder = machine.files.path("etc/systemd/logind.conf.d");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|file| file.path()).collect();
    files.retain(|file| file.extension().is_some_and(|end| end == "conf"));
    files.sort();
    files.insert(0, machine.files.path("etc/systemd/logind.conf"));
    let texts: Vec<String> = files.iter().filter_map(|file| std::fs::read_to_string(file).ok()).collect();
    let mut words =
        texts.iter().flat_map(|text| text.lines()).filter_map(|line| line.trim().strip_prefix("RemoveIPC="));
    let removes = words.next_back().map_or("yes, the default", str::trim).to_owned();
    if ["no", "false", "0", "off"].contains(&removes.as_str()) {
        return Ok(Finding::good("they stay (RemoveIPC=no)"));
    }
    let why = "when the last session of a user ends, systemd removes the rings of that user's plants, unless it is a user of the \
               system (logind.conf(5))";
    Ok(Finding::improvable(format!("RemoveIPC={removes}"), "RemoveIPC=no", why)
        .by("sudo mkdir -p /etc/systemd/logind.conf.d && printf '[Login]\\nRemoveIPC=no\\n' | sudo tee \
         /etc/systemd/logind.conf.d/tapeline.conf && sudo systemctl restart systemd-logind")
        .lasting(Lasting::Logind("RemoveIPC=no".to_owned())))
}

fn swapping(machine: &Machine) -> Found {
    let swap = in_table(machine, "proc/meminfo", "SwapTotal:")?;
    if swap == 0 {
        return Ok(Finding::good("there is no swap"));
    }
    let swappiness = machine.files.number("proc/sys/vm/swappiness")?;
    let found = format!("{} MiB of swap, vm.swappiness {swappiness}", swap / 1024);
    let why = "a page of an idle program's that was swapped out costs a read of a disk when it wakes (kernel, admin-guide/sysctl/vm)";
    Ok(Finding::judged(swappiness <= 1, found, "vm.swappiness 1", why).by_sysctl("vm.swappiness=1"))
}

fn zone_reclaim(machine: &Machine) -> Found {
    let mode = machine.files.number("proc/sys/vm/zone_reclaim_mode")?;
    if mode == 0 {
        return Ok(Finding::good("off"));
    }
    let why = "a thread that asks for memory waits while its node is searched for pages to give up (kernel, \
               admin-guide/sysctl/vm: zone_reclaim_mode)";
    Ok(Finding::improvable(format!("mode {mode}"), "off", why).by_sysctl("vm.zone_reclaim_mode=0"))
}

fn locked_memory(machine: &Machine) -> Found {
    let limit = limit(machine, "Max locked memory")?;
    let found = limit.map_or("no limit".to_owned(), |limit| format!("{} KiB", limit / 1024));
    let why = "ring pub and sub --lock-memory keep a ring from being swapped out, and can lock no more than that (getrlimit(2))";
    let is_good = limit.is_none_or(|limit| limit >= LOCKED);
    Ok(Finding::judged(is_good, found, format!("{} MiB or no limit", LOCKED / MIB), why)
        .by("sudo prlimit --pid $$ --memlock=unlimited"))
}

/// The number after a key in a file of lines.
pub(super) fn in_table(machine: &Machine, path: &str, key: &str) -> Result<u64, Error> {
    let text = machine.files.text(path)?;
    let value = text.lines().find_map(|line| line.strip_prefix(key)?.split_whitespace().next()?.parse().ok());
    value.ok_or_else(|| Error::unexpected(path, "a line with this number"))
}

/// The soft limit of this process; `None` if unlimited.
pub(super) fn limit(machine: &Machine, name: &str) -> Result<Option<u64>, Error> {
    let text = machine.files.text("proc/self/limits")?;
    let word = text.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next());
    match word {
        Some("unlimited") => Ok(None),
        Some(word) if word.parse::<u64>().is_ok() => Ok(word.parse().ok()),
        _ => Err(Error::unexpected("proc/self/limits", "a line for each limit")),
    }
}
