//! A plant's counters for people.

use tapeline_console::output::{self, table};
use tapeline_measure::figures::{self, thousands};
use tapeline_node::stat::snapshot::{
    AeronReceivedSnapshot, AeronSendingSnapshot, BridgeSnapshot, Hub, Latency, LeaseSnapshot, ReaderSnapshot,
    Session, Snapshot, SymbolSnapshot, UpstreamSnapshot,
};
use tapeline_perf::path::ClockAbove;

/// Resolution of the age of a state, in ns.
const SECOND: u64 = 1_000_000_000;
/// Maximum number of sessions, and of symbols of venues, to show; JSON has all of them.
const MOST_SESSIONS: usize = 40;
const MOST_SYMBOLS: usize = 40;
/// In the place of a rate of a plant that reports nothing.
const NO_RATE: &str = "–";

pub(super) fn of(plant: &Snapshot) -> String {
    let cores = if is_silent(plant) { NO_RATE.to_owned() } else { format!("{:.2}", plant.process.cores) };
    let mut text = format!(
        "{}plant        {} on ring {}, process {}, version {}, up {}\n\
         process      {cores} cores, {}, at most {}, {} threads, {} descriptors\n\
         ticks        {}, {}; {} items\n\
         ring         {}{}; stalled {} times, {} in all; {} readers evicted",
        silence(plant),
        shown(&plant.plant),
        plant.ring,
        plant.pid,
        shown(&plant.version),
        figures::duration(plant.written_ns.saturating_sub(plant.started_ns)),
        bytes(plant.process.resident_bytes),
        bytes(plant.process.peak_resident_bytes),
        plant.process.threads,
        plant.process.descriptors,
        thousands(plant.ticks),
        rate(plant, plant.ticks_per_second, "ticks"),
        thousands(plant.items as u64),
        bytes(plant.backpressure.ring_bytes),
        if plant.ring_removed { ", NAME REMOVED: no program can join it" } else { "" },
        thousands(plant.backpressure.stalls),
        figures::duration(plant.backpressure.stalled_ns),
        plant.backpressure.evicted,
    );
    if let Some(journal) = &plant.journal {
        let state =
            if journal.state == "keeping" { journal.state.clone() } else { journal.state.to_uppercase() };
        let [kept, missing] = [journal.kept, journal.missing].map(thousands);
        text.push_str(&format!("\njournal      {}, up to tick {kept}, {missing} missing", shown(&state)));
    }
    for (name, outlet) in [("kdb+", &plant.kdb), ("ZeroMQ", &plant.zeromq)] {
        let Some(outlet) = outlet else { continue };
        let serving = if outlet.ended { "ENDED, was at" } else { "serving at" };
        text.push_str(&format!("\n{name:<12} {serving} {}", shown(&outlet.address)));
        if outlet.missing > 0 {
            text.push_str(&format!(", {} ticks MISSING", thousands(outlet.missing)));
        }
    }
    text.extend(plant.bridge.as_ref().map(of_bridge));
    text.extend(plant.upstream.as_ref().map(of_upstream));
    text.extend(plant.lease.as_ref().map(of_lease));
    for part in [feeds(plant), venues(plant), sources(plant), readers(plant)].into_iter().flatten() {
        text.push_str(&format!("\n\n{part}"));
    }
    if let Some(hub) = &plant.hub {
        text.push_str(&format!("\n\n{}", of_hub(hub, plant)));
    }
    text
}

/// Whether the plant reports nothing: its rates are unknown.
const fn is_silent(plant: &Snapshot) -> bool {
    plant.silent_ns > 0
}

