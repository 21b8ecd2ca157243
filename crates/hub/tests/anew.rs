//! A hub that has missed ticks, and gets the images of all items from who keeps them.
use crate::exchange;

use exchange::{Client, Exchange, bid, item, item_of, quote};
use tapeline_hub::{Service, Settings};
use tapeline_omm::rwf::{DataState, MessageClass, StreamState};
use tapeline_plant::tick::{self, Tick};

const ROOM: usize = 1 << 20;
const PROVIDED: u16 = 2;

fn settings() -> Settings {
    Settings {
        services: vec![Service { on_demand: false, ..Service::new("IDN", PROVIDED) }],
        ..Settings::default()
    }
}

impl Exchange {
    /// What is said meanwhile the hub does not hear.
    fn unheard(&mut self, say: impl FnOnce(&mut Self)) -> Vec<Vec<u8>> {
        self.aside = Some(Vec::new());
        say(self);
        self.aside.take().unwrap()
    }

    fn images(&mut self, frames: &[Vec<u8>]) {
        for frame in frames {
            self.hub.image(self.now, &Tick::parse(frame).unwrap(), &mut self.queues);
        }
    }

    /// How an item is for who asks now.
    fn state_of(&mut self, name: &str) -> DataState {
        let mut client = self.client(ROOM);
        self.say(&client, &item(5, name));
        self.read_all(&mut client);
        self.leave(&client);
        client.on(5)[0].state.unwrap().1
    }
}

fn refreshes(client: &Client, stream: i32) -> usize {
    client.on(stream).iter().filter(|got| got.class == MessageClass::REFRESH).count()
}

#[test]
fn who_has_items_open_has_their_new_images_and_all_is_good_again() {
    let mut exchange = Exchange::new(settings());
    exchange.up(PROVIDED, true);
    for name in ["KEPT", "GONE"] {
        exchange.refresh(name, &quote(1, 100));
    }
    exchange.publish(PROVIDED, "THEIRS", &quote(1, 2));
    let mut client = exchange.client(ROOM);
    exchange.say(&client, &item(5, "KEPT"));
    exchange.say(&client, &item(6, "GONE"));
    exchange.say(&client, &item_of(PROVIDED, 7, "THEIRS"));
    exchange.read_all(&mut client);

    // As who keeps images has them, a session's first word of the feed among them.
    let kept = exchange.unheard(|exchange| {
        exchange.status(0, DataState::OK, tick::Flags::RESET);
        exchange.refresh("KEPT", &quote(3, 300));
        exchange.refresh("NEW", &quote(8, 9));
        exchange.publish(PROVIDED, "THEIRS", &quote(3, 4));
    });
    let rest = exchange.unheard(|exchange| exchange.update("KEPT", &bid(4)));
    let first = Tick::parse(&rest[0]).unwrap().header.seq;
    exchange.hub.begin_anew(exchange.now, first, &mut exchange.queues);
    assert_eq!(exchange.hub.counters().missing, 4);
    let (before, behind) = kept.split_at(2);
    exchange.images(before);
    assert_eq!(exchange.state_of("KEPT"), DataState::SUSPECT);
    exchange.images(behind);
    rest.iter().for_each(|frame| exchange.frame(frame));
    exchange.hub.end_anew(exchange.now, true, &mut exchange.queues);
    assert_eq!(exchange.hub.counters().missing, 4);

    exchange.read_all(&mut client);
    assert_eq!((client.folded(5), refreshes(&client, 5)), (Some(quote(4, 300)), 2));
    assert_eq!((client.folded(7), refreshes(&client, 7)), (Some(quote(3, 4)), 2));
    assert_eq!(client.on(7).last().unwrap().state.unwrap().1, DataState::OK);
    // Of what the plant has no image, the one here is of nothing that anybody has.
    assert_eq!(client.on(6).last().unwrap().state.unwrap().0, StreamState::CLOSED_RECOVER);
    for name in ["KEPT", "NEW"] {
        assert_eq!(exchange.state_of(name), DataState::OK, "{name}");
    }
    // The next gap is one again.
    let missed = exchange.unheard(|exchange| exchange.update("KEPT", &bid(5)));
    assert_eq!(missed.len(), 1);
    exchange.update("KEPT", &bid(6));
    assert_eq!((exchange.hub.counters().missing, exchange.state_of("KEPT")), (5, DataState::SUSPECT));
}

