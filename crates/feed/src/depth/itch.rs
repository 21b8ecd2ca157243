//! The effect of ITCH's messages on the orders.

use super::{Attribution, Depth, Order};
use crate::draft::Price;
use crate::itch::{Message, Price4, Side};

impl Depth {
    /// Applies an ITCH message; `gmt` converts its time of day to GMT. Ignores the orders that the [books](crate::book) ignore (of zero shares, or
    /// of neither side).
    pub fn apply_itch(&mut self, message: &Message<'_>, gmt: impl Fn(u64) -> u64) {
        self.begin();
        let order = |reference, side: Side, price, shares: u32, ts_ns, attribution: &str| Order {
            reference,
            side,
            price: price_of(price),
            size: u64::from(shares),
            priority_ns: gmt(ts_ns),
            attribution: Attribution::new(attribution),
        };
        match *message {
            Message::AddOrder(m) => {
                if let (Some(side), 1..) = (m.side().side(), m.shares()) {
                    let order = order(m.reference().0, side, m.price(), m.shares(), m.ts_ns(), "");
                    self.add(m.locate().into(), order);
                }
            }
            Message::AddOrderAttributed(m) => {
                if let (Some(side), 1..) = (m.side().side(), m.shares()) {
                    let attribution = m.attribution();
                    let order =
                        order(m.reference().0, side, m.price(), m.shares(), m.ts_ns(), attribution.as_str());
                    self.add(m.locate().into(), order);
                }
            }
            Message::OrderExecuted(m) => self.reduce(m.reference().0, m.shares().into(), gmt(m.ts_ns())),
            Message::OrderExecutedWithPrice(m) => {
                self.reduce(m.reference().0, m.shares().into(), gmt(m.ts_ns()));
            }
            Message::OrderCancel(m) => self.reduce(m.reference().0, m.shares().into(), gmt(m.ts_ns())),
            Message::OrderDelete(m) => self.delete(m.reference().0, gmt(m.ts_ns())),
            Message::OrderReplace(m) => self.replace(
                m.reference().0,
                m.new_reference().0,
                price_of(m.price()),
                m.shares().into(),
                gmt(m.ts_ns()),
            ),
            _ => {}
        }
    }
}

const fn price_of(price: Price4) -> Price {
    Price { mantissa: price.0 as i64, decimals: 4 }
}
