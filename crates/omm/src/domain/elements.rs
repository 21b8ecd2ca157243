//! Structs whose members are elements of a list, read and written.

use std::fmt;

use crate::rwf::{
    Array, DataState, DataType, Domain, Element, ElementListEncoder, StateCode, StreamState, decode_int,
    decode_uint,
};
use crate::{Malformed, Qos, Refused, State, Value};

/// Maximum number of array items that are stored from a peer's message. A real array has a handful.
const MOST_ITEMS: usize = 256;
/// Maximum bytes of a text that are stored from a peer's message: the maximum length of a key's name.
const MOST_TEXT: usize = 255;

/// A value that an element can have.
pub(super) trait Member<'a>: Sized {
    /// Reads the value; `None` if the element is blank or of another type.
    fn read(element: &Element<'a>) -> Result<Option<Self>, Malformed>;
    fn write(&self, name: &str, list: &mut ElementListEncoder<'_>) -> Result<(), Refused>;
}

/// Bytes that are not text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Buffer<'a>(pub &'a [u8]);

fn is_text(element: &Element<'_>) -> bool {
    matches!(
        element.data_type,
        DataType::ASCII_STRING | DataType::UTF8_STRING | DataType::RMTES_STRING | DataType::BUFFER
    )
}

impl<'a> Member<'a> for u64 {
    fn read(element: &Element<'a>) -> Result<Option<Self>, Malformed> {
        match element.data_type {
            DataType::UINT => decode_uint(element.data),
            DataType::INT => Ok(decode_int(element.data)?.and_then(|value| Self::try_from(value).ok())),
            _ => Ok(None),
        }
    }

    fn write(&self, name: &str, list: &mut ElementListEncoder<'_>) -> Result<(), Refused> {
        list.uint(name, *self)
    }
}

/// Members that are text or bytes: how each is made of an element's bytes, and how it is written.
macro_rules! texts {
    ($data:ident, $value:ident, $name:ident, $list:ident; $($type:ty { $of:expr; $write:expr })*) => {$(
        impl<'a> Member<'a> for $type {
            fn read(element: &Element<'a>) -> Result<Option<Self>, Malformed> {
                let $data = element.data;
                Ok(is_text(element).then(|| $of))
            }

            fn write(&self, $name: &str, $list: &mut ElementListEncoder<'_>) -> Result<(), Refused> {
                let $value = self;
                $write
            }
        }
    )*};
}

texts! {
    data, value, name, list;
    &'a [u8] { data; list.ascii(name, value) }
    Buffer<'a> { Self(data); list.raw(name, DataType::BUFFER, value.0) }
    String { text(data); list.ascii(name, value) }
    Box<[u8]> { data.get(..MOST_TEXT).unwrap_or(data).into(); list.raw(name, DataType::BUFFER, value) }
}

impl<'a> Member<'a> for OwnedState {
    fn read(element: &Element<'a>) -> Result<Option<Self>, Malformed> {
        if element.data_type == DataType::STATE { Ok(element.state()?.map(Self::from)) } else { Ok(None) }
    }

    fn write(&self, name: &str, list: &mut ElementListEncoder<'_>) -> Result<(), Refused> {
        list.value(name, self.view())
    }
}

impl<'a, T: ListItem<'a>> Member<'a> for Vec<T> {
    /// Items of another type are skipped.
    fn read(element: &Element<'a>) -> Result<Option<Self>, Malformed> {
        let array = if element.data_type == DataType::ARRAY { element.array()? } else { None };
        let Some(array) = array else { return Ok(None) };
        let mut items = Self::new();
        for value in array.values().take(MOST_ITEMS) {
            items.extend(T::of(value?));
        }
        Ok(Some(items))
    }

    fn write(&self, name: &str, list: &mut ElementListEncoder<'_>) -> Result<(), Refused> {
        let (data_type, len) = T::FORM;
        list.array(name, data_type, len, |array| self.iter().try_for_each(|item| array.value(&item.value())))
    }
}

/// Names are ASCII; other bytes become replacement characters, so that the text can be displayed.
pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.get(..MOST_TEXT).unwrap_or(bytes)).into_owned()
}

/// An owned [`State`]; at most 255 bytes of its text are stored.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct OwnedState {
    /// Stream state: whether the stream is open.
    pub stream: StreamState,
    /// Data state: whether the data can be trusted.
    pub data: DataState,
    /// Reason code.
    pub code: StateCode,
    /// Human-readable reason.
    pub text: Box<[u8]>,
}

impl OwnedState {
    /// Returns a borrowed view, for encoding or display.
    #[must_use]
    pub fn view(&self) -> State<'_> {
        State { stream: self.stream, data: self.data, code: self.code, text: &self.text }
    }
}

impl From<State<'_>> for OwnedState {
    fn from(state: State<'_>) -> Self {
        let text = state.text.get(..MOST_TEXT).unwrap_or(state.text).into();
        Self { stream: state.stream, data: state.data, code: state.code, text }
    }
}

impl fmt::Debug for OwnedState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.view().fmt(f)
    }
}

/// Item type of arrays.
pub trait ListItem<'a>: Sized {
    /// Data type of the items, and length of each item in bytes; 0 if each item has its own length.
    const FORM: (DataType, u16);

    /// Returns the item in a value; `None` for a value of another type.
    fn of(value: Value<'a>) -> Option<Self>;

    /// Returns the item as a value.
    fn value(&self) -> Value<'_>;
}