/// A first line about a plant that reports nothing; empty for one that does.
fn silence(plant: &Snapshot) -> String {
    if !is_silent(plant) {
        return String::new();
    }
    let (silent, pid) = (figures::duration(plant.silent_ns), plant.pid);
    let blocks = |reader: &&ReaderSnapshot| {
        reader.alive && !reader.evicted && reader.lag_bytes > plant.backpressure.ring_bytes / 20 * 19
    };
    let why = match plant.readers.iter().find(blocks) {
        _ if is_stopped(pid) => format!("it is stopped (`kill -CONT {pid}` lets it go on)"),
        Some(reader) => {
            format!("it waits for reader {} (process {}) of the full ring", shown(&reader.name), reader.pid)
        }
        None => format!("stopped, hung, or without processor time (`ps -o stat,cmd -p {pid}`)"),
    };
    format!(
        "SILENT       the plant has reported nothing for {silent}: {why}; what follows is its last report\n"
    )
}

/// A rate of the last second; none of a silent plant.
fn rate(plant: &Snapshot, per_second: f64, unit: &str) -> String {
    if is_silent(plant) { NO_RATE.to_owned() } else { output::rate(per_second, unit) }
}

fn of_bridge(bridge: &BridgeSnapshot) -> String {
    let state = if bridge.ended { ", ENDED" } else { "" };
    let [sequence, again, unsent] = [bridge.sequence, bridge.sent_again, bridge.unsent].map(thousands);
    let mut text = format!(
        "\nbridge       session {}{state}, up to tick {sequence}; {again} sent again, {unsent} datagrams not taken; {} plants catch up",
        shown(&bridge.session),
        bridge.catching_up
    );
    if bridge.followers > 0 {
        text.push_str(&format!(", {} follow over TCP", bridge.followers));
    }
    if bridge.back_pressured > 0 {
        let refused = thousands(bridge.back_pressured);
        text.push_str(&format!(", {refused} datagrams REFUSED by Aeron's flow control"));
    }
    text.push_str(&drivers_lost(bridge.drivers_lost));
    if let Some(AeronSendingSnapshot { naks, window_bytes }) = bridge.aeron {
        let [naks, window] = [naks, window_bytes].map(thousands);
        text.push_str(&format!("; Aeron: {naks} NAKs, receiver's window {window} bytes"));
    }
    if bridge.cut_off > 0 {
        text.push_str(&format!(", slow plants CUT OFF {} times", thousands(bridge.cut_off)));
    }
    if bridge.refused > 0 {
        text.push_str(&format!(", {} connections REFUSED", thousands(bridge.refused)));
    }
    if bridge.demanding > 0 || bridge.demanded > 0 {
        let [plants, items, posts] = [bridge.demanding, bridge.demanded, bridge.far_posts].map(thousands);
        text.push_str(&format!(
            "\ndemands      {plants} plants below have {items} items open, and sent {posts} posts"
        ));
        if bridge.demands_refused > 0 {
            text.push_str(&format!(", {} demands REFUSED", thousands(bridge.demands_refused)));
        }
        if bridge.demands_cut_off > 0 {
            text.push_str(&format!(", plants CUT OFF {} times", thousands(bridge.demands_cut_off)));
        }
    }
    text
}

fn of_upstream(upstream: &UpstreamSnapshot) -> String {
    let [sequence, behind, recovered] =
        [upstream.sequence, upstream.behind, upstream.recovered].map(thousands);
    let mut text = format!(
        "\nupstream     session {}, up to tick {sequence}, {behind} behind; {recovered} requested again, {} times left to the catch-up server",
        if upstream.session.is_empty() { "none seen".to_owned() } else { shown(&upstream.session) },
        thousands(upstream.left_lines)
    );
    text.push_str(&drivers_lost(upstream.drivers_lost));
    if let Some(AeronReceivedSnapshot { naks, unread_bytes }) = upstream.aeron {
        let [naks, unread] = [naks, unread_bytes].map(thousands);
        text.push_str(&format!("; Aeron: {naks} NAKs, {unread} bytes not read"));
    }
    if upstream.connections_lost > 0 {
        text.push_str(&format!(", TCP connection LOST {} times", thousands(upstream.connections_lost)));
    }
    if upstream.demands {
        let [items, posts] = [upstream.demanded, upstream.posts].map(thousands);
        let state = if upstream.demands_connected { "" } else { "NOT CONNECTED, " };
        text.push_str(&format!("\ndemands      {state}{items} items of the plant above, {posts} posts"));
        if upstream.posts_refused > 0 {
            text.push_str(&format!(", {} of them REFUSED here", thousands(upstream.posts_refused)));
        }
        if upstream.demands_lost > 0 {
            text.push_str(&format!(", connection LOST {} times", thousands(upstream.demands_lost)));
        }
    }
    text.push_str("\nclocks       ");
    text.push_str(&upstream.clock.map_or_else(
        || "not compared with the plant above: hops between the two hosts are not stated".to_owned(),
        |clock| ClockAbove { ahead_ns: clock.ahead_ns, bound_ns: clock.bound_ns }.to_string(),
    ));
    text
}

