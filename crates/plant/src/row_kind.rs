//! The kinds of new market data in a tick.

use tapeline_omm::{Field, FieldList, Malformed, Time, fid};

use crate::tick::{Flags, Header, Kind};

/// A day in ns.
const DAY_NS: u64 = 86_400_000_000_000;

/// What is new in a tick: the tables of market data that get a row for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowKind {
    /// The tick has a new trade: it has a last trade price, and it is an update or an image whose trade is new, as an
    /// item's first image can be. The trade of an image is new if its time is the time of the tick's event, or in the
    /// first row of an item from a kdb+ client: such rows are never published again. In any other image the trade was
    /// published before, or may be old.
    pub trade: bool,
    /// The tick has a broken trade: an update that names one, its number, price or size, or an image that replaces such
    /// an update, with CAN_TIM_NS as the time of the tick's event.
    pub broken: bool,
    /// The tick has the state of an auction: an update with any auction field, or an image that replaces such an
    /// update, with IMB_TIM_NS as the time of the tick's event.
    pub auction: bool,
    /// The tick has the best bid or ask, or the size of either. An image has all fields, and fields without a value do
    /// not count.
    pub quote: bool,
}

impl RowKind {
    /// Returns the kind of a tick with these fields.
    ///
    /// # Errors
    /// A fault in the fields.
    pub fn of(header: &Header, fields: &FieldList<'_>) -> Result<Self, Malformed> {
        let mut news = Self::default();
        if header.kind == Kind::Status {
            return Ok(news);
        }
        let is_image = header.kind == Kind::Refresh;
        let (mut trade_ns, mut broken_ns, mut auction_ns) = (None, None, None);
        // Invalid times are ignored here; the reader of the values reports them.
        let ns_of_day = |field: &Field<'_>| field.time().ok().flatten().and_then(Time::ns_of_day);
        for field in fields.iter() {
            let field = field?;
            match field.fid {
                fid::TRDPRC_1 => news.trade = !field.is_blank(),
                fid::BID | fid::ASK | fid::BIDSIZE | fid::ASKSIZE => {
                    news.quote |= !is_image || !field.is_blank();
                }
                fid::CAN_TRD_ID | fid::CAN_PRC | fid::CAN_VOL => news.broken |= !field.is_blank(),
                fid::INDAUCTYPE
                | fid::IMB_SIDE
                | fid::IMB_SH
                | fid::IMB_PR_SH
                | fid::IMB_PR_REF
                | fid::IMB_PR_NR
                | fid::IMB_PR_FR => news.auction = true,
                fid::SALTIM_NS if is_image => trade_ns = ns_of_day(&field),
                fid::CAN_TIM_NS if is_image => broken_ns = ns_of_day(&field),
                fid::IMB_TIM_NS if is_image => auction_ns = ns_of_day(&field),
                _ => {}
            }
        }
        let is_of_event = |ns| ns == Some(header.event.0 % DAY_NS);
        news.trade &= !is_image || is_row(header) || is_of_event(trade_ns);
        news.broken &= !is_image || is_of_event(broken_ns);
        news.auction &= !is_image || is_of_event(auction_ns);
        Ok(news)
    }
}

/// Returns `true` if a tick is a publisher's [row](crate::rows): it has a source without a type. One feed
/// record also has none, DBN's type 0, which is a trade.
fn is_row(header: &Header) -> bool {
    header.flags.contains(Flags::SOURCE) && header.source_type == 0
}
