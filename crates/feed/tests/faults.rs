//! Lines with faults of every kind against an arbiter: nothing is lost in silence.
//!
//! `FAULT_SEEDS=100000 cargo test -p tapeline-feed --test feed faults:: -- --nocapture` tries more seeds than `cargo test` does, and
//! `FAULT_SEED=N` one of them.

use crate::account;

use std::collections::HashMap;

use account::script::{Dice, faults};
use account::{Account, Epoch};
use tapeline_feed::faults::{Entry, Fault, FaultyLine, Outlet, Script};
use tapeline_feed::line::{self, Arbiter, ArbiterSettings, Line, Sink, Start};
use tapeline_feed::moldudp64::{MoldPacket, MoldSession, PacketBuilder, end_of_session, heartbeat, parse};
use tapeline_nanos::Nanos;

const SESSION: MoldSession = MoldSession(*b"TESTDAY 00");

/// Everything that left, and everything that was done.
#[derive(Default)]
struct Wire {
    left: Vec<Vec<u8>>,
    noted: Vec<Entry>,
}

impl Outlet for Wire {
    fn leave(&mut self, datagram: &[u8]) {
        self.left.push(datagram.to_vec());
    }

    fn note(&mut self, entry: &Entry) {
        self.noted.push(entry.clone());
    }
}

fn content(message: u64) -> Vec<u8> {
    let mut bytes = message.to_be_bytes().to_vec();
    bytes.resize(8 + (message * 7 % 13) as usize, message as u8);
    bytes
}

/// What an exchange sends: datagrams with their times.
fn day(dice: &mut Dice, messages: u64) -> Vec<(Nanos, Vec<u8>)> {
    let pace_ns = dice.within(1_000, 300_000);
    let (mut sent, mut now, mut next) = (Vec::new(), 0, 1);
    while next <= messages {
        now += dice.within(0, 2 * pace_ns);
        if dice.one_in(20) {
            sent.push((Nanos(now), heartbeat(SESSION, next).to_vec()));
        }
        let to = (next + dice.within(1, 8)).min(messages + 1);
        let mut bytes = vec![0; 400];
        let mut packet = PacketBuilder::new(&mut bytes, SESSION, next).unwrap();
        for message in next..to {
            packet.push(&content(message)).unwrap();
        }
        let length = packet.finish();
        bytes.truncate(length);
        sent.push((Nanos(now), bytes));
        next = to;
    }
    // Three at once and one more each second, as `feed replay --linger` does: for longer than a session is held for alive.
    for end in 0..8 {
        now += if end < 3 { 1_000 } else { 1_000_000_000 };
        sent.push((Nanos(now), end_of_session(SESSION, next).to_vec()));
    }
    sent
}

/// What the exchange sends once it has rolled its sessions, and which epochs each datagram belongs to.
fn epochs(day: &[(Nanos, Vec<u8>)], script: &Script) -> (Vec<Epoch>, HashMap<Vec<u8>, Vec<usize>>) {
    let exchange = script.faults().iter().filter(|fault| fault.kind.is_of_the_exchange()).copied().collect();
    let mut line = FaultyLine::new(&exchange, 0, Line::A);
    let mut epochs: Vec<Epoch> = Vec::new();
    let mut whole: HashMap<Vec<u8>, Vec<usize>> = HashMap::new();
    for (now, datagram) in day {
        let mut wire = Wire::default();
        line.datagram(datagram, *now, &mut wire);
        for datagram in wire.left {
            let packet = parse(&datagram).unwrap();
            let session = packet.session().to_string();
            let begins = matches!(packet, MoldPacket::Data(data) if data.sequence() == 1);
            let goes_on = |epoch: &Epoch| epoch.session == session && (!begins || epoch.messages.is_empty());
            if !epochs.last().is_some_and(goes_on) {
                epochs.push(Epoch::new(session));
            }
            let at = epochs.len() - 1;
            if let MoldPacket::Data(data) = packet {
                epochs[at].messages.extend(data.messages().map(|(_, bytes)| bytes.to_vec()));
            }
            // Heartbeats of two numberings can be the same.
            whole.entry(datagram).or_default().push(at);
        }
    }
    (epochs, whole)
}

/// Tells an account what an arbiter says; and the reader too, where one day is looked at.
struct Books<'a>(&'a mut Account, bool);

impl Books<'_> {
    fn say(&self, what: std::fmt::Arguments<'_>) {
        if self.1 {
            println!("    {what}");
        }
    }
}

impl Sink for Books<'_> {
    fn message(&mut self, sequence: u64, bytes: &[u8], _received: Nanos) {
        self.say(format_args!("{sequence}"));
        self.0.message(sequence, bytes);
    }

    fn gap(&mut self, first: u64, last: u64) {
        self.say(format_args!("gap {first} to {last}"));
        self.0.gap(first, last);
    }

    fn end_of_session(&mut self, next: u64) {
        self.say(format_args!("end at {next}"));
        self.0.end_of_session(next);
    }

    fn reset(&mut self, session: line::Session) {
        self.say(format_args!("reset to {session}"));
        self.0.reset(&session.to_string());
    }
}

