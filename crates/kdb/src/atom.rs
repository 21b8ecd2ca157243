//! Single values: numbers, characters, symbols, times.

use std::fmt;

use crate::order::{Item, Order};
use crate::{Type, time};

/// A value of a basic type. `S` is the type of a symbol's bytes: `&[u8]` in a view, `Box<[u8]>` in an owned value.
///
/// Times count from 1 January 2000, as in messages. Two atoms are equal where q's `~` finds them equal, except for its
/// tolerance: a null equals a null, also for floats.
#[derive(Clone, Copy, Debug)]
pub enum Atom<S> {
    /// True or false.
    Boolean(bool),
    /// 16 bytes.
    Guid([u8; 16]),
    /// 8 bits.
    Byte(u8),
    /// 16 bits.
    Short(i16),
    /// 32 bits.
    Int(i32),
    /// 64 bits.
    Long(i64),
    /// A float of 32 bits.
    Real(f32),
    /// A float of 64 bits.
    Float(f64),
    /// A byte of text.
    Char(u8),
    /// A name, without its terminating zero.
    Symbol(S),
    /// Nanoseconds since 2000.
    Timestamp(i64),
    /// Months since January 2000.
    Month(i32),
    /// Days since 2000.
    Date(i32),
    /// Days since 2000 with a fraction.
    Datetime(f64),
    /// A duration in nanoseconds.
    Timespan(i64),
    /// Minutes.
    Minute(i32),
    /// Seconds.
    Second(i32),
    /// Milliseconds.
    Time(i32),
}

impl<'a> Atom<&'a [u8]> {
    /// Reads an atom of this type (an atom's or a vector's) from its bytes; a symbol's without the zero. `None` for
    /// other types.
    pub(crate) fn read(kind: Type, bytes: &'a [u8], order: Order) -> Option<Self> {
        Some(match kind.vector() {
            Type::BOOLEAN => Self::Boolean(bool::from_bytes(bytes, order)),
            Type::GUID => Self::Guid(<[u8; 16]>::from_bytes(bytes, order)),
            Type::BYTE => Self::Byte(u8::from_bytes(bytes, order)),
            Type::SHORT => Self::Short(i16::from_bytes(bytes, order)),
            Type::INT => Self::Int(i32::from_bytes(bytes, order)),
            Type::LONG => Self::Long(i64::from_bytes(bytes, order)),
            Type::REAL => Self::Real(f32::from_bytes(bytes, order)),
            Type::FLOAT => Self::Float(f64::from_bytes(bytes, order)),
            Type::CHAR => Self::Char(u8::from_bytes(bytes, order)),
            Type::SYMBOL => Self::Symbol(bytes),
            Type::TIMESTAMP => Self::Timestamp(i64::from_bytes(bytes, order)),
            Type::MONTH => Self::Month(i32::from_bytes(bytes, order)),
            Type::DATE => Self::Date(i32::from_bytes(bytes, order)),
            Type::DATETIME => Self::Datetime(f64::from_bytes(bytes, order)),
            Type::TIMESPAN => Self::Timespan(i64::from_bytes(bytes, order)),
            Type::MINUTE => Self::Minute(i32::from_bytes(bytes, order)),
            Type::SECOND => Self::Second(i32::from_bytes(bytes, order)),
            Type::TIME => Self::Time(i32::from_bytes(bytes, order)),
            _ => return None,
        })
    }

    /// Copies a symbol's bytes, so that the atom owns them.
    #[must_use]
    pub fn boxed(self) -> Atom<Box<[u8]>> {
        self.with_symbol(|name| Box::from(*name))
    }
}

impl<S> Atom<S> {
    /// Returns the atom's type, a negative number.
    #[must_use]
    pub const fn kind(&self) -> Type {
        let vector = match self {
            Self::Boolean(_) => Type::BOOLEAN,
            Self::Guid(_) => Type::GUID,
            Self::Byte(_) => Type::BYTE,
            Self::Short(_) => Type::SHORT,
            Self::Int(_) => Type::INT,
            Self::Long(_) => Type::LONG,
            Self::Real(_) => Type::REAL,
            Self::Float(_) => Type::FLOAT,
            Self::Char(_) => Type::CHAR,
            Self::Symbol(_) => Type::SYMBOL,
            Self::Timestamp(_) => Type::TIMESTAMP,
            Self::Month(_) => Type::MONTH,
            Self::Date(_) => Type::DATE,
            Self::Datetime(_) => Type::DATETIME,
            Self::Timespan(_) => Type::TIMESPAN,
            Self::Minute(_) => Type::MINUTE,
            Self::Second(_) => Type::SECOND,
            Self::Time(_) => Type::TIME,
        };
        vector.atom()
    }