fn of_lease(lease: &LeaseSnapshot) -> String {
    let own = shown(&lease.holder);
    let mut text = "\nlease        ".to_owned();
    text.push_str(&match (lease.held, lease.leader.as_str()) {
        (true, _) => format!(
            "this plant, {own}, LEADS as session {}, for {} ms unless the lease is renewed",
            shown(&lease.session),
            lease.left_ns / 1_000_000
        ),
        (false, "") => format!("nobody is known to lead; this plant, {own}, does not"),
        (false, leader) => {
            format!(
                "{} leads as session {}; this plant, {own}, follows",
                shown(leader),
                shown(&lease.session)
            )
        }
    });
    if lease.silent > 0 {
        text.push_str(&format!("; {} of {} witnesses SILENT", lease.silent, lease.witnesses));
    }
    if !lease.problem.is_empty() {
        text.push_str(&format!("\n             {}", shown(&lease.problem)));
    }
    text
}

/// The losses of a bridge's media driver, if there are any.
fn drivers_lost(count: u64) -> String {
    if count == 0 { String::new() } else { format!(", media driver LOST {} times", thousands(count)) }
}

fn feeds(plant: &Snapshot) -> Option<String> {
    let mut feeds =
        table(["feed", "protocol", "state", "messages", "now", "missing", "malformed", "kernel drops"]);
    for feed in &plant.feeds {
        let suspect = if feed.suspect { ", SUSPECT" } else { "" };
        let over = if feed.ended { ", session over" } else { "" };
        feeds.add_row([
            shown(&feed.name),
            shown(&feed.protocol),
            format!("{}{suspect}{over}", shown(&feed.state)),
            thousands(feed.messages),
            rate(plant, feed.messages_per_second, "msgs"),
            match feed.absurd_gaps {
                0 => thousands(feed.missing),
                gaps => format!("{} and {} absurd gaps", thousands(feed.missing), thousands(gaps)),
            },
            thousands(feed.malformed),
            thousands(feed.kernel_drops),
        ]);
    }
    (!plant.feeds.is_empty()).then(|| feeds.to_string())
}

/// The connections to crypto venues, and their symbols: those whose books are apart first.
fn venues(plant: &Snapshot) -> Option<String> {
    let ago = |heard_ns: u64| match heard_ns {
        0 => "none yet".to_owned(),
        _ => format!("{} ago", figures::duration(plant.written_ns.saturating_sub(heard_ns))),
    };
    let mut text = String::new();
    let mut symbols: Vec<(&str, &SymbolSnapshot)> = Vec::new();
    for feed in &plant.feeds {
        let Some(venue) = &feed.venue else { continue };
        text.push_str(&format!(
            "venue        {} {}, {} reconnects, last message {}; {} of {} books joined\n",
            shown(&feed.name),
            if venue.connected { "connected" } else { "NOT CONNECTED" },
            thousands(venue.connections.saturating_sub(1)),
            ago(venue.heard_ns),
            venue.symbols.iter().filter(|symbol| symbol.joined).count(),
            venue.symbols.len(),
        ));
        symbols.extend(venue.symbols.iter().map(|symbol| (feed.name.as_str(), symbol)));
    }
    symbols.sort_by_key(|(_, symbol)| symbol.joined);
    let mut table = table(["symbol", "feed", "book", "messages", "snapshots", "gaps", "last message"]);
    for (feed, symbol) in symbols.iter().take(MOST_SYMBOLS) {
        table.add_row([
            shown(&symbol.symbol),
            shown(feed),
            if symbol.joined { "joined" } else { "APART" }.to_owned(),
            thousands(symbol.messages),
            thousands(symbol.snapshots),
            thousands(symbol.gaps),
            ago(symbol.heard_ns),
        ]);
    }
    let more = match symbols.len().saturating_sub(MOST_SYMBOLS) {
        0 => String::new(),
        more => format!("\nand {more} more: --format json has all"),
    };
    (!text.is_empty()).then(|| format!("{text}\n{table}{more}"))
}

