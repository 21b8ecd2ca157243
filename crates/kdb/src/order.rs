//! The byte order of numbers.

/// The byte order of numbers: stated in each message; in a log, that of the machine that wrote it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Order {
    /// The least significant byte first: used by nearly every peer, and by this crate's encoder.
    #[default]
    Little,
    /// The most significant byte first: used by SPARC machines and Java clients.
    Big,
}

/// A possible item of a vector: a number of fixed width, or a GUID.
///
/// Implemented only for `bool`, `u8`, `i16`, `i32`, `i64`, `f32`, `f64` and `[u8; 16]`.
pub trait Item: Copy + sealed::Sealed {
    /// The bytes of one item.
    const WIDTH: usize;

    /// Returns `true` if vectors of this type have such items: `i64` for longs, timestamps and timespans.
    fn is_of(kind: crate::Type) -> bool;

    /// Reads an item from the first [`WIDTH`](Self::WIDTH) bytes; zero if there are fewer.
    fn from_bytes(bytes: &[u8], order: Order) -> Self;

    /// Reads all items from bytes of [`WIDTH`](Self::WIDTH) each.
    fn all_from_bytes<'a>(
        bytes: &'a [u8],
        order: Order,
    ) -> impl ExactSizeIterator<Item = Self> + Clone + use<'a, Self>;

    /// Writes the items that fit in `room`, the least significant byte first. Returns the number written.
    fn all_to_little(items: impl Iterator<Item = Self>, room: &mut [u8]) -> usize;
}

/// Constant widths, so that the compiler moves many items at once.
macro_rules! in_chunks {
    ($width:expr, $from:expr, $to:expr) => {
        const WIDTH: usize = $width;

        #[inline]
        fn from_bytes(bytes: &[u8], order: Order) -> Self {
            $from(bytes.first_chunk::<$width>().copied().unwrap_or_default(), order)
        }

        #[inline]
        fn all_from_bytes<'a>(
            bytes: &'a [u8],
            order: Order,
        ) -> impl ExactSizeIterator<Item = Self> + Clone + use<'a> {
            bytes.as_chunks::<$width>().0.iter().map(move |item| $from(*item, order))
        }

        #[inline]
        fn all_to_little(items: impl Iterator<Item = Self>, room: &mut [u8]) -> usize {
            let (places, _) = room.as_chunks_mut::<$width>();
            places.iter_mut().zip(items).map(|(place, item)| *place = $to(item)).count()
        }
    };
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! numbers {
    ($($number:ty: $($kind:ident)|+;)*) => {$(
        impl sealed::Sealed for $number {}
        impl Item for $number {
            in_chunks!(
                { size_of::<$number>() },
                |bytes, order| match order {
                    Order::Little => Self::from_le_bytes(bytes),
                    Order::Big => Self::from_be_bytes(bytes),
                },
                <$number>::to_le_bytes
            );

            #[inline]
            fn is_of(kind: crate::Type) -> bool {
                matches!(kind, $(crate::Type::$kind)|+)
            }
        }
    )*};
}

numbers! {
    u8: BYTE | CHAR;
    i16: SHORT;
    i32: INT | MONTH | DATE | MINUTE | SECOND | TIME;
    i64: LONG | TIMESTAMP | TIMESPAN;
    f32: REAL;
    f64: FLOAT | DATETIME;
}

impl sealed::Sealed for bool {}
impl Item for bool {
    in_chunks!(1, |[byte]: [u8; 1], _| byte != 0, |value| [u8::from(value)]);

    #[inline]
    fn is_of(kind: crate::Type) -> bool {
        kind == crate::Type::BOOLEAN
    }
}

impl sealed::Sealed for [u8; 16] {}
impl Item for [u8; 16] {
    in_chunks!(16, |bytes, _| bytes, |bytes| bytes);

    #[inline]
    fn is_of(kind: crate::Type) -> bool {
        kind == crate::Type::GUID
    }
}
