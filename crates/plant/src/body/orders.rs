//! Market by order messages: maps of orders.

use tapeline_feed::depth::{self, Order, OrderChange, OrdersSummary};
use tapeline_omm::rwf::{
    self, DataType, Domain, Flags, MapEncoder, MapHead, RefreshHeader, State, UpdateType, flags,
};
use tapeline_omm::{FieldListEncoder, Refused};

/// Writes the orders that a message changed, and the summary if it changed; `None` if they do not fit in `out`.
pub(crate) fn update(
    out: &mut [u8],
    changes: &[OrderChange],
    summary: Option<&OrdersSummary>,
) -> Option<usize> {
    let header =
        rwf::update_header(out, Domain::MARKET_BY_ORDER, 0, UpdateType::UNSPECIFIED, DataType::MAP).ok()?;
    let mut map = begin(&mut out[header..], &depth::head(), summary).ok()?;
    changes.iter().try_for_each(|change| change.encode(&mut map)).ok()?;
    Some(header + map.finish())
}

/// The part of an image in one message.
pub(crate) struct ImagePart {
    /// Number of bytes written.
    pub(crate) len: usize,
    /// `true` if no orders remain for another part.
    pub(crate) is_last: bool,
}

/// Writes one part of an image: as many of `orders` as fit in `out`, starting with `next`; leaves the order that did not fit in `next`. The first
/// part (number 0) clears caches, and contains the number of orders and their common data. `None` if not even one order fits.
pub(crate) fn refresh(
    out: &mut [u8],
    number: u16,
    suspect: bool,
    summary: &OrdersSummary,
    next: &mut Option<Order>,
    orders: &mut depth::Orders<'_>,
) -> Option<ImagePart> {
    let is_first = number == 0;
    let clear = if is_first { flags::refresh::CLEAR_CACHE } else { Flags::NONE };
    let state = super::image_state(suspect);
    let mut header = RefreshHeader::new(Domain::MARKET_BY_ORDER, 0, state, DataType::MAP);
    header.flags = clear;
    // Part numbers end at 32,767; later parts keep the last number.
    header.part = Some(number.min(0x7FFF));
    let header_len = header.encode(out).ok()?;
    let count = u32::try_from(orders.len() + usize::from(next.is_some())).ok();
    let head = MapHead { count_hint: count.filter(|_| is_first), ..depth::head() };
    let mut map = begin(&mut out[header_len..], &head, Some(summary)).ok()?;
    while let Some(order) = next {
        if order.encode(&mut map).is_err() {
            break;
        }
        *next = orders.next();
    }
    let is_last = next.is_none();
    if map.is_empty() && !is_last {
        return None;
    }
    let len = header_len + map.finish();
    if is_last {
        // Known only now. One more flag takes no more bytes, because with part numbers the flags have two bytes in any case.
        header.flags = clear | flags::refresh::REFRESH_COMPLETE;
        header.encode(out).ok()?;
    }
    Some(ImagePart { len, is_last })
}

/// Writes an image without orders, which clears caches.
pub(crate) fn blank(out: &mut [u8]) -> Option<usize> {
    let header = super::image(out, (Domain::MARKET_BY_ORDER, DataType::MAP), State::OPEN_OK, true)?;
    Some(header + begin(&mut out[header..], &depth::head(), None).ok()?.finish())
}

fn begin<'a>(
    out: &'a mut [u8],
    head: &MapHead<'_>,
    summary: Option<&OrdersSummary>,
) -> Result<MapEncoder<'a>, Refused> {
    match summary {
        None => MapEncoder::new(out, head),
        Some(summary) => MapEncoder::with_summary(out, head, |room| {
            let mut fields = FieldListEncoder::new(room)?;
            summary.encode(&mut fields)?;
            Ok(fields.finish())
        }),
    }
}
