//! Writes values and messages into the caller's buffer.

use crate::message::{HEADER, MessageKind};
use crate::order::Item;
use crate::{Atom, Attribute, Refused, Type, Value};

/// Writes one value, or one message with its header, from front to back, with the least significant byte first.
///
/// A container that is begun must be filled: [`list`](Self::list) of three needs three values, [`table`](Self::table)
/// needs as many columns as names. [`finish`](Self::finish) refuses an incomplete value. Columns are written in one
/// call, from any iterator with a known length. Nothing is allocated. After an error the encoder cannot be used any
/// more; the bytes before it in the buffer are unchanged.
///
/// ```
/// use tapeline_kdb::{Encoder, MessageKind, Refused, Type};
///
/// # fn main() -> Result<(), Refused> {
/// let mut room = [0; 256];
/// let mut message = Encoder::message(&mut room, MessageKind::Async)?;
/// message.list(3)?;
/// message.symbol(b"upd")?;
/// message.symbol(b"trade")?;
/// message.list(2)?;
/// message.symbols([b"AAPL".as_slice(), b"IBM"])?;
/// message.column(Type::FLOAT, [84.28, 120.5])?;
/// let len = message.finish()?;
/// # assert_eq!(room[4], len as u8);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Encoder<'b> {
    room: &'b mut [u8],
    len: usize,
    /// Values that are missing until the message is complete.
    owed: u64,
    is_message: bool,
}

/// The most items that a message can hold: their number has 4 bytes, and a sign.
const MOST_ITEMS: usize = i32::MAX as usize;

impl<'b> Encoder<'b> {
    /// Begins a value without a header, as logs contain them.
    #[must_use]
    pub const fn value_alone(room: &'b mut [u8]) -> Self {
        Self { room, len: 0, owed: 1, is_message: false }
    }

    /// Begins a message of one value.
    ///
    /// # Errors
    /// The buffer has no capacity for the header.
    pub fn message(room: &'b mut [u8], kind: MessageKind) -> Result<Self, Refused> {
        let header = room.get_mut(..HEADER).ok_or(Refused::Full)?;
        header.copy_from_slice(&[1, kind as u8, 0, 0, 0, 0, 0, 0]);
        Ok(Self { room, len: HEADER, owed: 1, is_message: true })
    }

    /// Finishes the value and returns its length in bytes.
    ///
    /// # Errors
    /// Values are missing, or the message is longer than the 4 GiB that a header can state.
    pub fn finish(self) -> Result<usize, Refused> {
        if self.owed > 0 {
            return Err(Refused::Unfinished(self.owed));
        }
        if self.is_message {
            let len = u32::try_from(self.len).map_err(|_| Refused::TooMany(self.len))?;
            // The space for the header was reserved at the beginning.
            self.room[4..HEADER].copy_from_slice(&len.to_le_bytes());
        }
        Ok(self.len)
    }

    /// Returns the number of bytes written so far.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns `true` if nothing was written yet; a message has a header from the beginning.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Reserves a value with `len` bytes after its type, which must be followed by `within` values inside it.
    #[inline]
    fn begin(&mut self, kind: Type, len: usize, within: usize) -> Result<&mut [u8], Refused> {
        let owed = self.owed.checked_sub(1).ok_or(Refused::Superfluous)? + within as u64;
        let end = len.checked_add(self.len + 1).ok_or(Refused::Full)?;
        let room = self.room.get_mut(self.len..end).ok_or(Refused::Full)?;
        let (first, room) = room.split_first_mut().ok_or(Refused::Full)?;
        *first = kind.0.cast_unsigned();
        (self.owed, self.len) = (owed, end);
        Ok(room)
    }

    /// Writes the head of a vector or a list, and reserves `bytes` bytes for its items.
    #[inline]
    fn items(
        &mut self,
        kind: Type,
        attribute: Attribute,
        (count, within): (usize, usize),
        bytes: usize,
    ) -> Result<&mut [u8], Refused> {
        if count > MOST_ITEMS {
            return Err(Refused::TooMany(count));
        }
        let room = self.begin(kind, bytes.checked_add(5).ok_or(Refused::Full)?, within)?;
        let (head, room) = room.split_at_mut(5);
        head[0] = attribute.0;
        head[1..].copy_from_slice(&(count as u32).to_le_bytes());
        Ok(room)
    }

    /// Appends text and a zero.
    #[inline]
    fn text(&mut self, text: &[u8]) -> Result<(), Refused> {
        let end = self.len + text.len();
        let room = self.room.get_mut(self.len..=end).ok_or(Refused::Full)?;
        if text.contains(&0) {
            return Err(Refused::Zero);
        }
        room[..text.len()].copy_from_slice(text);
        room[text.len()] = 0;
        self.len = end + 1;
        Ok(())
    }