/// The plant's first ticks are lost: its sequence begins with 1.
#[test]
fn a_hub_without_a_tick_yet_has_missed_the_first_ones() {
    let mut exchange = Exchange::new(settings());
    let kept = exchange.unheard(|exchange| exchange.refresh("AAPL", &quote(1, 100)));
    let rest = exchange.unheard(|exchange| exchange.update("AAPL", &bid(2)));
    let first = Tick::parse(&rest[0]).unwrap().header.seq;
    exchange.hub.begin_anew(exchange.now, first, &mut exchange.queues);
    assert_eq!(exchange.hub.counters().missing, 1);
    exchange.images(&kept);
    rest.iter().for_each(|frame| exchange.frame(frame));
    exchange.hub.end_anew(exchange.now, true, &mut exchange.queues);
    assert_eq!(exchange.hub.counters().missing, 1);
    assert_eq!(exchange.state_of("AAPL"), DataState::OK);
}

#[test]
fn without_all_images_everything_stays_in_doubt() {
    let mut exchange = Exchange::new(settings());
    exchange.refresh("AAPL", &quote(1, 100));
    exchange.refresh("MSFT", &quote(1, 100));
    let kept = exchange.unheard(|exchange| exchange.refresh("AAPL", &quote(3, 300)));
    let rest = exchange.unheard(|exchange| exchange.update("MSFT", &bid(4)));
    let first = Tick::parse(&rest[0]).unwrap().header.seq;
    exchange.hub.begin_anew(exchange.now, first, &mut exchange.queues);
    exchange.images(&kept);
    rest.iter().for_each(|frame| exchange.frame(frame));
    exchange.hub.end_anew(exchange.now, false, &mut exchange.queues);
    for name in ["AAPL", "MSFT"] {
        assert_eq!(exchange.state_of(name), DataState::SUSPECT, "{name}");
    }
    exchange.status(0, DataState::OK, tick::Flags::RESET);
    assert_eq!(exchange.state_of("AAPL"), DataState::OK);
}

/// It has all images behind the gap: its own.
#[test]
fn a_session_that_begins_behind_the_gap_is_good_whatever_came_before() {
    let mut exchange = Exchange::new(settings());
    exchange.refresh("AAPL", &quote(1, 100));
    exchange.unheard(|exchange| exchange.update("AAPL", &bid(2)));
    let rest = exchange.unheard(|exchange| {
        exchange.status(0, DataState::OK, tick::Flags::RESET);
        exchange.refresh("AAPL", &quote(3, 300));
    });
    let first = Tick::parse(&rest[0]).unwrap().header.seq;
    exchange.hub.begin_anew(exchange.now, first, &mut exchange.queues);
    rest.iter().for_each(|frame| exchange.frame(frame));
    exchange.hub.end_anew(exchange.now, false, &mut exchange.queues);
    assert_eq!(exchange.state_of("AAPL"), DataState::OK);
}

/// Images that find no room at a client wait for it, whatever becomes of slow clients: it has done nothing slowly.
#[test]
fn new_images_are_no_updates_that_a_client_is_cut_for() {
    let slow = tapeline_hub::SlowPolicy::Cut { bytes: 1 << 20, messages: 1 };
    let mut exchange = Exchange::new(Settings { slow, ..settings() });
    let names: Vec<String> = (0..20).map(|number| format!("N{number}")).collect();
    names.iter().for_each(|name| exchange.refresh(name, &quote(1, 100)));
    let mut client = exchange.client(600);
    for (name, stream) in names.iter().zip(5..) {
        exchange.say(&client, &item(stream, name));
        exchange.read_all(&mut client);
    }
    let kept =
        exchange.unheard(|exchange| names.iter().for_each(|name| exchange.refresh(name, &quote(7, 8))));
    let rest = exchange.unheard(|exchange| exchange.status(0, DataState::OK, tick::Flags::STATE));
    let first = Tick::parse(&rest[0]).unwrap().header.seq;
    exchange.hub.begin_anew(exchange.now, first, &mut exchange.queues);
    exchange.images(&kept);
    rest.iter().for_each(|frame| exchange.frame(frame));
    exchange.hub.end_anew(exchange.now, true, &mut exchange.queues);
    exchange.read_all(&mut client);
    assert_eq!(exchange.over(), None);
    for (name, stream) in names.iter().zip(5..) {
        assert_eq!(client.folded(stream), Some(quote(7, 8)), "{name}");
    }
}
