//! Compares the exchange's books with the plant's items: the best bid and ask, and every order.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use tapeline_feed::itch::{self, Message, Side};
use tapeline_feed::simulate::Best;
use tapeline_omm::rwf::Field;
use tapeline_omm::{Fid, Real, fid};

use crate::image::{Fields, Image};

/// Whether an item has this best bid and ask.
pub(crate) fn has(fields: &Fields, (bid, ask): (Best, Best)) -> bool {
    is_side(fields, (fid::BID, fid::BIDSIZE), bid) && is_side(fields, (fid::ASK, fid::ASKSIZE), ask)
}

fn is_side(fields: &Fields, (price, size): (Fid, Fid), best: Best) -> bool {
    // Prices have four decimals.
    is(fields, price, best.map(|(price, _)| Real::decimal(price.into(), 4)))
        && is(fields, size, best.map(|(_, size)| Real::integer(size as i64)))
}

fn is(fields: &Fields, fid: Fid, wanted: Option<Real>) -> bool {
    let real = fields.get(&fid.0).and_then(|data| Field::new(fid, data).real().ok().flatten());
    match (real, wanted) {
        (Some(real), Some(wanted)) => real.compare(wanted) == Some(Ordering::Equal),
        (real, wanted) => real.is_none() && wanted.is_none(),
    }
}

#[derive(Clone, Copy, Debug)]
struct Order {
    locate: u16,
    side: Side,
    price: u32,
    shares: u32,
}

/// All orders of an exchange by order number, derived from its messages.
#[derive(Debug, Default)]
pub(crate) struct Orders(BTreeMap<u64, Order>);

impl Orders {
    pub(crate) fn take(&mut self, message: &[u8]) {
        let Ok(message) = itch::decode(message) else { return };
        let add = |locate, side, price, shares| Order { locate, side, price, shares };
        match message {
            Message::AddOrder(m) => {
                let side = m.side().side().expect("the exchange knows two sides");
                self.0.insert(m.reference().0, add(m.locate().0, side, m.price().0, m.shares()));
            }
            Message::AddOrderAttributed(m) => {
                let side = m.side().side().expect("the exchange knows two sides");
                self.0.insert(m.reference().0, add(m.locate().0, side, m.price().0, m.shares()));
            }
            Message::OrderExecuted(m) => self.reduce(m.reference().0, m.shares()),
            Message::OrderExecutedWithPrice(m) => self.reduce(m.reference().0, m.shares()),
            Message::OrderCancel(m) => self.reduce(m.reference().0, m.shares()),
            Message::OrderDelete(m) => _ = self.0.remove(&m.reference().0),
            Message::OrderReplace(m) => {
                if let Some(before) = self.0.remove(&m.reference().0) {
                    let order = Order { price: m.price().0, shares: m.shares(), ..before };
                    self.0.insert(m.new_reference().0, order);
                }
            }
            _ => {}
        }
    }

    fn reduce(&mut self, number: u64, shares: u32) {
        let Some(order) = self.0.get_mut(&number) else { return };
        order.shares = order.shares.saturating_sub(shares);
        if order.shares == 0 {
            self.0.remove(&number);
        }
    }

    /// Checks that an image has exactly the orders of one stock.
    ///
    /// # Errors
    /// The difference between the two.
    pub(crate) fn check(&self, locate: u16, image: &Image) -> Result<(), String> {
        let orders = self.0.iter().filter(|(_, order)| order.locate == locate);
        let mut count = 0;
        for (number, order) in orders {
            count += 1;
            let fields = image.entries.get(number.to_string().as_bytes());
            let side = fields.and_then(|fields| fields.get(&fid::ORDER_SIDE.0)?.first().copied());
            let side_is = match order.side {
                Side::Bid => 1,
                Side::Ask => 2,
            };
            let is_so = side == Some(side_is)
                && fields.is_some_and(|fields| {
                    is(fields, fid::ORDER_PRC, Some(Real::decimal(order.price.into(), 4)))
                        && is(fields, fid::ORDER_SIZE, Some(Real::integer(order.shares.into())))
                });
            if !is_so {
                return Err(format!("the exchange has {order:?} as {number}, the plant {fields:?}"));
            }
        }
        if image.entries.len() == count {
            return Ok(());
        }
        Err(format!("the exchange has {count} orders, the plant {}", image.entries.len()))
    }
}
