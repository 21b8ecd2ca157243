//! Single values: numbers, characters, symbols, times.

use std::fmt;

use crate::order::{Item, Order};
use crate::{Encoder, Refused, Type, time};

/// Defines the atoms, and what differs between them: each has a variant, the item that it holds, and a type. A symbol is the only
/// one without a fixed width.
macro_rules! atoms {
    ($($(#[$about:meta])* $variant:ident($item:ty) = $kind:ident;)*) => {
        /// A value of a basic type. `S` is the type of a symbol's bytes: `&[u8]` in a view, `Box<[u8]>` in an owned value.
        ///
        /// Times count from 1 January 2000, as in messages. Two atoms are equal where q's `~` finds them equal, except for
        /// its tolerance: a null equals a null, also for floats.
        #[derive(Clone, Copy, Debug)]
        pub enum Atom<S> {
            $($(#[$about])* $variant($item),)*
            /// A name, without its terminating zero.
            Symbol(S),
        }

        impl<'a> Atom<&'a [u8]> {
            /// Reads an atom of this type (an atom's or a vector's) from its bytes; a symbol's without the zero. `None` for
            /// other types.
            pub(crate) fn read(kind: Type, bytes: &'a [u8], order: Order) -> Option<Self> {
                Some(match kind.vector() {
                    Type::SYMBOL => Self::Symbol(bytes),
                    $(Type::$kind => Self::$variant(<$item>::from_bytes(bytes, order)),)*
                    _ => return None,
                })
            }

            /// Writes the atom.
            #[inline]
            pub(crate) fn encode(self, to: &mut Encoder<'_>) -> Result<(), Refused> {
                match self {
                    Self::Symbol(name) => to.symbol(name),
                    $(Self::$variant(value) => to.fixed(Type::$kind, value),)*
                }
            }
        }

        impl<S> Atom<S> {
            /// Returns the atom's type, a negative number.
            #[must_use]
            pub const fn kind(&self) -> Type {
                let vector = match self {
                    Self::Symbol(_) => Type::SYMBOL,
                    $(Self::$variant(_) => Type::$kind,)*
                };
                vector.atom()
            }

            /// Converts the bytes of a symbol; other atoms stay unchanged.
            fn with_symbol<'s, T>(&'s self, symbol: impl FnOnce(&'s S) -> T) -> Atom<T> {
                match self {
                    Self::Symbol(name) => Atom::Symbol(symbol(name)),
                    $(Self::$variant(value) => Atom::$variant(*value),)*
                }
            }
        }
    };
}

atoms! {
    /// True or false.
    Boolean(bool) = BOOLEAN;
    /// 16 bytes.
    Guid([u8; 16]) = GUID;
    /// 8 bits.
    Byte(u8) = BYTE;
    /// 16 bits.
    Short(i16) = SHORT;
    /// 32 bits.
    Int(i32) = INT;
    /// 64 bits.
    Long(i64) = LONG;
    /// A float of 32 bits.
    Real(f32) = REAL;
    /// A float of 64 bits.
    Float(f64) = FLOAT;
    /// A byte of text.
    Char(u8) = CHAR;
    /// Nanoseconds since 2000.
    Timestamp(i64) = TIMESTAMP;
    /// Months since January 2000.
    Month(i32) = MONTH;
    /// Days since 2000.
    Date(i32) = DATE;
    /// Days since 2000 with a fraction.
    Datetime(f64) = DATETIME;
    /// A duration in nanoseconds.
    Timespan(i64) = TIMESPAN;
    /// Minutes.
    Minute(i32) = MINUTE;
    /// Seconds.
    Second(i32) = SECOND;
    /// Milliseconds.
    Time(i32) = TIME;
}

impl Atom<&[u8]> {
    /// Copies a symbol's bytes, so that the atom owns them.
    #[must_use]
    pub fn boxed(self) -> Atom<Box<[u8]>> {
        self.with_symbol(|name| Box::from(*name))
    }
}

impl<S> Atom<S> {
    /// Returns an integer, and the infinity of its type, which is the largest value. Booleans, bytes and characters have no
    /// infinity, and get one that they cannot reach.
    fn integer(&self) -> Option<(i64, i64)> {
        Some(match *self {
            Self::Boolean(value) => (value.into(), i64::MAX),
            Self::Byte(value) | Self::Char(value) => (value.into(), i64::MAX),
            Self::Short(value) => (value.into(), i16::MAX.into()),
            Self::Int(value)
            | Self::Month(value)
            | Self::Date(value)
            | Self::Minute(value)
            | Self::Second(value)
            | Self::Time(value) => (value.into(), i32::MAX.into()),
            Self::Long(value) | Self::Timestamp(value) | Self::Timespan(value) => (value, i64::MAX),
            Self::Guid(_) | Self::Real(_) | Self::Float(_) | Self::Datetime(_) | Self::Symbol(_) => {
                return None;
            }
        })
    }

    fn float(&self) -> Option<f64> {
        match *self {
            Self::Real(value) => Some(value.into()),
            Self::Float(value) | Self::Datetime(value) => Some(value),
            _ => None,
        }
    }

    /// Returns `true` for q's infinity of the type, such as `0W` and `-0w`: for integers the largest value, and the
    /// smallest except the null.
    #[must_use]
    pub fn is_infinite(&self) -> bool {
        self.integer().is_some_and(|(value, infinity)| value.checked_abs() == Some(infinity))
            || self.float().is_some_and(f64::is_infinite)
    }

    fn is_negative(&self) -> bool {
        self.integer().is_some_and(|(value, _)| value < 0) || self.float().is_some_and(|value| value < 0.0)
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
            Self::Guid(bytes) => *bytes == [0; 16],
            Self::Char(value) => *value == b' ',
            Self::Symbol(name) => name.as_ref().is_empty(),
            // One less than the negative infinity.
            _ => {
                self.integer().is_some_and(|(value, infinity)| value == -infinity - 1)
                    || self.float().is_some_and(f64::is_nan)
            }
        }
    }
}

impl<S: AsRef<[u8]>, T: AsRef<[u8]>> PartialEq<Atom<T>> for Atom<S> {
    fn eq(&self, other: &Atom<T>) -> bool {
        self.kind() == other.kind()
            && match (self.borrow(), other.borrow()) {
                (Atom::Symbol(one), Atom::Symbol(other)) => one == other,
                (Atom::Guid(one), Atom::Guid(other)) => one == other,
                (one, other) => match (one.float(), other.float()) {
                    (Some(one), Some(other)) => one == other || one.is_nan() && other.is_nan(),
                    _ => one.integer() == other.integer(),
                },
            }
    }
}

/// Formats the atom as q shows it, with its type suffix if there is one: `` `AAPL``, `42`, `42i`,
/// `2022.06.16D12:25:04.123456789`, `0Nt`.
impl<S: AsRef<[u8]>> fmt::Display for Atom<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.borrow() {
            Atom::Symbol(name) => write!(f, "`{}", name.escape_ascii()),
            Atom::Char(byte) => write!(f, "\"{}\"", byte.escape_ascii()),
            Atom::Boolean(value) => write!(f, "{}b", u8::from(value)),
            Atom::Byte(value) => write!(f, "0x{value:02x}"),
            Atom::Guid(bytes) => guid(&bytes, f),
            atom if atom.is_null() || atom.is_infinite() => {
                let sign = if atom.is_infinite() && atom.is_negative() { "-" } else { "" };
                let letter = if atom.is_null() { 'N' } else { 'W' };
                // Longs and floats have no suffix in q; a small letter marks a float.
                match atom {
                    Atom::Float(_) => write!(f, "{sign}0{}", letter.to_ascii_lowercase()),
                    Atom::Long(_) => write!(f, "{sign}0{letter}"),
                    _ => write!(f, "{sign}0{letter}{}", atom.kind().letter()),
                }
            }
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
