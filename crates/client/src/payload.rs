//! The contents of a message that a program sends.

use tapeline_omm::rwf::{
    DataType, Domain, ElementListEncoder, MapAction, MapEncoder, MapHead, UpdateHeader, UpdateType,
};
use tapeline_omm::{Fid, Refused, Value, domain::symbol_list};

use crate::values;

/// The largest payload, in bytes: the default limit of a connection.
const MOST_BYTES: usize = 16 << 20;

/// An entry of a map: the action, the key and the fields; a deleted entry has no fields.
pub type MapRow<'a> = (MapAction, &'a str, &'a [(Fid, Value<'a>)]);

/// The payload of a message: a container of the Open Message Model, encoded once.
///
/// ```
/// use tapeline_client::Payload;
/// use tapeline_omm::{Real, Value, fid};
///
/// let prices = Payload::fields(&[(fid::BID, Real::decimal(3991, 2).into())])?;
/// let answer = Payload::elements(&[("value", Value::Int(1))])?;
/// # Ok::<(), tapeline_omm::Refused>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload {
    /// The type of the container.
    pub container: DataType,
    /// The bytes of the container.
    pub data: Box<[u8]>,
}

impl Payload {
    /// A message without a payload.
    #[must_use]
    pub fn none() -> Self {
        Self { container: DataType::NO_DATA, data: Box::default() }
    }

    /// Encodes a field list.
    ///
    /// # Errors
    /// A value does not fit in a field list.
    pub fn fields(fields: &[(Fid, Value<'_>)]) -> Result<Self, Refused> {
        Ok(Self { container: DataType::FIELD_LIST, data: values::encode(fields)?.into() })
    }

    /// Encodes an element list.
    ///
    /// # Errors
    /// A value does not fit in an element list.
    pub fn elements(elements: &[(&str, Value<'_>)]) -> Result<Self, Refused> {
        Self::written(DataType::ELEMENT_LIST, |out| {
            let mut list = ElementListEncoder::new(out)?;
            elements.iter().try_for_each(|(name, value)| list.value(name, *value))?;
            Ok(list.finish())
        })
    }

    /// Encodes a map whose keys are texts and whose entries are field lists, such as the levels of a book.
    ///
    /// # Errors
    /// A key or a value does not fit.
    pub fn map(entries: &[MapRow<'_>]) -> Result<Self, Refused> {
        let lists: Result<Vec<_>, Refused> =
            entries.iter().map(|(_, _, fields)| values::encode(fields)).collect();
        let lists = lists?;
        Self::written(DataType::MAP, |out| {
            let head = MapHead::new(DataType::BUFFER, DataType::FIELD_LIST);
            let mut map = MapEncoder::new(out, &head)?;
            for ((action, key, _), list) in entries.iter().zip(&lists) {
                map.entry_in_place(*action, key.as_bytes(), None, |out| values::copy(list, out))?;
            }
            Ok(map.finish())
        })
    }

    /// Encodes a symbol list: a map whose keys are the names of items.
    ///
    /// # Errors
    /// The names do not fit in one message.
    pub fn symbols(names: &[(MapAction, &str)]) -> Result<Self, Refused> {
        Self::written(DataType::MAP, |out| {
            let names_as_bytes = names.iter().map(|(action, name)| (*action, name.as_bytes()));
            let (len, written) = symbol_list::encode_names(names_as_bytes, out)?;
            if written < names.len() { Err(Refused::Full) } else { Ok(len) }
        })
    }

    /// Encodes an update of MarketPrice fields as a message in a message: the payload of a post.
    ///
    /// # Errors
    /// A value does not fit in a field list.
    pub fn update(fields: &[(Fid, Value<'_>)]) -> Result<Self, Refused> {
        let list = values::encode(fields)?;
        let kind = UpdateType::UNSPECIFIED;
        let header = UpdateHeader::new(Domain::MARKET_PRICE, 0, kind, DataType::FIELD_LIST);
        Self::written(DataType::MSG, |out| header.encode_with(out, |out| values::copy(&list, out)))
    }

    /// Encodes a container of any type with `write`, which may be called again with a larger buffer and returns the length.
    ///
    /// # Errors
    /// What `write` refuses, except for lack of space.
    pub fn written(
        container: DataType,
        write: impl Fn(&mut [u8]) -> Result<usize, Refused>,
    ) -> Result<Self, Refused> {
        let mut bytes = vec![0; 4 << 10];
        loop {
            match write(&mut bytes) {
                Ok(len) => {
                    bytes.truncate(len);
                    return Ok(Self { container, data: bytes.into() });
                }
                Err(Refused::Full) if bytes.len() < MOST_BYTES => bytes.resize(bytes.len() * 4, 0),
                Err(refused) => return Err(refused),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tapeline_omm::Real;

    use super::*;

    #[test]
    fn a_payload_larger_than_the_first_buffer_is_encoded_whole() {
        let names: Vec<String> = (0..5_000).map(|number| format!("ITEM{number}.N")).collect();
        let added: Vec<_> = names.iter().map(|name| (MapAction::ADD, name.as_str())).collect();
        let payload = Payload::symbols(&added).unwrap();
        let read = symbol_list::names(&payload.data).unwrap();
        assert_eq!(read.filter(Result::is_ok).count(), names.len());
        let fields = [(Fid(22), Value::from(Real::decimal(3991, 2)))];
        assert_eq!(Payload::update(&fields).unwrap().container, DataType::MSG);
    }
}
