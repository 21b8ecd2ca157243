//! Message key: the subject of a stream (RWF chapter 2).

use super::{Container, Cursor, DataType, ElementListEncoder, NameType, SetDefinitions, Writer};
use crate::{Malformed, Refused, Value};

const SERVICE_ID: u16 = 0x01;
const NAME: u16 = 0x02;
const NAME_TYPE: u16 = 0x04;
const FILTER: u16 = 0x08;
const IDENTIFIER: u16 = 0x10;
const ATTRIBUTES: u16 = 0x20;

/// Further attributes of a key, in a container of any type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Attributes<'a> {
    /// Type of the container.
    pub container: DataType,
    /// Bytes of the container; none for NO_DATA.
    pub data: &'a [u8],
}

impl<'a> Attributes<'a> {
    fn read(cursor: &mut Cursor<'a>) -> Result<Self, Malformed> {
        let container = DataType::from_container_byte(cursor.u8("key attributes type")?);
        let data = if container == DataType::NO_DATA { &[] } else { cursor.b15("key attributes")? };
        Ok(Self { container, data })
    }

    /// Opens the container.
    ///
    /// # Errors
    ///
    /// Fails if the head is truncated; offsets count from the start of the data.
    pub fn open(&self) -> Result<Container<'a>, Malformed> {
        Container::parse(self.container, self.data, &SetDefinitions::NONE)
    }
}

/// Attributes of a key as an element list, as in all of LSEG's domains; encoded once and stored.
///
/// ```
/// use tapeline_omm::Value;
/// use tapeline_omm::rwf::{Key, KeyElements};
///
/// let elements = KeyElements::new(&[("Depth", Value::UInt(5)), ("Side", Value::Ascii(b"bid"))])?;
/// let key = Key { attributes: Some(elements.attributes()), ..Key::item(1, b"IBM.N") };
/// # assert!(key.attributes.unwrap().open().is_ok());
/// # Ok::<(), tapeline_omm::Refused>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KeyElements(Box<[u8]>);

impl KeyElements {
    /// Encodes these elements, in this order.
    ///
    /// # Errors
    ///
    /// [`Refused::TooLong`] for more than 32,767 bytes; [`Refused::Misplaced`] for a value without a type.
    pub fn new(elements: &[(&str, Value<'_>)]) -> Result<Self, Refused> {
        Self::encode("key attributes", |list| {
            elements.iter().try_for_each(|(name, value)| list.value(name, *value))
        })
    }

    /// Encodes the elements that `write` appends. More than 32,767 bytes are too long, however large the message may
    /// be; `what` names them then.
    pub(crate) fn encode(
        what: &'static str,
        write: impl FnOnce(&mut ElementListEncoder<'_>) -> Result<(), Refused>,
    ) -> Result<Self, Refused> {
        let mut room = vec![0; LONGEST_ATTRIBUTES];
        let encoded = || {
            let mut list = ElementListEncoder::new(&mut room)?;
            write(&mut list)?;
            Ok(list.finish())
        };
        let len = encoded().map_err(|refused| match refused {
            Refused::Full => Refused::TooLong { what, limit: LONGEST_ATTRIBUTES },
            other => other,
        })?;
        room.truncate(len);
        Ok(Self(room.into()))
    }

    /// Returns the attributes for a [`Key`].
    #[must_use]
    pub fn attributes(&self) -> Attributes<'_> {
        Attributes { container: DataType::ELEMENT_LIST, data: &self.0 }
    }
}

/// Maximum bytes of a key's attributes: their length has 15 bits.
const LONGEST_ATTRIBUTES: usize = 0x7FFF;

/// Key of a stream: a name at a service, and further restrictions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Key<'a> {
    /// Service id.
    pub service_id: Option<u16>,
    /// Item name, at most 255 bytes.
    pub name: Option<&'a [u8]>,
    /// Name type; a RIC if absent. Written only together with a name.
    pub name_type: Option<NameType>,
    /// Filter bits; the domain defines their meaning.
    pub filter: Option<u32>,
    /// Identifier; the domain defines its meaning.
    pub identifier: Option<i32>,
    /// Further attributes.
    pub attributes: Option<Attributes<'a>>,
}

impl<'a> Key<'a> {
    /// Returns a key of a service and a name, as item requests have it.
    #[must_use]
    pub const fn item(service_id: u16, name: &'a [u8]) -> Self {
        Self {
            service_id: Some(service_id),
            name: Some(name),
            name_type: None,
            filter: None,
            identifier: None,
            attributes: None,
        }
    }

