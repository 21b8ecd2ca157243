//! What the messages of ITCH and of IEX have in common: fields on the wire; types, views and encoders from one table.
//!
//! Each protocol has one table of its messages, in the form of its specification (`itch/table.rs`, `iex/table.rs`). The table is a macro that passes
//! its rows to [`message_types`], [`views`] or [`encoders`]:
//!
//! ```text
//! /// `T`: a trade.
//! TradeReport [TradeReport b'T' "trade report"] 38 {
//!     /// Shares.
//!     size: u32 = 18,
//! }
//! ```
//!
//! A row has the name of the view, the types with this layout (each with its letter and its label), the length, and the fields with their types and
//! offsets. The compiler checks that each byte of a message belongs to exactly one field.

/// The byte order of ITCH.
pub(crate) const BIG: bool = true;
/// The byte order of IEX.
pub(crate) const LITTLE: bool = false;

/// A field of `N` bytes on the wire, in the byte order `ORDER`.
pub(crate) trait Wire<const N: usize>: Copy {
    fn read<const ORDER: bool>(bytes: [u8; N]) -> Self;
}

/// A field as in a structure: a number, or the bytes of a text, which have no byte order.
pub(crate) trait Plain<const N: usize>: Wire<N> {
    const IS_NUMBER: bool;
    fn write<const ORDER: bool>(self) -> [u8; N];
}

macro_rules! numbers {
    ($($number:ty: $bytes:literal),*) => {
        $(
            impl Wire<$bytes> for $number {
                #[inline(always)]
                fn read<const ORDER: bool>(bytes: [u8; $bytes]) -> Self {
                    if ORDER == BIG { Self::from_be_bytes(bytes) } else { Self::from_le_bytes(bytes) }
                }
            }

            impl Plain<$bytes> for $number {
                const IS_NUMBER: bool = true;

                #[inline(always)]
                fn write<const ORDER: bool>(self) -> [u8; $bytes] {
                    if ORDER == BIG { self.to_be_bytes() } else { self.to_le_bytes() }
                }
            }
        )*
    };
}

numbers!(u8: 1, u16: 2, u32: 4, u64: 8, i64: 8);

impl<const N: usize> Wire<N> for [u8; N] {
    #[inline(always)]
    fn read<const ORDER: bool>(bytes: [u8; N]) -> Self {
        bytes
    }
}

impl<const N: usize> Plain<N> for [u8; N] {
    const IS_NUMBER: bool = false;

    #[inline(always)]
    fn write<const ORDER: bool>(self) -> [u8; N] {
        self
    }
}

/// Implements [`Wire`] for types that wrap a plain field.
macro_rules! wrappers {
    ($([$($of:tt)*] $name:ty: $bytes:tt;)*) => {
        $(impl<$($of)*> $crate::wire::Wire<$bytes> for $name {
            #[inline(always)]
            fn read<const ORDER: bool>(bytes: [u8; $bytes]) -> Self {
                Self($crate::wire::Wire::read::<ORDER>(bytes))
            }
        })*
    };
}
pub(crate) use wrappers;

/// Names the plain type of a field.
macro_rules! plain {
    (OrderRef) => {
        u64
    };
    (MatchNumber) => {
        u64
    };
    (Price4) => {
        u32
    };
    (Price8) => {
        u64
    };
    (IexPrice) => {
        i64
    };
    (Code) => {
        u8
    };
    (Symbol) => {
        [u8; 8]
    };
    (Mpid) => {
        [u8; 4]
    };
    (ItchText<$bytes:literal>) => {
        [u8; $bytes]
    };
    ($number:ident) => {
        $number
    };
}
pub(crate) use plain;

/// Returns `N` bytes from offset `AT` of an `L`-byte message; the compiler checks that they lie within it.
#[inline(always)]
pub(crate) fn chunk<const AT: usize, const N: usize, const L: usize>(message: &[u8; L]) -> [u8; N] {
    const { assert!(AT + N <= L) };
    let mut bytes = [0; N];
    bytes.copy_from_slice(&message[AT..AT + N]);
    bytes
}

