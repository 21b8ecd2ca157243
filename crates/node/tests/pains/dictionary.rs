//! Dictionaries that are downloaded.

use std::sync::Arc;

use tapeline_client::{Consumer, Endpoint, Event, Login};
use tapeline_omm::role::consumer::ConsumerSettings;
use tapeline_omm::{Dictionary, Fid, Real, Value};

use crate::market::{Market, PRICES, SERVICES};

/// Fields that no other dictionary has: more than fit in one part.
const FIELDS: i16 = 5_000;

/// The pain: a consumer on a WebSocket cannot download a dictionary of several parts: "Invalid UTF-8 middle byte" (Real-Time-SDK #203, and again
/// #338 four years later). Without it, fields are unknown, or messages are refused (#191).
///
/// The promise: a dictionary of any size comes the same over RSSL and in JSON, also with texts that are not ASCII, and fields that only this
/// server has are found by their names.
#[test]
fn a_dictionary_is_downloaded_over_a_websocket_as_over_rssl() {
    let own = |number: i16| {
        format!("OWN_{number}  \"WÄHRUNG {number} €\"  {}  NULL  PRICE  17  REAL64  7\n", -20_000 - number)
    };
    let fields = Dictionary::parse(&(0..FIELDS).map(own).collect::<String>()).unwrap();
    assert!(Dictionary::builtin().field_named("OWN_0").is_none());
    let market = Market::open(|hub| hub.settings.dictionary = Arc::new(fields));
    let mut publisher = market.publisher(SERVICES[0]);
    // The first and the last field of the dictionary.
    let fields =
        [0, FIELDS - 1].map(|number| (Fid(-20_000 - number), Real::decimal(number.into(), 0).into()));
    publisher.publish("A", &fields).unwrap();
    publisher.flush().unwrap();
    for endpoint in [Endpoint::plain(&market.hub), Endpoint::json(&market.hub)] {
        let settings = ConsumerSettings { downloads_dictionary: true, ..ConsumerSettings::default() };
        let mut consumer = Consumer::new(vec![endpoint], &Login::user("me"), settings).unwrap();
        consumer.subscribe(PRICES, &["A"]).unwrap();
        loop {
            match consumer.next().unwrap() {
                Event::Message(message) if message.is_image() => {
                    for number in [0, FIELDS - 1] {
                        let value = message.value(&format!("OWN_{number}"));
                        assert_eq!(value, Some(Value::from(Real::decimal(number.into(), 0))), "{message}");
                    }
                    break;
                }
                Event::Note(note) => panic!("{note}"),
                _ => {}
            }
        }
    }
}
