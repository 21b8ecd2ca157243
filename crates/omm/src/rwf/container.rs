//! Containers of any type, for readers that learn the type from the message.

use super::{
    DataType, ElementList, Entries, FieldList, FilterList, Head, Map, MessageView, Series, SetDefinitions,
    Value, Vector,
};
use crate::Malformed;

/// Maximum nesting depth of containers that this crate follows: a peer may nest them thousands deep in one message.
/// Real ones are four deep (a map of filter lists of element lists with arrays, in a message).
pub const DEPTH_LIMIT: usize = 16;

/// Container of any type, with its head read, borrowed from its message.
///
/// To traverse a message of any shape, open its payload with [`MessageView::open`] and match on the result. Then open
/// the entries: those of maps, vectors, series and filter lists with [`Entries::open`], values of fields and elements
/// with [`Value::open`], nested messages as the outer one. Count the levels, and stop at [`DEPTH_LIMIT`].
///
/// ```
/// use tapeline_omm::Value;
/// use tapeline_omm::rwf::{Container, DEPTH_LIMIT, DataType, SetDefinitions};
///
/// /// Primitive values in a container and in all that it holds.
/// fn values(container: Container<'_>, depth: usize) -> Result<usize, tapeline_omm::Malformed> {
///     if depth == DEPTH_LIMIT {
///         return Ok(0);
///     }
///     let mut count = 0;
///     match container {
///         Container::ElementList(list) => {
///             for element in list {
///                 match element?.value()?.open()? {
///                     Some(inner) => count += values(inner, depth + 1)?,
///                     None => count += 1,
///                 }
///             }
///         }
///         Container::Map(map) => {
///             let sets = map.sets()?;
///             for entry in map {
///                 count += values(map.open(entry?.data, &sets)?, depth + 1)?;
///             }
///         }
///         _ => {}
///     }
///     Ok(count)
/// }
///
/// // A map of one element list with one element.
/// let bytes = [0, 4, 5, 0, 1, 2, 1, 7, 11, 8, 0, 1, 4, b'R', b'o', b'l', b'e', 4, 1, 0];
/// let map = Container::parse(DataType::MAP, &bytes, &SetDefinitions::NONE)?;
/// assert_eq!(values(map, 0)?, 1);
/// # Ok::<(), tapeline_omm::Malformed>(())
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Container<'a> {
    /// No bytes: NO_DATA, or a container that requires a head and has none.
    NoData,
    /// FIELD_LIST.
    FieldList(FieldList<'a>),
    /// ELEMENT_LIST.
    ElementList(ElementList<'a>),
    /// FILTER_LIST.
    FilterList(FilterList<'a>),
    /// MAP.
    Map(Map<'a>),
    /// VECTOR.
    Vector(Vector<'a>),
    /// SERIES.
    Series(Series<'a>),
    /// MSG.
    Message(MessageView<'a>),
    /// Bytes that the codec does not interpret: OPAQUE, XML, JSON, ANSI_PAGE, and unknown types.
    Bytes(DataType, &'a [u8]),
}

impl<'a> Container<'a> {
    /// Reads the head of a container that occupies all of `bytes`. `sets` are the set definitions of the enclosing
    /// container: [`SetDefinitions::NONE`] for a payload.
    ///
    /// # Errors
    ///
    /// Fails if the head is truncated.
    pub fn parse(data_type: DataType, bytes: &'a [u8], sets: &SetDefinitions<'a>) -> Result<Self, Malformed> {
        Ok(match data_type {
            DataType::FIELD_LIST => Self::FieldList(FieldList::parse_with(bytes, sets)?),
            DataType::ELEMENT_LIST => Self::ElementList(ElementList::parse_with(bytes, sets)?),
            DataType::NO_DATA => Self::NoData,
            DataType::FILTER_LIST | DataType::MAP | DataType::VECTOR | DataType::SERIES | DataType::MSG
                if bytes.is_empty() =>
            {
                Self::NoData
            }
            DataType::FILTER_LIST => Self::FilterList(FilterList::parse(bytes)?),
            DataType::MAP => Self::Map(Map::parse(bytes)?),
            DataType::VECTOR => Self::Vector(Vector::parse(bytes)?),
            DataType::SERIES => Self::Series(Series::parse(bytes)?),
            DataType::MSG => Self::Message(MessageView::parse(bytes)?),
            other => Self::Bytes(other, bytes),
        })
    }

    /// Returns the container's type.
    #[must_use]
    pub const fn data_type(&self) -> DataType {
        match self {
            Self::NoData => DataType::NO_DATA,
            Self::FieldList(_) => DataType::FIELD_LIST,
            Self::ElementList(_) => DataType::ELEMENT_LIST,
            Self::FilterList(_) => DataType::FILTER_LIST,
            Self::Map(_) => DataType::MAP,
            Self::Vector(_) => DataType::VECTOR,
            Self::Series(_) => DataType::SERIES,
            Self::Message(_) => DataType::MSG,
            Self::Bytes(data_type, _) => *data_type,
        }
    }
}

impl<'a> MessageView<'a> {
    /// Opens the payload.
    ///
    /// # Errors
    ///
    /// Fails if the head is truncated; offsets count from the start of the payload.
    pub fn open(&self) -> Result<Container<'a>, Malformed> {
        Container::parse(self.container(), self.payload(), &SetDefinitions::NONE)
    }
}

impl<'a, H: Head<'a>> Entries<'a, H> {
    /// Opens the data of an entry of the container's own type, or the summary. `sets` are the
    /// [definitions](Entries::sets) of this container, parsed once for all entries.
    ///
    /// # Errors
    ///
    /// Fails if the head is truncated; offsets count from the start of the data.
    pub fn open(&self, data: &'a [u8], sets: &SetDefinitions<'a>) -> Result<Container<'a>, Malformed> {
        Container::parse(self.head().container(), data, sets)
    }
}

impl<'a> Value<'a> {
    /// Opens the container in this value; `None` for a primitive.
    ///
    /// # Errors
    ///
    /// Fails if the head is truncated; offsets count from the start of the value.
    pub fn open(&self) -> Result<Option<Container<'a>>, Malformed> {
        match self {
            Self::Container(data_type, bytes) => {
                Container::parse(*data_type, bytes, &SetDefinitions::NONE).map(Some)
            }
            _ => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_opens_as_itself_or_as_nothing() {
        for number in 128..=255 {
            let data_type = DataType(number);
            let opened = Container::parse(data_type, &[], &SetDefinitions::NONE).unwrap();
            match opened.data_type() {
                DataType::NO_DATA => {
                    assert!(matches!(number, 128 | 135..=138 | 141), "{data_type} may stand without bytes");
                }
                other => assert_eq!(other, data_type),
            }
        }
        assert!(Container::parse(DataType::MAP, &[0], &SetDefinitions::NONE).is_err());
        assert!(Value::Container(DataType::MAP, &[0, 4, 4, 0, 0]).open().unwrap().is_some());
        assert!(Value::Int(1).open().unwrap().is_none());
    }
}
