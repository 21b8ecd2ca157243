//! Vectors, read in place.

use crate::cursor::Cursor;
use crate::error::Malformed;
use crate::order::{Item, Order};
use crate::{Atom, Attribute, Type};

/// The attribute's bit for a number of items with 8 bytes: vectors with more than 2^31 items, of capability 6.
const WIDE: u8 = 0x80;

/// A vector of atoms of one type, in the bytes of a message.
#[derive(Clone, Copy, Debug)]
pub struct Vector<'a> {
    kind: Type,
    attribute: Attribute,
    order: Order,
    count: usize,
    bytes: &'a [u8],
}

/// Reads the attribute of a vector or a list, and the number of its items, of at least `width` bytes each.
#[inline]
pub(crate) fn head(
    cursor: &mut Cursor<'_>,
    width: usize,
    what: &'static str,
) -> Result<(Attribute, usize), Malformed> {
    let attribute: u8 = cursor.number("an attribute")?;
    let count = cursor.count(width, attribute & WIDE != 0, what)?;
    Ok((Attribute(attribute & !WIDE), count))
}

impl<'a> Vector<'a> {
    /// Checks a vector after its type. Returns the number of items.
    #[inline]
    pub(crate) fn check(cursor: &mut Cursor<'a>, kind: Type) -> Result<usize, Malformed> {
        let width = kind.width();
        // An empty symbol takes one byte.
        let (_, count) = head(cursor, width.max(1), kind.name())?;
        let rest = cursor.rest();
        let len = match width {
            0 => symbols_len(rest, count).ok_or_else(|| cursor.cut("symbols", rest.len() + 1))?,
            width => count * width,
        };
        cursor.take(len, kind.name())?;
        Ok(count)
    }

    /// Reads a vector that was checked before. `is_last`: the vector ends with the bytes, so its end is known.
    #[inline]
    pub(crate) fn reread(cursor: &mut Cursor<'a>, kind: Type, is_last: bool) -> Option<Self> {
        let (attribute, count) = head(cursor, 0, kind.name()).ok()?;
        let bytes = match kind.width() {
            0 if is_last => cursor.take_rest(),
            0 => cursor.take(symbols_len(cursor.rest(), count)?, kind.name()).ok()?,
            width => cursor.take(count * width, kind.name()).ok()?,
        };
        Some(Self { kind, attribute, order: cursor.order(), count, bytes })
    }

    /// Creates a vector of one item from an atom's bytes, with a symbol's zero.
    pub(crate) const fn of_one(kind: Type, bytes: &'a [u8], order: Order) -> Self {
        Self { kind: kind.vector(), attribute: Attribute::NONE, order, count: 1, bytes }
    }

    /// Returns the vector's type, a positive number.
    #[must_use]
    pub const fn kind(&self) -> Type {
        self.kind
    }

    /// Returns the known order of the items.
    #[must_use]
    pub const fn attribute(&self) -> Attribute {
        self.attribute
    }

    /// Returns the number of items.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Returns `true` if there are no items.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the items' bytes, in the byte order of the message; symbols with their zeros.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Appends the items' bytes, the least significant first.
    #[inline]
    pub(crate) fn append_to(&self, out: &mut Vec<u8>) {
        let at = out.len();
        out.extend_from_slice(self.bytes);
        let width = self.kind.width();
        // A GUID is 16 bytes without a byte order.
        if self.order == Order::Big && (2..=8).contains(&width) {
            out[at..].chunks_exact_mut(width).for_each(<[u8]>::reverse);
        }
    }

    /// Appends each item as a separate value, the least significant byte first: the form of items in a list.
    pub(crate) fn append_values_to(&self, out: &mut Vec<u8>) {
        let mut items = self.iter();
        for _ in 0..self.count {
            out.push(self.kind.atom().0.cast_unsigned());
            Self { count: 1, bytes: items.step(), ..*self }.append_to(out);
        }
    }

    /// Returns the items as numbers (`i64` for longs, timestamps and timespans, …); `None` if they are of another type.
    #[inline]
    #[must_use]
    pub fn items<T: Item>(&self) -> Option<impl ExactSizeIterator<Item = T> + Clone + use<'a, T>> {
        let order = self.order;
        T::is_of(self.kind).then(|| T::all_from_bytes(self.bytes, order))
    }

    /// Returns the text of a vector of characters; `None` for other types.
    #[must_use]
    pub fn text(&self) -> Option<&'a [u8]> {
        (self.kind == Type::CHAR).then_some(self.bytes)
    }

    /// Returns the symbols, without their zeros; `None` if the items are of another type.
    #[inline]
    #[must_use]
    pub fn symbols(&self) -> Option<Symbols<'a>> {
        (self.kind == Type::SYMBOL).then_some(Symbols { bytes: self.bytes, left: self.count })
    }

    /// Returns the items, of any type.
    #[must_use]
    pub const fn iter(&self) -> Atoms<'a> {
        Atoms { kind: self.kind, order: self.order, bytes: self.bytes, left: self.count }
    }

    /// Returns the last item, without reading the others.
    #[must_use]
    pub fn last(&self) -> Option<Atom<&'a [u8]>> {
        let (bytes, begin) = match self.kind.width() {
            // The symbol begins after the zero of the one before it.
            0 => {
                let (_, names) = self.bytes.split_last()?;
                (names, names.iter().rposition(|&byte| byte == 0).map_or(0, |zero| zero + 1))
            }
            width => (self.bytes, self.bytes.len().checked_sub(width)?),
        };
        Atom::read(self.kind, &bytes[begin..], self.order)
    }

    /// Returns the first item as a vector of one item, and a vector of the others.
    pub(crate) fn split_first(self) -> Option<(Self, Self)> {
        let left = self.count.checked_sub(1)?;
        let mut items = self.iter();
        let bytes = items.step();
        Some((Self { count: 1, bytes, ..self }, Self { count: left, bytes: items.bytes, ..self }))
    }
}

