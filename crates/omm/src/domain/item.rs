//! Payload of item requests: views, and batches of items or streams.

use super::elements::{List, encode_list};
use super::symbol_list;
use crate::rwf::{
    Container, DataType, ElementList, ElementListEncoder, MessageView, RequestHeader, decode_uint, flags,
};
use crate::{Malformed, Refused};

/// View: the requested fields of an item. All other fields are omitted.
#[derive(Debug, Clone, Copy)]
pub enum View<'a> {
    /// By field id (view type 1).
    Fids(List<'a, i16>),
    /// By element name (view type 2).
    Names(List<'a, &'a [u8]>),
}

impl View<'_> {
    /// Returns `true` if the view names no field.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Fids(fids) => fids.is_empty(),
            Self::Names(names) => names.is_empty(),
        }
    }
}

/// Payload of a request: an element list. Any combination of these members is possible.
#[derive(Debug, Clone, Copy, Default)]
pub struct RequestPayload<'a> {
    /// `:ItemList`: names of a batch. Their streams have the ids that follow the id of the request, one by one.
    pub items: Option<List<'a, &'a [u8]>>,
    /// `:StreamIdList`: open streams that a batch closes or reissues.
    pub streams: Option<List<'a, i32>>,
    /// `:ViewType` and `:ViewData`.
    pub view: Option<View<'a>>,
    /// `:DataStreams` of `:SymbolListBehaviors`: see [`symbol_list`].
    pub data_streams: Option<u64>,
}

impl<'a> RequestPayload<'a> {
    /// Reads the payload of a message; empty for a payload that is not an element list.
    ///
    /// # Errors
    ///
    /// Fails if an element is truncated, or an array has fewer items than its count.
    pub fn read(message: &MessageView<'a>) -> Result<Self, Malformed> {
        // Most requests and closes have none.
        if message.container() == DataType::NO_DATA {
            return Ok(Self::default());
        }
        match message.open()? {
            Container::ElementList(list) => Self::of(&list),
            _ => Ok(Self::default()),
        }
    }

    fn of(list: &ElementList<'a>) -> Result<Self, Malformed> {
        let mut payload = Self::default();
        let (mut view_type, mut view_data) = (None, None);
        for element in list.iter() {
            let element = element?;
            match element.name {
                b":ItemList" => payload.items = List::read(&element)?,
                b":StreamIdList" => payload.streams = List::read(&element)?,
                b":ViewType" => view_type = decode_uint(element.data)?,
                b":ViewData" if element.data_type == DataType::ARRAY => view_data = element.array()?,
                b":SymbolListBehaviors" if element.data_type == DataType::ELEMENT_LIST => {
                    payload.data_streams = symbol_list::read_behaviors(element.data)?;
                }
                _ => {}
            }
        }
        if let Some(array) = view_data {
            // A view without a type contains field ids, as in JSON requests, unless its items are names.
            let is_ids = matches!(array.item_type, DataType::INT | DataType::UINT);
            payload.view = match view_type.unwrap_or(if is_ids { VIEW_FIDS } else { VIEW_NAMES }) {
                VIEW_FIDS => Some(View::Fids(List::Read(array))),
                VIEW_NAMES => Some(View::Names(List::Read(array))),
                _ => None,
            };
        }
        Ok(payload)
    }

