//! Symbol lists (domain 10): maps whose keys are item names.

use super::elements::encode_list;
use crate::Malformed;
use crate::Refused;
use crate::rwf::{
    DataType, ElementList, ElementListEncoder, Map, MapAction, MapEncoder, MapHead, decode_uint,
};

/// Value of `:DataStreams`: names only.
pub const NAMES_ONLY: u64 = 0;
/// Value of `:DataStreams`: the items too, as streams.
pub const STREAMS: u64 = 1;
/// Value of `:DataStreams`: the items too, as snapshots.
pub const SNAPSHOTS: u64 = 2;

/// Returns the names in the payload of a symbol list, each with its action.
///
/// # Errors
///
/// Fails if the head is truncated. Faults of entries are returned during iteration.
pub fn names(
    payload: &[u8],
) -> Result<impl Iterator<Item = Result<(MapAction, &[u8]), Malformed>>, Malformed> {
    Ok(Map::parse(payload)?.into_iter().map(|entry| entry.map(|entry| (entry.action, entry.key))))
}

/// Writes the payload of a symbol list to the start of `out`: a map of names without data. Returns its length and the
/// number of names that fit; the other names go into another part.
///
/// # Errors
///
/// [`Refused::Full`] if not even an empty map fits; [`Refused::TooLong`] for a name of more than 32,767 bytes.
pub fn encode_names<'n>(
    names: impl IntoIterator<Item = (MapAction, &'n [u8])>,
    out: &mut [u8],
) -> Result<(usize, usize), Refused> {
    let mut map = MapEncoder::new(out, &MapHead::new(DataType::ASCII_STRING, DataType::NO_DATA))?;
    for (action, name) in names {
        match map.entry_in_place(action, name, None, |_| Ok(0)) {
            Err(Refused::Full) => break,
            done => done?,
        }
    }
    let written = map.len();
    Ok((map.finish(), written))
}

/// Reads `:DataStreams` of a request's `:SymbolListBehaviors`.
pub(super) fn read_behaviors(data: &[u8]) -> Result<Option<u64>, Malformed> {
    match ElementList::parse(data)?.find(":DataStreams")? {
        Some(element) if element.data_type == DataType::UINT => decode_uint(element.data),
        _ => Ok(None),
    }
}

pub(super) fn write_behaviors(data_streams: u64, list: &mut ElementListEncoder<'_>) -> Result<(), Refused> {
    list.in_place(":SymbolListBehaviors", DataType::ELEMENT_LIST, |room| {
        encode_list(room, |list| list.uint(":DataStreams", data_streams))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_in_parts() {
        let list =
            [(MapAction::ADD, &b"AAA.O"[..]), (MapAction::DELETE, b"BBB.O"), (MapAction::ADD, b"CCC.O")];
        let mut out = [0; 20];
        let (len, written) = encode_names(list, &mut out).unwrap();
        assert_eq!(written, 2);
        let read: Result<Vec<_>, _> = names(&out[..len]).unwrap().collect();
        assert_eq!(read.unwrap(), list[..2]);
    }
}
