//! Messages for the cache, and what comes out of it.

use std::collections::BTreeMap;

use tapeline_omm::rwf::{
    DataType, Domain, Flags, MessageView, RefreshHeader, State, StatusHeader, UpdateHeader, UpdateType, flags,
};
use tapeline_omm::{Fid, FieldList, FieldListEncoder};
use tapeline_plant::Seq;
use tapeline_plant::cache::{AnswerParameters, Cache, ItemKey, Parts};

pub(crate) const COMPLETE: Flags = flags::refresh::REFRESH_COMPLETE;
pub(crate) const CLEAR: Flags = flags::refresh::CLEAR_CACHE;
pub(crate) const ITEM: ItemKey<'_> = ItemKey { service: 7, domain: Domain::MARKET_PRICE, name: b"ITEM" };

pub(crate) fn whole(payload: &[u8]) -> impl FnOnce(&mut [u8]) -> Result<usize, tapeline_omm::Refused> {
    |room| {
        room.get_mut(..payload.len()).ok_or(tapeline_omm::Refused::Full)?.copy_from_slice(payload);
        Ok(payload.len())
    }
}

pub(crate) fn refresh(flags: Flags, container: DataType, payload: &[u8]) -> Vec<u8> {
    let header = RefreshHeader {
        flags,
        group_id: b"group",
        ..RefreshHeader::new(ITEM.domain, 5, State::OPEN_OK, container)
    };
    let mut out = vec![0; payload.len() + 1_024];
    let len = header.encode_with(&mut out, whole(payload)).unwrap();
    out.truncate(len);
    out
}

pub(crate) fn update(flags: Flags, container: DataType, payload: &[u8]) -> Vec<u8> {
    let header = UpdateHeader { flags, ..UpdateHeader::new(ITEM.domain, 5, UpdateType::QUOTE, container) };
    let mut out = vec![0; payload.len() + 1_024];
    let len = header.encode_with(&mut out, whole(payload)).unwrap();
    out.truncate(len);
    out
}

pub(crate) fn status(flags: Flags, state: Option<State<'_>>) -> Vec<u8> {
    let mut header = StatusHeader::new(ITEM.domain, 5);
    (header.flags, header.state) = (flags, state);
    let mut out = vec![0; 1_024];
    let len = header.encode(&mut out).unwrap();
    out.truncate(len);
    out
}

/// A field list of these values.
pub(crate) fn list<D: AsRef<[u8]>>(fields: &[(i16, D)]) -> Vec<u8> {
    let room: usize = fields.iter().map(|(_, data)| data.as_ref().len() + 5).sum();
    let mut out = vec![0; room + 16];
    let mut list = FieldListEncoder::new(&mut out).unwrap();
    for (fid, data) in fields {
        list.raw(Fid(*fid), data.as_ref()).unwrap();
    }
    let len = list.finish();
    out.truncate(len);
    out
}

/// The fields of a list; each must be there once.
pub(crate) fn fields_of(list: &[u8]) -> BTreeMap<i16, Vec<u8>> {
    let mut fields = BTreeMap::new();
    for field in FieldList::parse(list).unwrap() {
        let field = field.unwrap();
        let before = fields.insert(field.fid.0, field.data.to_vec());
        assert_eq!(before, None, "field {} twice", field.fid.0);
    }
    fields
}

/// Every part of an image, with so much room for each.
pub(crate) fn written(mut parts: Parts<'_, '_>, room: usize) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let mut out = vec![0xEE; room];
    while let Some(len) = parts.write(&mut out).unwrap() {
        all.push(out[..len].to_vec());
    }
    all
}

/// The payload of an image that is one part.
pub(crate) fn payload(cache: &Cache) -> Vec<u8> {
    let parts = written(cache.image(&ITEM).unwrap().parts(AnswerParameters::to(3)), 1 << 20);
    assert_eq!(parts.len(), 1);
    let message = MessageView::parse(&parts[0]).unwrap();
    assert!(message.is_refresh_complete());
    message.payload().to_vec()
}

/// Applies what must be taken.
pub(crate) fn apply(cache: &mut Cache, seq: u64, message: &[u8]) {
    let _ = cache.apply(&ITEM, Seq(seq), message).unwrap();
}
