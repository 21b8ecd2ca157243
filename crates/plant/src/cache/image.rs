//! Reading and encoding of an image.

use tapeline_omm::rwf::{
    DataState, DataType, ElementList, Flags, Info, Key, Qos, RefreshHeader, State, flags,
};
use tapeline_omm::{Fid, FieldList, Refused};

use super::body::Body;
use super::fields::{Stored, begin, entries_of, walk};
use super::fold::begin_elements;
use super::item::{Item, ItemKey, Progress};
use super::record::Record;
use super::rows::Entries;
use crate::Seq;

/// The image of an item in the cache.
#[derive(Clone, Copy, Debug)]
pub struct Image<'c> {
    item: &'c Item,
}

/// The requested part of the data: the view of a request. Applies to the lists of a payload and to those in
/// entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum View<'v> {
    /// All data.
    #[default]
    All,
    /// These fields, if they exist.
    Fields(&'v [Fid]),
    /// The elements of these names, if they exist.
    Elements(&'v [&'v [u8]]),
}

impl View<'_> {
    /// Writes the requested part of a container that was folded here.
    pub(super) fn write(&self, container: DataType, bytes: &[u8], room: &mut [u8]) -> Result<usize, Refused> {
        match (self, container) {
            (Self::Fields(_), DataType::FIELD_LIST) => {
                let info = FieldList::parse(bytes).ok().and_then(|list| list.info());
                self.write_fields(info, walk(entries_of(bytes)), room)
            }
            (Self::Elements(names), DataType::ELEMENT_LIST) => {
                // Containers folded here are well-formed.
                let Ok(list) = ElementList::parse(bytes) else { return Ok(0) };
                let mut out = begin_elements(list.number(), room)?;
                for element in list.iter().flatten().filter(|element| names.contains(&element.name)) {
                    out.raw(element.name, element.data_type, element.data)?;
                }
                Ok(out.finish())
            }
            _ => copy(bytes, room),
        }
    }

    fn write_fields<'e>(
        &self,
        info: Option<Info>,
        entries: impl Iterator<Item = Stored<'e>>,
        room: &mut [u8],
    ) -> Result<usize, Refused> {
        let Self::Fields(fids) = self else { return Ok(0) };
        let mut list = begin(info, room)?;
        for entry in entries.filter(|entry| fids.contains(&entry.fid)) {
            list.raw(entry.fid, entry.data)?;
        }
        Ok(list.finish())
    }
}

/// The parameters of an answer that are not part of the image.
#[derive(Clone, Copy, Debug)]
pub struct AnswerParameters<'v> {
    /// The receiver's stream.
    pub stream_id: i32,
    /// `true` if the message answers a request.
    pub is_solicited: bool,
    /// The key to write; `None` for no key.
    pub key: Option<Key<'v>>,
    /// The state; `None` for [that of the image](Image::state).
    pub state: Option<State<'v>>,
    /// The requested part of the data.
    pub view: View<'v>,
}

impl AnswerParameters<'_> {
    /// Returns the parameters for a complete image in answer to a request, without a key.
    #[must_use]
    pub const fn to(stream_id: i32) -> Self {
        Self { stream_id, is_solicited: true, key: None, state: None, view: View::All }
    }
}

impl<'c> Image<'c> {
    pub(super) const fn new(item: &'c Item) -> Self {
        Self { item }
    }

    /// Returns the key of the item.
    #[must_use]
    pub fn key(&self) -> ItemKey<'c> {
        self.item.key()
    }

    /// Returns `true` if the image is complete: all parts have arrived, and no message was refused since.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.item.progress == Progress::Complete && !self.item.is_broken
    }

    /// Returns the state for clients: that of the source, but suspect if the image [is not
    /// complete](Self::is_complete).
    #[must_use]
    pub fn state(&self) -> State<'c> {
        let state = self.item.state();
        if self.is_complete() { state } else { State { data: DataState::SUSPECT, ..state } }
    }

    /// Returns the quality of service, if a refresh has set it.
    #[must_use]
    pub const fn qos(&self) -> Option<Qos> {
        self.item.qos
    }

    /// Returns the item group.
    #[must_use]
    pub fn group(&self) -> &'c [u8] {
        self.item.group()
    }

    /// Returns the permission data, if a refresh or a status has set it.
    #[must_use]
    pub fn permission_data(&self) -> Option<&'c [u8]> {
        self.item.permission_data()
    }

    /// Returns the place of the last applied message in the plant's sequence: apply exactly the later messages to this
    /// image.
    #[must_use]
    pub const fn seq(&self) -> Seq {
        self.item.seq
    }

    /// Returns the source's own sequence number in the last refresh or update that had one.
    #[must_use]
    pub const fn sequence(&self) -> Option<u32> {
        self.item.sequence
    }

    /// Returns the type of the data; NO_DATA if there is none.
    #[must_use]
    pub const fn container(&self) -> DataType {
        match self.item.body {
            Body::None => DataType::NO_DATA,
            _ => self.item.container,
        }
    }

    /// Returns `true` for a list or bytes, which always go out in one message: see [`whole`](Self::whole).
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        !matches!(self.item.body, Body::Rows(_))
    }

    /// Returns the header of the single refresh with all of an image that [is a whole](Self::is_whole), in answer to a request and without a key.
    /// A caller with a buffer for such a message writes the [data](Self::write) directly into it, without the copy that
    /// [`parts`](Self::parts) needs.
    #[must_use]
    pub fn whole(&self) -> RefreshHeader<'c> {
        let mut header = RefreshHeader::new(self.item.domain, 0, self.state(), self.container());
        header.flags =
            flags::refresh::REFRESH_COMPLETE | flags::refresh::CLEAR_CACHE | flags::refresh::SOLICITED;
        header.sequence = self.sequence();
        header.group_id = self.group();
        header.permission_data = self.permission_data();
        header.qos = self.qos();
        header
    }

    /// Writes the data of an image that [is a whole](Self::is_whole), or the requested part; returns its length. May overwrite the bytes of
    /// `out` after it.
    ///
    /// # Errors
    /// [`Refused::Full`].
    pub fn write(&self, view: &View<'_>, out: &mut [u8]) -> Result<usize, Refused> {
        match &self.item.body {
            Body::Record(record) => write_record(record, view, out),
            Body::Bytes(bytes) => view.write(self.item.container, bytes, out),
            Body::Rows(_) | Body::None => Ok(0),
        }
    }

    /// Returns the image as refreshes: as many as the caller's buffers require.
    #[must_use]
    pub const fn parts<'v>(&self, answer: AnswerParameters<'v>) -> Parts<'c, 'v> {
        Parts { item: self.item, answer, next: 0, part: 0, is_done: false }
    }
}

