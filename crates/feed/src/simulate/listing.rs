//! The stocks of the simulated exchange: names, price ranges, and the messages about them before trading.

use super::TICK;
use super::random::{Random, Zipf};
use crate::itch::encode::{
    BreakerLevels, LONGEST, ParticipantPosition, PrefixFields, RegSho, StockDirectory, SystemEvent,
    TradingAction, text,
};

/// The participants of attributed orders and market-maker positions.
pub(super) const PARTICIPANTS: [[u8; 4]; 4] = [*b"TAPE", *b"LINE", *b"MKRA", *b"MKRB"];

/// Number of messages about each stock before trading: R, H, Y, L.
const PER_STOCK: u32 = 4;

/// A stock and the state of its random walk.
#[derive(Clone, Debug)]
pub(super) struct Stock {
    pub(super) name: [u8; 8],
    /// Middle of the prices of new orders, in ticks.
    pub(super) middle: u32,
    /// The walk's bounds: a tenth on either side of its start.
    pub(super) low: u32,
    pub(super) high: u32,
    /// Number of live orders at which an add becomes a delete.
    pub(super) most_orders: u32,
}

impl Stock {
    /// Returns the stocks, the busiest first. `live_orders` is divided by activity.
    pub(super) fn all(count: u16, live_orders: u32, zipf: &Zipf, random: &mut Random) -> Vec<Self> {
        (0..count)
            .map(|number| {
                // From 8 to 408 dollars, low prices more often; the minimum leaves a distance below the deepest bid.
                let span = 1 << (8 + random.below(8));
                let middle = 800 + random.below(span) + random.below(span / 4);
                let share = u64::from(zipf.share(u32::from(number)));
                Self {
                    name: name(u32::from(number)),
                    middle,
                    low: middle - middle / 10,
                    high: middle + middle / 10,
                    most_orders: ((u64::from(live_orders) * share) >> 32).max(32) as u32,
                }
            })
            .collect()
    }
}

/// Returns a pronounceable symbol of four letters (five from the 10,000th on), different for every number below 260,000.
fn name(number: u32) -> [u8; 8] {
    const CONSONANTS: &[u8; 20] = b"BCDFGHJKLMNPRSTVWXYZ";
    const VOWELS: &[u8; 5] = b"AEIOU";
    // 7,919 is prime, so neighbours have different names and no name is repeated. The busiest stock is TAPE.
    let mut code = (number * 7_919 + 3_114) % 10_000;
    let mut name = [b' '; 8];
    for pair in name[..4].chunks_exact_mut(2) {
        pair[0] = CONSONANTS[(code % 20) as usize];
        code /= 20;
        pair[1] = VOWELS[(code % 5) as usize];
        code /= 5;
    }
    if number >= 10_000 {
        name[4] = b'A' + (number / 10_000) as u8 % 26;
    }
    name
}

/// Returns the number of messages before trading starts.
pub(super) fn prologue_length(stocks: u16) -> u64 {
    u64::from(u32::from(stocks) * PER_STOCK) + 4
}

/// Writes message `step` of the prologue; returns its length, or `None` after the prologue.
pub(super) fn prologue(step: u64, stocks: &[Stock], ts_ns: u64, out: &mut [u8; LONGEST]) -> Option<usize> {
    let nobody = PrefixFields { locate: 0, tracking: 0, ts_ns };
    let about_stocks = stocks.len() as u64 * u64::from(PER_STOCK);
    if step == 0 {
        return SystemEvent { event: b'O' }.encode(nobody, out);
    }
    let step = step - 1;
    if step >= about_stocks {
        return match step - about_stocks {
            0 => {
                let level = |percent: u64| 3_000 * (100 - percent) * 1_000_000;
                BreakerLevels { level_1: level(7), level_2: level(13), level_3: level(20) }
                    .encode(nobody, out)
            }
            1 => SystemEvent { event: b'S' }.encode(nobody, out),
            2 => SystemEvent { event: b'Q' }.encode(nobody, out),
            _ => None,
        };
    }
    // First the whole directory, then the states, as on a real day.
    let number = (step % stocks.len() as u64) as usize;
    let stock = stocks[number].name;
    let prefix = PrefixFields { locate: number as u16 + 1, tracking: 0, ts_ns };
    match step / stocks.len() as u64 {
        0 => StockDirectory {
            stock,
            market_category: b'Q',
            financial_status: b'N',
            round_lot: 100,
            round_lots_only: b'N',
            issue_classification: b'C',
            issue_sub_type: *b"Z ",
            authenticity: b'T',
            short_sale_threshold: b'N',
            ipo_flag: b'N',
            luld_tier: if number < 100 { b'1' } else { b'2' },
            etp_flag: b'N',
            etp_leverage: 0,
            inverse: b'N',
        }
        .encode(prefix, out),
        1 => TradingAction { stock, state: b'T', reserved: b' ', reason: text("") }.encode(prefix, out),
        2 => RegSho { stock, action: b'0' }.encode(prefix, out),
        _ => {
            let mpid = PARTICIPANTS[number % PARTICIPANTS.len()];
            ParticipantPosition { mpid, stock, primary: b'Y', mode: b'N', state: b'A' }.encode(prefix, out)
        }
    }
}

impl Stock {
    /// Returns the price on the wire of a number of ticks.
    pub(super) fn price(ticks: u32) -> u32 {
        ticks * TICK
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_symbol_is_different() {
        let mut names: Vec<_> = (0..65_000).map(name).collect();
        assert_eq!(names[0], *b"TAPE    ");
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 65_000);
    }
}
