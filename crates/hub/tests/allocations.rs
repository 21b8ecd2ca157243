//! A tick on its way to the clients takes no memory: folded, cut to views, sent, or left out where there is no room.

#![allow(dead_code, reason = "the bench uses more of the floor")]

mod floor;

use allocation_counter::measure;
use floor::Floor;

/// Updates, all of which have been seen once: the longest values have made their room.
const UPDATES: usize = 300;

#[test]
fn a_tick_to_any_number_of_clients_allocates_nothing() {
    for (clients, view, is_full) in
        [(1, None, false), (100, None, false), (100, Some(&[1_i16, 6, 11][..]), false), (100, None, true)]
    {
        let mut floor = Floor::new(clients, 3, view, UPDATES);
        floor.connections.is_full = is_full;
        let mut all = || {
            for update in 0..UPDATES {
                floor.expect(update);
                floor.update(update);
            }
            floor.fold();
            floor.connections.sent
        };
        let before = all();
        let mut after = 0;
        let counted = measure(|| after = all()).count_total;
        assert_eq!(counted, 0, "{clients} clients, {view:?}, full: {is_full}");
        assert_eq!(after > before, !is_full, "messages were sent where there is room");
    }
}
