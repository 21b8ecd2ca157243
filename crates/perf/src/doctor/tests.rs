//! The checks on simulated machines.

use std::fs;

use tempfile::TempDir;

use super::finding::Severity::{CouldBeBetter, Good, Unknown};
use super::*;

/// Files of a machine of four cores with every setting as it should be for cores 2 and 3.
const WELL: &str = r"
proc/cmdline = quiet isolcpus=2-3 nohz_full=2-3
proc/cpuinfo = processor\t: 0\nflags\t\t: fpu constant_tsc rdtscp nonstop_tsc\n
proc/interrupts =       CPU0 CPU1 CPU2 CPU3\n 24: 5 0 0 0 PCI-MSI 0-edge nvme0\n 30: 1 2 0 0 PCI-MSI eth0-rx-0\nNMI: 0 0 0 0 x\n
proc/irq/24/smp_affinity_list = 0-1
proc/irq/30/smp_affinity_list = 1
proc/meminfo = MemTotal: 16 kB\nSwapTotal:       0 kB\nHugePages_Free:        0\n
proc/1/comm = systemd\n
etc/systemd/logind.conf = [Login]\nRemoveIPC=yes\n
etc/systemd/logind.conf.d/tapeline.conf = [Login]\nRemoveIPC=no\n
proc/net/snmp = Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors\nUdp: 5 0 0 5 0\n
proc/net/softnet_stat = 000000ff 00000000 00000001\n000000ff 00000000 00000001\n
proc/self/cgroup = 0::/user.slice/run.scope\n
proc/self/limits = Limit Soft Hard Units\nMax open files            65536 65536 files\nMax locked memory         unlimited unlimited bytes\n
proc/self/stat = 1 (a b) c) R 0 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 1 1 1 1 1 1 1 1 1 0 0 0 0 0 0 0 17 3 0 0 0 0 0\n
proc/stat = cpu  100 0 0 880 0 0 0 20 0 0\n
proc/sys/kernel/numa_balancing = 1
proc/sys/kernel/sched_rt_period_us = 1000000
proc/sys/kernel/sched_rt_runtime_us = 950000
proc/sys/net/core/busy_poll = 50
proc/sys/net/core/busy_read = 50
proc/sys/net/core/netdev_max_backlog = 1000
proc/sys/net/core/rmem_max = 16777216
proc/sys/net/core/wmem_max = 4194304
proc/sys/net/ipv4/tcp_congestion_control = cubic
proc/sys/net/ipv4/tcp_slow_start_after_idle = 0
proc/sys/vm/nr_hugepages = 0
proc/sys/vm/swappiness = 60
proc/sys/vm/zone_reclaim_mode = 0
sys/devices/system/clocksource/clocksource0/available_clocksource = tsc hpet acpi_pm
sys/devices/system/clocksource/clocksource0/current_clocksource = tsc
sys/devices/system/cpu/cpuidle/current_driver = intel_idle
sys/devices/system/cpu/isolated = 2-3
sys/devices/system/cpu/nohz_full = 2-3
sys/devices/system/cpu/online = 0-3
sys/devices/system/cpu/smt/active = 1
sys/devices/system/cpu/vulnerabilities/meltdown = Not affected
sys/devices/system/cpu/vulnerabilities/spectre_v2 = Vulnerable
sys/devices/system/node/online = 0
sys/devices/system/node/node0/cpulist = 0-1
sys/devices/system/node/node1/cpulist = 2-3
sys/fs/cgroup/cgroup.controllers = cpu
sys/fs/cgroup/user.slice/cpu.max = max 100000
sys/fs/cgroup/user.slice/run.scope/cpu.max = max 100000
sys/kernel/mm/transparent_hugepage/defrag = always defer defer+madvise [madvise] never
sys/kernel/mm/transparent_hugepage/enabled = always [madvise] never
sys/kernel/mm/transparent_hugepage/shmem_enabled = always within_size [advise] never deny force
etc/tuned/active_profile = network-latency
";

/// Files of each core.
const CORE: &[(&str, &str)] = &[
    ("cpufreq/scaling_governor", "performance"),
    ("cpufreq/scaling_max_freq", "3600000"),
    ("cpufreq/cpuinfo_max_freq", "3600000"),
    ("cpuidle/state0/name", "POLL"),
    ("cpuidle/state0/latency", "0"),
    ("cpuidle/state0/disable", "0"),
    ("cpuidle/state1/name", "C1"),
    ("cpuidle/state1/latency", "2"),
    ("cpuidle/state1/disable", "0"),
    ("cpuidle/state2/name", "C6"),
    ("cpuidle/state2/latency", "133"),
    ("cpuidle/state2/disable", "1"),
];

