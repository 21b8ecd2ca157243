//! The best bid and offer against an oracle that reads the whole history anew after each event.
use std::cmp::Reverse;

use proptest::collection::vec;
use proptest::prelude::*;
use tapeline_feed::draft::{DraftQuote, Price};
use tapeline_feed::nbbo::{BestQuote, Consolidated, Market, Nbbo, Venue};
use tapeline_omm::{Dictionary, FieldList, FieldListEncoder};

const VENUES: u8 = 4;
const SYMBOLS: u32 = 3;

#[derive(Clone, Debug)]
enum Event {
    Show { venue: u8, symbol: u32, bid: Option<DraftQuote>, ask: Option<DraftQuote>, trades: bool },
    Current { venue: u8, is_current: bool },
    Clear { venue: u8 },
}

/// Few prices and sizes, so that they meet often; each price in one of two forms.
fn quote() -> impl Strategy<Value = Option<DraftQuote>> {
    prop::option::weighted(
        0.8,
        (0_i64..6, 1_u64..4, prop::sample::select(vec![2_u8, 4])).prop_map(|(cents, size, decimals)| {
            DraftQuote {
                price: Price { mantissa: (1_000 + cents) * if decimals == 4 { 100 } else { 1 }, decimals },
                size,
                size_decimals: 0,
            }
        }),
    )
}

fn event() -> impl Strategy<Value = Event> {
    let venue = || 0..VENUES;
    prop_oneof![
        16 => (venue(), 0..SYMBOLS, quote(), quote(), prop::bool::weighted(0.9)).prop_map(
            |(venue, symbol, bid, ask, trades)| Event::Show { venue, symbol, bid, ask, trades }
        ),
        2 => (venue(), any::<bool>()).prop_map(|(venue, is_current)| Event::Current { venue, is_current }),
        1 => venue().prop_map(|venue| Event::Clear { venue }),
    ]
}

/// What a venue's side shows after `history`, and at which event it came to show it.
fn standing(history: &[Event], venue: u8, symbol: u32, is_bid: bool) -> Option<(DraftQuote, usize)> {
    let mut now = (None, 0);
    for (at, event) in history.iter().enumerate() {
        let next =
            match event {
                Event::Show { venue: v, symbol: s, bid, ask, .. } if (*v, *s) == (venue, symbol) => {
                    if is_bid { *bid } else { *ask }
                }
                Event::Clear { venue: v } if *v == venue => None,
                _ => continue,
            };
        if next != now.0 {
            now = (next, at);
        }
    }
    now.0.map(|quote| (quote, now.1))
}

fn takes_part(history: &[Event], venue: u8, symbol: u32) -> bool {
    let (mut trades, mut current) = (false, true);
    for event in history {
        match event {
            Event::Show { venue: v, symbol: s, trades: now, .. } if (*v, *s) == (venue, symbol) => {
                trades = *now;
            }
            Event::Current { venue: v, is_current } if *v == venue => current = *is_current,
            Event::Clear { venue: v } if *v == venue => trades = false,
            _ => {}
        }
    }
    trades && current
}

fn oracle(history: &[Event], symbol: u32) -> Nbbo {
    let best = |is_bid: bool| {
        let shown = (0..VENUES).filter(|venue| takes_part(history, *venue, symbol)).filter_map(|venue| {
            standing(history, venue, symbol, is_bid).map(|(quote, since)| (quote, since, Venue(venue)))
        });
        shown
            .max_by_key(|(quote, since, venue)| {
                let price = quote.price.mantissa * 10_i64.pow(u32::from(4 - quote.price.decimals));
                (if is_bid { price } else { -price }, quote.size, Reverse(*since), Reverse(*venue))
            })
            .map(|(quote, _, venue)| BestQuote { quote, venue })
    };
    Nbbo { bid: best(true), ask: best(false) }
}

proptest! {
    #[test]
    fn the_best_is_what_the_whole_history_says(events in vec(event(), 1..60)) {
        let mut all = Consolidated::new(usize::from(VENUES), SYMBOLS as usize);
        let mut known = [Nbbo::default(); SYMBOLS as usize];
        for (at, event) in events.iter().enumerate() {
            let mut said = Vec::new();
            match event {
                Event::Show { venue, symbol, bid, ask, trades } => {
                    said.extend(all.show(Venue(*venue), *symbol, *bid, *ask, *trades).map(|best| (*symbol, best)));
                }
                Event::Current { venue, is_current } => {
                    all.set_current(Venue(*venue), *is_current, |symbol, best| said.push((symbol, best)));
                }
                Event::Clear { venue } => all.clear(Venue(*venue), |symbol, best| said.push((symbol, best))),
            }
            for symbol in 0..SYMBOLS {
                let expected = oracle(&events[..=at], symbol);
                let before = std::mem::replace(&mut known[symbol as usize], expected);
                // It is said when it changes, and only then.
                let changes: Vec<_> = said.iter().filter(|(s, _)| *s == symbol).map(|(_, best)| *best).collect();
                let due: &[Nbbo] = if before == expected { &[] } else { &[expected] };
                prop_assert_eq!(changes, due);
                prop_assert_eq!(all.best(symbol), expected);
            }
        }
    }
}

#[test]
fn the_fields_name_venues_and_state() {
    let quote =
        |cents, size| DraftQuote { price: Price { mantissa: cents, decimals: 2 }, size, size_decimals: 0 };
    let best = Nbbo {
        bid: Some(BestQuote { quote: quote(1_000, 300), venue: Venue(0) }),
        ask: Some(BestQuote { quote: quote(1_000, u64::MAX), venue: Venue(1) }),
    };
    let encoded = |best: &Nbbo| {
        let mut out = [0; Nbbo::MAX_BYTES];
        let mut fields = FieldListEncoder::new(&mut out).unwrap();
        best.encode(&mut fields, 52_200_000_000_001, |venue| ["NASDAQ", "IEX"][usize::from(venue.0)])
            .unwrap();
        let len = fields.finish();
        FieldList::parse(&out[..len]).unwrap().render(Dictionary::builtin()).to_string()
    };
    assert_eq!(
        encoded(&best),
        "BID=10.00 ASK=10.00 BIDSIZE=300 ASKSIZE=9223372036854775807 BID_SRC=NASDAQ ASK_SRC=IEX BOOK_STATE=L \
         QUOTIM_NS=14:30:00.000000001"
    );
    assert_eq!(best.market(), Market::Locked);
    assert!(
        encoded(&Nbbo::default()).starts_with("BID= ASK= BIDSIZE= ASKSIZE= BID_SRC= ASK_SRC= BOOK_STATE=D")
    );
}
