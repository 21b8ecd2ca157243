//! The metadata at the start of a file, decoded by the `dbn` crate after this module has checked all lengths.

use ::dbn::VersionUpgradePolicy;
use ::dbn::decode::dbn::MetadataDecoder;

use super::damage::Damage;
use super::record::RecordKind;
use crate::capture::Error;
use crate::capture::window::Window;

/// The first bytes of a file.
pub(super) const MAGIC: &[u8] = b"DBN";
/// Bytes before the metadata: magic, version, length.
const PRELUDE_BYTES: usize = 8;
/// Size in bytes of the part that all versions have.
const FIXED_BYTES: u32 = 100;
/// The maximum size of metadata in bytes. A month of all SPY options has 6 MB.
pub const MOST_METADATA_BYTES: u32 = 64 << 20;
/// Offset of the length of symbols in versions 2 and 3, and the minimum length, that of version 1: with a shorter one a file could cause
/// allocations of many times its own size.
const SYMBOL_LENGTH_AT: usize = PRELUDE_BYTES + 45;
const SHORTEST_SYMBOL: u16 = ::dbn::v1::SYMBOL_CSTR_LEN as u16;

/// The metadata of a file and their length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// Bytes after the prelude, padding included.
    pub length: u32,
    /// The contents. The structure is the `dbn` crate's.
    pub about: ::dbn::Metadata,
}

impl Metadata {
    /// Returns the kind of all records; `None` for mixed kinds.
    #[must_use]
    pub fn kind(&self) -> Option<RecordKind> {
        self.about.schema.map(|schema| RecordKind(::dbn::RType::from(schema) as u8))
    }
}

/// Reads prelude and metadata; the window then starts at the first record.
pub(super) fn read(window: &mut Window<'_>) -> Result<Metadata, Error> {
    let place = window.place();
    let damaged = |damage| Error::Records { place, source: damage };
    let prelude = window.fill(PRELUDE_BYTES)?;
    let Some(&[_, _, _, version, a, b, c, d]) = prelude.first_chunk::<PRELUDE_BYTES>() else {
        return Err(damaged(Damage::Cut { held: prelude.len(), wanted: PRELUDE_BYTES }));
    };
    if !(1..=3).contains(&version) {
        return Err(damaged(Damage::Version { version }));
    }
    let length = u32::from_le_bytes([a, b, c, d]);
    if !(FIXED_BYTES..=MOST_METADATA_BYTES).contains(&length) {
        return Err(damaged(Damage::MetadataLength { length }));
    }
    // Memory is allocated as bytes arrive, not as the length announces.
    let wanted = PRELUDE_BYTES + length as usize;
    let mut bytes = Vec::new();
    while bytes.len() < wanted {
        let held = window.fill(1)?;
        let taken = held.len().min(wanted - bytes.len());
        if taken == 0 {
            return Err(damaged(Damage::Cut { held: bytes.len(), wanted }));
        }
        bytes.extend_from_slice(&held[..taken]);
        window.step(taken);
    }
    if version > 1 {
        let said = bytes[SYMBOL_LENGTH_AT..].first_chunk().map_or(0, |said| u16::from_le_bytes(*said));
        if said < SHORTEST_SYMBOL {
            return Err(damaged(Damage::SymbolLength { said }));
        }
    }
    let about = MetadataDecoder::with_upgrade_policy(&bytes[..], VersionUpgradePolicy::AsIs)
        .decode()
        .map_err(|error| damaged(Damage::Metadata { said: error.to_string() }))?;
    Ok(Metadata { length, about })
}
