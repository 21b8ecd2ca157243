//! The lower end of a bridge, and any bytes.

mod invariants;

use std::path::Path;

use proptest::prelude::*;
use tapeline_feed::history::Limits;
use tapeline_feed::moldudp64::retransmit::ServerSettings;
use tapeline_plant::bridge::{Packer, PackerSettings};
use tapeline_plant::tick::{Header, Tick};
use tapeline_plant::{ItemId, Seq, State};

/// A tick with this sequence.
fn tick(seq: u64) -> Vec<u8> {
    let header =
        Header { seq: Seq(seq), item: ItemId(1), service: 1, state: State::Live, ..Header::default() };
    let mut frame = Vec::new();
    Tick { header, name: "A", body: b"body", source: &[] }.write(&mut frame);
    frame
}

/// The datagrams of the first ticks of the session, one tick each.
fn datagrams(count: u64) -> Vec<Vec<u8>> {
    let history = Limits { messages: 64, bytes: 1 << 16 };
    let settings = PackerSettings { packet_bytes: 100, history, answers: ServerSettings::default() };
    let mut packer = Packer::new(invariants::session(), Seq(1), settings);
    let each = |seq| {
        packer.tick(Seq(seq), &tick(seq));
        packer.pack();
        packer.datagrams().next().unwrap().to_vec()
    };
    (1..=count).map(each).collect()
}

#[test]
fn messages_of_every_kind_and_many_changed_ones_are_read_or_refused() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/bridge");
    crate::mutations::each(&corpus, 10_000, invariants::any);
}

proptest! {
    #[test]
    fn any_bytes_leave_the_sequence_whole(script in prop::collection::vec(any::<u8>(), 0..2_000)) {
        invariants::any(&script);
    }

    /// Good datagrams, in any order and damaged, between commands.
    #[test]
    fn damaged_datagrams_in_any_order_leave_it_whole(
        steps in prop::collection::vec((0_u8..32, 0_usize..20, prop::option::of((0_usize..100, any::<u8>()))), 0..100),
    ) {
        let all = datagrams(20);
        let mut script = Vec::new();
        for (command, at, damage) in steps {
            let mut datagram = all[at].clone();
            if let Some((place, value)) = damage {
                let place = place % datagram.len();
                datagram[place] = value;
            }
            script.extend_from_slice(&[command, datagram.len() as u8]);
            script.extend_from_slice(&datagram);
        }
        invariants::any(&script);
    }
}
