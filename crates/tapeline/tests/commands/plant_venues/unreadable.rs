//! A message of a venue that cannot be read: its book is told as suspect at once, and is right again with a new snapshot.

use serde_json::{Value, json};

use super::others::Coinbase;
use super::{Market, config};
use crate::stage::{Place, Running};
use crate::venue_server::{Step, VenueServer};

const SYMBOLS: [&str; 2] = ["BTC-USD", "ETH-USD"];

fn snapshot(symbol: &str) -> Step {
    let book = json!({ "type": "snapshot", "product_id": symbol, "bids": [["61837.5", "1.5"]], "asks": [["61837.75", "2"]] });
    Step::Send(book.to_string())
}

fn change(price: &str) -> String {
    format!(
        r#"{{"type":"l2update","product_id":"BTC-USD","changes":[["buy","{price}","0.25"]],"time":"2024-08-08T23:54:15Z"}}"#
    )
}

#[test]
fn a_bad_message_makes_items_suspect_until_the_book_is_right_again() {
    let trade = r#"{"type":"match","trade_id":7,"side":"sell","size":"0.02","price":"61837.75","product_id":"BTC-USD","time":"2024-08-08T23:54:16Z"}"#;
    let script = vec![
        snapshot(SYMBOLS[0]),
        snapshot(SYMBOLS[1]),
        Step::Hold,
        // Coinbase's changes have no numbers: nothing else would show that this one was not applied.
        Step::Lose(change("61837.6")),
        Step::Bad(change("61837..6")),
        Step::AwaitSnapshots(1),
        Step::Send(change("61837.55")),
        Step::Send(trade.to_owned()),
    ];
    let place = Place::new(0);
    let server = VenueServer::start(place.folder.path(), script, Coinbase::default());
    let symbols = SYMBOLS.map(str::to_owned);
    let mut market =
        Market::open(&place, &config(&place, &server, "coinbase", &symbols, "[hub]\nport = 0\n"));
    let hub = market.ready["hub"].as_str().unwrap();
    let mut consumer = Running::start(&[
        "omm",
        "watch",
        "--server",
        hub,
        "--service",
        "TAPELINE",
        "--format",
        "json",
        SYMBOLS[0],
    ]);
    // Any event of the item may carry its state.
    let mut state_becomes = |data: &str| -> Value {
        loop {
            let said = consumer.says();
            if said["item"] == SYMBOLS[0] && said["state"]["data"] == data {
                return said;
            }
        }
    };
    state_becomes("OK");
    server.go_on();
    let suspect = state_becomes("SUSPECT");
    println!("{suspect}");
    println!("{}", state_becomes("OK"));
    market.read_until_live(|tick| tick["fields"]["TRADE_ID"] == "7");
    market.end();
    market.check_books(&server, &symbols);
    assert!(market.statuses.iter().any(|text| text.starts_with("recovering")), "{:?}", market.statuses);
    let feed = &market.report["feeds"][0];
    assert_eq!((&feed["malformed_messages"], &feed["gaps"]), (&json!(1), &json!(1)), "{feed}");
    let requests = server.requests();
    assert_eq!(requests.len(), 3, "{requests:?}");
    assert!(requests[1].contains(r#""unsubscribe","product_ids":["BTC-USD"]"#), "{requests:?}");
}