    /// Writes the element list to the start of `out`; returns its length. The request needs the flags HAS_BATCH and
    /// HAS_VIEW: see [`RequestPayload::mark`].
    ///
    /// # Errors
    ///
    /// [`Refused::Full`]; [`Refused::TooLong`] for lists of more than 65,535 bytes.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, Refused> {
        encode_list(out, |list| self.write(list))
    }

    fn write(&self, list: &mut ElementListEncoder<'_>) -> Result<(), Refused> {
        if let Some(items) = &self.items {
            items.write(":ItemList", list)?;
        }
        if let Some(streams) = &self.streams {
            streams.write(":StreamIdList", list)?;
        }
        match &self.view {
            Some(View::Fids(fids)) => {
                list.uint(":ViewType", VIEW_FIDS)?;
                fids.write(":ViewData", list)?;
            }
            Some(View::Names(names)) => {
                list.uint(":ViewType", VIEW_NAMES)?;
                names.write(":ViewData", list)?;
            }
            None => {}
        }
        if let Some(data_streams) = self.data_streams {
            symbol_list::write_behaviors(data_streams, list)?;
        }
        Ok(())
    }

    /// Sets the flags and the payload type of a request with this payload.
    pub fn mark(&self, header: &mut RequestHeader<'_>) {
        if self.items.is_some() || self.streams.is_some() {
            header.flags |= flags::request::HAS_BATCH;
        }
        if self.view.is_some() {
            header.flags |= flags::request::HAS_VIEW;
        }
        header.container = DataType::ELEMENT_LIST;
    }
}

const VIEW_FIDS: u64 = 1;
const VIEW_NAMES: u64 = 2;

/// Writes a close of several streams to the start of `out`; returns its length. Send it only to providers whose login
/// refresh has [`BATCH_CLOSES`](super::login::BATCH_CLOSES).
///
/// # Errors
///
/// [`Refused::Full`]; [`Refused::TooLong`] for more streams than fit in 65,535 bytes.
pub fn encode_batch_close(
    header: &crate::rwf::CloseHeader<'_>,
    streams: &[i32],
    out: &mut [u8],
) -> Result<usize, Refused> {
    let payload = RequestPayload { streams: Some(List::Given(streams)), ..RequestPayload::default() };
    let flags = header.flags | flags::close::HAS_BATCH;
    let header = crate::rwf::CloseHeader { flags, container: DataType::ELEMENT_LIST, ..*header };
    header.encode_with(out, |room| payload.encode(room))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rwf::{Domain, Key};

    fn round(payload: &RequestPayload<'_>, check: impl FnOnce(&RequestPayload<'_>, &RequestHeader<'_>)) {
        let mut out = [0; 256];
        let mut header = RequestHeader::new(Domain::MARKET_PRICE, 5, Key::default());
        payload.mark(&mut header);
        let len = header.encode_with(&mut out, |room| payload.encode(room)).unwrap();
        let view = MessageView::parse(&out[..len]).unwrap();
        check(&RequestPayload::read(&view).unwrap(), &header);
    }

    #[test]
    fn batch_and_view_come_back() {
        let payload = RequestPayload {
            items: Some(List::Given(&[b"A", b"BB"])),
            view: Some(View::Fids(List::Given(&[22, -1]))),
            ..RequestPayload::default()
        };
        round(&payload, |read, header| {
            assert!(header.flags.has(flags::request::HAS_BATCH | flags::request::HAS_VIEW));
            let items: Vec<_> = read.items.unwrap().iter().collect();
            assert_eq!(items, [Some(&b"A"[..]), Some(b"BB")]);
            let Some(View::Fids(fids)) = read.view else { panic!("{read:?}") };
            assert_eq!(fids.iter().collect::<Vec<_>>(), [Some(22), Some(-1)]);
        });
        let payload = RequestPayload {
            streams: Some(List::Given(&[6, 70_000])),
            view: Some(View::Names(List::Given(&[b"BID"]))),
            data_streams: Some(symbol_list::STREAMS),
            ..RequestPayload::default()
        };
        round(&payload, |read, _| {
            assert_eq!(read.streams.unwrap().iter().collect::<Vec<_>>(), [Some(6), Some(70_000)]);
            let Some(View::Names(names)) = read.view else { panic!("{read:?}") };
            assert_eq!(names.iter().collect::<Vec<_>>(), [Some(&b"BID"[..])]);
            assert_eq!(read.data_streams, Some(1));
        });
    }
}
