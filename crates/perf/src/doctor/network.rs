//! The network: socket buffers, and the kernel's processing of packets.

use tapeline_measure::figures;

use super::finding::Finding;
use super::machine::{Check, Found, Machine};

pub(super) const CHECKS: [Check; 7] = [
    ("receive buffers", receive_buffers),
    ("send buffers", send_buffers),
    ("datagrams lost", datagrams_lost),
    ("backlog", backlog),
    ("busy polling", busy_polling),
    ("congestion control", congestion_control),
    ("slow start after idling", slow_start),
];

/// Receive buffer of a feed's socket: four times the 4 MiB default of a plant's line; `tapeline demo` uses it.
const RECEIVE: i64 = 16 << 20;
/// Send buffer that the senders of datagrams request.
const SEND: i64 = 4 << 20;

fn receive_buffers(machine: &Machine) -> Found {
    let why = "a socket of a feed asks for 4 MiB, the demo's for 16: what comes while its reader is away has to fit, and \
               10 Gbit/s fill 4 MiB in 3.4 ms; the rest is lost (socket(7))";
    let most = machine.files.number("proc/sys/net/core/rmem_max")?;
    Ok(buffers("net.core.rmem_max", most, RECEIVE, why))
}

fn send_buffers(machine: &Machine) -> Found {
    let why = "feed replay and feed simulate ask for 4 MiB; with less their bursts wait for the interface (socket(7))";
    let most = machine.files.number("proc/sys/net/core/wmem_max")?;
    Ok(buffers("net.core.wmem_max", most, SEND, why))
}

fn buffers(setting: &str, most: i64, wanted: i64, why: &'static str) -> Finding {
    let kib = |bytes: i64| format!("{} KiB", figures::thousands((bytes / 1024).unsigned_abs()));
    let found = format!("up to {}", kib(most));
    Finding::judged(most >= wanted, found, kib(wanted), why).by_sysctl(format!("{setting}={wanted}"))
}

fn datagrams_lost(machine: &Machine) -> Found {
    // Two lines for each protocol: names and values.
    let text = machine.files.text("proc/net/snmp")?;
    let mut rows = text.lines().filter_map(|line| line.strip_prefix("Udp:"));
    let pair = rows.next().zip(rows.next());
    let column = pair.and_then(|(names, numbers)| {
        let at = names.split_whitespace().position(|name| name == "RcvbufErrors")?;
        numbers.split_whitespace().nth(at)?.parse::<u64>().ok()
    });
    Ok(match column {
        None => Finding::unknown("/proc/net/snmp does not count RcvbufErrors of Udp"),
        Some(0) => Finding::good("none for want of room in a socket since the start"),
        Some(lost) => {
            let found = format!("{} for want of room in a socket since the start", figures::thousands(lost));
            let why = "a reader was away for longer than its socket's buffer lasts; which one shows in the column drops";
            Finding::improvable(
                found,
                "more room (receive_buffer of a feed), or a reader with a core to itself",
                why,
            )
            .by("cat /proc/net/udp")
        }
    })
}

fn backlog(machine: &Machine) -> Found {
    let length = machine.files.number("proc/sys/net/core/netdev_max_backlog")?;
    let text = machine.files.text("proc/net/softnet_stat")?;
    // One line a core, in hexadecimal: packets, packets dropped because the backlog was full, ...
    let dropped = text.lines().map(|line| line.split_whitespace().nth(1));
    let dropped: Option<Vec<u64>> = dropped.map(|word| u64::from_str_radix(word?, 16).ok()).collect();
    Ok(match dropped.map(|dropped| dropped.iter().sum::<u64>()) {
        None => Finding::unknown("/proc/net/softnet_stat: expected numbers"),
        Some(0) => Finding::good(format!("{length} packets, never full")),
        Some(dropped) => {
            let found = format!("{length} packets; {} found it full", figures::thousands(dropped));
            let why = "packets of the loopback interface wait there for their core, and what finds no room is lost (kernel, \
                       admin-guide/sysctl/net: netdev_max_backlog)";
            let better = length.saturating_mul(8);
            Finding::improvable(found, format!("{better} packets"), why)
                .by_sysctl(format!("net.core.netdev_max_backlog={better}"))
        }
    })
}

fn busy_polling(machine: &Machine) -> Found {
    let reads = machine.files.number("proc/sys/net/core/busy_read")?;
    let polls = machine.files.number("proc/sys/net/core/busy_poll")?;
    let found = format!("read {reads} µs, poll {polls} µs");
    let why = "a read that finds nothing looks at the card itself for so long instead of waiting for its interrupt; costs the \
               core (kernel, admin-guide/sysctl/net: recommended 50)";
    let better = "50 µs each, where cores can be spared and the card can";
    Ok(Finding::judged(reads > 0 && polls > 0, found, better, why)
        .by_sysctl("net.core.busy_read=50 net.core.busy_poll=50"))
}

fn congestion_control(machine: &Machine) -> Found {
    let control = machine.files.line("proc/sys/net/ipv4/tcp_congestion_control")?;
    let why = "bbr spreads what is sent over time by the rate that it found before: a burst to clients nearby waits for its \
               timers (draft-ietf-ccwg-bbr: pacing)";
    Ok(Finding::judged(control != "bbr", &control, "cubic, for clients nearby", why)
        .by_sysctl("net.ipv4.tcp_congestion_control=cubic"))
}

fn slow_start(machine: &Machine) -> Found {
    if machine.files.number("proc/sys/net/ipv4/tcp_slow_start_after_idle")? == 0 {
        return Ok(Finding::good("off"));
    }
    let why = "after a pause a connection may have only ten packets under way until they are answered, so a burst after quiet \
               takes round trips (kernel, networking/ip-sysctl; RFC 6928)";
    Ok(Finding::improvable("on", "off", why).by_sysctl("net.ipv4.tcp_slow_start_after_idle=0"))
}