/// One bad day from a seed; gives its account and what the script was. If it is `shown`, all that arrives is printed, and what
/// is made of it.
fn bad_day(seed: u64, shown: bool) -> (Account, Script) {
    let mut dice = Dice(seed);
    let messages = dice.within(1, 600);
    let day = day(&mut dice, messages);
    let script: Script =
        faults(&mut dice, messages).iter().map(|fault| fault.parse::<Fault>().unwrap()).collect();
    let (epochs, whole) = epochs(&day, &script);

    let mut arrivals: Vec<(Nanos, u64, usize, Vec<u8>)> = Vec::new();
    for number in 0..dice.within(1, 4) as usize {
        let mut line = FaultyLine::new(&script, seed, Line::new(number).unwrap());
        let mut arrive = |now, wire: Wire| {
            for datagram in wire.left {
                arrivals.push((now, arrivals.len() as u64, number, datagram));
            }
        };
        for (now, datagram) in &day {
            // What is delayed leaves at its time, not with the next datagram.
            while let Some(at) = line.next_release().filter(|at| at < now) {
                let mut wire = Wire::default();
                line.release(at, &mut wire);
                arrive(at, wire);
            }
            let mut wire = Wire::default();
            line.datagram(datagram, *now, &mut wire);
            arrive(*now, wire);
        }
        let mut now = day.last().unwrap().0;
        let mut wire = Wire::default();
        line.finish(now, &mut wire);
        arrive(now, wire);
        while let Some(at) = line.next_release() {
            now = at;
            let mut wire = Wire::default();
            line.release(now, &mut wire);
            arrive(now, wire);
        }
    }
    arrivals.sort_unstable();

    let joins = dice.one_in(4);
    let mut arbiter = Arbiter::new(ArbiterSettings {
        window_messages: dice.within(0, 300) as usize,
        window_bytes: dice.within(0, 4_000) as usize,
        window_age_ns: dice.within(0, 20_000_000),
        start: if joins { Start::First } else { Start::FromOne },
        expire_on_packet: dice.one_in(2),
        ..ArbiterSettings::default()
    });
    let mut account = Account::new(epochs);
    account.joins = joins;
    for (now, _, number, datagram) in &arrivals {
        match whole.get(datagram) {
            None => account.lie(datagram),
            Some(epochs) => {
                let sequences = line::Packet::from(parse(datagram).unwrap()).kind.sequences();
                account.names(epochs, *number, datagram, sequences);
            }
        }
        let line = Line::new(*number).unwrap();
        if shown {
            let packet = parse(datagram);
            let session = packet.map(|packet| packet.session().to_string());
            let sequences = packet.map(|packet| line::Packet::from(packet).kind.sequences());
            println!("{} ns, {}: {session:?} {sequences:?}", now.0, line.letter());
        }
        let _ = arbiter.datagram(line, datagram, *now, &mut Books(&mut account, shown));
        if dice.one_in(3) {
            arbiter.expire(*now, &mut Books(&mut account, shown));
        }
    }
    arbiter.flush(&mut Books(&mut account, shown));
    account.finish();
    (account, script)
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

#[test]
fn nothing_is_lost_in_silence() {
    let seeds = match number("FAULT_SEED") {
        Some(seed) => seed..seed + 1,
        None => 1..number("FAULT_SEEDS").unwrap_or(3_000) + 1,
    };
    let mut sum = Account::default();
    let mut failed = 0;
    for seed in seeds.clone() {
        let (account, script) = bad_day(seed, number("FAULT_SEED").is_some());
        sum.delivered += account.delivered;
        sum.lied += account.lied;
        sum.reported += account.reported;
        sum.beyond += account.beyond;
        sum.deceptions += account.deceptions;
        sum.mistaken += account.mistaken;
        sum.untold += account.untold;
        if !account.wrong.is_empty() {
            failed += 1;
            if failed <= 5 {
                let faults: Vec<String> = script.faults().iter().map(Fault::to_string).collect();
                println!(
                    "FAULT_SEED={seed} shows the day: {}\n  {}",
                    faults.join(" "),
                    account.wrong[..account.wrong.len().min(4)].join("\n  ")
                );
            }
        }
    }
    println!(
        "{} days: {} messages delivered, {} reported missing, {} damaged, {} behind all that arrived, {} of numberings of which too little came, {} taken for \
         those before a reset, {} sessions that there are not; {failed} days with silent loss",
        seeds.end - seeds.start,
        sum.delivered,
        sum.reported,
        sum.lied,
        sum.beyond,
        sum.untold,
        sum.mistaken,
        sum.deceptions
    );
    assert_eq!(failed, 0);
    assert!(seeds.end - seeds.start < 100 || (sum.reported > 0 && sum.lied > 0 && sum.beyond > 0));
}
