//! Processors: their speed, their sleep states, and the other work on them.

use std::collections::BTreeSet;

use tapeline_measure::{Error, figures};

use super::finding::Finding;
use super::machine::{Check, Found, Machine, cores_text, files_of, values_text};

pub(super) const CHECKS: [Check; 12] = [
    ("frequency governor", governor),
    ("frequency limit", frequency_limit),
    ("sleep states", sleep_states),
    ("isolated cores", isolated),
    ("cores without a tick", tickless),
    ("interrupts", interrupts),
    ("hyper-threads", hyper_threads),
    ("memory nodes", memory_nodes),
    ("mitigations", mitigations),
    ("time-stamp counter", counter),
    ("clock source", clock_source),
    ("virtual machine", virtual_machine),
];

/// Maximum wake-up latency of a core, in µs: about the latency of a plant's hop (README.md: wire to decoded, 12 µs).
const LONGEST_WAKE_US: i64 = 10;

fn governor(machine: &Machine) -> Found {
    let values = machine.by_value(|core| machine.files.governor(core))?;
    let slow: Vec<usize> = values
        .iter()
        .filter(|(value, _)| value != "performance")
        .flat_map(|(_, cores)| cores)
        .copied()
        .collect();
    let why = "other governors raise the frequency only once there has been load, so the first messages of a burst are \
               slow (kernel, admin-guide/pm/cpufreq)";
    let command = format!("echo performance | sudo tee {}", files_of(&slow, "cpufreq/scaling_governor"));
    Ok(Finding::judged(slow.is_empty(), values_text(&values), "performance", why).by(command))
}

fn frequency_limit(machine: &Machine) -> Found {
    let limit = |core: usize, file: &str| {
        machine.files.number(&format!("sys/devices/system/cpu/cpu{core}/cpufreq/{file}"))
    };
    let ghz = |khz: i64| format!("{:.2} GHz", khz as f64 / 1e6);
    let (mut capped, mut possible) = (Vec::new(), 0);
    let values = machine.by_value(|core| {
        let (allowed, most) = (limit(core, "scaling_max_freq")?, limit(core, "cpuinfo_max_freq")?);
        if allowed < most {
            capped.push(core);
            possible = possible.max(most);
            return Ok(format!("{} of {}", ghz(allowed), ghz(most)));
        }
        Ok(ghz(most))
    })?;
    let why = "whatever is bound by the processor takes longer by as much (kernel, admin-guide/pm/cpufreq: scaling_max_freq)";
    let command = format!("echo {possible} | sudo tee {}", files_of(&capped, "cpufreq/scaling_max_freq"));
    Ok(Finding::judged(capped.is_empty(), values_text(&values), ghz(possible), why).by(command))
}

fn sleep_states(machine: &Machine) -> Found {
    if machine.files.line("proc/cmdline")?.split_whitespace().any(|argument| argument == "idle=poll") {
        return Ok(Finding::good("none: idle=poll"));
    }
    let driver = machine.files.line("sys/devices/system/cpu/cpuidle/current_driver")?;
    if driver == "none" {
        return Ok(Finding::unknown(
            "the kernel has no driver for sleep states here: the host or the firmware decides",
        ));
    }
    let mut deep = Vec::new();
    let values = machine.by_value(|core| {
        let folder = format!("sys/devices/system/cpu/cpu{core}/cpuidle");
        let mut deepest = (0, "none".to_owned());
        for state in machine.files.names(&folder)?.iter().filter(|name| name.starts_with("state")) {
            let number = |file: &str| machine.files.number(&format!("{folder}/{state}/{file}"));
            if number("disable")? == 0 && number("latency")? >= deepest.0 {
                deepest = (number("latency")?, machine.files.line(&format!("{folder}/{state}/name"))?);
            }
        }
        if deepest.0 >= LONGEST_WAKE_US {
            deep.push(core);
        }
        Ok(format!("down to {}, {} µs to wake", deepest.1, deepest.0))
    })?;
    let why = "a core that sleeps deeply wakes late, on top of whatever woke it (kernel, admin-guide/pm/cpuidle: latency)";
    let command = format!("sudo cpupower -c {} idle-set -D {LONGEST_WAKE_US}", figures::list(&deep));
    let better = format!("no state that takes {LONGEST_WAKE_US} µs or more to wake from");
    Ok(Finding::judged(deep.is_empty(), values_text(&values), better, why).by(command))
}

fn isolated(machine: &Machine) -> Found {
    let why = "the scheduler puts other threads on any other core, for milliseconds at a time; threads must be pinned to \
               isolated ones (kernel, admin-guide/kernel-parameters: isolcpus)";
    kept_for_us(machine, &machine.files.isolated()?, "isolcpus", why)
}

fn tickless(machine: &Machine) -> Found {
    let why = "100 to 1,000 times a second the tick takes the core for microseconds, also from a thread that is alone on it \
               (kernel, timers/no_hz)";
    kept_for_us(machine, &machine.files.tickless()?, "nohz_full", why)
}