    /// Converts the bytes of a symbol; other atoms stay unchanged.
    fn with_symbol<'s, T>(&'s self, symbol: impl FnOnce(&'s S) -> T) -> Atom<T> {
        match self {
            Self::Symbol(name) => Atom::Symbol(symbol(name)),
            Self::Boolean(value) => Atom::Boolean(*value),
            Self::Guid(value) => Atom::Guid(*value),
            Self::Byte(value) => Atom::Byte(*value),
            Self::Short(value) => Atom::Short(*value),
            Self::Int(value) => Atom::Int(*value),
            Self::Long(value) => Atom::Long(*value),
            Self::Real(value) => Atom::Real(*value),
            Self::Float(value) => Atom::Float(*value),
            Self::Char(value) => Atom::Char(*value),
            Self::Timestamp(value) => Atom::Timestamp(*value),
            Self::Month(value) => Atom::Month(*value),
            Self::Date(value) => Atom::Date(*value),
            Self::Datetime(value) => Atom::Datetime(*value),
            Self::Timespan(value) => Atom::Timespan(*value),
            Self::Minute(value) => Atom::Minute(*value),
            Self::Second(value) => Atom::Second(*value),
            Self::Time(value) => Atom::Time(*value),
        }
    }
}

impl<S: AsRef<[u8]>> Atom<S> {
    /// Returns the atom with a symbol's bytes borrowed.
    #[must_use]
    pub fn borrow(&self) -> Atom<&[u8]> {
        self.with_symbol(AsRef::as_ref)
    }

    /// Returns `true` for q's null of the type: `0N`, `0n`, a space, an empty symbol, a GUID of zeros. Booleans and
    /// bytes have none.
    #[must_use]
    pub fn is_null(&self) -> bool {
        match self {
            Self::Boolean(_) | Self::Byte(_) => false,
            Self::Guid(bytes) => *bytes == [0; 16],
            Self::Short(value) => *value == i16::MIN,
            Self::Int(value)
            | Self::Month(value)
            | Self::Date(value)
            | Self::Minute(value)
            | Self::Second(value)
            | Self::Time(value) => *value == i32::MIN,
            Self::Long(value) | Self::Timestamp(value) | Self::Timespan(value) => *value == i64::MIN,
            Self::Real(value) => value.is_nan(),
            Self::Float(value) | Self::Datetime(value) => value.is_nan(),
            Self::Char(value) => *value == b' ',
            Self::Symbol(name) => name.as_ref().is_empty(),
        }
    }

    /// Returns `true` for q's infinity of the type, such as `0W` and `-0w`: for integers the largest value, and the
    /// smallest except the null.
    #[must_use]
    pub fn is_infinite(&self) -> bool {
        match self {
            Self::Boolean(_) | Self::Guid(_) | Self::Byte(_) | Self::Char(_) | Self::Symbol(_) => false,
            Self::Short(value) => value.saturating_abs() == i16::MAX && *value != i16::MIN,
            Self::Int(value)
            | Self::Month(value)
            | Self::Date(value)
            | Self::Minute(value)
            | Self::Second(value)
            | Self::Time(value) => value.saturating_abs() == i32::MAX && *value != i32::MIN,
            Self::Long(value) | Self::Timestamp(value) | Self::Timespan(value) => {
                value.saturating_abs() == i64::MAX && *value != i64::MIN
            }
            Self::Real(value) => value.is_infinite(),
            Self::Float(value) | Self::Datetime(value) => value.is_infinite(),
        }
    }
}

impl<S: AsRef<[u8]>, T: AsRef<[u8]>> PartialEq<Atom<T>> for Atom<S> {
    fn eq(&self, other: &Atom<T>) -> bool {
        if self.kind() != other.kind() {
            return false;
        }
        match (self.borrow(), other.borrow()) {
            (Atom::Symbol(one), Atom::Symbol(other)) => one == other,
            (Atom::Real(one), Atom::Real(other)) => one == other || one.is_nan() && other.is_nan(),
            (Atom::Float(one), Atom::Float(other)) | (Atom::Datetime(one), Atom::Datetime(other)) => {
                one == other || one.is_nan() && other.is_nan()
            }
            (one, other) => one.integer() == other.integer(),
        }
    }
}

impl Atom<&[u8]> {
    /// Returns the value as a number, different for different values of a type; 0 for symbols and floats.
    fn integer(self) -> i128 {
        match self {
            Self::Boolean(value) => value.into(),
            Self::Guid(bytes) => i128::from_be_bytes(bytes),
            Self::Byte(value) | Self::Char(value) => value.into(),
            Self::Short(value) => value.into(),
            Self::Int(value)
            | Self::Month(value)
            | Self::Date(value)
            | Self::Minute(value)
            | Self::Second(value)
            | Self::Time(value) => value.into(),
            Self::Long(value) | Self::Timestamp(value) | Self::Timespan(value) => value.into(),
            Self::Real(_) | Self::Float(_) | Self::Datetime(_) | Self::Symbol(_) => 0,
        }
    }
}