/// Returns `true` if each byte of a message of this length belongs to exactly one field. `prefix` has a bit for each byte of the prefix; a field is its
/// offset and its number of bytes.
pub(crate) const fn is_whole(length: usize, prefix: u128, fields: &[(usize, usize)]) -> bool {
    let mut taken = prefix;
    let mut k = 0;
    while k < fields.len() {
        let (at, bytes) = fields[k];
        let field = ((1 << bytes) - 1) << at;
        if taken & field != 0 {
            return false;
        }
        taken |= field;
        k += 1;
    }
    taken == (1 << length) - 1
}

/// Declares the enumerations of a protocol's types and of its errors: `{ protocol, types: number of types, errors }` and the table.
macro_rules! message_types {
    (
        { $protocol:literal, $Type:ident: $count:literal, $Malformed:ident }
        $( #[$about:meta] $name:ident [$($kind:ident $letter:literal $label:literal),+] $length:literal $fields:tt )*
    ) => {
        #[doc = concat!("A type of message of ", $protocol, ".")]
        #[repr(u8)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $Type {
            $($( #[$about] $kind = $letter, )+)*
        }

        impl $Type {
            /// Every type, in the specification's order.
            pub const ALL: [Self; $count] = [$($( Self::$kind, )+)*];

            /// Returns the type of a letter; `None` for an unknown letter.
            #[inline]
            #[must_use]
            pub const fn of(letter: u8) -> Option<Self> {
                match letter {
                    $($( $letter => Some(Self::$kind), )+)*
                    _ => None,
                }
            }

            /// Returns the size of a message of this type in bytes, without framing.
            #[inline]
            #[must_use]
            pub const fn length(self) -> usize {
                match self {
                    $($( Self::$kind => $length, )+)*
                }
            }

            /// Returns a short name of the type.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $($( Self::$kind => $label, )+)*
                }
            }

            /// Returns the type's letter on the wire.
            #[inline]
            #[must_use]
            pub const fn letter(self) -> u8 {
                self as u8
            }
        }

        impl std::fmt::Display for $Type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }

        #[doc = concat!("The reason why bytes are not a message of ", $protocol, ".")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
        #[non_exhaustive]
        pub enum $Malformed {
            /// The message has no bytes, so no type.
            #[error("an empty message")]
            Empty,
            /// The message is shorter than its type.
            #[error("message type {} ({}) has {} bytes, {length} received", *kind as u8 as char, kind.name(), kind.length())]
            Short {
                /// The type.
                kind: $Type,
                /// Bytes received.
                length: usize,
            },
        }
    };
}
pub(crate) use message_types;

