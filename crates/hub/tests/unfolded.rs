//! Updates go out before they are folded into the images, and nobody can tell.
#![allow(dead_code, reason = "other tests use more of the exchange")]

use crate::exchange;

use exchange::{Client, Exchange, bid, item, quote};
use tapeline_hub::Settings;
use tapeline_omm::rwf::{DataState, DataType, Domain, MessageClass, UpdateType, update_header};
use tapeline_plant::Seq;
use tapeline_plant::demand::{Answer, ItemName};
use tapeline_plant::tick::{Flags, Kind};

const ROOM: usize = 1 << 20;

fn opened(exchange: &mut Exchange, name: &str) -> Client {
    let mut client = exchange.client(ROOM);
    let stream = client.stream();
    exchange.say(&client, &item(stream, name));
    client
}

#[test]
fn an_update_is_sent_at_once_and_folded_when_there_is_time() {
    let mut exchange = Exchange::new(Settings::default());
    exchange.refresh("AAPL", &quote(1, 100));
    let mut client = opened(&mut exchange, "AAPL");
    (2..42).for_each(|price| exchange.update("AAPL", &bid(price)));
    assert_eq!(exchange.hub.unfolded(), 40);
    assert_eq!(exchange.read(&mut client, 100), 3 + 40, "all are there: login, directory, image, updates");
    exchange.update("AAPL", &bid(42));
    exchange.hub.fold(exchange.now, &mut exchange.queues);
    let left = exchange.hub.unfolded();
    assert!(0 < left && left < 41, "a few at once: {left} are left");
    // Among what is left is the last price.
    let mut late = opened(&mut exchange, "AAPL");
    assert_eq!(exchange.hub.unfolded(), 0);
    exchange.read_all(&mut late);
    assert_eq!(late.on(3)[0].values, quote(42, 100));
}

#[test]
fn what_waits_to_be_folded_is_bounded() {
    let mut exchange = Exchange::new(Settings::default());
    exchange.refresh("AAPL", &quote(1, 100));
    let mut most = 0;
    for price in 2..3_000 {
        exchange.update("AAPL", &bid(price));
        most = most.max(exchange.hub.unfolded());
    }
    assert!((256..=512).contains(&most), "{most}");
    let mut client = opened(&mut exchange, "AAPL");
    exchange.read_all(&mut client);
    assert_eq!(client.on(3)[0].values, quote(2_999, 100));
}

/// As the hub's thread does under lasting load: a few are folded for each few that come.
#[test]
fn what_is_folded_makes_room_for_more() {
    let mut exchange = Exchange::new(Settings::default());
    exchange.refresh("AAPL", &quote(1, 100));
    (2..102).for_each(|price| exchange.update("AAPL", &bid(price)));
    let mut least = 100;
    for turn in 0..400 {
        (0..8).for_each(|step| exchange.update("AAPL", &bid(200 + 8 * turn + step)));
        least = least.min(exchange.hub.unfolded());
        exchange.hub.fold(exchange.now, &mut exchange.queues);
    }
    assert!(least >= 100, "never all at once: {least}");
    let mut client = opened(&mut exchange, "AAPL");
    exchange.read_all(&mut client);
    assert_eq!(client.on(3)[0].values, quote(3_399, 100));
}

#[test]
fn each_thing_that_is_no_update_finds_the_images_as_they_are() {
    let mut exchange = Exchange::new(Settings::default());
    exchange.refresh("AAPL", &quote(1, 100));
    for what in [
        (|exchange| exchange.refresh("MSFT", &quote(5, 6))) as fn(&mut Exchange),
        |exchange| exchange.status(0, DataState::SUSPECT, Flags::STATE),
        |exchange| exchange.pass(1_000),
        |exchange| exchange.hub.stop("The plant has ended", &mut exchange.queues),
        |exchange| _ = exchange.client(ROOM),
        |exchange| {
            let item = ItemName { service: 7, domain: Domain::MARKET_PRICE, name: "AAPL".into() };
            exchange.answer(Answer::Generic { item, message: Box::default() });
        },
    ] {
        exchange.update("AAPL", &bid(2));
        assert_eq!(exchange.hub.unfolded(), 1);
        what(&mut exchange);
        assert_eq!(exchange.hub.unfolded(), 0);
    }
    let client = exchange.client(ROOM);
    exchange.update("AAPL", &bid(2));
    exchange.leave(&client);
    assert_eq!(exchange.hub.unfolded(), 0);
    // As if ticks were missing in front of the next update, which then waits alone.
    exchange.update("AAPL", &bid(2));
    exchange.hub.pass(Seq(1));
    exchange.update("AAPL", &bid(2));
    assert_eq!((exchange.hub.unfolded(), exchange.hub.counters().missing > 0), (1, true));
    exchange.pass(1_000);
    // But not what the sources are told: that is asked in every turn.
    exchange.update("AAPL", &bid(2));
    assert!(exchange.demands().is_empty());
    assert_eq!(exchange.hub.unfolded(), 1);
}

#[test]
fn an_update_that_cannot_be_folded_is_told_of_when_that_is_known() {
    let mut exchange = Exchange::new(Settings::default());
    exchange.refresh("AAPL", &quote(1, 100));
    let mut client = opened(&mut exchange, "AAPL");
    // A list that ends amid its second field.
    exchange.tick(Kind::Update, Flags::default(), 0, "AAPL", |out| {
        let quote = UpdateType::QUOTE;
        let header = update_header(out, Domain::MARKET_PRICE, 0, quote, DataType::FIELD_LIST)?;
        let broken = [0x08, 0x00, 0x02, 0x00, 0x16, 0x02, 0x0E, 0x05, 0x00];
        out[header..header + broken.len()].copy_from_slice(&broken);
        Ok(header + broken.len())
    });
    exchange.update("AAPL", &bid(3));
    exchange.hub.fold(exchange.now, &mut exchange.queues);
    exchange.read_all(&mut client);
    let got: Vec<_> = client.on(3).iter().map(|received| received.class).collect();
    let update = MessageClass::UPDATE;
    assert_eq!(got, [MessageClass::REFRESH, update, update, MessageClass::STATUS]);
    assert_eq!(client.on(3)[3].state.unwrap().1, DataState::SUSPECT);
    assert_eq!(exchange.hub.counters().unusable, 1);
    // The image has what could be read.
    let mut late = opened(&mut exchange, "AAPL");
    exchange.read_all(&mut late);
    assert_eq!(late.on(3)[0].values, quote(3, 100));
}