fn sources(plant: &Snapshot) -> Option<String> {
    let mut sources = table(["source", "kind", "state", "for", "serves", "stands by", "services"]);
    let ago = |since_ns: u64| figures::duration(plant.written_ns.saturating_sub(since_ns) / SECOND * SECOND);
    for source in &plant.sources {
        let services = source.services.iter().map(|part| {
            let state = if part.state == "suspect" { "SUSPECT".to_owned() } else { shown(&part.state) };
            format!("{} {state} for {}", shown(&part.service), ago(part.since_ns))
        });
        sources.add_row([
            shown(&source.name),
            shown(&source.kind),
            if source.state == "connected" {
                source.state.clone()
            } else {
                shown(&source.state.to_uppercase())
            },
            ago(source.since_ns),
            thousands(source.serves as u64),
            thousands(source.stands_by as u64),
            services.collect::<Vec<_>>().join(", "),
        ]);
    }
    let mut text = if plant.sources.is_empty() { String::new() } else { sources.to_string() };
    for unserved in plant.unserved.iter().filter(|unserved| unserved.items > 0) {
        let (items, service) = (thousands(unserved.items as u64), shown(&unserved.service));
        let gap = if text.is_empty() { "" } else { "\n" };
        text.push_str(&format!(
            "{gap}NOBODY serves {items} of service {service}'s items: who published them is gone"
        ));
    }
    (!text.is_empty()).then_some(text)
}

/// Whether a process of this host was stopped (`SIGSTOP`, or a debugger): the state in its `stat`, behind the name (proc(5)).
fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    state.starts_with(['T', 't'])
}

fn readers(plant: &Snapshot) -> Option<String> {
    let mut readers = table(["reader of the ring", "process", "state", "lag"]);
    for reader in &plant.readers {
        let state = match (reader.alive, reader.evicted) {
            (false, _) => "dead",
            (true, true) => "evicted",
            (true, false) if is_stopped(reader.pid) => "stopped",
            (true, false) => "alive",
        };
        readers.add_row([
            shown(&reader.name),
            reader.pid.to_string(),
            state.to_owned(),
            bytes(reader.lag_bytes),
        ]);
    }
    (!plant.readers.is_empty()).then(|| readers.to_string())
}

fn of_hub(hub: &Hub, plant: &Snapshot) -> String {
    let services: Vec<String> = hub
        .services
        .iter()
        .map(|service| {
            let text =
                if service.text.is_empty() { String::new() } else { format!(" ({})", shown(&service.text)) };
            format!("{} {}{text}", shown(&service.name), if service.up { "up" } else { "DOWN" })
        })
        .collect();
    let web = hub.web.as_ref().map_or_else(String::new, |web| format!(", page at http://{}/", shown(web)));
    let state = if hub.ended {
        ", HAS ENDED".to_owned()
    } else if hub.heard_ns == 0 {
        ", has not begun".to_owned()
    } else {
        match plant.written_ns.saturating_sub(hub.heard_ns) {
            late if late > tapeline_node::stat::snapshot::LATE_NS => {
                format!(", HAS SAID NOTHING for {}", figures::duration(late))
            }
            _ => String::new(),
        }
    };
    let mut text = format!(
        "hub          {}{web}{state}\n\
         services     {}\n\
         cache        {} items, {} of {}\n\
         sessions     {} open, {} ever, {} cut for being slow (policy: {})\n\
         logins       {}, {} refused; {} items denied\n\
         sent         {} images, {} updates, {} conflated; {} of {} requests refused\n\
         now          {}, {}, {}",
        shown(&hub.address),
        if services.is_empty() { "none yet".to_owned() } else { services.join(", ") },
        thousands(hub.cache.items as u64),
        bytes(hub.cache.bytes as u64),
        bytes(hub.cache.limit_bytes as u64),
        hub.sessions.len(),
        thousands(hub.opened),
        thousands(hub.cut),
        shown(&hub.slow),
        thousands(hub.logins),
        thousands(hub.logins_refused),
        thousands(hub.denied),
        thousands(hub.totals.refreshes),
        thousands(hub.totals.updates),
        thousands(hub.totals.conflated),
        thousands(hub.totals.refused),
        thousands(hub.totals.requests),
        rate(plant, hub.rates.refreshes, "images"),
        rate(plant, hub.rates.updates, "updates"),
        rate(plant, hub.rates.conflated, "conflated"),
    );
    if !hub.sessions.is_empty() {
        text.push_str(&format!("\n\n{}", sessions(&hub.sessions, plant)));
    }
    if hub.latency.iter().any(|hop| hop.all.samples > 0) {
        text.push_str(&format!("\n\n{}", latency(hub)));
    }
    text
}