/// Declares the views of a protocol, the enumeration of them and the decoder:
/// `{ enumeration, types, error, byte order, { items of every view } }` and the table. Among those items is a function `show_prefix`.
macro_rules! views {
    (
        { $Message:ident, $Type:ident, $Malformed:ident, $ORDER:ident, $common:tt }
        $( #[$about:meta] $name:ident [$($kind:ident $letter:literal $label:literal),+] $length:literal {
            $( $(#[$meaning:meta])* $field:ident: $wire:ident $(<$bytes:literal>)? = $at:literal, )*
        } )*
    ) => {
        $(
            #[$about]
            #[repr(transparent)]
            #[derive(Clone, Copy, PartialEq, Eq)]
            pub struct $name<'a>(&'a [u8; $length]);

            impl<'a> $name<'a> {
                /// The size of the message in bytes, without framing.
                pub const LENGTH: usize = $length;

                /// Returns the message's bytes up to the end of the known fields.
                #[inline(always)]
                #[must_use]
                pub const fn bytes(self) -> &'a [u8; $length] {
                    self.0
                }

                $crate::wire::items! $common

                $(
                    $(#[$meaning])*
                    #[inline(always)]
                    #[must_use]
                    pub fn $field(self) -> $wire $(<$bytes>)? {
                        $crate::wire::Wire::read::<{ $crate::wire::$ORDER }>($crate::wire::chunk::<$at, _, $length>(self.0))
                    }
                )*
            }

            impl std::fmt::Debug for $name<'_> {
                fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    let mut shown = f.debug_struct(stringify!($name));
                    self.show_prefix(&mut shown);
                    $( shown.field(stringify!($field), &self.$field()); )*
                    shown.finish()
                }
            }
        )*

        /// A message: a view over received bytes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $Message<'a> {
            $( #[$about] $name($name<'a>), )*
            /// A message of a type that this crate does not know: at least one byte.
            Unknown(&'a [u8]),
        }

        impl<'a> $Message<'a> {
            /// Returns the bytes of the known fields; all bytes of a message of unknown type.
            #[inline]
            #[must_use]
            pub const fn bytes(self) -> &'a [u8] {
                match self {
                    $( Self::$name(message) => message.0, )*
                    Self::Unknown(bytes) => bytes,
                }
            }

            /// Returns the first byte.
            #[inline]
            #[must_use]
            pub fn letter(&self) -> u8 {
                self.bytes().first().copied().unwrap_or_default()
            }

            /// Returns the number of bytes of `received`, the decoded bytes, after the known fields: a newer edition of the specification may have
            /// added some.
            #[inline]
            #[must_use]
            pub const fn extra_bytes(&self, received: &[u8]) -> usize {
                received.len().saturating_sub(self.bytes().len())
            }
        }

        /// Decodes a message.
        ///
        /// Costs a branch on the type, which the processor has to predict, and one comparison of lengths (`benches/`). Bytes after the type's fields
        /// are ignored: the message's `extra_bytes` returns their number.
        ///
        /// # Errors
        /// There is no type, or the message is shorter than its type.
        #[inline(always)]
        pub fn decode(bytes: &[u8]) -> Result<$Message<'_>, $Malformed> {
            let Some(letter) = bytes.first() else { return Err($Malformed::Empty) };
            match *letter {
                $($( $letter => match bytes.first_chunk() {
                    Some(message) => Ok($Message::$name($name(message))),
                    None => Err($Malformed::Short { kind: $Type::$kind, length: bytes.len() }),
                }, )+)*
                _ => Ok($Message::Unknown(bytes)),
            }
        }
    };
}
pub(crate) use views;

/// Removes the braces of [`views`]' items.
macro_rules! items {
    ($($item:tt)*) => { $($item)* };
}
pub(crate) use items;

/// Declares the structures that write a protocol's messages, one for each type: `{ byte order, prefix: type, function that writes it, a bit for each of
/// its bytes }` and the table.
macro_rules! encoders {
    (
        $of:tt
        $( #[$about:meta] $name:ident [$($kind:ident $letter:literal $label:literal),+] $length:literal $fields:tt )*
    ) => {
        $($( $crate::wire::encoder! { $of #[$about] $kind $letter $length $fields } )+)*
    };
}
pub(crate) use encoders;

/// Declares one of the structures of [`encoders`].
macro_rules! encoder {
    (
        { $ORDER:ident, $prefix:ident: $Prefix:ty, $put_prefix:ident, $prefix_bits:literal }
        #[$about:meta] $kind:ident $letter:literal $length:literal {
            $( $(#[$meaning:meta])* $field:ident: $wire:ident $(<$bytes:literal>)? = $at:literal, )*
        }
    ) => {
        #[$about]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $kind {
            $( $(#[$meaning])* pub $field: $crate::wire::plain!($wire $(<$bytes>)?), )*
        }

        impl $kind {
            /// The message's type on the wire.
            pub const TYPE: u8 = $letter;
            /// The size of the message in bytes, without framing.
            pub const LENGTH: usize = $length;

            /// Writes the message to the front of `out` and returns its length; `None` if `out` is too short (then nothing is written).
            #[inline]
            pub fn encode(&self, $prefix: $Prefix, out: &mut [u8]) -> Option<usize> {
                let out: &mut [u8; $length] = out.first_chunk_mut()?;
                $put_prefix($prefix, $letter, out.first_chunk_mut()?);
                $( out[$at..$at + size_of_val(&self.$field)].copy_from_slice(&$crate::wire::Plain::write::<{ $crate::wire::$ORDER }>(self.$field)); )*
                Some($length)
            }
        }

        const _: () = assert!($crate::wire::is_whole(
            $length,
            $prefix_bits,
            &[$( ($at, size_of::<$crate::wire::plain!($wire $(<$bytes>)?)>()), )*]
        ));
    };
}
pub(crate) use encoder;
