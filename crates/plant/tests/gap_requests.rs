//! GapRequests for what a channel lacks, when the feed's sequence is reset.

use std::cell::Cell;

use tapeline_feed::itch::encode::LONGEST;
use tapeline_feed::line::{self, Line};
use tapeline_feed::moldudp64::recover::{self, Rejected};
use tapeline_feed::moldudp64::{DEFAULT_PACKET_BYTES, PacketBuilder, Session};
use tapeline_feed::simulate::{Exchange, Settings};
use tapeline_feed::{Protocol, book};
use tapeline_measure::Nanos;
use tapeline_plant::{
    Channel, ChannelSettings, GapRequests, Items, Look, Publish, PublishPolicy, Refused, Sequencer, Time,
};

const SESSION: Session = Session(*b"REQUESTS-1");
const MS: u64 = 1_000_000;

/// Takes every tick.
#[derive(Debug, Default)]
struct Taken(Vec<u8>);

impl Publish for Taken {
    fn publish(&mut self, len: usize, fill: impl FnOnce(&mut [u8]) -> usize) -> Result<(), Refused> {
        self.0.resize(len, 0);
        fill(&mut self.0);
        Ok(())
    }
}

#[derive(Default)]
struct Now(Cell<u64>);

impl Time for Now {
    fn now(&self) -> Nanos {
        Nanos(self.0.get())
    }
}

/// A packet of the messages `from` to before `to` of the day with this seed.
fn packet(seed: u64, from: u64, to: u64) -> Vec<u8> {
    let mut exchange = Exchange::new(Settings { seed, symbols: 20, live_orders: 1_000 });
    let mut buffer = [0; DEFAULT_PACKET_BYTES];
    let mut packet = PacketBuilder::new(&mut buffer, SESSION, from).unwrap();
    let mut message = [0; LONGEST];
    for sequence in 1..to {
        let len = exchange.next(34_200_000_000_000 + sequence * 1_000 + seed, &mut message).unwrap();
        if sequence >= from {
            packet.push(&message[..len]).unwrap();
        }
    }
    let len = packet.finish();
    buffer[..len].to_vec()
}

#[test]
fn a_sequence_reset_drops_the_requests_of_the_old_numbers() {
    let mut channel = Channel::new(ChannelSettings {
        number: 1,
        protocol: Protocol::ItchMoldUdp64,
        lines: 1,
        stale_after_ns: 0,
        midnight: Nanos(0),
        midnight_before: None,
        publish: PublishPolicy::Changes,
        arbitration: line::Settings { recovery_age_ns: 400 * MS, ..line::Settings::default() },
        books: book::Settings::default(),
    });
    let mut to = Sequencer::new(1, Items::new(1_000), Taken::default());
    let mut requests = GapRequests::new(recover::Settings { delay_ns: 0, ..recover::Settings::default() });
    let time = Now::default();
    let mut take = |ms: u64, datagram: &[u8], channel: &mut Channel| {
        time.0.set(ms * MS);
        channel.datagram(Line::A, datagram, Nanos(ms * MS), &time, &mut to).unwrap();
    };

    take(1, &packet(1, 1, 11), &mut channel);
    assert_eq!(requests.look(&channel), Look::Whole);
    take(2, &packet(1, 13, 23), &mut channel);
    assert_eq!(requests.look(&channel), Look::Missing);
    requests.update(&channel, Nanos(2 * MS));
    assert!(requests.client().poll(Nanos(2 * MS)).is_some());
    // The exchange begins again, and the same two numbers are missing.
    for (from, to) in [(1, 6), (6, 11), (13, 23)] {
        take(3, &packet(2, from, to), &mut channel);
    }
    assert_eq!(channel.arbiter().statistics().restarts, 1);
    assert_eq!(requests.look(&channel), Look::Reset);
    requests.update(&channel, Nanos(4 * MS));
    let old = packet(1, 11, 13);
    assert_eq!(requests.client().answer(0, &old), Err(Rejected::NotWanted), "of the old numbers");
    assert_eq!(requests.look(&channel), Look::Missing);
}