/// Item types: the form of the items, the values that are read as an item, and the value that is written.
macro_rules! items {
    ($item:ident; $($type:ty = ($kind:ident, $len:literal) { $($given:pat => $of:expr,)* } $value:expr;)*) => {$(
        impl<'a> ListItem<'a> for $type {
            const FORM: (DataType, u16) = (DataType::$kind, $len);

            fn of(value: Value<'a>) -> Option<Self> {
                match value {
                    $($given => $of,)*
                    _ => None,
                }
            }

            fn value(&self) -> Value<'_> {
                let $item = self;
                $value
            }
        }
    )*};
}

items! {
    item;
    Domain = (UINT, 0) {
        Value::UInt(number) => number.try_into().ok().map(Self),
    } Value::UInt(item.0.into());
    Qos = (QOS, 0) {
        Value::Qos(qos) => Some(qos),
    } Value::Qos(*item);
    String = (ASCII_STRING, 0) {
        given @ (Value::Ascii(_) | Value::Utf8(_) | Value::Buffer(_) | Value::Rmtes(_)) => <&[u8]>::of(given).map(text),
    } Value::Ascii(item.as_bytes());
    &'a [u8] = (ASCII_STRING, 0) {
        Value::Ascii(bytes) | Value::Utf8(bytes) | Value::Buffer(bytes) => Some(bytes),
        Value::Rmtes(bytes) => Some(bytes.0),
        Value::Blank => Some(&[]),
    } Value::Ascii(item);
    i16 = (INT, 2) {
        Value::Int(number) => number.try_into().ok(),
        Value::UInt(number) => number.try_into().ok(),
    } Value::Int((*item).into());
    i32 = (INT, 4) {
        Value::Int(number) => number.try_into().ok(),
        Value::UInt(number) => number.try_into().ok(),
    } Value::Int((*item).into());
}

/// Items of one type: given for encoding, or read from an array.
#[derive(Debug, Clone, Copy)]
pub enum List<'a, T> {
    /// Items to encode.
    Given(&'a [T]),
    /// Items as received.
    Read(Array<'a>),
}

impl<'a, T: ListItem<'a> + Copy> List<'a, T> {
    /// Returns the number of items; for a received array, the count that it states.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Given(items) => items.len(),
            Self::Read(array) => usize::from(array.count),
        }
    }

    /// Returns `true` if there are no items.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the items in order; `None` for an item of another type or out of range. Iteration ends after malformed
    /// bytes.
    pub fn iter(&self) -> impl Iterator<Item = Option<T>> + use<'a, T> {
        let (given, read) = match *self {
            List::Given(items) => (Some(items.iter().copied().map(Some)), None),
            List::Read(array) => (None, Some(array.values().map_while(Result::ok).map(T::of))),
        };
        given.into_iter().flatten().chain(read.into_iter().flatten())
    }

    pub(super) fn read(element: &Element<'a>) -> Result<Option<Self>, Malformed> {
        if element.data_type != DataType::ARRAY {
            return Ok(None);
        }
        Ok(element.array()?.map(Self::Read))
    }

    pub(super) fn write(&self, name: &str, list: &mut ElementListEncoder<'_>) -> Result<(), Refused> {
        let (data_type, len) = T::FORM;
        list.array(name, data_type, len, |array| {
            self.iter().flatten().try_for_each(|item| array.value(&item.value()))
        })
    }
}

/// Declares structs of optional elements. Elements are read in any order and written in declaration order.
macro_rules! elements {
    ($($(#[$doc:meta])* $name:ident $(<$life:lifetime>)? {
        $($(#[$field_doc:meta])* $field:ident $text:literal: $type:ty,)*
    })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Default)]
        pub struct $name $(<$life>)? {
            $($(#[$field_doc])* #[doc = concat!("`", $text, "`.")] pub $field: Option<$type>,)*
        }

        impl $(<$life>)? $name $(<$life>)? {
            /// Reads the elements of a list; unknown elements are skipped. Fails if an element is truncated, or its
            /// bytes are not valid for its type.
            pub fn read_elements<'e>(
                list: &$crate::rwf::ElementList<'e>,
            ) -> Result<Self, $crate::Malformed> $(where 'e: $life)? {
                let mut read = Self::default();
                for element in list.iter() {
                    let element = element?;
                    $(if element.name == $text.as_bytes() {
                        read.$field = $crate::domain::elements::Member::read(&element)?;
                        continue;
                    })*
                }
                Ok(read)
            }

            /// Appends the elements that are present.
            ///
            /// # Errors
            ///
            /// [`Refused::Full`](crate::Refused::Full); [`Refused::TooLong`](crate::Refused::TooLong).
            pub fn write(
                &self,
                list: &mut $crate::rwf::ElementListEncoder<'_>,
            ) -> Result<(), $crate::Refused> {
                $(if let Some(value) = &self.$field {
                    $crate::domain::elements::Member::write(value, $text, list)?;
                })*
                Ok(())
            }

            /// Writes a list of the elements that are present to the start of `out`; returns its length.
            #[allow(dead_code, reason = "not every struct is a list of its own")]
            pub(crate) fn encode_in(&self, out: &mut [u8]) -> Result<usize, $crate::Refused> {
                $crate::domain::elements::encode_list(out, |list| self.write(list))
            }

            /// Takes over the elements that are present in `other`.
            pub fn merge(&mut self, other: &Self) {
                $(if other.$field.is_some() {
                    self.$field.clone_from(&other.$field);
                })*
            }
        }
    )*};
}

pub(super) use elements;

/// Writes a list of the elements that `write` appends to the start of `out`; returns its length.
pub(super) fn encode_list(
    out: &mut [u8],
    write: impl FnOnce(&mut ElementListEncoder<'_>) -> Result<(), Refused>,
) -> Result<usize, Refused> {
    let mut list = ElementListEncoder::new(out)?;
    write(&mut list)?;
    Ok(list.finish())
}