    /// Writes an atom.
    ///
    /// # Errors
    /// No capacity, or no value expected; a zero in a symbol.
    #[inline]
    pub fn atom<S: AsRef<[u8]>>(&mut self, atom: &Atom<S>) -> Result<(), Refused> {
        atom.borrow().encode(self)
    }

    /// Writes an atom of a type with a fixed width.
    #[inline]
    pub(crate) fn fixed<T: Item>(&mut self, kind: Type, value: T) -> Result<(), Refused> {
        T::all_to_little(std::iter::once(value), self.begin(kind.atom(), T::WIDTH, 0)?);
        Ok(())
    }

    /// Writes a symbol.
    ///
    /// # Errors
    /// No capacity, or no value expected; a zero in the symbol.
    #[inline]
    pub fn symbol(&mut self, name: &[u8]) -> Result<(), Refused> {
        self.begin(Type::SYMBOL.atom(), 0, 0)?;
        self.text(name)
    }

    /// Writes a string: a vector of characters.
    ///
    /// # Errors
    /// No capacity, or no value expected.
    pub fn string(&mut self, text: &[u8]) -> Result<(), Refused> {
        self.items(Type::CHAR, Attribute::NONE, (text.len(), 0), text.len())?.copy_from_slice(text);
        Ok(())
    }

    /// Writes a vector of this type, such as `i64`s of [`Type::TIMESTAMP`].
    ///
    /// # Errors
    /// No capacity, or no value expected; items of another type.
    #[inline]
    pub fn column<T: Item, I>(&mut self, kind: Type, items: I) -> Result<(), Refused>
    where
        I: IntoIterator<Item = T, IntoIter: ExactSizeIterator>,
    {
        self.column_with(kind, Attribute::NONE, items)
    }

    /// Writes a vector with an attribute.
    ///
    /// # Errors
    /// Those of [`column`](Self::column).
    #[inline]
    pub fn column_with<T: Item, I>(
        &mut self,
        kind: Type,
        attribute: Attribute,
        items: I,
    ) -> Result<(), Refused>
    where
        I: IntoIterator<Item = T, IntoIter: ExactSizeIterator>,
    {
        if !T::is_of(kind) {
            return Err(Refused::WrongType(kind));
        }
        let items = items.into_iter();
        let said = items.len();
        let bytes = said.checked_mul(T::WIDTH).ok_or(Refused::TooMany(said))?;
        let room = self.items(kind, attribute, (said, 0), bytes)?;
        let came = T::all_to_little(items, room);
        if came == said { Ok(()) } else { Err(Refused::Miscounted { said, came }) }
    }

