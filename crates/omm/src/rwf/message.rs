//! A whole message: header and payload (RWF chapter 2).

use super::header::Start;
use super::{Cursor, DataType, Domain, Flags, Header, Key, MessageClass, UpdateType, flags};
use crate::{Full, Malformed};

/// View of a message, borrowed from its bytes.
///
/// The members of every class are read at once; those of a single class are read on request. Header bytes after the
/// known members are skipped, because a later version may add members.
#[derive(Debug, Clone, Copy)]
pub struct MessageView<'a> {
    bytes: &'a [u8],
    payload: &'a [u8],
    start: Start,
    /// Offset of the members of the class.
    members_at: usize,
}

impl<'a> MessageView<'a> {
    /// Reads the first members of a message that occupies all of `bytes`.
    ///
    /// # Errors
    ///
    /// Fails if the header is truncated, or the message class is unknown. Report and skip such a message; the stream of
    /// messages continues.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let Some(([size_high, size_low, class, domain, stream_id @ ..], _)) = bytes.split_first_chunk::<8>()
        else {
            return Err(Malformed::new(bytes.len(), "message header"));
        };
        let size = usize::from(u16::from_be_bytes([*size_high, *size_low]));
        let Some((header, payload)) = bytes.split_at_checked(2 + size) else {
            return Err(Malformed::new(0, "message header size"));
        };
        // The top three bits of the class are ignored.
        let class = MessageClass(class & 0x1F);
        if !(MessageClass::REQUEST..=MessageClass::POST).contains(&class) {
            return Err(Malformed::new(2, "message class"));
        }
        let (flags, container, members_at) = match header.get(8..) {
            Some([low, container, ..]) if *low < 0x80 => (u16::from(*low), *container, 10),
            Some([high, low, container, ..]) => (u16::from_be_bytes([high & 0x7F, *low]), *container, 11),
            _ => return Err(Malformed::new(8, "message flags")),
        };
        let container = DataType::from_container_byte(container);
        let start = Start {
            class,
            domain: Domain(*domain),
            stream_id: i32::from_be_bytes(*stream_id),
            flags: Flags(flags),
            container,
        };
        Ok(Self { bytes: header, payload, start, members_at })
    }

    /// Returns the message class.
    #[inline]
    #[must_use]
    pub const fn class(&self) -> MessageClass {
        self.start.class
    }

    /// Returns the domain.
    #[inline]
    #[must_use]
    pub const fn domain(&self) -> Domain {
        self.start.domain
    }

    /// Returns the stream id.
    #[inline]
    #[must_use]
    pub const fn stream_id(&self) -> i32 {
        self.start.stream_id
    }

    /// Returns the flags; their meaning depends on the class.
    #[inline]
    #[must_use]
    pub const fn flags(&self) -> Flags {
        self.start.flags
    }

    /// Returns the type of the payload.
    #[inline]
    #[must_use]
    pub const fn container(&self) -> DataType {
        self.start.container
    }

    /// Returns the payload: all bytes after the header.
    #[inline]
    #[must_use]
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// Returns the length of the header, including its size field: the offset of the payload.
    #[inline]
    #[must_use]
    pub const fn header_len(&self) -> usize {
        self.bytes.len()
    }

    /// Appends all bytes of the message.
    pub fn append_to(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.bytes);
        out.extend_from_slice(self.payload);
    }

    /// Returns a copy of the whole message.
    #[must_use]
    pub fn to_bytes(&self) -> Box<[u8]> {
        [self.bytes, self.payload].concat().into()
    }

    /// Returns the update type; `None` for other classes.
    #[inline]
    #[must_use]
    pub fn update_type(&self) -> Option<UpdateType> {
        match self.start.class {
            MessageClass::UPDATE => self.bytes.get(self.members_at).map(|byte| UpdateType(*byte)),
            _ => None,
        }
    }

    /// Returns the whole header with the members of its class.
    ///
    /// # Errors
    ///
    /// Fails if a member is truncated. Offsets count from the start of the message.
    pub fn header(&self) -> Result<Header<'a>, Malformed> {
        let mut cursor = Cursor::new(self.bytes);
        cursor.take(self.members_at, "message header")?;
        Header::read(&self.start, &mut cursor)
    }

    /// Returns the key, if the message has one. Fails as [`MessageView::header`].
    pub fn key(&self) -> Result<Option<Key<'a>>, Malformed> {
        Ok(self.header()?.key().copied())
    }

    /// Returns `true` if the message is the last part of an image.
    #[inline]
    #[must_use]
    pub fn is_refresh_complete(&self) -> bool {
        self.start.class == MessageClass::REFRESH && self.start.flags.has(flags::refresh::REFRESH_COMPLETE)
    }
}

/// Writes the shortest header of an update, without flags or optional members, to the start of `out`; returns its
/// length, 11. Nearly every update has this header; [`UpdateHeader`](super::UpdateHeader) has the other members.
///
/// # Errors
///
/// [`Full`] if the header does not fit.
#[inline]
pub fn update_header(
    out: &mut [u8],
    domain: Domain,
    stream_id: i32,
    update_type: UpdateType,
    container: DataType,
) -> Result<usize, Full> {
    let [a, b, c, d] = stream_id.to_be_bytes();
    let header =
        [0, 9, MessageClass::UPDATE.0, domain.0, a, b, c, d, 0, container.container_byte(), update_type.0];
    let room = out.first_chunk_mut().ok_or(Full)?;
    *room = header;
    Ok(header.len())
}