/// A file's path and text, written `path = text`, where `\n` ends a line and `\t` is a tab.
fn file(line: &str) -> (&str, String) {
    let (path, text) = line.split_once(" =").unwrap();
    (path, text.trim_start().replace("\\n", "\n").replace("\\t", "\t"))
}

fn write(folder: &TempDir, path: &str, text: &str) {
    let path = folder.path().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// The good machine, with some files changed or removed.
fn machine(changes: &[(&str, Option<&str>)], cores: Option<Vec<usize>>) -> (TempDir, Machine) {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in WELL.trim().lines().map(file) {
        write(&folder, path, &text);
    }
    for core in 0..4 {
        for (path, text) in CORE {
            write(&folder, &format!("sys/devices/system/cpu/cpu{core}/{path}"), text);
        }
        let list = core.to_string();
        write(&folder, &format!("sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list"), &list);
    }
    fs::create_dir_all(folder.path().join("dev/shm")).unwrap();
    for (path, text) in changes {
        match text {
            Some(text) => write(&folder, path, text),
            None => fs::remove_file(folder.path().join(path)).unwrap(),
        }
    }
    let machine = Machine::new(SystemFiles::under(folder.path()), &[0, 1, 2, 3], cores);
    (folder, machine)
}

fn found(topic: &str, changes: &[(&str, Option<&str>)]) -> Finding {
    found_for(topic, changes, Some(vec![2, 3]))
}

fn found_for(topic: &str, changes: &[(&str, Option<&str>)], cores: Option<Vec<usize>>) -> Finding {
    let (_folder, machine) = machine(changes, cores);
    let all = looked_at(&machine);
    all.into_iter().find(|looked| looked.topic == topic).unwrap().finding
}

#[test]
fn a_machine_that_is_well_has_nothing_to_mend() {
    let (_folder, machine) = machine(&[], Some(vec![2, 3]));
    for looked in looked_at(&machine) {
        // The free space is that of the file system under the test's folder.
        if looked.topic != "room for rings" {
            assert_eq!(looked.finding.severity, Good, "{looked:?}");
        }
    }
}

#[test]
fn what_is_not_there_is_unknown() {
    let folder = tempfile::tempdir().unwrap();
    let machine = Machine::new(SystemFiles::under(folder.path()), &[0, 1], None);
    let findings = looked_at(&machine);
    for looked in &findings {
        assert_eq!(looked.finding.severity, Unknown, "{looked:?}");
        assert!(looked.finding.found.starts_with("there is no /"), "{looked:?}");
        assert_eq!(looked.finding.command, None);
    }
    let topics: std::collections::BTreeSet<&str> = findings.iter().map(|looked| looked.topic).collect();
    assert_eq!(topics.len(), findings.len(), "each topic once");
}

#[test]
fn what_is_strange_is_unknown_and_says_what_was_expected() {
    let finding = found("receive buffers", &[("proc/sys/net/core/rmem_max", Some("much"))]);
    assert_eq!(
        (finding.severity, finding.found.as_str()),
        (Unknown, "/proc/sys/net/core/rmem_max: expected a whole number")
    );
}

/// Cases of settings that could be better: the topic, files that differ from those of the good machine, the finding after
/// `:`, and its command, if there is one, after `$`.
const CASES: &str = r#"
frequency governor
    sys/devices/system/cpu/cpu3/cpufreq/scaling_governor = powersave
    : performance on core 2, powersave on core 3
    $ echo performance | sudo tee /sys/devices/system/cpu/cpu3/cpufreq/scaling_governor
frequency limit
    sys/devices/system/cpu/cpu2/cpufreq/scaling_max_freq = 2000000
    sys/devices/system/cpu/cpu3/cpufreq/scaling_max_freq = 2000000
    : 2.00 GHz of 3.60 GHz on cores 2-3
    $ echo 3600000 | sudo tee /sys/devices/system/cpu/cpu{2,3}/cpufreq/scaling_max_freq
sleep states
    sys/devices/system/cpu/cpu2/cpuidle/state2/disable = 0
    : down to C6, 133 µs to wake on core 2, down to C1, 2 µs to wake on core 3
    $ sudo cpupower -c 2 idle-set -D 10
isolated cores
    sys/devices/system/cpu/isolated = 2
    usr/sbin/grubby =
    : core 2
    $ sudo grubby --update-kernel=ALL --args="isolcpus=2-3" && sudo reboot
cores without a tick
    sys/devices/system/cpu/nohz_full = (null)
    : none
    $ echo 'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX nohz_full=2-3"' | sudo tee -a /etc/default/grub.d/latency.cfg && sudo update-grub && sudo reboot
interrupts
    proc/interrupts =       CPU0 CPU1 CPU2 CPU3\n 24: 5 0 0 0 PCI nvme0\n 30: 1 2 1000 2000 PCI eth0-rx-0\n
    proc/irq/30/smp_affinity_list = 0-3
    : 1 of 2 may come to cores 2-3; most came of eth0-rx-0, 3,000 since the start
    $ for irq in 30; do echo 0-1 | sudo tee /proc/irq/$irq/smp_affinity_list; done
hyper-threads
    sys/devices/system/cpu/cpu2/topology/thread_siblings_list = 0,2
    : siblings: 0,2
    $ echo off | sudo tee /sys/devices/system/cpu/smt/control
memory nodes
    sys/devices/system/node/online = 0-1
    : 2, cores 2-3 on 1; balancing on
    $ sudo sysctl -w kernel.numa_balancing=0
memory nodes
    sys/devices/system/node/online = 0-1
    sys/devices/system/node/node0/cpulist = 0-2
    : 2, cores 2-3 on 0-1; balancing on
    $ numactl --cpunodebind=0 --membind=0 tapeline …
mitigations
    sys/devices/system/cpu/vulnerabilities/retbleed = Mitigation: Enhanced IBRS
    usr/bin/grubby =
    : retbleed
    $ sudo grubby --update-kernel=ALL --args="mitigations=off" && sudo reboot
time-stamp counter
    proc/cpuinfo = flags : fpu constant_tsc\n
    : not of constant rate: no nonstop_tsc
clock source
    sys/devices/system/clocksource/clocksource0/current_clocksource = hpet
    : hpet
    $ echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource
virtual machine
    proc/cpuinfo = flags : constant_tsc nonstop_tsc hypervisor\n
    : yes; the host took 2.00 % of its cores' time since the start
huge pages
    sys/kernel/mm/transparent_hugepage/enabled = [always] madvise never
    : always
    $ echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled
huge pages in the making
    sys/kernel/mm/transparent_hugepage/defrag = [always] defer defer+madvise madvise never
    : always
    $ echo defer+madvise | sudo tee /sys/kernel/mm/transparent_hugepage/defrag
huge pages of rings
    sys/kernel/mm/transparent_hugepage/shmem_enabled = always advise [never]
    : never
    $ echo advise | sudo tee /sys/kernel/mm/transparent_hugepage/shmem_enabled
reserved huge pages
    proc/sys/vm/nr_hugepages = 512
    proc/meminfo = HugePages_Free:      500\n
    : 512, of which 500 are idle
    $ sudo sysctl -w vm.nr_hugepages=12
swapping
    proc/meminfo = SwapTotal:  2097152 kB\n
    : 2048 MiB of swap, vm.swappiness 60
    $ sudo sysctl -w vm.swappiness=1
rings of who logs out
    etc/systemd/logind.conf = [Login]\n
    etc/systemd/logind.conf.d/tapeline.conf = [Login]\n#RemoveIPC=no\n
    : RemoveIPC=yes, the default
    $ sudo mkdir -p /etc/systemd/logind.conf.d && printf '[Login]\nRemoveIPC=no\n' | sudo tee /etc/systemd/logind.conf.d/tapeline.conf && sudo systemctl restart systemd-logind
zone reclaim
    proc/sys/vm/zone_reclaim_mode = 1
    : mode 1
    $ sudo sysctl -w vm.zone_reclaim_mode=0
locked memory
    proc/self/limits = Max locked memory  8388608  8388608  bytes\n
    : 8192 KiB
    $ sudo prlimit --pid $$ --memlock=unlimited
receive buffers
    proc/sys/net/core/rmem_max = 212992
    : up to 208 KiB
    $ sudo sysctl -w net.core.rmem_max=16777216
send buffers
    proc/sys/net/core/wmem_max = 212992
    : up to 208 KiB
    $ sudo sysctl -w net.core.wmem_max=4194304
datagrams lost
    proc/net/snmp = Udp: InDatagrams RcvbufErrors\nUdp: 5 1234\n
    : 1,234 for want of room in a socket since the start
    $ cat /proc/net/udp
backlog
    proc/net/softnet_stat = 000000ff 00000010 0\n000000ff 00000001 0\n
    : 1000 packets; 17 found it full
    $ sudo sysctl -w net.core.netdev_max_backlog=8000
busy polling
    proc/sys/net/core/busy_read = 0
    : read 0 µs, poll 50 µs
    $ sudo sysctl -w net.core.busy_read=50 net.core.busy_poll=50
congestion control
    proc/sys/net/ipv4/tcp_congestion_control = bbr
    : bbr
    $ sudo sysctl -w net.ipv4.tcp_congestion_control=cubic
slow start after idling
    proc/sys/net/ipv4/tcp_slow_start_after_idle = 1
    : on
    $ sudo sysctl -w net.ipv4.tcp_slow_start_after_idle=0
tuned profile
    etc/tuned/active_profile = balanced
    : balanced
    $ sudo tuned-adm profile network-latency
share of the processors
    sys/fs/cgroup/user.slice/cpu.max = 150000 100000
    : 150 ms in each 100 ms, by /sys/fs/cgroup/user.slice/cpu.max
    $ echo max | sudo tee /sys/fs/cgroup/user.slice/cpu.max
share of the processors
    proc/self/cgroup = 4:memory:/a\n3:cpu,cpuacct:/docker/1\n0::/\n
    sys/fs/cgroup/cpu/docker/1/cpu.cfs_quota_us = 50000
    sys/fs/cgroup/cpu/docker/1/cpu.cfs_period_us = 100000
    : 50.0 ms in each 100 ms, by /sys/fs/cgroup/cpu/docker/1/cpu.cfs_quota_us
    $ echo -1 | sudo tee /sys/fs/cgroup/cpu/docker/1/cpu.cfs_quota_us
open files
    proc/self/limits = Max open files  1024  1048576  files\n
    : 1,024
    $ sudo prlimit --pid $$ --nofile=65536
real-time throttling
    proc/self/stat = 1 (x) R 0 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 1 1 1 1 1 1 1 1 1 0 0 0 0 0 0 0 17 3 50 1 0 0 0\n
    : 950000 µs of each 1000000
    $ sudo sysctl -w kernel.sched_rt_runtime_us=-1
"#;

/// Topic, changed files, expected finding, expected command.
type Case<'a> = (&'a str, Vec<(&'a str, String)>, &'a str, Option<&'a str>);

fn cases() -> Vec<Case<'static>> {
    let mut cases: Vec<Case<'_>> = Vec::new();
    for line in CASES.trim().lines() {
        let Some(line) = line.strip_prefix("    ") else {
            cases.push((line, Vec::new(), "", None));
            continue;
        };
        let (_, changes, found, command) = cases.last_mut().unwrap();
        match line.split_once(' ').unwrap() {
            (":", text) => *found = text,
            ("$", text) => *command = Some(text),
            _ => changes.push(file(line)),
        }
    }
    cases
}

#[test]
fn each_setting_that_could_be_better_is_found_with_its_command() {
    for (topic, changes, expected, command) in cases() {
        let changes: Vec<_> = changes.iter().map(|(path, text)| (*path, Some(text.as_str()))).collect();
        let finding = found(topic, &changes);
        assert_eq!(finding.severity, CouldBeBetter, "{topic}: {finding:?}");
        assert_eq!(finding.found, expected, "{topic}");
        assert_eq!(finding.command.as_deref(), command, "{topic}");
        assert!(finding.better.is_some() && finding.why.is_some(), "{topic}");
    }
    // Each check has a case that could be better.
    let topics = AREAS.iter().flat_map(|(_, checks)| checks.iter().map(|(topic, _)| *topic));
    for topic in topics.filter(|topic| *topic != "room for rings") {
        assert!(cases().iter().any(|(case, ..)| *case == topic), "{topic}");
    }
}

#[test]
fn one_core_must_stay_for_the_system() {
    // All cores named: none is left for the system.
    let all = || Some(vec![0, 1, 2, 3]);
    for topic in ["isolated cores", "cores without a tick", "interrupts"] {
        let finding = found_for(topic, &[], all());
        assert_eq!((finding.severity, &finding.command), (CouldBeBetter, &None), "{topic}: {finding:?}");
        assert!(finding.better.unwrap().contains("name fewer"), "{topic}");
    }
    // No cores named: the first one is left for the system.
    let finding = found_for("isolated cores", &[("usr/bin/grubby", Some(""))], None);
    assert!(finding.command.unwrap().contains("isolcpus=1-3"));
}

#[test]
fn the_host_of_a_virtual_machine_decides_on_sleep() {
    let driver = "sys/devices/system/cpu/cpuidle/current_driver";
    assert_eq!(found("sleep states", &[(driver, Some("none"))]).severity, Unknown);
    let polls = [(driver, None), ("proc/cmdline", Some("quiet idle=poll"))];
    assert_eq!(found("sleep states", &polls).severity, Good);
}

#[test]
fn room_is_judged_by_what_is_free() {
    assert_eq!(memory::room_text(1 << 30, 512 << 20).severity, Good);
    let finding = memory::room_text(64 << 20, 60 << 20);
    assert_eq!(
        (finding.severity, finding.found.as_str()),
        (CouldBeBetter, "60 of 64 MiB are free in /dev/shm")
    );
}

#[test]
fn the_floor_is_judged_by_its_99th_percentile_and_its_longest_gap() {
    let judged = |floor, longest| floor::judged(String::new(), floor, longest, &[2, 3]);
    assert_eq!(judged(1_000, 100_000).severity, Good);
    for finding in [judged(1_001, 0), judged(0, 100_001)] {
        assert_eq!(finding.severity, CouldBeBetter);
        assert_eq!(finding.command.as_deref(), Some("tapeline jitter --cpus 2-3 --duration 1m"));
    }
}
