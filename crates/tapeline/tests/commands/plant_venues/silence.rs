//! A venue that has nothing to say, and one whose connection is dead.

use super::binance::{Binance, SYMBOL, difference, is_mark, mark};
use super::{Market, config};
use crate::stage::Place;
use crate::venue_server::{Step, VenueServer};

const SNAPSHOT: &str = r#"{"lastUpdateId":100,"bids":[["61837.50","1.5"]],"asks":[["61837.75","2"]]}"#;

/// A plant on a venue that behaves so between the snapshot and the next difference; returns the number of connections.
fn connections(silence: Vec<Step>) -> (usize, Market) {
    let begin = vec![Step::Send(difference(99, 100, "", "")), Step::AwaitSnapshots(1)];
    let end = vec![Step::Send(difference(101, 102, r#"["61837.60","0.25"]"#, "")), mark()];
    let place = Place::new(0);
    let script = [begin, silence, end].concat();
    let server = VenueServer::start(place.folder.path(), script, Binance::recorded(SNAPSHOT));
    let symbols = [SYMBOL.to_owned()];
    let config = config(&place, &server, "binance", &symbols, "stale_after = \"3s\"");
    let mut market = Market::open(&place, &config);
    market.read_until_live(is_mark);
    market.end();
    market.check_books(&server, &symbols);
    // Each connection sends one subscription.
    (server.requests().len(), market)
}

#[test]
fn a_venue_that_answers_pings_is_only_quiet() {
    let (connections, market) = connections(vec![Step::AwaitPings(4)]);
    assert_eq!((connections, market.has_status("stale")), (1, false), "{:?}", market.statuses);
}

#[test]
fn a_connection_on_which_nothing_arrives_is_made_again() {
    let again = Step::Send(difference(99, 100, "", ""));
    let (connections, market) = connections(vec![Step::Deaf, again, Step::AwaitSnapshots(2)]);
    assert_eq!((connections, market.has_status("stale")), (2, true), "{:?}", market.statuses);
}