/// Formats the atom as q shows it, with its type suffix if there is one: `` `AAPL``, `42`, `42i`,
/// `2022.06.16D12:25:04.123456789`, `0Nt`.
impl<S: AsRef<[u8]>> fmt::Display for Atom<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.borrow() {
            Atom::Symbol(name) => return write!(f, "`{}", name.escape_ascii()),
            Atom::Char(byte) => return write!(f, "\"{}\"", byte.escape_ascii()),
            Atom::Boolean(value) => return write!(f, "{}b", u8::from(value)),
            Atom::Byte(value) => return write!(f, "0x{value:02x}"),
            Atom::Guid(bytes) => return guid(&bytes, f),
            _ => {}
        }
        // Longs and floats have no suffix in q; a small letter in a null or an infinity marks a float.
        let (suffix, is_float) = (self.kind().suffix(), matches!(self, Self::Float(_)));
        if self.is_null() {
            return write!(f, "{}{suffix}", if is_float { "0n" } else { "0N" });
        }
        if self.is_infinite() {
            let sign = if self.is_negative() { "-" } else { "" };
            return write!(f, "{sign}{}{suffix}", if is_float { "0w" } else { "0W" });
        }
        match self.borrow() {
            Atom::Short(value) => write!(f, "{value}h"),
            Atom::Int(value) => write!(f, "{value}i"),
            Atom::Long(value) => write!(f, "{value}"),
            Atom::Real(value) => write!(f, "{value}e"),
            // With a decimal point; without it the number would be a long.
            Atom::Float(value) => write!(f, "{value:?}"),
            Atom::Timestamp(value) => time::timestamp(value, f),
            Atom::Month(value) => time::month(value, f),
            Atom::Date(value) => time::date(value.into(), f),
            Atom::Datetime(value) => time::datetime(value, f),
            Atom::Timespan(value) => time::timespan(value, f),
            Atom::Minute(value) => time::minute(value, f),
            Atom::Second(value) => time::second(value, f),
            Atom::Time(value) => time::time(value, f),
            _ => Ok(()),
        }
    }
}

impl<S: AsRef<[u8]>> Atom<S> {
    fn is_negative(&self) -> bool {
        match self.borrow() {
            Atom::Real(value) => value < 0.0,
            Atom::Float(value) | Atom::Datetime(value) => value < 0.0,
            other => other.integer() < 0,
        }
    }
}

fn guid(bytes: &[u8; 16], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (place, byte) in bytes.iter().enumerate() {
        if matches!(place, 4 | 6 | 8 | 10) {
            f.write_str("-")?;
        }
        write!(f, "{byte:02x}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_shown_as_q_shows_them() {
        let shown: [(Atom<&[u8]>, &str); 31] = [
            (Atom::Boolean(true), "1b"),
            (Atom::Byte(42), "0x2a"),
            (Atom::Guid([0xAB; 16]), "abababab-abab-abab-abab-abababababab"),
            (Atom::Short(-234), "-234h"),
            (Atom::Int(1), "1i"),
            (Atom::Long(89_421_099_511_627_575), "89421099511627575"),
            (Atom::Long(i64::MIN), "0N"),
            (Atom::Long(i64::MAX), "0W"),
            (Atom::Long(-i64::MAX), "-0W"),
            (Atom::Int(i32::MIN), "0Ni"),
            (Atom::Short(i16::MAX), "0Wh"),
            (Atom::Real(5.5), "5.5e"),
            (Atom::Real(f32::NAN), "0Ne"),
            (Atom::Float(3.0), "3.0"),
            (Atom::Float(f64::NAN), "0n"),
            (Atom::Float(f64::NEG_INFINITY), "-0w"),
            (Atom::Char(b'0'), "\"0\""),
            (Atom::Symbol(b"abc"), "`abc"),
            (Atom::Symbol(b""), "`"),
            (Atom::Timestamp(279_417_600_000_000), "2000.01.04D05:36:57.600000000"),
            (Atom::Timestamp(-1), "1999.12.31D23:59:59.999999999"),
            (Atom::Timestamp(i64::MIN), "0Np"),
            (Atom::Month(12), "2001.01m"),
            (Atom::Month(-1), "1999.12m"),
            (Atom::Date(366), "2001.01.01"),
            (Atom::Datetime(3.234), "2000.01.04T05:36:57.600"),
            (Atom::Timespan(20_217_600_000_000), "0D05:36:57.600000000"),
            (Atom::Timespan(-86_400_000_000_001), "-1D00:00:00.000000001"),
            (Atom::Minute(721), "12:01"),
            (Atom::Second(43_500), "12:05:00"),
            (Atom::Time(43_499_123), "12:04:59.123"),
        ];
        for (atom, text) in shown {
            assert_eq!(atom.to_string(), text);
        }
    }

    #[test]
    fn nulls_and_infinities_are_what_q_takes_for_them() {
        assert!(Atom::<&[u8]>::Char(b' ').is_null());
        assert!(Atom::Symbol(b"".as_slice()).is_null());
        assert!(!Atom::<&[u8]>::Byte(0).is_null());
        assert!(Atom::<&[u8]>::Time(-i32::MAX).is_infinite());
        assert!(!Atom::<&[u8]>::Long(i64::MIN).is_infinite());
        assert!(Atom::<&[u8]>::Float(f64::NAN) == Atom::<&[u8]>::Float(-f64::NAN));
        assert!(Atom::<&[u8]>::Int(1) != Atom::<&[u8]>::Month(1));
    }
}
