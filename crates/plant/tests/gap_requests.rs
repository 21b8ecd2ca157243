//! Requests for what a channel lacks, when the feed's sequence is reset.

use tapeline_feed::line::{self, Line};
use tapeline_feed::moldudp64::recover::{self, Rejected};
use tapeline_measure::Nanos;
use tapeline_plant::{ChannelSettings, GapRequests, Look, PublishPolicy};

use crate::bench::{Bench, MIDNIGHT, add, packet};

const MS: u64 = 1_000_000;

/// The messages `from` to before `to` of a numbering, which says so by the shares of its orders.
fn messages(numbering: u32, from: u64, to: u64) -> Vec<u8> {
    let messages: Vec<_> = (from..to).map(|sequence| add(sequence, b'B', 100 * numbering, 10_000)).collect();
    packet(from, &messages)
}

#[test]
fn a_sequence_reset_drops_the_requests_of_the_old_numbers() {
    let arbitration = line::ArbiterSettings { recovery_age_ns: 400 * MS, ..line::ArbiterSettings::default() };
    let settings = Bench::settings(PublishPolicy::Changes);
    let mut bench = Bench::with(ChannelSettings { lines: 1, arbitration, ..settings });
    let mut requests =
        GapRequests::new(recover::ClientSettings { delay_ns: 0, ..recover::ClientSettings::default() });
    let at = |ms: u64| Nanos(MIDNIGHT.0 + ms * MS);
    let mut take = |ms: u64, bytes: &[u8]| {
        bench.clock.0.set(at(ms).0);
        bench.datagram(Line::A, bytes).unwrap();
        requests.look(&bench.channel)
    };

    assert_eq!(take(1, &messages(1, 1, 11)), Look::Whole);
    assert_eq!(take(2, &messages(1, 13, 23)), Look::Missing);
    requests.update(&bench.channel, at(2));
    assert!(requests.client().poll(at(2)).is_some());
    // The exchange begins again, and the same two numbers are missing.
    for (from, to) in [(1, 6), (6, 11), (13, 23)] {
        bench.clock.0.set(at(3).0);
        bench.datagram(Line::A, &messages(2, from, to)).unwrap();
    }
    assert_eq!(bench.channel.arbiter().statistics().restarts, 1);
    assert_eq!(requests.look(&bench.channel), Look::Reset);
    requests.update(&bench.channel, at(4));
    let old = messages(1, 11, 13);
    assert_eq!(requests.client().answer(0, &old), Err(Rejected::NotWanted), "of the old numbers");
    assert_eq!(requests.look(&bench.channel), Look::Missing);
}
