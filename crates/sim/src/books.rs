//! The best bid and ask in an item's fields, held against the exchange's.

use std::cmp::Ordering;

use tapeline_feed::simulate::Best;
use tapeline_omm::rwf::Field;
use tapeline_omm::{Fid, Real, fid};

use crate::record::Fields;

/// Whether an item's best bid and ask are these.
pub(crate) fn has(fields: &Fields, (bid, ask): (Best, Best)) -> bool {
    is_side(fields, (fid::BID, fid::BIDSIZE), bid) && is_side(fields, (fid::ASK, fid::ASKSIZE), ask)
}

fn is_side(fields: &Fields, (price, size): (Fid, Fid), best: Best) -> bool {
    let real = |fid: Fid| Field::new(fid, fields.get(&fid.0)?).real().ok().flatten();
    let is = |fid, wanted: Option<Real>| match (real(fid), wanted) {
        (Some(real), Some(wanted)) => real.compare(wanted) == Some(Ordering::Equal),
        (real, wanted) => real.is_none() && wanted.is_none(),
    };
    // Prices have four decimals.
    is(price, best.map(|(price, _)| Real::decimal(price.into(), 4)))
        && is(size, best.map(|(_, size)| Real::integer(size as i64)))
}