/// The symbols of a vector.
#[derive(Clone, Debug)]
pub struct Symbols<'a> {
    bytes: &'a [u8],
    left: usize,
}

impl<'a> Iterator for Symbols<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        self.left = self.left.checked_sub(1)?;
        let len = self.bytes.iter().position(|&byte| byte == 0)?;
        let (symbol, rest) = self.bytes.split_at(len);
        self.bytes = &rest[1..];
        Some(symbol)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Symbols<'_> {}

/// The items of a vector, as atoms.
#[derive(Clone, Debug)]
pub struct Atoms<'a> {
    kind: Type,
    order: Order,
    bytes: &'a [u8],
    left: usize,
}

impl<'a> Atoms<'a> {
    /// Returns the next item's bytes; a symbol's with its zero.
    fn step(&mut self) -> &'a [u8] {
        let len = match self.kind.width() {
            0 => self.bytes.iter().position(|&byte| byte == 0).map_or(0, |zero| zero + 1),
            width => width,
        };
        // The vector was checked when it was read, so the items exist.
        let (item, rest) = self.bytes.split_at_checked(len).unwrap_or_default();
        self.bytes = rest;
        item
    }
}

impl<'a> Iterator for Atoms<'a> {
    type Item = Atom<&'a [u8]>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let item = self.step();
        let item =
            if self.kind == Type::SYMBOL { item.split_last().map_or(item, |(_, name)| name) } else { item };
        Atom::read(self.kind, item, self.order)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Atoms<'_> {}

/// Returns the bytes of `count` symbols, zeros included; `None` if there are fewer.
///
/// Counts zeros in blocks, which the compiler vectorizes; only the block with the last symbol is read byte by byte.
fn symbols_len(bytes: &[u8], count: usize) -> Option<usize> {
    /// Two AVX2 registers.
    const BLOCK: usize = 64;
    let (mut len, mut left) = (0, count);
    for block in bytes.chunks_exact(BLOCK) {
        let zeros = usize::from(block.iter().map(|&byte| u8::from(byte == 0)).sum::<u8>());
        if zeros >= left {
            break;
        }
        (len, left) = (len + BLOCK, left - zeros);
    }
    for &byte in &bytes[len..] {
        if left == 0 {
            break;
        }
        len += 1;
        left -= usize::from(byte == 0);
    }
    (left == 0).then_some(len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Encoder, View};

    #[test]
    fn the_last_item_is_that_of_them_all() {
        let last = |write: &dyn Fn(&mut Encoder<'_>)| {
            let mut room = [0; 64];
            let mut encoder = Encoder::value_alone(&mut room);
            write(&mut encoder);
            let len = encoder.finish().unwrap();
            let Ok(View::Vector(vector)) = View::parse(&room[..len], Order::Little) else { panic!() };
            assert!(vector.last() == vector.iter().last());
            vector.last().map(|atom| atom.to_string())
        };
        let symbols = |names: &'static [&[u8]]| {
            move |encoder: &mut Encoder<'_>| encoder.symbols(names.iter().copied()).unwrap()
        };
        assert_eq!(last(&symbols(&[b"ab", b"c"])).as_deref(), Some("`c"));
        assert_eq!(last(&symbols(&[b"ab", b""])).as_deref(), Some("`"));
        assert_eq!(last(&symbols(&[b"ab"])).as_deref(), Some("`ab"));
        assert_eq!(last(&symbols(&[])), None);
        assert_eq!(last(&|encoder| encoder.column(Type::INT, [1, 2]).unwrap()).as_deref(), Some("2i"));
        assert_eq!(last(&|encoder| encoder.column(Type::INT, [0_i32; 0]).unwrap()), None);
    }

    #[test]
    fn symbols_are_counted_to_the_last_zero() {
        let by_hand = |bytes: &[u8], count: usize| {
            let mut ends =
                bytes.iter().enumerate().filter(|(_, byte)| **byte == 0).map(|(place, _)| place + 1);
            if count == 0 { Some(0) } else { ends.nth(count - 1) }
        };
        for size in 0..200_u32 {
            // Zeros at irregular places, and blocks of zeros only.
            let bytes: Vec<u8> =
                (0..size).map(|place| u8::from(place * place % 7 > 2 && place < 130)).collect();
            for count in 0..=bytes.len() + 1 {
                assert_eq!(symbols_len(&bytes, count), by_hand(&bytes, count), "{count} of {bytes:?}");
            }
        }
    }
}
