//! Ticks on a ring: those of a datagram become visible in groups, and all of them when the datagram ends.

use std::cell::Cell;

use tapeline_feed::itch::encode::LONGEST;
use tapeline_feed::line::Line;
use tapeline_feed::moldudp64::{DEFAULT_PACKET_BYTES, MoldSession, PacketBuilder};
use tapeline_feed::simulate::{Exchange, SimulatedDay};
use tapeline_measure::Nanos;
use tapeline_plant::tick::Tick;
use tapeline_plant::{Channel, ChannelSettings, Items, Publish, PublishPolicy, RingPublish, Sequencer, Time};
use tapeline_ring::{Name, Options, Poll, Publisher, Start, Subscriber};

use crate::bench::Bench;

/// Counts its readings.
#[derive(Default)]
struct Steps(Cell<u64>);

impl Time for Steps {
    fn now(&self) -> Nanos {
        self.0.set(self.0.get() + 1);
        Nanos(self.0.get())
    }
}

fn read(subscriber: &mut Subscriber, read: &mut u64) {
    while let Poll::Frame(frame) = subscriber.next() {
        *read += 1;
        assert_eq!(Tick::parse(&frame).unwrap().header.seq.0, *read, "in order, none twice");
    }
}

#[test]
fn all_ticks_of_a_datagram_are_visible_when_it_ends() {
    let name = Name::new(&format!("plant-bursts-{}", std::process::id())).unwrap();
    // Small, so that claims also find no space that is certainly free.
    let options = Options { capacity: 64 << 10, max_frame: 8 << 10, ..Options::default() };
    let ring = Publisher::open(&name, &options).unwrap();
    let mut subscriber = Subscriber::join(&name, Start::Newest).unwrap();
    let mut to = Sequencer::new(1, Items::new(1_000), RingPublish::new(ring, Box::new(|_, _| false)));
    let settings = Bench::settings(PublishPolicy::Changes);
    let mut channel =
        Channel::new(ChannelSettings { lines: 1, stale_after_ns: 0, midnight: Nanos(0), ..settings });
    let mut exchange = Exchange::new(SimulatedDay { seed: 1, symbols: 20, live_orders: 1_000 });
    let (time, mut message, mut buffer) = (Steps::default(), [0; LONGEST], [0; DEFAULT_PACKET_BYTES]);
    let (mut sequence, mut seen, mut most) = (1, 0, 0);
    for datagram in 0..2_000_u64 {
        let mut packet = PacketBuilder::new(&mut buffer, MoldSession::new("BURSTS"), sequence).unwrap();
        // From a lone message to a full datagram.
        for _ in 0..1 + datagram % 38 {
            let length = exchange.next(34_200_000_000_000 + sequence * 1_000, &mut message).unwrap();
            if packet.push(&message[..length]).is_err() {
                break;
            }
        }
        sequence = packet.next_sequence();
        let length = packet.finish();
        let before = to.published();
        channel.datagram(Line::A, &buffer[..length], Nanos(1), &time, &mut to).unwrap();
        read(&mut subscriber, &mut seen);
        assert_eq!(seen, to.published(), "behind datagram {datagram}");
        most = most.max(to.published() - before);
    }
    assert!(most > 8, "some datagrams have more ticks than become visible together: {most}");
}

#[test]
fn ticks_longer_than_half_the_ring_are_several_batches() {
    let name = Name::new(&format!("plant-batches-{}", std::process::id())).unwrap();
    let options = Options { capacity: 64 << 10, max_frame: 8 << 10, ..Options::default() };
    let mut to = RingPublish::new(Publisher::open(&name, &options).unwrap(), Box::new(|_, _| true));
    let mut subscriber = Subscriber::join(&name, Start::Newest).unwrap();
    // One and a half times what the ring has.
    let lens = [1 << 10; 96];
    let reading = std::thread::spawn(move || {
        (0..lens.len()).for_each(|_| while !matches!(subscriber.next(), Poll::Frame(_)) {});
    });
    let mut written = Vec::new();
    to.publish_together(&lens, |_, in_batch, _| written.push(in_batch)).unwrap();
    reading.join().unwrap();
    let starts = written.iter().filter(|in_batch| **in_batch == 0).count();
    assert!(starts > 1 && written.len() == lens.len(), "{starts} batches");
    assert!(written.windows(2).all(|pair| pair[1] == 0 || pair[1] == pair[0] + 1), "{written:?}");
}