fn sessions(all: &[Session], plant: &Snapshot) -> String {
    let headings = "session, user, address, transport, streams, queue, msgs, unsent, owed, lag, images, updates, now, \
                    conflated";
    let mut table = table(headings.split(", "));
    for session in all.iter().take(MOST_SESSIONS) {
        let lag = if session.lag_ns == 0 { "–".to_owned() } else { figures::duration(session.lag_ns) };
        table.add_row([
            session.session.to_string(),
            shown(&session.user),
            shown(&session.address),
            shown(&session.transport),
            thousands(session.streams as u64),
            bytes(session.queued_bytes as u64),
            thousands(session.queued_messages as u64),
            bytes(session.unsent_bytes as u64),
            thousands(session.owed as u64),
            lag,
            thousands(session.totals.refreshes),
            thousands(session.totals.updates),
            rate(plant, session.rates.updates, "updates"),
            thousands(session.totals.conflated),
        ]);
    }
    match all.len().checked_sub(MOST_SESSIONS) {
        None | Some(0) => table.to_string(),
        Some(more) => format!("{table}\nand {} more: --format json has all", thousands(more as u64)),
    }
}

fn latency(hub: &Hub) -> String {
    let mut table = table(["latency", "samples", "p50", "p90", "p99", "p99.9", "max"]);
    let cell = output::latency;
    let mut row = |name: String, latency: &Latency| {
        table.add_row([
            name,
            thousands(latency.samples),
            cell(latency.p50_ns),
            cell(latency.p90_ns),
            cell(latency.p99_ns),
            cell(latency.p99_9_ns),
            cell(latency.max_ns),
        ]);
    };
    for hop in &hub.latency {
        let name = shown(&hop.hop).replace("_to_", "→");
        row(format!("{name}, last second"), &hop.now);
        row(format!("{name}, since the start"), &hop.all);
    }
    table.to_string()
}

fn bytes(count: u64) -> String {
    figures::quantity(count as f64, "B", true)
}