    /// Writes a vector of symbols.
    ///
    /// # Errors
    /// No capacity, or no value expected; a zero in a symbol.
    #[inline]
    pub fn symbols<'s>(&mut self, names: impl IntoIterator<Item = &'s [u8]>) -> Result<(), Refused> {
        self.symbols_with(Attribute::NONE, names).map(|_| ())
    }

    /// Writes a vector of symbols with an attribute; returns the number of symbols.
    ///
    /// # Errors
    /// Those of [`symbols`](Self::symbols).
    #[inline]
    pub fn symbols_with<'s>(
        &mut self,
        attribute: Attribute,
        names: impl IntoIterator<Item = &'s [u8]>,
    ) -> Result<usize, Refused> {
        self.items(Type::SYMBOL, attribute, (0, 0), 0)?;
        let (behind, mut count) = (self.len, 0_usize);
        for name in names {
            self.text(name)?;
            count += 1;
        }
        if count > MOST_ITEMS {
            return Err(Refused::TooMany(count));
        }
        // The number of items is the end of the head, which is already written.
        self.room[behind - 4..behind].copy_from_slice(&(count as u32).to_le_bytes());
        Ok(count)
    }

    /// Writes a column from cells extracted with [`Column::append_to`](crate::Column::append_to): a vector of this
    /// type, or the values of a list.
    ///
    /// # Errors
    /// No capacity, or no value expected; other than `count` times the type's width bytes.
    #[inline]
    pub fn cells(&mut self, kind: Type, count: usize, bytes: &[u8]) -> Result<(), Refused> {
        let width = kind.width();
        if width > 0 && count.checked_mul(width) != Some(bytes.len()) {
            return Err(Refused::Miscounted { said: count, came: bytes.len() / width });
        }
        self.items(kind, Attribute::NONE, (count, 0), bytes.len())?.copy_from_slice(bytes);
        Ok(())
    }

    /// Writes the only cell of such a column as a single value: an atom, or the value in the list.
    ///
    /// # Errors
    /// Those of [`cells`](Self::cells).
    #[inline]
    pub fn cell(&mut self, kind: Type, bytes: &[u8]) -> Result<(), Refused> {
        let width = kind.width();
        if width > 0 && bytes.len() != width || bytes.is_empty() {
            return Err(Refused::Miscounted { said: 1, came: bytes.len() / width.max(1) });
        }
        let (kind, bytes) = match kind {
            Type::LIST => (Type(bytes[0].cast_signed()), &bytes[1..]),
            kind => (kind.atom(), bytes),
        };
        self.begin(kind, bytes.len(), 0)?.copy_from_slice(bytes);
        Ok(())
    }

    /// Begins a list; `count` values follow.
    ///
    /// # Errors
    /// No capacity, or no value expected.
    #[inline]
    pub fn list(&mut self, count: usize) -> Result<(), Refused> {
        self.items(Type::LIST, Attribute::NONE, (count, count), 0).map(|_| ())
    }

    /// Begins a dictionary; keys and values follow. The caller ensures that they are equal in number.
    ///
    /// # Errors
    /// No capacity, or no value expected.
    pub fn dict(&mut self, is_sorted: bool) -> Result<(), Refused> {
        let kind = if is_sorted { Type::SORTED_DICT } else { Type::DICT };
        self.begin(kind, 0, 2).map(|_| ())
    }

    /// Begins a table; one column per name follows. The caller ensures that the columns have equal lengths.
    ///
    /// # Errors
    /// No capacity, or no value expected; a zero in a name.
    pub fn table<'s>(&mut self, names: impl IntoIterator<Item = &'s [u8]>) -> Result<(), Refused> {
        self.begin(Type::TABLE, 1, 1)?[0] = Attribute::NONE.0;
        self.dict(false)?;
        let columns = self.symbols_with(Attribute::NONE, names)?;
        self.list(columns)
    }

    /// Writes an error, the answer to a request that cannot be answered.
    ///
    /// # Errors
    /// No capacity, or no value expected; a zero in the text.
    pub fn error(&mut self, text: &[u8]) -> Result<(), Refused> {
        self.begin(Type::ERROR, 0, 0)?;
        self.text(text)
    }

    /// Writes the generic null `::`: an empty answer.
    ///
    /// # Errors
    /// No capacity, or no value expected.
    pub fn null(&mut self) -> Result<(), Refused> {
        self.begin(Type::UNARY, 1, 0)?[0] = 0;
        Ok(())
    }

    /// Writes a value of any type.
    ///
    /// # Errors
    /// No capacity, or no value expected; zeros in names; a vector with items of another type.
    pub fn value(&mut self, value: &Value) -> Result<(), Refused> {
        match value {
            Value::Atom(atom) => self.atom(atom),
            Value::Vector { kind, attribute, items } => self.atoms(*kind, *attribute, items),
            Value::List(values) => {
                self.list(values.len())?;
                values.iter().try_for_each(|value| self.value(value))
            }
            Value::Dict { is_sorted, keys, values } => {
                self.dict(*is_sorted)?;
                self.value(keys)?;
                self.value(values)
            }
            Value::Table { names, columns } => {
                self.table(names.iter().map(AsRef::as_ref))?;
                columns.iter().try_for_each(|column| self.value(column))
            }
            Value::Function { kind, head, parts } => self.function(*kind, head, parts),
            Value::Error(text) => self.error(text),
        }
    }

    /// Writes a vector of atoms, which must all have its type.
    fn atoms(&mut self, kind: Type, attribute: Attribute, atoms: &[Atom<Box<[u8]>>]) -> Result<(), Refused> {
        if !kind.is_basic() || atoms.iter().any(|atom| atom.kind() != kind.atom()) {
            return Err(Refused::WrongType(kind));
        }
        if kind == Type::SYMBOL {
            let names = atoms.iter().map(|atom| if let Atom::Symbol(name) = atom { &name[..] } else { &[] });
            return self.symbols_with(attribute, names).map(|_| ());
        }
        let width = kind.width();
        let room = self.items(kind, attribute, (atoms.len(), 0), atoms.len() * width)?;
        for (place, atom) in room.chunks_exact_mut(width).zip(atoms) {
            // Each item is written as an atom first; its bytes follow the byte of its type.
            let mut one = [0; 17];
            Encoder::value_alone(&mut one).atom(atom)?;
            place.copy_from_slice(&one[1..=width]);
        }
        Ok(())
    }

    fn function(&mut self, kind: Type, head: &[u8], parts: &[Value]) -> Result<(), Refused> {
        match kind {
            Type::LAMBDA if parts.len() == 1 => {
                self.begin(kind, 0, 1)?;
                self.text(head)?;
            }
            Type::UNARY | Type::BINARY | Type::ITERATOR if head.len() == 1 && parts.is_empty() => {
                self.begin(kind, 1, 0)?.copy_from_slice(head);
            }
            Type::PROJECTION | Type::COMPOSITION if parts.len() <= MOST_ITEMS => {
                let count = (parts.len() as u32).to_le_bytes();
                self.begin(kind, 4, parts.len())?.copy_from_slice(&count);
            }
            Type(number) if Type::DERIVED.contains(&number) && parts.len() == 1 => {
                self.begin(kind, 0, 1)?;
            }
            _ => return Err(Refused::WrongType(kind)),
        }
        parts.iter().try_for_each(|part| self.value(part))
    }
}