/// Changes the stream id of an encoded message: the only difference between copies for several subscribers.
///
/// # Errors
///
/// Fails if the message is too short for a stream id; nothing is changed.
#[inline]
pub fn patch_stream_id(message: &mut [u8], stream_id: i32) -> Result<(), Malformed> {
    match message.first_chunk_mut::<8>() {
        Some([_, _, _, _, place @ ..]) => {
            *place = stream_id.to_be_bytes();
            Ok(())
        }
        None => Err(Malformed::new(message.len(), "message header")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{NameType, Qos, RefreshHeader, RequestHeader, State, UpdateHeader};
    use super::*;

    #[test]
    fn an_item_refresh() {
        let bytes = [
            0x00, 0x23, 0x02, 0x06, 0x00, 0x00, 0x00, 0x03, 0x81, 0xE8, 0x04, 0x09, 0x00, 0x0B, b'A', b'l',
            b'l', b' ', b'i', b's', b' ', b'w', b'e', b'l', b'l', 0x02, 0x00, 0x00, 0x22, 0x80, 0x06, 0x03,
            0x01, 0x03, b'A', b'A', b'A', 0x08, 0x00, 0x00,
        ];
        let message = MessageView::parse(&bytes).unwrap();
        assert_eq!(message.payload(), [8, 0, 0]);
        assert!(message.is_refresh_complete());
        let state = State { text: b"All is well", ..State::OPEN_OK };
        let expected = RefreshHeader {
            flags: message.flags(),
            qos: Some(Qos::REALTIME_TICK),
            key: Some(Key::item(1, b"AAA")),
            ..RefreshHeader::new(Domain::MARKET_PRICE, 3, state, DataType::FIELD_LIST)
        };
        assert_eq!(message.header(), Ok(Header::Refresh(expected)));
        let mut out = [0; 64];
        let len = expected.encode(&mut out).unwrap();
        assert_eq!(out[..len], bytes[..message.header_len()]);
        for cut in 0..message.header_len() {
            assert!(MessageView::parse(&bytes[..cut]).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn header_bytes_of_a_later_version_are_skipped() {
        let mut bytes = vec![0, 11, 0xE4, 6, 0, 0, 0, 5, 0, 4, 2, 0x77, 0x77, 8, 0, 0];
        let message = MessageView::parse(&bytes).unwrap();
        assert_eq!(message.class(), MessageClass::UPDATE);
        assert_eq!(message.update_type(), Some(UpdateType::TRADE));
        assert_eq!(message.payload(), [8, 0, 0]);
        assert!(message.header().is_ok());
        bytes[2] = 9;
        assert_eq!(MessageView::parse(&bytes).unwrap_err(), Malformed::new(2, "message class"));
    }

    #[test]
    fn presence_follows_the_members_whatever_the_flags_say() {
        let mut header = UpdateHeader::new(Domain::MARKET_PRICE, 5, UpdateType::QUOTE, DataType::FIELD_LIST);
        header.flags = flags::update::HAS_MSG_KEY | flags::update::DO_NOT_CONFLATE;
        header.sequence = Some(7);
        let mut out = [0; 32];
        let len = header.encode(&mut out).unwrap();
        let message = MessageView::parse(&out[..len]).unwrap();
        assert_eq!(message.flags(), flags::update::HAS_SEQ_NUM | flags::update::DO_NOT_CONFLATE);
    }

    #[test]
    fn members_that_are_too_long_are_refused() {
        let name = [b'n'; 256];
        let header = RequestHeader::new(Domain::LOGIN, 1, Key { name: Some(&name), ..Key::default() });
        let refused = header.encode(&mut [0; 512]);
        assert_eq!(refused, Err(crate::Refused::TooLong { what: "key name", limit: 255 }));
        let key = Key { name_type: Some(NameType::RIC), ..Key::item(1, b"A") };
        let header = RequestHeader::new(Domain::LOGIN, 1, key);
        let len = header.encode(&mut [0; 512]).unwrap();
        for size in 0..len {
            assert_eq!(header.encode(&mut vec![0; size]), Err(crate::Refused::Full), "{size} bytes");
        }
    }

    #[test]
    fn the_short_path_equals_the_long_one() {
        let (mut short, mut long) = ([0; 11], [0; 11]);
        let header = UpdateHeader::new(Domain::MARKET_PRICE, -5, UpdateType::TRADE, DataType::FIELD_LIST);
        assert_eq!(header.encode(&mut long), Ok(11));
        let len = update_header(&mut short, Domain::MARKET_PRICE, 0, UpdateType::TRADE, DataType::FIELD_LIST);
        assert_eq!(len, Ok(11));
        patch_stream_id(&mut short, -5).unwrap();
        assert_eq!(short, long);
        assert!(patch_stream_id(&mut short[..7], 1).is_err());
        assert!(update_header(&mut short[..10], Domain::LOGIN, 0, UpdateType::QUOTE, DataType::MAP).is_err());
    }
}