/// Text from a peer, escaped so that it cannot move the cursor or colour the screen.
fn shown(text: &str) -> String {
    text.escape_debug().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tapeline_node::stat::snapshot::{
        FeedSnapshot, Hop, Journal, Outlet, Part, SourceSnapshot, VenueSnapshot,
    };

    #[test]
    fn a_plant_that_waits_for_a_reader_says_for_which() {
        let reader = ReaderSnapshot {
            name: "slow".to_owned(),
            pid: u32::MAX,
            alive: true,
            evicted: false,
            lag_bytes: 1 << 20,
        };
        let mut plant = Snapshot {
            pid: u32::MAX,
            written_ns: 9_000_000_000,
            heard_ns: 2_000_000_000,
            ..Snapshot::default()
        };
        (plant.readers, plant.backpressure.ring_bytes) = (vec![reader], 1 << 20);
        plant.ticks_per_second = 7.0;
        plant.judge_silence(4_500_000_000);
        assert!(!of(&plant).contains("SILENT"));
        plant.judge_silence(9_500_000_000);
        let first = "SILENT       the plant has reported nothing for 7.5 s: it waits for reader slow (process 4294967295) of the full ring;";
        assert!(of(&plant).starts_with(first), "{}", of(&plant));
        assert_eq!(plant.ticks_per_second, 0.0);
        plant.readers[0].evicted = true;
        assert!(of(&plant).contains("hung, or without processor time (`ps -o stat,cmd -p 4294967295`)"));
        // A thread that has not begun is not silent.
        plant.heard_ns = 0;
        plant.judge_silence(9_500_000_000);
        assert_eq!(plant.silent_ns, 0);
    }

    #[test]
    fn a_venue_shows_its_connection_and_the_books_that_are_apart_first() {
        let symbol = |number: u32| SymbolSnapshot {
            symbol: format!("S{number}"),
            joined: number != 41,
            heard_ns: 1_000_000_000,
            ..SymbolSnapshot::default()
        };
        let venue = VenueSnapshot {
            connected: true,
            connections: 3,
            symbols: (0..42).map(symbol).collect(),
            ..VenueSnapshot::default()
        };
        let feed = FeedSnapshot { name: "kraken".to_owned(), venue: Some(venue), ..FeedSnapshot::default() };
        let text =
            of(&Snapshot { written_ns: 3_000_000_000, feeds: vec![feed.clone()], ..Snapshot::default() });
        let line =
            "venue        kraken connected, 2 reconnects, last message none yet; 41 of 42 books joined\n";
        assert!(text.contains(line), "{text}");
        assert!(text.contains("and 2 more: --format json has all"), "{text}");
        assert!(text.find("S41").unwrap() < text.find("S0 ").unwrap(), "{text}");
        assert!(text.contains("APART") && text.contains("2.0 s ago"), "{text}");
    }

    #[test]
    fn what_a_client_calls_itself_does_not_reach_the_terminal_as_it_is() {
        let session = Session { user: "\x1b[2Jme".to_owned(), lag_ns: 1_500, ..Session::default() };
        let latency = Latency { samples: 3, p50_ns: Some(2_100), ..Latency::default() };
        let hop = Hop { hop: "wire_to_sent".to_owned(), now: latency, all: latency };
        let hub = Hub { sessions: vec![session], latency: vec![hop], ..Hub::default() };
        let source = SourceSnapshot {
            name: "em\x1b[2Ja".to_owned(),
            state: "away".to_owned(),
            services: vec![Part { service: "A".to_owned(), state: "suspect".to_owned(), ..Part::default() }],
            ..SourceSnapshot::default()
        };
        let journal = Some(Journal { state: "without".to_owned(), kept: 1_200, missing: 3 });
        let kdb = Some(Outlet { address: "127.0.0.1:5010".to_owned(), ended: true, ..Outlet::default() });
        let zeromq =
            Some(Outlet { address: "127.0.0.1:5556".to_owned(), missing: 1_234, ..Outlet::default() });
        let plant =
            Snapshot { hub: Some(hub), sources: vec![source], journal, kdb, zeromq, ..Snapshot::default() };
        let text = of(&Snapshot { written_ns: 2_300_000_000, ..plant });
        assert!(text.contains("WITHOUT, up to tick 1,200, 3 missing"), "{text}");
        assert!(text.contains("kdb+         ENDED, was at 127.0.0.1:5010"), "{text}");
        assert!(text.contains("ZeroMQ       serving at 127.0.0.1:5556, 1,234 ticks MISSING"), "{text}");
        assert!(text.contains("AWAY") && text.contains("A SUSPECT for 2"), "{text}");
        assert!(!text.contains('\x1b'), "{text:?}");
        assert!(text.contains("me") && text.contains("1.5 µs"), "{text}");
        assert!(text.contains("wire→sent, last second") && text.contains("2.1 µs"), "{text}");
    }
}
