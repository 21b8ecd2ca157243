//! Books built from a simulated day against the simulator's own.

use tapeline_feed::book;
use tapeline_feed::itch::Locate;
use tapeline_feed::itch::encode::LONGEST;
use tapeline_feed::simulate::{Exchange, SimulatedDay, checksum};
use tapeline_feed::summary::Summary;

/// Best bids and asks of all stocks as a book builder has them, in the simulator's terms.
fn sum_of(summary: &Summary, symbols: u16) -> u64 {
    checksum((1..=symbols).map(|locate| {
        let top = summary.books().book(Locate(locate)).map(book::Book::top).unwrap_or_default();
        let plain = |quote: book::Quote| (quote.price.0, quote.shares);
        (top.bid.map(plain), top.ask.map(plain))
    }))
}

#[test]
fn books_built_from_the_messages_are_the_exchanges_own() {
    for (seed, symbols) in [(1, 500), (2, 3), (77, 8_000)] {
        let mut exchange = Exchange::new(SimulatedDay { seed, symbols, ..SimulatedDay::default() });
        let mut summary = Summary::new(book::BookSettings::default());
        let mut message = [0; LONGEST];
        let messages = exchange.opening_messages() + 300_000;
        for k in 0..messages {
            let Some(length) = exchange.next(34_200_000_000_000 + k, &mut message) else {
                panic!("it ended")
            };
            summary.message(&message[..length]);
            if k % 10_000 == 0 {
                assert_eq!(sum_of(&summary, symbols), exchange.checksum(), "seed {seed}, message {k}");
            }
        }
        assert_eq!(sum_of(&summary, symbols), exchange.checksum());
        let books = summary.books();
        assert_eq!(books.live_orders(), exchange.live_orders());
        let volume: u64 = books.iter().map(|(_, book)| book.volume().traded_shares).sum();
        assert_eq!(volume, exchange.totals().traded_shares);
        assert_eq!(books.counters().unknown_reference.total(), 0);
        assert_eq!(books.counters().excess_shares.total(), 0);
        assert_eq!(books.counters().before_directory.total(), 0);
        let crossed = |book: &book::Book| match (book.top().bid, book.top().ask) {
            (Some(bid), Some(ask)) => bid.price >= ask.price,
            _ => false,
        };
        assert!(!books.iter().any(|(_, book)| crossed(book)));
    }
}
