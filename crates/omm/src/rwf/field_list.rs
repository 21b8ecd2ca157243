//! FIELD_LIST, read (RWF chapter 4).

use super::number::{self, enum_ahead, int_ahead, uint_ahead};
use super::sets::{SetEntries, SetName, SetValues};
use super::{
    Array, Cursor, DataType, Date, DateTime, Qos, Real, Rendered, Rmtes, SetDefinition, SetDefinitions,
    State, Time, Value,
};
use crate::{Dictionary, Fid, Malformed};

/// Flag in a list's first byte: an info block follows.
pub(super) const HAS_INFO: u8 = 1;
/// Flag: values in the order of a set definition follow.
pub(super) const HAS_SET_DATA: u8 = 2;
/// Flag: the number of that definition is present; without the flag the number is 0.
pub(super) const HAS_SET_ID: u8 = 4;
/// Flag: entries with their field ids follow.
pub(super) const HAS_STANDARD_DATA: u8 = 8;

/// Dictionary with which a list was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Info {
    /// Number of the dictionary.
    pub dictionary_id: u16,
    /// Number of the list (its template), as `RDNDISPLAY` has it.
    pub list_number: i16,
}

/// Values without ids or types. They can be read only with the set definition of the enclosing container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SetData<'a> {
    /// Number of the definition, 0–15.
    pub id: u16,
    /// Values in the order of the definition.
    pub data: &'a [u8],
}

impl<'a> SetData<'a> {
    /// Reads the set data at `cursor`: up to the end, if nothing follows.
    pub(super) fn read(cursor: &mut Cursor<'a>, has_id: bool, is_followed: bool) -> Result<Self, Malformed> {
        const WHAT: &str = "set data";
        let id = if has_id { cursor.u15("set id")? } else { 0 };
        let data = if is_followed { cursor.b15(WHAT)? } else { cursor.take(cursor.rest().len(), WHAT)? };
        Ok(Self { id, data })
    }
}

/// View of a list of fields, borrowed from its message.
///
/// Reading the head does not check the entries; iteration checks them one by one. Iteration costs about two nanoseconds
/// a field, because each length determines where the next one is (bench `field_list`).
#[derive(Debug, Clone, Copy)]
pub struct FieldList<'a> {
    info: Option<Info>,
    set_data: Option<SetData<'a>>,
    definition: Option<SetDefinition<'a>>,
    /// End of the set data.
    set_end: usize,
    count: u16,
    entries: &'a [u8],
    /// Length of the whole list: offsets of faults count from its start.
    end: usize,
}

