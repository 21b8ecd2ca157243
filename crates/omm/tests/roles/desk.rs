//! Messages for a role, and what comes back.

use tapeline_omm::domain::{DictionaryKind, DictionaryRequest, LoginRequest};
use tapeline_omm::role::Queue;
use tapeline_omm::rwf::{
    CloseHeader, Domain, Flags, Key, MessageClass, MessageView, RequestHeader, StreamState, flags,
};
use tapeline_omm::{FieldListEncoder, Real, Refused, fid};

/// Bytes of one message.
pub(crate) fn message(write: impl FnOnce(&mut [u8]) -> Result<usize, Refused>) -> Vec<u8> {
    let mut bytes = vec![0; 16384];
    let len = write(&mut bytes).unwrap();
    bytes.truncate(len);
    bytes
}

pub(crate) fn login() -> Vec<u8> {
    message(|room| LoginRequest::new(b"user").encode(room))
}

pub(crate) fn request(domain: Domain, id: i32, flags: Flags, key: Key<'_>) -> Vec<u8> {
    message(|room| RequestHeader { flags, ..RequestHeader::new(domain, id, key) }.encode(room))
}

pub(crate) fn item(id: i32, name: &str) -> Vec<u8> {
    request(Domain::MARKET_PRICE, id, flags::request::STREAMING, Key::item(1, name.as_bytes()))
}

pub(crate) fn dictionary(id: i32) -> Vec<u8> {
    message(|room| DictionaryRequest::new(id, 1, DictionaryKind::Fields).encode(room))
}

pub(crate) fn close(domain: Domain, id: i32, flags: Flags) -> Vec<u8> {
    let header = CloseHeader { flags, ..CloseHeader::new(domain, id) };
    message(|room| header.encode(room))
}

pub(crate) fn fields(room: &mut [u8]) -> Result<usize, Refused> {
    let mut list = FieldListEncoder::new(room)?;
    list.real(fid::BID, Real::decimal(3991, 2))?;
    Ok(list.finish())
}

/// Class, stream and state of each message that was sent.
pub(crate) fn sent(out: &mut Queue) -> Vec<(MessageClass, i32, Option<StreamState>)> {
    std::iter::from_fn(|| out.pop())
        .map(|bytes| {
            let message = MessageView::parse(&bytes).unwrap();
            let state = message.header().unwrap().state().map(|state| state.stream);
            (message.class(), message.stream_id(), state)
        })
        .collect()
}
