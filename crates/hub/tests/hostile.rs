//! Clients and rings that say anything.
#![allow(clippy::unwrap_used)]

mod exchange;

use exchange::{Exchange, bid, close, item, item_view, quote};
use proptest::collection::vec;
use proptest::prelude::*;
use tapeline_hub::{Settings, SlowPolicy};
use tapeline_omm::rwf::MessageClass;
use tapeline_plant::tick::Tick;

/// A message or a tick, and where it is damaged.
type Damage = (usize, Vec<(usize, u8)>, usize);

fn damage() -> impl Strategy<Value = Damage> {
    (0..8_usize, vec((0..200_usize, any::<u8>()), 0..4), 0..400_usize)
}

fn damaged(mut bytes: Vec<u8>, (_, flips, keep): &Damage) -> Vec<u8> {
    for (at, to) in flips {
        if let Some(byte) = bytes.get_mut(*at) {
            *byte = *to;
        }
    }
    bytes.truncate(*keep);
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever one client sends, the other one gets every update.
    #[test]
    fn a_client_that_says_anything_harms_nobody(sent in vec(damage(), 0..60), is_cut in any::<bool>()) {
        let slow = if is_cut { SlowPolicy::Cut { bytes: 4096, messages: 100 } } else { SlowPolicy::Conflate };
        let mut exchange = Exchange::new(Settings { slow, max_malformed: 20, ..Settings::default() });
        exchange.refresh("AAPL", &quote(1, 1));
        let (bad, mut good) = (exchange.client(2048), exchange.client(1 << 20));
        exchange.say(&good, &item(5, "AAPL"));
        for (turn, damage) in (2..).zip(&sent) {
            let message = match damage.0 {
                0 => item(7, "AAPL"),
                1 => item(8, "NONE"),
                2 => item_view(9, "AAPL", &[22, 25]),
                3 => close(7),
                _ => vec![0x55; 64],
            };
            exchange.say(&bad, &damaged(message, damage));
            exchange.update("AAPL", &bid(turn));
            exchange.pass(10);
            while let Some(over) = exchange.over() {
                prop_assert_eq!(over, bad.session);
            }
        }
        exchange.read_all(&mut good);
        let updates = good.on(5).iter().filter(|got| got.class == MessageClass::UPDATE).count();
        prop_assert_eq!(updates, sent.len());
    }

    /// Whatever stands on the ring, the hub goes on, and so do items that are not damaged.
    #[test]
    fn ticks_that_say_anything_are_counted_and_passed_over(damages in vec(damage(), 0..60)) {
        let mut exchange = Exchange::new(Settings { max_items: 100, ..Settings::default() });
        let mut client = exchange.client(1 << 20);
        // Known by its number from the first: a damaged number could be the next one, and take it.
        exchange.refresh("GOOD", &quote(0, 0));
        for (turn, damage) in (1..).zip(&damages) {
            exchange.refresh("BAD", &quote(turn, turn));
            let frame = damaged(exchange.last(), damage);
            if Tick::parse(&frame).is_ok() {
                exchange.frame(&frame);
            }
        }
        exchange.refresh("GOOD", &quote(7, 7));
        exchange.say(&client, &item(5, "GOOD"));
        exchange.read_all(&mut client);
        prop_assert_eq!(client.folded(5), Some(quote(7, 7)));
    }
}