/// A writer of an image, message by message.
#[derive(Debug)]
pub struct Parts<'c, 'v> {
    item: &'c Item,
    answer: AnswerParameters<'v>,
    /// The first row of the next part.
    next: usize,
    part: u16,
    is_done: bool,
}

impl Parts<'_, '_> {
    /// Writes the next refresh to the front of `out`; returns its length, or `None` after the last one.
    ///
    /// # Errors
    /// [`Refused::Full`] if there is no capacity for the header and one entry, or for all of a list or of bytes, which cannot be divided. Nothing
    /// is lost then: the next call writes the same part.
    pub fn write(&mut self, out: &mut [u8]) -> Result<Option<usize>, Refused> {
        if self.is_done {
            return Ok(None);
        }
        if let Body::Rows(rows) = &self.item.body {
            return self.write_rows(rows, out).map(Some);
        }
        let len = self
            .header(None, true)
            .encode_with(out, |room| Image::new(self.item).write(&self.answer.view, room))?;
        self.is_done = true;
        Ok(Some(len))
    }

    /// Parts have numbers if there are several, which is not known before the first one is written.
    fn write_rows(&mut self, rows: &Entries, out: &mut [u8]) -> Result<usize, Refused> {
        let write = |out: &mut [u8], part, is_last| {
            let mut next = 0;
            let len = self.header(part, is_last).encode_with(out, |room| {
                let (len, behind) = rows.write(self.next, &self.answer.view, room)?;
                next = behind;
                Ok(len)
            });
            len.map(|len| (len, next))
        };
        let (mut len, mut next) = write(out, (self.next > 0).then_some(self.part), true)?;
        if next < rows.len() {
            (len, next) = write(out, Some(self.part), false)?;
        }
        self.is_done = next == rows.len();
        self.next = next;
        // A u15 on the wire: later parts keep the maximum number.
        self.part = (self.part + 1).min(0x7FFF);
        Ok(len)
    }

    fn header(&self, part: Option<u16>, is_last: bool) -> RefreshHeader<'_> {
        use flags::refresh as flag;
        let whole = Image::new(self.item).whole();
        let when = |flag, is_set| if is_set { flag } else { Flags::NONE };
        let flags = when(flag::REFRESH_COMPLETE, is_last)
            | when(flag::CLEAR_CACHE, self.next == 0)
            | when(flag::SOLICITED, self.answer.is_solicited);
        RefreshHeader {
            stream_id: self.answer.stream_id,
            state: self.answer.state.unwrap_or(whole.state),
            flags,
            key: self.answer.key,
            part,
            ..whole
        }
    }
}

/// Copies bytes to the front of a buffer; returns their number.
pub(crate) fn copy(bytes: &[u8], room: &mut [u8]) -> Result<usize, Refused> {
    room.get_mut(..bytes.len()).ok_or(Refused::Full)?.copy_from_slice(bytes);
    Ok(bytes.len())
}

fn write_record(record: &Record, view: &View<'_>, room: &mut [u8]) -> Result<usize, Refused> {
    if let View::Fields(_) = view {
        return view.write_fields(record.info, record.entries(), room);
    }
    // The head of a list ends with the two bytes of the count.
    let entries = begin(record.info, room)?.finish();
    // At most 21,845.
    let count = (record.len() as u16).to_be_bytes();
    room.get_mut(entries - 2..entries).ok_or(Refused::Full)?.copy_from_slice(&count);
    Ok(entries + record.write(room.get_mut(entries..).unwrap_or_default())?)
}