impl<'a> FieldList<'a> {
    /// Reads the head of a list that occupies all of `bytes`.
    ///
    /// No bytes, or a first byte without flags, is an empty list.
    ///
    /// # Errors
    ///
    /// Fails if the head is truncated.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        Self::parse_with(bytes, &SetDefinitions::NONE)
    }

    /// As [`FieldList::parse`], in a container with set definitions.
    ///
    /// # Errors
    ///
    /// Fails if the head is truncated.
    #[inline]
    pub fn parse_with(bytes: &'a [u8], sets: &SetDefinitions<'a>) -> Result<Self, Malformed> {
        // Nearly every update has only standard data.
        if let [HAS_STANDARD_DATA, high, low, entries @ ..] = bytes {
            let count = u16::from_be_bytes([*high, *low]);
            return Ok(Self { count, entries, ..Self::empty(bytes.len()) });
        }
        Self::parse_any(bytes, sets)
    }

    const fn empty(end: usize) -> Self {
        Self { info: None, set_data: None, definition: None, set_end: 0, count: 0, entries: &[], end }
    }

    /// Reads a list with an info block or set data.
    fn parse_any(bytes: &'a [u8], sets: &SetDefinitions<'a>) -> Result<Self, Malformed> {
        let mut list = Self::empty(bytes.len());
        let mut cursor = Cursor::new(bytes);
        if cursor.is_empty() {
            return Ok(list);
        }
        let flags = cursor.u8("field list flags")?;
        if flags & HAS_INFO != 0 {
            // Additions of a later version to the block are skipped by its length.
            let mut info = Cursor::new(cursor.b8("field list info")?);
            list.info = match (info.u15("dictionary id"), info.i16("field list number")) {
                (Ok(dictionary_id), Ok(list_number)) => Some(Info { dictionary_id, list_number }),
                _ => None,
            };
        }
        list.read_entries(flags, cursor, sets)?;
        Ok(list)
    }

    /// Returns the dictionary with which the list was written, if the list states it.
    #[inline]
    #[must_use]
    pub const fn info(&self) -> Option<Info> {
        self.info
    }

    /// Returns the fields in order: those of a set, then the others. A set gives types too, see [`FieldList::typed`].
    #[inline]
    #[must_use]
    pub const fn iter(&self) -> Fields<'a> {
        let fields = Fields { rest: self.entries, left: self.count, end: self.end, set: None, behind_set: 0 };
        match (&self.definition, &self.set_data) {
            (Some(definition), Some(set)) => Fields {
                left: 0,
                set: Some(definition.values(set.data, self.set_end)),
                behind_set: self.count,
                ..fields
            },
            _ => fields,
        }
    }

    /// Returns the fields in order, each with its type if its set definition gives one. Only such a type is certain to
    /// be the form of the value; the type of every other field is known only to a dictionary.
    #[must_use]
    pub const fn typed(&self) -> TypedFields<'a> {
        let types = match &self.definition {
            Some(definition) => Some(definition.iter()),
            None => None,
        };
        TypedFields { fields: self.iter(), types }
    }

    /// Returns the first field with this id. Only the ids and lengths of the fields before it are read: less than a
    /// third of the work of decoding them (`make instructions`).
    ///
    /// # Errors
    ///
    /// Fails at a fault in the entries up to that field.
    #[inline]
    pub fn find(&self, fid: Fid) -> Result<Option<Field<'a>>, Malformed> {
        let mut fields = self.iter();
        loop {
            fields.pass_over(fid);
            match fields.next() {
                Some(Ok(field)) if field.fid != fid => {}
                found => return found.transpose(),
            }
        }
    }

    /// Returns the list in human-readable form, with the names and types of `dictionary`.
    #[must_use]
    pub const fn render<'d>(&self, dictionary: &'d Dictionary) -> Rendered<'a, 'd> {
        Rendered::new(*self, dictionary)
    }
}

/// What field lists and element lists have in common: set data, the number of entries, iteration.
macro_rules! list {
    ($list:ident, $data_type:ident, $entries:ident, $entry:ident, $what:literal, $count:literal) => {
        impl<'a> $list<'a> {
            /// Reads what follows the info block.
            fn read_entries(
                &mut self,
                flags: u8,
                mut cursor: Cursor<'a>,
                sets: &SetDefinitions<'a>,
            ) -> Result<(), Malformed> {
                let has_standard_data = flags & HAS_STANDARD_DATA != 0;
                if flags & HAS_SET_DATA != 0 {
                    let set = SetData::read(&mut cursor, flags & HAS_SET_ID != 0, has_standard_data)?;
                    self.set_end = cursor.offset();
                    self.definition = sets.of(set.id, DataType::$data_type);
                    self.set_data = Some(set);
                }
                if has_standard_data {
                    self.count = cursor.u16($count)?;
                    self.entries = cursor.rest();
                }
                Ok(())
            }

            #[doc = concat!("Returns the raw part that requires a set definition. [`", stringify!($list), "::iter`]")]
            /// returns its values only if the list was read with that definition.
            #[inline]
            #[must_use]
            pub const fn set_data(&self) -> Option<SetData<'a>> {
                self.set_data
            }

            /// Returns the definition of the set data; `None` if there is no such data, or no definition for it.
            #[inline]
            #[must_use]
            pub const fn set_definition(&self) -> Option<SetDefinition<'a>> {
                self.definition
            }

            #[doc = concat!("Returns the number of ", $what, ": those of set data with a known definition, plus the")]
            /// count that the list states.
            #[inline]
            #[must_use]
            pub const fn len(&self) -> usize {
                self.count as usize
                    + match &self.definition {
                        Some(definition) => definition.len(),
                        None => 0,
                    }
            }

            #[doc = concat!("Returns `true` if there are no ", $what, ".")]
            #[inline]
            #[must_use]
            pub const fn is_empty(&self) -> bool {
                self.len() == 0
            }
        }

        impl<'a> IntoIterator for $list<'a> {
            type Item = Result<$entry<'a>, Malformed>;
            type IntoIter = $entries<'a>;

            #[inline]
            fn into_iter(self) -> $entries<'a> {
                self.iter()
            }
        }
    };
}
pub(super) use list;

