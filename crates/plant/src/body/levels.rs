//! Market by price messages: maps of price levels.

use tapeline_feed::levels::{self, LevelChange};
use tapeline_omm::rwf::{self, DataType, Domain, MapEncoder, MapHead, UpdateType};

/// Maximum size of a message in bytes: 20 deleted levels and 20 new ones.
pub(crate) const MAX_BYTES: usize = 4_096;

/// Writes the levels that a message changed; `None` if they do not fit in `out`.
pub(crate) fn update(out: &mut [u8], changes: &[LevelChange]) -> Option<usize> {
    let header =
        rwf::update_header(out, Domain::MARKET_BY_PRICE, 0, UpdateType::UNSPECIFIED, DataType::MAP).ok()?;
    let mut map = MapEncoder::new(&mut out[header..], &levels::head()).ok()?;
    changes.iter().try_for_each(|change| change.encode(&mut map)).ok()?;
    Some(header + map.finish())
}

/// Writes the image, which clears other levels in caches; `None` if it does not fit in `out`.
pub(crate) fn refresh(
    out: &mut [u8],
    suspect: bool,
    mut levels: impl ExactSizeIterator<Item = LevelChange>,
) -> Option<usize> {
    let state = super::image_state(suspect);
    let header = super::image(out, (Domain::MARKET_BY_PRICE, DataType::MAP), state, true)?;
    let head = MapHead { count_hint: u32::try_from(levels.len()).ok(), ..levels::head() };
    let mut map = MapEncoder::new(&mut out[header..], &head).ok()?;
    levels.try_for_each(|level| level.encode(&mut map)).ok()?;
    Some(header + map.finish())
}
