//! A venue that refuses snapshots or connections, as one that was asked for too many.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use super::binance::{Binance, SYMBOL, difference, is_mark, mark};
use super::{Market, config};
use crate::stage::Place;
use crate::venue_server::{Behaviour, Books, Step, VenueServer};

const SNAPSHOT: &str = r#"{"lastUpdateId":100,"bids":[["61837.50","1.5"]],"asks":[["61837.75","2"]]}"#;

/// What is refused.
#[derive(PartialEq, Eq)]
enum What {
    Snapshots,
    Streams,
}

/// Binance, which refuses the first requests, and tells when each came.
struct Refusing {
    venue: Binance,
    what: What,
    refusals: std::vec::IntoIter<&'static str>,
    asked: Sender<Instant>,
}

impl Refusing {
    fn new(what: What, refusals: Vec<&'static str>) -> (Self, Receiver<Instant>) {
        let (asked, when) = channel();
        (Self { venue: Binance::recorded(SNAPSHOT), what, refusals: refusals.into_iter(), asked }, when)
    }

    fn next_refusal(&mut self, what: &What) -> Option<String> {
        if self.what != *what {
            return None;
        }
        self.asked.send(Instant::now()).unwrap();
        self.refusals.next().map(str::to_owned)
    }
}

impl Behaviour for Refusing {
    fn see(&mut self, message: &str) {
        self.venue.see(message);
    }

    fn answer(&mut self, request: &str) -> Vec<String> {
        self.venue.answer(request)
    }

    fn snapshot(&mut self, query: &str) -> Option<String> {
        self.venue.snapshot(query)
    }

    fn refuse(&mut self) -> Option<String> {
        self.next_refusal(&What::Snapshots)
    }

    fn refuse_stream(&mut self) -> Option<String> {
        self.next_refusal(&What::Streams)
    }

    fn books(&self) -> &Books {
        self.venue.books()
    }
}

/// A plant has the venue's book in spite of these refusals, and the pauses between its requests are at least so long, in ms. Returns the number of subscriptions.
fn joins_in_spite_of(what: What, refusals: Vec<&'static str>, least_ms: &[u64]) -> usize {
    let (venue, asked) = Refusing::new(what, refusals);
    let script = vec![
        Step::Send(difference(99, 100, "", "")),
        Step::AwaitSnapshots(1),
        Step::Send(difference(101, 102, r#"["61837.60","0.25"]"#, "")),
        mark(),
    ];
    let place = Place::new(0);
    let server = VenueServer::start(place.folder.path(), script, venue);
    let symbols = [SYMBOL.to_owned()];
    let mut market = Market::open(&place, &config(&place, &server, "binance", &symbols, ""));
    market.read_until_live(is_mark);
    market.end();
    market.check_books(&server, &symbols);
    let asked: Vec<_> = asked.try_iter().collect();
    let pauses: Vec<_> = asked.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(pauses.len(), least_ms.len(), "{pauses:?}");
    for (pause, least_ms) in pauses.iter().zip(least_ms) {
        assert!(*pause >= Duration::from_millis(*least_ms), "{pauses:?}");
    }
    server.requests().len()
}

#[test]
fn refused_snapshots_are_requested_again_when_the_venue_says_so_or_with_pauses_that_double() {
    let refusals =
        vec!["429 Too Many Requests\r\nRetry-After: 2", "418 I'm a teapot\r\nRetry-After: 0", "503 Busy"];
    // What the venue asks for, at least half a second, and the pause after three failures.
    let subscriptions = joins_in_spite_of(What::Snapshots, refusals, &[2_000, 500, 4_000]);
    assert_eq!(subscriptions, 1, "the stream stays");
}

#[test]
fn a_refused_connection_is_made_again_when_the_venue_says_so_or_with_pauses_that_double() {
    let refusals = vec!["429 Too Many Requests\r\nRetry-After: 2", "503 Busy", "503 Busy"];
    // What the venue asks for, and the pauses after two and three failures.
    let subscriptions = joins_in_spite_of(What::Streams, refusals, &[2_000, 500, 1_000]);
    assert_eq!(subscriptions, 1);
}

#[test]
fn a_new_connection_does_not_shorten_the_pause_that_the_venue_asked_for() {
    let (venue, asked) = Refusing::new(What::Snapshots, vec!["429 Too Many Requests\r\nRetry-After: 3"]);
    let script = vec![
        Step::Send(difference(99, 100, "", "")),
        Step::Hold,
        Step::Cut,
        Step::Send(difference(101, 102, r#"["61837.60","0.25"]"#, "")),
        Step::AwaitSnapshots(1),
        mark(),
    ];
    let place = Place::new(0);
    let server = VenueServer::start(place.folder.path(), script, venue);
    let symbols = [SYMBOL.to_owned()];
    let mut market = Market::open(&place, &config(&place, &server, "binance", &symbols, ""));
    let refused = asked.recv().unwrap();
    server.go_on();
    market.read_until_live(is_mark);
    market.end();
    market.check_books(&server, &symbols);
    assert_eq!(server.requests().len(), 2, "it was cut once");
    let next = asked.recv().unwrap();
    assert!(next - refused >= Duration::from_secs(3), "{:?}", next - refused);
}