list!(FieldList, FIELD_LIST, Fields, Field, "fields", "field count");

/// Iterator over the fields of a [`FieldList`] in order. It ends after a fault.
///
/// Rare cases are functions of bytes only, not of this struct: the state, and a field, stay in registers.
#[derive(Debug, Clone)]
pub struct Fields<'a> {
    rest: &'a [u8],
    /// Number of fields left in `rest`; 0 while a set is still to be read.
    left: u16,
    end: usize,
    set: Option<SetValues<'a>>,
    /// Number of fields after the set.
    behind_set: u16,
}

impl<'a> Fields<'a> {
    /// Passes fields that are in no set to `take` until it returns `false`; the field that it refused is the next one then.
    #[inline]
    pub(crate) fn take_some(&mut self, mut take: impl FnMut(Field<'a>) -> bool) {
        let (mut rest, mut left) = (self.rest, self.left);
        while left > 0
            && let Some((field, behind)) = split(rest)
            && take(field)
        {
            rest = behind;
            left -= 1;
        }
        (self.rest, self.left) = (rest, left);
    }

    /// Skips fields that have another id and a common form.
    #[inline]
    fn pass_over(&mut self, fid: Fid) {
        let wanted = fid.0.to_be_bytes();
        while self.left > 0
            && let [high, low, len @ 0..=0xFD, ahead @ ..] = self.rest
            && [*high, *low] != wanted
            && let Some(rest) = ahead.get(usize::from(*len)..)
        {
            self.rest = rest;
            self.left -= 1;
        }
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Field<'a>, Malformed>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(left) = self.left.checked_sub(1) {
                self.left = left;
                let Some((field, rest)) = split(self.rest) else {
                    unlikely();
                    self.left = 0;
                    return Some(Err(fault(self.rest, self.end)));
                };
                self.rest = rest;
                return Some(Ok(field));
            }
            let set = self.set.take()?;
            unlikely();
            match of_set(set) {
                Some((value, set)) => {
                    self.set = set;
                    return Some(value);
                }
                None => self.left = std::mem::take(&mut self.behind_set),
            }
        }
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let of_set = if self.set.is_some() { usize::from(u8::MAX) } else { 0 };
        (0, Some(usize::from(self.left) + usize::from(self.behind_set) + of_set))
    }
}

/// Iterator over the fields of a [`FieldList`] with the types of its set definition, from [`FieldList::typed`].
#[derive(Debug, Clone)]
pub struct TypedFields<'a> {
    fields: Fields<'a>,
    types: Option<SetEntries<'a>>,
}

impl<'a> Iterator for TypedFields<'a> {
    type Item = Result<(Field<'a>, Option<DataType>), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        // Values of a set come first, one for each of its entries.
        let entry = self.types.as_mut().and_then(Iterator::next);
        let field = self.fields.next()?;
        Some(field.map(|field| (field, entry.map(|entry| entry.data_type))))
    }
}

/// Returns the entry at the start of `rest`, and the bytes after it; `None` if it is truncated.
#[inline]
fn split(rest: &[u8]) -> Option<(Field<'_>, &[u8])> {
    let [high, low, len, ahead @ ..] = rest else { return None };
    let (len, ahead) = match *len {
        len @ 0..=0xFD => (usize::from(len), ahead),
        _ => {
            unlikely();
            (long_len(rest)?, ahead.get(2..)?)
        }
    };
    let (data, rest) = ahead.split_at_checked(len)?;
    let fid = Fid(i16::from_be_bytes([*high, *low]));
    Some((Field { fid, data, ahead }, rest))
}

