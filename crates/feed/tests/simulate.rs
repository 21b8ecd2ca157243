//! The simulated exchange: the same for the same seed, plausible, and an oracle for books.

use std::collections::BTreeMap;

use tapeline_feed::itch::encode::LONGEST;
use tapeline_feed::itch::{self, Message};
use tapeline_feed::simulate::{CLOSING_MESSAGES, Exchange, SimulatedDay};

/// A nanosecond of the day at which message `k` happens.
fn event_ns(k: u64) -> u64 {
    34_200_000_000_000 + k * 1_000
}

/// FNV-1a over `count` messages with their lengths.
fn hash(exchange: &mut Exchange, count: u64) -> u64 {
    let mut message = [0; LONGEST];
    let mut hash = 0xCBF2_9CE4_8422_2325_u64;
    for k in 0..count {
        let length = exchange.next(event_ns(k), &mut message).unwrap();
        for byte in std::iter::once(length as u8).chain(message[..length].iter().copied()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
        }
    }
    hash
}

#[test]
fn a_seed_gives_the_same_day_always_and_everywhere() {
    let settings = SimulatedDay { seed: 42, symbols: 50, ..SimulatedDay::default() };
    // Recorded once: a change of the simulator that changes its days changes everybody's results with it.
    assert_eq!(hash(&mut Exchange::new(settings), 100_000), 0xED22_B40C_3BA8_43D2);
    assert_ne!(
        hash(&mut Exchange::new(settings), 10_000),
        hash(&mut Exchange::new(SimulatedDay { seed: 43, ..settings }), 10_000)
    );
}

#[test]
fn a_day_opens_trades_and_closes() {
    let mut exchange = Exchange::new(SimulatedDay { seed: 1, symbols: 7, ..SimulatedDay::default() });
    let mut out = [0; LONGEST];
    let mut events = Vec::new();
    let mut listed = Vec::new();
    let opening = exchange.opening_messages();
    for k in 0..opening + 10_000 {
        let length = exchange.next(event_ns(k), &mut out).unwrap();
        match itch::decode(&out[..length]).unwrap() {
            Message::SystemEvent(event) => events.push((k, event.event().0)),
            Message::StockDirectory(stock) => listed.push((stock.locate().0, stock.stock().0)),
            message => assert!(k < opening || !matches!(message, Message::StockDirectory(_))),
        }
    }
    assert_eq!(events, [(0, b'O'), (opening - 2, b'S'), (opening - 1, b'Q')]);
    let expected: Vec<_> = (1..=7).map(|locate| (locate, exchange.symbol(locate).unwrap())).collect();
    assert_eq!(listed, expected);

    exchange.end_day();
    let mut closing = Vec::new();
    while let Some(length) = exchange.next(event_ns(99_999), &mut out) {
        assert_eq!(length, 12);
        closing.push(out[11]);
    }
    assert_eq!(closing, b"MEC");
    assert_eq!(closing.len() as u64, CLOSING_MESSAGES);
    assert_eq!(exchange.next(0, &mut out), None);
    assert_eq!(exchange.totals().messages, opening + 10_000 + CLOSING_MESSAGES);
}

#[test]
fn the_mix_is_that_of_a_real_day() {
    const MESSAGES: u64 = 1_000_000;
    let mut exchange = Exchange::new(SimulatedDay { seed: 3, symbols: 100, ..SimulatedDay::default() });
    let mut out = [0; LONGEST];
    let mut counts = BTreeMap::new();
    let mut references = Vec::new();
    for k in 0..exchange.opening_messages() + MESSAGES {
        let length = exchange.next(event_ns(k), &mut out).unwrap();
        let message = itch::decode(&out[..length]).unwrap();
        assert_eq!(message.extra_bytes(&out[..length]), 0);
        assert_eq!(message.prefix().unwrap().ts_ns, event_ns(k));
        *counts.entry(out[0]).or_insert(0_u64) += 1;
        match message {
            Message::AddOrder(order) => references.push(order.reference().0),
            Message::AddOrderAttributed(order) => references.push(order.reference().0),
            Message::OrderReplace(order) => references.push(order.new_reference().0),
            _ => {}
        }
    }
    for (kind, percent) in
        [(b'A', 44.0), (b'F', 1.5), (b'D', 40.0), (b'E', 5.7), (b'C', 0.3), (b'U', 4.0), (b'X', 2.0)]
    {
        let found = counts[&kind] as f64 * 100.0 / MESSAGES as f64;
        assert!((found - percent).abs() < 0.05 * percent + 0.05, "{}: {found} %", kind as char);
    }
    assert_eq!(counts.len(), itch::MessageType::ALL.len(), "every type occurs: {counts:?}");
    assert!(references.windows(2).all(|pair| pair[1] == pair[0] + 4));
    for locate in 1..=exchange.symbols() {
        if let (Some((bid, _)), Some((ask, _))) = exchange.top(locate) {
            assert!(bid < ask, "{locate}: {bid} {ask}");
        }
    }
}

#[test]
fn memory_is_bounded_by_the_limit_on_live_orders() {
    let mut exchange = Exchange::new(SimulatedDay { seed: 9, symbols: 20, live_orders: 1_000 });
    let mut out = [0; LONGEST];
    let mut most = 0;
    for k in 0..400_000 {
        exchange.next(event_ns(k), &mut out).unwrap();
        most = most.max(exchange.live_orders());
    }
    assert!((500..=1_000 + 20 * 32).contains(&most), "{most}");
    assert!(exchange.levels() <= most);
}

#[test]
fn odd_settings_are_brought_within_bounds() {
    let mut out = [0; LONGEST];
    for (symbols, expected) in [(0, 1), (u16::MAX, 65_000)] {
        let mut exchange = Exchange::new(SimulatedDay { seed: 0, symbols, live_orders: 0 });
        assert_eq!(exchange.symbols(), expected);
        for k in 0..300_000 {
            assert!(exchange.next(u64::MAX - k, &mut out).is_some());
        }
        assert_eq!(exchange.top(0), (None, None));
        assert_eq!(exchange.top(u16::MAX), (None, None));
    }
}
