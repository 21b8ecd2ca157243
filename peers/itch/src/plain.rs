//! Books as a careful person writes them on a first day: a hash map of orders, a sorted map of levels for each side.

use std::collections::{BTreeMap, HashMap};

use tapeline_feed::itch::framing::{FileFraming, Frames};
use tapeline_feed::itch::{Message, OrderRef, Side, decode};
use tapeline_feed::simulate;

struct Order {
    stock: u16,
    side: Side,
    price: u32,
    shares: u32,
}

/// Shares and orders by price.
type Levels = BTreeMap<u32, (u64, u32)>;

pub(crate) struct Books {
    orders: HashMap<u64, Order>,
    stocks: Vec<[Levels; 2]>,
}

fn best(levels: &Levels, side: Side) -> Option<(u32, u64)> {
    let level = match side {
        Side::Bid => levels.last_key_value(),
        Side::Ask => levels.first_key_value(),
    };
    level.map(|(price, (shares, _))| (*price, *shares))
}

impl Books {
    pub(crate) fn new(symbols: u16) -> Self {
        let stocks = (0..=symbols).map(|_| Default::default()).collect();
        Self { orders: HashMap::new(), stocks }
    }

    /// Applies a file; gives how often a best price or size changed.
    #[inline(never)]
    pub(crate) fn apply_all(&mut self, file: &[u8]) -> u64 {
        let mut events = 0;
        for bytes in Frames::with(file, FileFraming::Length) {
            let Ok(message) = decode(bytes) else { continue };
            events += u64::from(self.apply(&message));
        }
        events
    }

    fn apply(&mut self, message: &Message<'_>) -> bool {
        let order = match *message {
            Message::AddOrder(m) => (m.side(), m.reference(), m.locate().0, m.price().0, m.shares()),
            Message::AddOrderAttributed(m) => {
                (m.side(), m.reference(), m.locate().0, m.price().0, m.shares())
            }
            Message::OrderDelete(m) => return self.take(m.reference(), u32::MAX, None),
            Message::OrderCancel(m) => return self.take(m.reference(), m.shares(), None),
            Message::OrderExecuted(m) => return self.take(m.reference(), m.shares(), None),
            Message::OrderExecutedWithPrice(m) => return self.take(m.reference(), m.shares(), None),
            Message::OrderReplace(m) => {
                return self.take(
                    m.reference(),
                    u32::MAX,
                    Some((m.new_reference(), m.price().0, m.shares())),
                );
            }
            _ => return false,
        };
        let (side, reference, stock, price, shares) = order;
        let Some(side) = side.side() else { return false };
        let levels = &mut self.stocks[usize::from(stock)][side as usize];
        let before = best(levels, side);
        add(levels, price, shares);
        self.orders.insert(reference.0, Order { stock, side, price, shares });
        before != best(levels, side)
    }

    fn take(&mut self, reference: OrderRef, shares: u32, new: Option<(OrderRef, u32, u32)>) -> bool {
        let Some(order) = self.orders.get_mut(&reference.0) else { return false };
        let (stock, side, price) = (order.stock, order.side, order.price);
        let taken = shares.min(order.shares);
        order.shares -= taken;
        let gone = order.shares == 0;
        let levels = &mut self.stocks[usize::from(stock)][side as usize];
        let before = best(levels, side);
        if let Some(level) = levels.get_mut(&price) {
            level.0 -= u64::from(taken);
            level.1 -= u32::from(gone);
            if level.1 == 0 {
                levels.remove(&price);
            }
        }
        if gone {
            self.orders.remove(&reference.0);
        }
        if let Some((reference, price, shares)) = new {
            add(levels, price, shares);
            self.orders.insert(reference.0, Order { stock, side, price, shares });
        }
        before != best(levels, side)
    }

    pub(crate) fn live_orders(&self) -> usize {
        self.orders.len()
    }

    /// The sum over all best prices that the exchange has too.
    pub(crate) fn checksum(&self) -> u64 {
        let tops = self.stocks[1..].iter().map(|[bids, asks]| (best(bids, Side::Bid), best(asks, Side::Ask)));
        simulate::checksum(tops)
    }
}

fn add(levels: &mut Levels, price: u32, shares: u32) {
    let level = levels.entry(price).or_default();
    *level = (level.0 + u64::from(shares), level.1 + 1);
}