/// Checks that the quiet cores are in a list of the kernel's command line.
fn kept_for_us(machine: &Machine, listed: &[usize], argument: &str, why: &'static str) -> Found {
    let missing: Vec<usize> = machine.quiet.iter().copied().filter(|core| !listed.contains(core)).collect();
    let found = if listed.is_empty() { "none".to_owned() } else { cores_text(listed) };
    Ok(match (missing.as_slice(), machine.house.as_slice()) {
        ([], _) if !machine.quiet.is_empty() => Finding::good(found),
        (_, []) | ([], _) => Finding::improvable(
            found,
            "a further core, for the system: name fewer, or take a machine with more",
            why,
        ),
        _ => {
            let cores = figures::list(&machine.quiet);
            Finding::improvable(found, cores_text(&machine.quiet), why)
                .by(machine.kernel_argument(&format!("{argument}={cores}")))
        }
    })
}

fn interrupts(machine: &Machine) -> Found {
    let text = machine.files.text("proc/interrupts")?;
    let mut lines = text.lines();
    let columns: Vec<usize> = lines
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .filter_map(|column| column.strip_prefix("CPU")?.parse().ok())
        .collect();
    let mut allowed: Vec<(u64, u32, String)> = Vec::new();
    let mut all = 0;
    for line in lines {
        let Some((number, rest)) = line.split_once(':') else { continue };
        // Lines such as NMI and LOC are the core's own.
        let Ok(number) = number.trim().parse::<u32>() else { continue };
        all += 1;
        let cores = machine.files.cores(&format!("proc/irq/{number}/smp_affinity_list"))?;
        if cores.iter().any(|core| machine.quiet.contains(core)) {
            let counts = rest.split_whitespace().zip(&columns);
            let here = counts.filter(|(_, core)| machine.quiet.contains(core));
            let count = here.filter_map(|(count, _)| count.parse::<u64>().ok()).sum();
            let name = rest.split_whitespace().last().unwrap_or_default().to_owned();
            allowed.push((count, number, name));
        }
    }
    let quiet = if machine.quiet.is_empty() { &machine.cores } else { &machine.quiet };
    if allowed.is_empty() && !machine.quiet.is_empty() {
        return Ok(Finding::good(format!("none of {all} may come to {}", cores_text(quiet))));
    }
    allowed.sort_by(|one, other| other.cmp(one));
    let most = allowed.first().filter(|(count, ..)| *count > 0);
    let most = most.map_or_else(String::new, |(count, _, name)| {
        format!("; most came of {name}, {} since the start", figures::thousands(*count))
    });
    let found = format!("{} of {all} may come to {}{most}", allowed.len(), cores_text(quiet));
    let why = "each takes the core for microseconds, and its caches; irqbalance moves them back unless it is stopped or told \
               (kernel, core-api/irq/irq-affinity)";
    if machine.house.is_empty() || machine.quiet.is_empty() {
        let better = "on a core of the system's: name fewer, or take a machine with more";
        return Ok(Finding::improvable(found, better, why));
    }
    let mut numbers: Vec<u32> = allowed.iter().map(|(_, number, _)| *number).collect();
    numbers.sort_unstable();
    let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
    let house = figures::list(&machine.house);
    let command = format!(
        "for irq in {}; do echo {house} | sudo tee /proc/irq/$irq/smp_affinity_list; done",
        numbers.join(" ")
    );
    Ok(Finding::improvable(found, format!("all of them on {}", cores_text(&machine.house)), why).by(command))
}

fn hyper_threads(machine: &Machine) -> Found {
    if !machine.files.hyper_threads()? {
        return Ok(Finding::good("off, or the processor has none"));
    }
    let mut shared = Vec::new();
    for core in &machine.cores {
        let path = format!("sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list");
        let siblings = machine.files.cores(&path)?;
        if siblings.len() > 1 && !shared.contains(&siblings) {
            shared.push(siblings);
        }
    }
    if shared.is_empty() {
        return Ok(Finding::good(format!("{}: none has a sibling", cores_text(&machine.cores))));
    }
    let lists: Vec<String> = shared.iter().map(|siblings| figures::list(siblings)).collect();
    let why = "siblings share units and caches of one core: one that polls slows the other down (kernel, \
               admin-guide/hw-vuln/core-scheduling: SMT)";
    Ok(Finding::improvable(format!("siblings: {}", lists.join("; ")), "one thread a core", why)
        .by("echo off | sudo tee /sys/devices/system/cpu/smt/control"))
}

