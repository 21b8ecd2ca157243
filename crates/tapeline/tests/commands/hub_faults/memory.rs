//! Clients that use as much memory as they can.

use crate::hub_faults::market::Market;
use crate::hub_faults::peer::Peer;
use crate::hub_faults::{DAY, count};

const CLIENTS: usize = 40;
/// How often a client has each stock open, and how many fragments it sends of a message that it never completes.
const TIMES: i32 = 100;
const PIECES: usize = 150;
/// The longest payload of a frame.
const PIECE: usize = 6000;

/// Limits that this test can reach. The witness is one more client.
const HUB: &str = "max_connections = 41\nmax_streams = 1000\nstreams_in_all = 8000\ncache_size = \"4MiB\"\n\
                   incoming_size = \"8MiB\"\nslow = \"cut\"\nslow_bytes = \"1MiB\"\nslow_messages = 1000000\nmax_streams_of_item = 100";

/// A fragment of a message of 960 KiB: the first, or a later one.
fn piece(is_first: bool) -> Vec<u8> {
    let head = if is_first { &[3, 8, 0, 0x0F, 0, 0, 0, 9][..] } else { &[3, 4, 0, 9] };
    let length = u16::try_from(2 + head.len() + PIECE).unwrap();
    [&length.to_be_bytes(), head, &[0x55; PIECE]].concat()
}

#[test]
fn clients_that_take_all_they_can_get_take_no_more_than_is_stated() {
    let mut market = Market::open(HUB, &[]);
    let (bound, before) = (market.hub_memory, market.peak_memory());
    let feeder = market.replay(DAY, "3k");
    let got = market.witness_gets(200);
    // No client reads: images and updates fill the connections, then the queues, until the hub disconnects the clients.
    let peers: Vec<Peer> = (0..CLIENTS)
        .map(|number| {
            let mut peer = Peer::open(market.address(), &format!("greedy-{number}"), TIMES);
            let _ = peer.push(&piece(true)) && (0..PIECES).all(|_| peer.push(&piece(false)));
            peer
        })
        .collect();
    market.plant.tells(&["gone greedy-", "bytes of messages that are not complete"]);
    feeder.finish();
    let taken = market.peak_memory() - before;
    drop(peers);
    let (report, _) = market.end(got);
    assert_eq!(count(&report, "sessions"), 1 + CLIENTS as u64, "{report}");
    assert!(taken <= bound, "{taken} bytes of {bound} at most");
    assert!(taken >= 8 << 20, "{taken} bytes: they took no more than incoming_size");
}