/// Marks the caller's path as rare: the compiler favours the other path in layout and registers.
#[inline]
#[cold]
const fn unlikely() {}

/// Returns the length of an entry with a length of three bytes.
#[cold]
fn long_len(entry: &[u8]) -> Option<usize> {
    match entry {
        [_, _, 0xFE, high, low, ..] => Some(usize::from(u16::from_be_bytes([*high, *low]))),
        _ => None,
    }
}

/// Returns the fault of the entry at the start of `rest`, the last bytes of a list of `end` bytes.
#[cold]
fn fault(rest: &[u8], end: usize) -> Malformed {
    let what = if rest.len() < 2 { "field id" } else { "field value" };
    let id = if rest.len() < 2 { 0 } else { 2 };
    Malformed::new(end - rest.len() + id, what)
}

/// Returns the next value of a set, and the rest of the set; `None` at its end.
#[cold]
fn of_set(mut set: SetValues<'_>) -> Option<(Result<Field<'_>, Malformed>, Option<SetValues<'_>>)> {
    Some(match set.next()? {
        Ok((entry, data)) => {
            let fid = match entry.name {
                SetName::Field(fid) => fid,
                // Definitions of field lists have ids.
                SetName::Element(_) => Fid(0),
            };
            (Ok(Field { fid, data, ahead: data }), Some(set))
        }
        Err(fault) => (Err(fault), None),
    })
}

/// Readers of a value: each has a name, a result, the name of the type, the cause of its fault, and its content.
macro_rules! readers {
    ($of:ident, $self:ident: $($name:ident $type:ty, $what:literal, $fault:literal, $read:expr;)*) => {
        impl<'a> $of<'a> {$(
            #[doc = concat!("Returns the value as ", $what, ".")]
            ///
            /// # Errors
            ///
            #[doc = concat!("Fails ", $fault, ".")]
            #[inline]
            pub fn $name(&$self) -> Result<Option<$type>, Malformed> {
                $read
            }
        )*}
    };
}
pub(super) use readers;

/// One field: its id and the bytes of its value. Only a dictionary knows the type of the value.
///
/// Each reader below decodes the bytes as the type in its name; `None` is blank. Offsets of their faults count from the
/// start of the value.
#[derive(Debug, Clone, Copy)]
pub struct Field<'a> {
    /// Field id.
    pub fid: Fid,
    /// Bytes of the value; no bytes are blank.
    pub data: &'a [u8],
    /// The same bytes, and the bytes after them in the message: if eight are readable at once, a number of any length
    /// is one load and a shift.
    ahead: &'a [u8],
}

impl PartialEq for Field<'_> {
    fn eq(&self, other: &Self) -> bool {
        (self.fid, self.data) == (other.fid, other.data)
    }
}

impl<'a> Field<'a> {
    /// Creates a field from its id and the bytes of its value.
    #[must_use]
    pub const fn new(fid: Fid, data: &'a [u8]) -> Self {
        Self { fid, data, ahead: data }
    }

    /// Returns `true` if the value has no bytes, which is the common form of blank.
    #[inline]
    #[must_use]
    pub const fn is_blank(&self) -> bool {
        self.data.is_empty()
    }

