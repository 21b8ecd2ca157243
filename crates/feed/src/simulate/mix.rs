//! The frequencies of messages, and the distances of orders from the market.

use super::random::Random;

/// The next event of a stock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Add,
    AddAttributed,
    Delete,
    Execute,
    ExecuteWithPrice,
    Replace,
    Cancel,
    Trade,
    Other,
}

/// Frequencies in a thousand, as counted in real days of NASDAQ messages.
const PER_THOUSAND: [(Event, usize); 9] = [
    (Event::Add, 442),
    (Event::AddAttributed, 15),
    (Event::Delete, 399),
    (Event::Execute, 57),
    (Event::ExecuteWithPrice, 3),
    (Event::Replace, 40),
    (Event::Cancel, 20),
    (Event::Trade, 15),
    (Event::Other, 9),
];

const MIX: [Event; 1000] = {
    let mut mix = [Event::Other; 1000];
    let (mut row, mut at) = (0, 0);
    while row < PER_THOUSAND.len() {
        let (event, times) = PER_THOUSAND[row];
        let end = at + times;
        while at < end {
            mix[at] = event;
            at += 1;
        }
        row += 1;
    }
    assert!(at == 1000);
    mix
};

/// Draws the next event.
#[inline]
pub(super) fn event(random: &mut Random) -> Event {
    MIX[random.below(1000) as usize]
}

/// Draws the shares of a new order: half of them one round lot, the rest odd lots and larger ones.
#[inline]
pub(super) fn shares(random: &mut Random) -> u32 {
    let word = random.word();
    let low = (word >> 32) as u32;
    match word & 7 {
        0..=3 => 100,
        4 | 5 => 1 + low % 99,
        6 => 100 * (2 + low % 4),
        _ => 100 * (2 + low % 30),
    }
}

/// Draws the distance of an order from the middle of the market in ticks: half of the orders are at the nearest tick, farther ones ever rarer, the
/// farthest at 511.
#[inline]
pub(super) fn distance(random: &mut Random) -> u32 {
    let word = random.word();
    let reach = (word as u32 | 1 << 8).trailing_zeros();
    let within = (1 << reach) - 1;
    within + ((word >> 32) as u32 & within)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_stay_within_their_bounds() {
        let mut random = Random::seeded(3);
        for _ in 0..100_000 {
            assert!(distance(&mut random) <= 510);
            assert!((1..=3100).contains(&shares(&mut random)));
        }
    }
}