    /// Reads the key at `cursor`. The rest of the key's length is skipped.
    pub(crate) fn read(cursor: &mut Cursor<'a>) -> Result<Self, Malformed> {
        let start = cursor.offset();
        let bytes = cursor.b15("key")?;
        let base = cursor.offset() - bytes.len();
        Self::read_members(Cursor::new(bytes)).map_err(|fault| fault.within(base.max(start)))
    }

    fn read_members(mut cursor: Cursor<'a>) -> Result<Self, Malformed> {
        let flags = cursor.u15("key flags")?;
        let has = |flag: u16| flags & flag == flag;
        Ok(Self {
            service_id: has(SERVICE_ID).then(|| cursor.u16ob("key service id")).transpose()?,
            name: has(NAME).then(|| cursor.b8("key name")).transpose()?,
            name_type: has(NAME | NAME_TYPE).then(|| cursor.u8("key name type")).transpose()?.map(NameType),
            filter: has(FILTER).then(|| cursor.u32("key filter")).transpose()?,
            identifier: has(IDENTIFIER).then(|| cursor.i32("key identifier")).transpose()?,
            attributes: has(ATTRIBUTES).then(|| Attributes::read(&mut cursor)).transpose()?,
        })
    }

    /// Writes the key at `writer`. The length has the two-byte form: it is filled in afterwards.
    pub(crate) fn write(&self, writer: &mut Writer<'_>) -> Result<(), Refused> {
        let place = writer.reserve_u16()?;
        let start = writer.len();
        let mut flags = 0;
        for (flag, is_there) in [
            (SERVICE_ID, self.service_id.is_some()),
            (NAME, self.name.is_some()),
            (NAME_TYPE, self.name.is_some() && self.name_type.is_some()),
            (FILTER, self.filter.is_some()),
            (IDENTIFIER, self.identifier.is_some()),
            (ATTRIBUTES, self.attributes.is_some()),
        ] {
            flags |= if is_there { flag } else { 0 };
        }
        writer.u15(usize::from(flags), "key flags")?;
        if let Some(service_id) = self.service_id {
            writer.u16ob(usize::from(service_id), "key service id")?;
        }
        if let Some(name) = self.name {
            writer.b8(name, "key name")?;
            if let Some(name_type) = self.name_type {
                writer.u8(name_type.0)?;
            }
        }
        if let Some(filter) = self.filter {
            writer.u32(filter)?;
        }
        if let Some(identifier) = self.identifier {
            writer.i32(identifier)?;
        }
        if let Some(attributes) = self.attributes {
            writer.u8(attributes.container.container_byte())?;
            if attributes.container != DataType::NO_DATA {
                writer.b15(attributes.data, "key attributes")?;
            }
        }
        let len = writer.len() - start;
        match u16::try_from(len) {
            Ok(len) if len < 0x8000 => {
                writer.fill_u16(place, 0x8000 | len);
                Ok(())
            }
            _ => Err(Refused::TooLong { what: "key", limit: 0x7FFF }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_length_and_bytes_left_over_are_read() {
        let mut cursor = Cursor::new(&[0x08, 0x03, 0x01, 0x03, b'A', b'A', b'A', 0x55, 0x55, 0x77]);
        assert_eq!(Key::read(&mut cursor), Ok(Key::item(1, b"AAA")));
        assert_eq!(cursor.rest(), [0x77]);
    }

    #[test]
    fn a_name_type_needs_a_name() {
        let key = Key { name_type: Some(NameType::RIC), filter: Some(1), ..Key::default() };
        let mut out = [0; 16];
        let mut writer = Writer::new(&mut out);
        key.write(&mut writer).unwrap();
        let len = writer.len();
        assert_eq!(out[..len], [0x80, 0x05, 0x08, 0, 0, 0, 1]);
    }

    #[test]
    fn a_fault_is_counted_from_the_start_of_the_message() {
        let mut cursor = Cursor::new(&[0x55, 0x03, 0x02, 0x09, b'A']);
        cursor.u8("").unwrap();
        assert_eq!(Key::read(&mut cursor), Err(Malformed::new(3, "key name")));
    }
}
