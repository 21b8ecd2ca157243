//! The orders themselves, against a list that is searched from the front, and against the books on real feeds.

use crate::shared_data;

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;
use shared_data::{bytes, expected};
use tapeline_feed::Protocol;
use tapeline_feed::book::{BookSettings, Books};
use tapeline_feed::depth::{Action, Attribution, Depth, Order};
use tapeline_feed::draft::Price;
use tapeline_feed::itch::framing::Frames;
use tapeline_feed::itch::{Side, decode};
use tapeline_feed::normalise::Instrument;
use tapeline_feed::symbols::Symbols;

#[derive(Clone, Debug)]
enum Step {
    Add(u32, u64, u64),
    Reduce(u64, u64),
    Delete(u64),
    Replace(u64, u64, u64),
}

fn step() -> impl Strategy<Value = Step> {
    // Few numbers, so that orders meet.
    let reference = || 0_u64..12;
    prop_oneof![
        4 => (0_u32..3, reference(), 1_u64..5).prop_map(|(i, r, size)| Step::Add(i, r, size)),
        2 => (reference(), 0_u64..5).prop_map(|(r, size)| Step::Reduce(r, size)),
        1 => reference().prop_map(Step::Delete),
        1 => (reference(), reference(), 0_u64..5).prop_map(|(r, n, size)| Step::Replace(r, n, size)),
    ]
}

fn order(reference: u64, size: u64, priority_ns: u64) -> Order {
    let price = Price { mantissa: reference as i64, decimals: 2 };
    Order { reference, side: Side::Ask, price, size, priority_ns, attribution: Attribution::new("MM") }
}

proptest! {
    #[test]
    fn orders_are_those_of_a_plain_list(steps in vec(step(), 0..120)) {
        const MOST: usize = 8;
        let mut depth = Depth::new(MOST);
        let mut list: Vec<(u32, Order)> = Vec::new();
        // What a subscriber makes of the changes.
        let mut followed: BTreeMap<u64, Order> = BTreeMap::new();
        for (step, now) in steps.into_iter().zip(1_u64..) {
            depth.begin();
            let find = |list: &[(u32, Order)], r: u64| list.iter().position(|(_, order)| order.reference == r);
            let add = |list: &mut Vec<(u32, Order)>, instrument, order: Order| {
                if list.len() < MOST && find(list, order.reference).is_none() {
                    list.push((instrument, order));
                }
            };
            match step {
                Step::Add(instrument, reference, size) => {
                    depth.add(Instrument(instrument), order(reference, size, now));
                    add(&mut list, instrument, order(reference, size, now));
                }
                Step::Reduce(reference, size) => {
                    depth.reduce(reference, size, now);
                    if let Some(at) = find(&list, reference) {
                        if size >= list[at].1.size {
                            list.remove(at);
                        } else {
                            list[at].1.size -= size;
                        }
                    }
                }
                Step::Delete(reference) => {
                    depth.delete(reference, now);
                    find(&list, reference).map(|at| list.remove(at));
                }
                Step::Replace(reference, new, size) => {
                    let price = Price { mantissa: new as i64, decimals: 2 };
                    depth.replace(reference, new, price, size, now);
                    if let Some(at) = find(&list, reference) {
                        let (instrument, _) = list.remove(at);
                        if size > 0 {
                            add(&mut list, instrument, order(new, size, now));
                        }
                    }
                }
            }
            for change in depth.changes() {
                let reference = change.order.reference;
                match change.action {
                    Action::Add => prop_assert_eq!(followed.insert(reference, change.order), None),
                    Action::Update => prop_assert!(followed.insert(reference, change.order).is_some()),
                    Action::Delete => prop_assert!(followed.remove(&reference).is_some()),
                }
            }
            for instrument in 0..3 {
                let expected: Vec<_> =
                    list.iter().filter(|(of, _)| *of == instrument).map(|(_, order)| *order).collect();
                let orders = depth.orders(Instrument(instrument));
                prop_assert_eq!(orders.len(), expected.len());
                prop_assert_eq!(orders.collect::<Vec<_>>(), expected);
            }
            prop_assert_eq!(depth.len(), list.len());
            let by_number: BTreeMap<_, _> = list.iter().map(|(_, order)| (order.reference, *order)).collect();
            prop_assert_eq!(&followed, &by_number);
        }
    }

    #[test]
    fn no_bytes_make_a_filter_fail(messages in vec(vec(any::<u8>(), 0..60), 0..40), kind in "[RAFPDES]") {
        for protocol in Protocol::ALL {
            let mut filter = protocol.filter(Symbols::new(["A*"]).unwrap());
            let mut passed_over = 0;
            for message in &messages {
                passed_over += u64::from(!filter.wants(message));
                let mut known = message.clone();
                known.splice(..known.len().min(1), [kind.as_bytes()[0]]);
                passed_over += u64::from(!filter.wants(&known));
            }
            prop_assert_eq!(filter.passed_over(), passed_over);
        }
    }
}

/// After every message of real feeds the levels of the books are the sums of the orders.
#[test]
fn real_orders_add_up_to_the_books() {
    let files =
        [("itch50-aapl-20200130", "aapl-first5000.itch"), ("itch50-synthetic-ritch", "ritch-framed.itch")];
    for (folder, file) in files {
        let (Some(expected), Some(file)) = (expected(folder), bytes(&format!("data/{folder}/{file}"))) else {
            return;
        };
        let (mut books, mut depth) = (Books::new(BookSettings::default()), Depth::new(1_000_000));
        let (mut changes, mut attributed) = (0, 0);
        for message in Frames::new(&file) {
            let Ok(message) = decode(message) else { continue };
            let _ = books.apply(&message);
            depth.apply_itch(&message, |ns| ns);
            changes += depth.changes().len();
            attributed += depth.changes().iter().filter(|c| !c.order.attribution.as_str().is_empty()).count();
            let Some(instrument) = depth.instrument() else { continue };
            let book = books.book(tapeline_feed::itch::Locate(instrument.0 as u16)).unwrap();
            for side in [Side::Bid, Side::Ask] {
                let mut levels: BTreeMap<i64, (u64, u32)> = BTreeMap::new();
                for order in depth.orders(instrument).filter(|order| order.side == side) {
                    let level = levels.entry(order.price.mantissa).or_default();
                    *level = (level.0 + order.size, level.1 + 1);
                }
                let of_books = book.levels(side).map(|l| (i64::from(l.price.0), (l.shares, l.orders)));
                assert_eq!(of_books.collect::<BTreeMap<_, _>>(), levels, "{folder}");
            }
        }
        assert_eq!(json!(depth.len()), expected["live_orders_end"], "{folder}");
        assert!(changes > 0, "{folder}");
        println!("{folder}: {changes} changes, {attributed} of orders with a name, {} left", depth.len());
    }
}