    /// Returns the value as RMTES_STRING. ASCII and UTF-8 strings and buffers are [`Field::data`] itself.
    #[inline]
    #[must_use]
    pub const fn rmtes(&self) -> Rmtes<'a> {
        Rmtes(self.data)
    }

    /// Returns the bytes of a value of one to eight as a word, the first in the lowest byte, with zeros behind them; `None`
    /// for any other length.
    #[inline]
    pub(crate) fn word(&self) -> Option<u64> {
        let len = self.data.len();
        if !(1..=8).contains(&len) {
            return None;
        }
        match self.ahead.first_chunk::<8>() {
            Some(wide) => Some(u64::from_le_bytes(*wide) & u64::MAX >> (64 - 8 * len)),
            None => number::widen(self.data).map(|wide| wide.swap_bytes() >> (64 - 8 * len)),
        }
    }

    /// Returns the bytes of the value and those behind it.
    #[inline]
    pub(crate) const fn ahead(&self) -> &'a [u8] {
        self.ahead
    }

    /// Returns the value with the type that a dictionary or a set definition gives the field.
    ///
    /// # Errors
    ///
    /// Fails if the bytes are not valid for the type.
    #[expect(clippy::inline_always, reason = "half the instructions where it is called from several places")]
    #[inline(always)]
    pub fn value(&self, data_type: DataType) -> Result<Value<'a>, Malformed> {
        // Always inlined: a `Value` that a call returns goes through memory. The types of price records are read here
        // in their common form; all others, and faults, by a call. Each arm has one exit, so that the compiler can join
        // it with the caller's code for that type.
        let (len, ahead) = (self.data.len(), self.ahead);
        match data_type {
            DataType::REAL => {
                if let Some(value) = Real::ahead(len, ahead) {
                    return Ok(Value::Real(value));
                }
            }
            DataType::UINT => {
                if let Some(value) = uint_ahead(len, ahead) {
                    return Ok(Value::UInt(value));
                }
            }
            DataType::ENUM => {
                if let Some(value) = enum_ahead(len, ahead) {
                    return Ok(Value::Enum(value));
                }
            }
            DataType::TIME => {
                if let Some(value) = Time::ahead(len, ahead) {
                    return Ok(Value::Time(value));
                }
            }
            DataType::RMTES_STRING if len > 0 => return Ok(Value::Rmtes(self.rmtes())),
            DataType::DATE => {
                if let Some(value) = Date::ahead(len, ahead) {
                    return Ok(Value::Date(value));
                }
            }
            _ => {}
        }
        if len == 0 { Ok(Value::Blank) } else { Value::decode(data_type, self.data) }
    }
}

