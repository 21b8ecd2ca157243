//! A value of any type, for readers that learn the type from a dictionary.

use std::fmt;

use super::number::{self, encode_enum, encode_int, encode_uint};
use super::render::Hex;
use super::{Array, DataType, Date, DateTime, Qos, Real, Rmtes, State, Text, Time, Writer};
use crate::{Malformed, Refused};

macro_rules! values {
    (typed { $($variant:ident($type:ty) $data_type:ident;)* } others { $($other:ident($bytes:ty) $other_type:ident;)* }) => {
        /// One value, borrowed from its bytes.
        ///
        /// Formatting is human-readable: numbers as decimal text, dates and times in ISO 8601, bytes in hexadecimal,
        /// blank as an empty text.
        #[derive(Debug, Clone, Copy, PartialEq)]
        #[non_exhaustive]
        pub enum Value<'a> {
            /// No value, for any type.
            Blank,
            $(#[doc = concat!(stringify!($data_type), ".")] $variant($type),)*
            $(#[doc = concat!(stringify!($other_type), ".")] $other($bytes),)*
            /// Container, with its bytes.
            Container(DataType, &'a [u8]),
            /// Bytes of an unknown type.
            Unknown(&'a [u8]),
        }

        impl Value<'_> {
            /// Returns the type of the value; `None` for blank and unknown values.
            #[must_use]
            pub const fn data_type(&self) -> Option<DataType> {
                Some(match self {
                    $(Self::$variant(_) => DataType::$data_type,)*
                    $(Self::$other(_) => DataType::$other_type,)*
                    Self::Container(data_type, _) => *data_type,
                    Self::Blank | Self::Unknown(_) => return None,
                })
            }
        }

        impl fmt::Display for Value<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$variant(value) => fmt::Display::fmt(value, f),)*
                    Self::Blank => Ok(()),
                    Self::Enum(value) => fmt::Display::fmt(value, f),
                    Self::Ascii(bytes) | Self::Utf8(bytes) => fmt::Display::fmt(&Text(bytes), f),
                    Self::Container(data_type, bytes) => write!(f, "{data_type} of {} bytes", bytes.len()),
                    Self::Buffer(bytes) | Self::Unknown(bytes) => fmt::Display::fmt(&Hex(bytes), f),
                }
            }
        }

        $(impl<'a> From<$type> for Value<'a> {
            fn from(value: $type) -> Self {
                Self::$variant(value)
            }
        })*
    };
}