fn memory_nodes(machine: &Machine) -> Found {
    let nodes = machine.files.cores("sys/devices/system/node/online")?;
    if nodes.len() <= 1 {
        return Ok(Finding::good("one"));
    }
    let mut used = Vec::new();
    for node in &nodes {
        let cores = machine.files.cores(&format!("sys/devices/system/node/node{node}/cpulist"))?;
        if cores.iter().any(|core| machine.cores.contains(core)) {
            used.push(*node);
        }
    }
    let balances = machine.files.number("proc/sys/kernel/numa_balancing")? != 0;
    let found = format!(
        "{}, {} on {}; balancing {}",
        nodes.len(),
        cores_text(&machine.cores),
        figures::list(&used),
        if balances { "on" } else { "off" }
    );
    let why = "memory of another node is farther away, and balancing takes pages from a running thread to move them (kernel, \
               admin-guide/sysctl/kernel: numa_balancing)";
    Ok(match used.as_slice() {
        [_] => Finding::judged(!balances, found, "no balancing", why).by_sysctl("kernel.numa_balancing=0"),
        _ => {
            let node = used.first().copied().unwrap_or(0);
            Finding::improvable(found, "plant, feeds and readers on one node", why)
                .by(format!("numactl --cpunodebind={node} --membind={node} tapeline …"))
        }
    })
}

fn mitigations(machine: &Machine) -> Found {
    let folder = "sys/devices/system/cpu/vulnerabilities";
    let mut on = Vec::new();
    for name in machine.files.names(folder)? {
        if machine.files.line(&format!("{folder}/{name}"))?.starts_with("Mitigation") {
            on.push(name);
        }
    }
    if on.is_empty() {
        return Ok(Finding::good("none"));
    }
    let why = "they make system calls and interrupts dearer; only where every program of the machine is trusted (kernel, \
               admin-guide/hw-vuln)";
    let better = "none, where every program of the machine is trusted";
    Ok(Finding::improvable(on.join(", "), better, why).by(machine.kernel_argument("mitigations=off")))
}

/// The given words that are in the processor's flags.
fn flags(machine: &Machine, words: &[&str]) -> Result<BTreeSet<String>, Error> {
    let info = machine.files.text("proc/cpuinfo")?;
    let line = info.lines().find_map(|line| line.split_once(':').filter(|(key, _)| key.trim() == "flags"));
    let expected = || Error::unexpected("proc/cpuinfo", "a line with the processor's flags");
    let (_, flags) = line.ok_or_else(expected)?;
    Ok(flags.split_whitespace().filter(|flag| words.contains(flag)).map(str::to_owned).collect())
}

fn counter(machine: &Machine) -> Found {
    let words = ["constant_tsc", "nonstop_tsc"];
    let flags = flags(machine, &words)?;
    if flags.len() == words.len() {
        return Ok(Finding::good("of constant rate, in sleep too"));
    }
    let missing: Vec<&str> = words.into_iter().filter(|word| !flags.contains(*word)).collect();
    let why = "stamps then come from a system call, at several times the cost (Intel's manual, volume 3B, 'Invariant TSC'; \
               cargo bench -p tapeline-measure)";
    let found = format!("not of constant rate: no {}", missing.join(", "));
    Ok(Finding::improvable(found, "a processor, or a setting of the host, that shows both", why))
}

fn clock_source(machine: &Machine) -> Found {
    let source = machine.files.clock_source()?;
    if source == "tsc" {
        return Ok(Finding::good("tsc"));
    }
    let folder = "sys/devices/system/clocksource/clocksource0";
    let available = machine.files.line(&format!("{folder}/available_clocksource"))?;
    let why = "every other source makes each reading of the clock dearer, some by a system call and a slow register (kernel, \
               timers/timekeeping)";
    let finding = Finding::improvable(&source, "tsc", why);
    Ok(if available.split_whitespace().any(|word| word == "tsc") {
        finding.by(format!("echo tsc | sudo tee /{folder}/current_clocksource"))
    } else {
        finding.by(machine.kernel_argument("clocksource=tsc tsc=reliable"))
    })
}

fn virtual_machine(machine: &Machine) -> Found {
    if flags(machine, &["hypervisor"])?.is_empty() {
        return Ok(Finding::good("no"));
    }
    let stat = machine.files.line("proc/stat")?;
    // user nice system idle iowait irq softirq steal, then guest and guest_nice, which user and nice include (proc(5)).
    let times: Vec<u64> =
        stat.split_whitespace().skip(1).take(8).filter_map(|word| word.parse().ok()).collect();
    let found = match times.as_slice() {
        [.., steal] if times.len() == 8 => {
            let all: u64 = times.iter().sum();
            let share = if all == 0 { 0.0 } else { *steal as f64 * 100.0 / all as f64 };
            format!("yes; the host took {share:.2} % of its cores' time since the start")
        }
        _ => "yes; how much the host takes is not said".to_owned(),
    };
    let why = "the host takes cores away at any time, for milliseconds, and every interrupt leaves the guest";
    Ok(Finding::improvable(
        found,
        "the machine itself, or virtual cores that the host pins to cores of their own",
        why,
    ))
}