readers! {
    Field, self:
    int i64, "INT", "for more than eight bytes",
        match int_ahead(self.data.len(), self.ahead) {
            Some(value) if !self.data.is_empty() => Ok(Some(value)),
            _ => number::decode_int(self.data),
        };
    uint u64, "UINT", "for more than eight bytes",
        match uint_ahead(self.data.len(), self.ahead) {
            Some(value) if !self.data.is_empty() => Ok(Some(value)),
            _ => number::decode_uint(self.data),
        };
    real Real, "REAL", "for an invalid hint, or a mantissa of more than eight bytes",
        Real::decode_ahead(self.data.len(), self.ahead);
    float f32, "FLOAT", "for any length other than four bytes", number::decode_float(self.data);
    double f64, "DOUBLE", "for any length other than eight bytes", number::decode_double(self.data);
    date Date, "DATE", "for a length that no date has", Date::decode(self.data);
    time Time, "TIME", "for a length that no time has", Time::decode_ahead(self.data.len(), self.ahead);
    date_time DateTime, "DATETIME", "for a length that no DATETIME has", DateTime::decode(self.data);
    qos Qos, "QOS", "if bytes are missing that the first byte announces", Qos::decode(self.data);
    state State<'a>, "STATE", "if bytes are missing", State::decode(self.data);
    enumeration u16, "ENUM", "for more than two bytes",
        match enum_ahead(self.data.len(), self.ahead) {
            Some(value) => Ok(Some(value)),
            None => number::decode_enum(self.data),
        };
    array Array<'a>, "ARRAY", "if there are fewer bytes than the count requires", Array::decode(self.data);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worked_example() {
        let bytes = [
            0x08, 0, 5, 0, 0x16, 3, 0x0C, 0x0F, 0x97, 0, 0x19, 3, 0x0C, 0x0F, 0xA1, 0, 0x1E, 2, 0x0E, 0x0A,
            0, 0x1F, 2, 0x0E, 0x14, 3, 0xFD, 1, 1,
        ];
        let list = FieldList::parse(&bytes).unwrap();
        assert_eq!((list.len(), list.info(), list.set_data()), (5, None, None));
        let fields: Result<Vec<_>, _> = list.iter().collect();
        let fields = fields.unwrap();
        assert_eq!(fields[0].real(), Ok(Some(Real::decimal(3991, 2))));
        assert_eq!(fields[3].real(), Ok(Some(Real::integer(20))));
        assert_eq!((fields[4].fid, fields[4].uint()), (Fid(1021), Ok(Some(1))));
        assert_eq!(list.find(Fid(31)).unwrap(), Some(fields[3]));
        assert_eq!(list.find(Fid(32)), Ok(None));
        for cut in 3..bytes.len() {
            let list = FieldList::parse(&bytes[..cut]).unwrap();
            let faults = list.iter().filter(Result::is_err).count();
            assert_eq!(faults, 1, "cut at {cut}");
            assert!(list.find(Fid(9999)).is_err(), "cut at {cut}");
        }
        for cut in 1..3 {
            assert!(FieldList::parse(&bytes[..cut]).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn info_is_read_and_skipped_by_its_length() {
        let list = FieldList::parse(&[9, 3, 3, 0, 61, 0, 1, 3, 0xFD, 1, 1]).unwrap();
        assert_eq!(list.info(), Some(Info { dictionary_id: 3, list_number: 61 }));
        assert_eq!(list.find(Fid(1021)).unwrap().unwrap().uint(), Ok(Some(1)));
        let list = FieldList::parse(&[9, 4, 0x80, 200, 0, 65, 0, 0]).unwrap();
        assert_eq!(list.info(), Some(Info { dictionary_id: 200, list_number: 65 }));
        let list = FieldList::parse(&[9, 5, 3, 0, 61, 7, 7, 0, 1, 3, 0xFD, 1, 1]).unwrap();
        assert_eq!(list.find(Fid(1021)).unwrap().unwrap().uint(), Ok(Some(1)));
    }

    #[test]
    fn set_data_is_handed_out_undecoded() {
        let alone = FieldList::parse(&[0x02, 3, 0x0C, 0x0F, 0xA0]).unwrap();
        assert_eq!(alone.set_data(), Some(SetData { id: 0, data: &[3, 0x0C, 0x0F, 0xA0] }));
        assert!(alone.is_empty());
        let both = FieldList::parse(&[0x0E, 3, 0x80, 2, 7, 8, 0, 1, 0, 22, 2, 14, 1]).unwrap();
        assert_eq!(both.set_data(), Some(SetData { id: 3, data: &[7, 8] }));
        assert_eq!(both.find(Fid(22)).unwrap().unwrap().real(), Ok(Some(Real::integer(1))));
        assert!(FieldList::parse(&[0x0A, 9, 1, 2]).is_err());
    }

    #[test]
    fn empty_lists() {
        for bytes in [&[][..], &[0], &[8, 0, 0]] {
            let list = FieldList::parse(bytes).unwrap();
            assert!(list.is_empty());
            assert!(list.iter().next().is_none());
        }
    }

    #[test]
    fn long_values_and_blanks() {
        let mut bytes = vec![8, 0, 2, 0, 3, 0xFE, 1, 0];
        bytes.extend([b'x'; 256]);
        bytes.extend([0, 4, 0]);
        let list = FieldList::parse(&bytes).unwrap();
        let fields: Vec<_> = list.iter().map(Result::unwrap).collect();
        assert_eq!(fields[0].data, [b'x'; 256]);
        assert_eq!(list.find(Fid(4)), Ok(Some(fields[1])));
        assert!(fields[1].is_blank());
        assert_eq!(fields[1].real(), Ok(None));
        assert_eq!(fields[1].int(), Ok(None));
        assert_eq!(fields[1].uint(), Ok(None));
    }

    #[test]
    fn a_count_larger_than_the_bytes_is_a_fault_at_the_end() {
        let list = FieldList::parse(&[8, 0xFF, 0xFF, 0, 3, 1, 9]).unwrap();
        let fields: Vec<_> = list.iter().collect();
        assert_eq!(fields.len(), 2);
        assert_eq!(fields[1], Err(Malformed::new(7, "field id")));
    }
}