// The type of a first value tells which value is meant; the types of the others do not.
values! {
    typed {
        Int(i64) INT;
        UInt(u64) UINT;
        Float(f32) FLOAT;
        Double(f64) DOUBLE;
        Real(Real) REAL;
        Date(Date) DATE;
        Time(Time) TIME;
        DateTime(DateTime) DATETIME;
        Qos(Qos) QOS;
        State(State<'a>) STATE;
        Array(Array<'a>) ARRAY;
        Rmtes(Rmtes<'a>) RMTES_STRING;
    }
    others {
        Enum(u16) ENUM;
        Buffer(&'a [u8]) BUFFER;
        Ascii(&'a [u8]) ASCII_STRING;
        Utf8(&'a [u8]) UTF8_STRING;
    }
}

impl<'a> Value<'a> {
    /// Decodes the bytes of an entry as a value of `data_type`.
    ///
    /// # Errors
    ///
    /// Fails if the bytes are not valid for the type. Containers are not opened.
    pub fn decode(data_type: DataType, data: &'a [u8]) -> Result<Self, Malformed> {
        if data.is_empty() {
            return Ok(Self::Blank);
        }
        let value = match data_type {
            DataType::INT => number::decode_int(data)?.map(Self::Int),
            DataType::UINT => number::decode_uint(data)?.map(Self::UInt),
            DataType::FLOAT => number::decode_float(data)?.map(Self::Float),
            DataType::DOUBLE => number::decode_double(data)?.map(Self::Double),
            DataType::REAL => Real::decode(data)?.map(Self::Real),
            DataType::DATE => Date::decode(data)?.map(Self::Date),
            DataType::TIME => Time::decode(data)?.map(Self::Time),
            DataType::DATETIME => DateTime::decode(data)?.map(Self::DateTime),
            DataType::QOS => Qos::decode(data)?.map(Self::Qos),
            DataType::STATE => State::decode(data)?.map(Self::State),
            DataType::ENUM => number::decode_enum(data)?.map(Self::Enum),
            DataType::ARRAY => Array::decode(data)?.map(Self::Array),
            DataType::BUFFER => Some(Self::Buffer(data)),
            DataType::ASCII_STRING => Some(Self::Ascii(data)),
            DataType::UTF8_STRING => Some(Self::Utf8(data)),
            DataType::RMTES_STRING => Some(Self::Rmtes(Rmtes(data))),
            container if container.is_container() => Some(Self::Container(container, data)),
            DataType::REAL_4RB | DataType::REAL_8RB => Real::decode_set(data)?.map(Self::Real),
            other if other.base() != other => return Self::decode(other.base(), data),
            _ => Some(Self::Unknown(data)),
        };
        Ok(value.unwrap_or(Self::Blank))
    }

    /// Writes the bytes of the value in their shortest form, without a length in front.
    ///
    /// # Errors
    ///
    /// [`Refused::Full`]; [`Refused::TooLong`] for a state with a text of more than 32,767 bytes.
    pub fn write(&self, writer: &mut Writer<'_>) -> Result<(), Refused> {
        match (self, self.text(), self.short()) {
            (Self::State(state), ..) => state.write(writer),
            (Self::Array(array), ..) => array.write(writer),
            (_, Some(text), _) => Ok(writer.bytes(text)?),
            (_, None, Some((bytes, len))) => Ok(writer.bytes(bytes.get(..len).unwrap_or_default())?),
            (_, None, None) => Ok(()),
        }
    }

    /// Writes the bytes of the value after a u8 length.
    pub(crate) fn write_b8(&self, writer: &mut Writer<'_>, what: &'static str) -> Result<(), Refused> {
        self.write_behind(writer, |w, len| match u8::try_from(len) {
            Ok(len) => Ok(w.u8(len)?),
            Err(_) => Err(Refused::TooLong { what, limit: 0xFF }),
        })
    }

    /// Writes the bytes of the value after a u15 length.
    pub(crate) fn write_b15(&self, writer: &mut Writer<'_>, what: &'static str) -> Result<(), Refused> {
        self.write_behind(writer, |w, len| w.u15(len, what))
    }

    /// Writes the bytes of the value after a u16ob length.
    pub(crate) fn write_b16(&self, writer: &mut Writer<'_>, what: &'static str) -> Result<(), Refused> {
        self.write_behind(writer, |w, len| w.u16ob(len, what))
    }

    fn write_behind(
        &self,
        writer: &mut Writer<'_>,
        write_len: impl FnOnce(&mut Writer<'_>, usize) -> Result<(), Refused>,
    ) -> Result<(), Refused> {
        writer.whole(|w| {
            write_len(w, self.wire_len())?;
            self.write(w)
        })
    }

    /// Returns the number of bytes that [`Value::write`] writes.
    fn wire_len(&self) -> usize {
        match (self, self.text(), self.short()) {
            (Self::State(state), ..) => state.wire_len(),
            (Self::Array(array), ..) => array.wire_len(),
            (_, Some(text), _) => text.len(),
            (_, None, Some((_, len))) => len,
            (_, None, None) => 0,
        }
    }

    /// Returns the bytes of a value that is written unchanged.
    pub(crate) const fn text(&self) -> Option<&'a [u8]> {
        match *self {
            Self::Blank => Some(&[]),
            Self::Buffer(bytes)
            | Self::Ascii(bytes)
            | Self::Utf8(bytes)
            | Self::Rmtes(Rmtes(bytes))
            | Self::Container(_, bytes)
            | Self::Unknown(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Returns the bytes of a value of at most twelve: the first `len` of the array.
    pub(crate) fn short(&self) -> Option<([u8; 12], usize)> {
        fn widen<const N: usize>((bytes, len): ([u8; N], usize)) -> ([u8; 12], usize) {
            const { assert!(N <= 12) }
            let mut wide = [0; 12];
            // As an array: a slice of a known length would still be copied by a call.
            if let Some(first) = wide.first_chunk_mut() {
                *first = bytes;
            }
            (wide, len)
        }
        Some(match *self {
            Self::Int(value) => widen(encode_int(value)),
            Self::UInt(value) => widen(encode_uint(value)),
            Self::Float(value) => widen((value.to_be_bytes(), 4)),
            Self::Double(value) => widen((value.to_be_bytes(), 8)),
            Self::Real(value) => widen(value.encode()),
            Self::Date(value) => widen((value.encode(), 4)),
            Self::Time(value) => widen(value.encode()),
            Self::DateTime(value) => value.encode(),
            Self::Qos(value) => widen(value.encode()),
            Self::Enum(value) => widen(encode_enum(value)),
            _ => return None,
        })
    }
}
