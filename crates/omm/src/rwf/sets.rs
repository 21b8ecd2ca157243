//! Set definitions: names and types that lists do not repeat (RWF chapter 5).
//!
//! A map, vector or series may contain definitions for the lists inside. A list with set data then holds only values,
//! in the order of one definition.

use super::{Cursor, DataType, Real};
use crate::{Fid, Malformed};

/// Maximum number of definitions of one container: their numbers are 0 to 15.
const MOST_SETS: usize = 16;

/// Set definitions of a container, checked and indexed by number.
#[derive(Debug, Clone, Copy)]
pub struct SetDefinitions<'a> {
    sets: [Option<SetDefinition<'a>>; MOST_SETS],
}

impl Default for SetDefinitions<'_> {
    fn default() -> Self {
        Self::NONE
    }
}

impl<'a> SetDefinitions<'a> {
    /// No definitions.
    pub const NONE: Self = Self { sets: [None; MOST_SETS] };

    /// Parses definitions for lists of `container`: a field list or an element list. Any other container has none. Of
    /// duplicate numbers, the later definition counts.
    ///
    /// # Errors
    ///
    /// Fails if a definition is truncated, or a number is above 15.
    pub fn parse(bytes: &'a [u8], container: DataType) -> Result<Self, Malformed> {
        let mut sets = Self::NONE;
        if container != DataType::FIELD_LIST && container != DataType::ELEMENT_LIST {
            return Ok(sets);
        }
        let mut cursor = Cursor::new(bytes);
        cursor.u8("set definitions flags")?;
        for _ in 0..cursor.u8("set definition count")? {
            let id_at = cursor.offset();
            let id = cursor.u15("set id")?;
            let count = cursor.u8("set entry count")?;
            let entries = cursor.rest();
            for _ in 0..count {
                SetEntry::read(&mut cursor, container)?;
            }
            let len = entries.len() - cursor.rest().len();
            let definition =
                SetDefinition { id, container, count, entries: entries.get(..len).unwrap_or_default() };
            match sets.sets.get_mut(usize::from(id)) {
                Some(place) => *place = Some(definition),
                None => return Err(Malformed::new(id_at, "set id")),
            }
        }
        Ok(sets)
    }

    /// Returns the definition with this number for lists of `container`.
    pub(super) fn of(&self, id: u16, container: DataType) -> Option<SetDefinition<'a>> {
        self.get(id).filter(|definition| definition.container == container)
    }

    /// Returns the definition with this number.
    #[must_use]
    pub fn get(&self, id: u16) -> Option<SetDefinition<'a>> {
        *self.sets.get(usize::from(id))?
    }

    /// Returns all definitions in order of number.
    pub fn iter(&self) -> impl Iterator<Item = SetDefinition<'a>> {
        self.sets.into_iter().flatten()
    }
}

/// One definition: names and types of a list's values, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetDefinition<'a> {
    /// Number, 0–15.
    pub id: u16,
    container: DataType,
    count: u8,
    /// Exactly `count` entries: they were read once already.
    entries: &'a [u8],
}

impl<'a> SetDefinition<'a> {
    /// Returns the number of values.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count as usize
    }

    /// Returns `true` if there are no values.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the entry of each value.
    #[must_use]
    pub const fn iter(&self) -> SetEntries<'a> {
        SetEntries { entries: self.entries, container: self.container }
    }

    /// Returns the values in `data`, which ends `end` bytes after the start of the list.
    pub(super) const fn values(&self, data: &'a [u8], end: usize) -> SetValues<'a> {
        SetValues { entries: self.iter(), data, end }
    }
}

/// Name of one value of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SetName<'a> {
    /// Field id, in a field list.
    Field(Fid),
    /// Name, in an element list.
    Element(&'a [u8]),
}

/// Definition of one value of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SetEntry<'a> {
    /// Name of the value.
    pub name: SetName<'a>,
    /// Type of the value: a primitive, a container, or one of fixed size such as [`DataType::UINT_2`].
    pub data_type: DataType,
}

impl<'a> SetEntry<'a> {
    fn read(cursor: &mut Cursor<'a>, container: DataType) -> Result<Self, Malformed> {
        let name = if container == DataType::FIELD_LIST {
            SetName::Field(Fid(cursor.i16("set field id")?))
        } else {
            SetName::Element(cursor.b15("set element name")?)
        };
        Ok(Self { name, data_type: DataType(cursor.u8("set type")?) })
    }
}

/// Iterator over the entries of a [`SetDefinition`] in order.
#[derive(Debug, Clone)]
pub struct SetEntries<'a> {
    entries: &'a [u8],
    container: DataType,
}

impl<'a> Iterator for SetEntries<'a> {
    type Item = SetEntry<'a>;

    fn next(&mut self) -> Option<SetEntry<'a>> {
        if self.entries.is_empty() {
            return None;
        }
        let mut cursor = Cursor::new(self.entries);
        // The definition was read when it was found, so this does not fail.
        let entry = SetEntry::read(&mut cursor, self.container).ok()?;
        self.entries = cursor.rest();
        Some(entry)
    }
}

/// Iterator over the values of a list's set data. It ends after a fault.
#[derive(Debug, Clone)]
pub(super) struct SetValues<'a> {
    entries: SetEntries<'a>,
    data: &'a [u8],
    end: usize,
}

impl<'a> Iterator for SetValues<'a> {
    type Item = Result<(SetEntry<'a>, &'a [u8]), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.entries.next()?;
        let mut cursor = Cursor::new(self.data);
        match read_value(&mut cursor, entry.data_type) {
            Ok(data) => {
                self.data = cursor.rest();
                Some(Ok((entry, data)))
            }
            Err(fault) => {
                self.entries.entries = &[];
                Some(Err(fault.within(self.end - self.data.len())))
            }
        }
    }
}

/// Length of a value in set data.
pub(super) enum Width {
    /// A fixed number of bytes.
    Fixed(usize),
    /// A u8 length before the value.
    B8,
    /// A u16ob length before the value.
    B16,
    /// A REAL, whose first byte states the length.
    Real(fn(u8) -> usize),
}

impl DataType {
    /// Returns the form of values of this type in set data; `None` if the format has no such type.
    pub(super) const fn set_width(self) -> Option<Width> {
        Some(match self {
            Self::INT_1 | Self::UINT_1 => Width::Fixed(1),
            Self::INT_2 | Self::UINT_2 => Width::Fixed(2),
            Self::TIME_3 => Width::Fixed(3),
            Self::INT_4 | Self::UINT_4 | Self::FLOAT_4 | Self::DATE_4 => Width::Fixed(4),
            Self::TIME_5 => Width::Fixed(5),
            Self::TIME_7 | Self::DATETIME_7 => Width::Fixed(7),
            Self::INT_8 | Self::UINT_8 | Self::DOUBLE_8 | Self::TIME_8 => Width::Fixed(8),
            Self::DATETIME_9 => Width::Fixed(9),
            Self::DATETIME_11 => Width::Fixed(11),
            Self::DATETIME_12 => Width::Fixed(12),
            Self::REAL_4RB => Width::Real(|size| 1 + size as usize),
            Self::REAL_8RB => Width::Real(|size| 2 + 2 * size as usize),
            // 1, 2 and 7 are old numbers of 3, 4 and 8.
            Self(1..=12) => Width::B8,
            Self(13..=19) => Width::B16,
            Self(128..) => Width::B16,
            _ => return None,
        })
    }

    /// Returns the base type of a type of fixed size, or of an old number; every other type is its own base.
    ///
    /// ```
    /// use tapeline_omm::rwf::DataType;
    ///
    /// assert_eq!(DataType::UINT_2.base(), DataType::UINT);
    /// assert_eq!(DataType::UINT.base(), DataType::UINT);
    /// ```
    #[must_use]
    pub const fn base(self) -> Self {
        match self {
            Self(1) | Self::INT_1 | Self::INT_2 | Self::INT_4 | Self::INT_8 => Self::INT,
            Self(2) | Self::UINT_1 | Self::UINT_2 | Self::UINT_4 | Self::UINT_8 => Self::UINT,
            Self::FLOAT_4 => Self::FLOAT,
            Self::DOUBLE_8 => Self::DOUBLE,
            Self(7) | Self::REAL_4RB | Self::REAL_8RB => Self::REAL,
            Self::DATE_4 => Self::DATE,
            Self::TIME_3 | Self::TIME_5 | Self::TIME_7 | Self::TIME_8 => Self::TIME,
            Self::DATETIME_7 | Self::DATETIME_9 | Self::DATETIME_11 | Self::DATETIME_12 => Self::DATETIME,
            other => other,
        }
    }
}

/// Reads the bytes of one value of set data.
fn read_value<'a>(cursor: &mut Cursor<'a>, data_type: DataType) -> Result<&'a [u8], Malformed> {
    const WHAT: &str = "set value";
    match data_type.set_width() {
        Some(Width::Fixed(len)) => cursor.take(len, WHAT),
        Some(Width::B8) => cursor.b8(WHAT),
        Some(Width::B16) => cursor.b16(WHAT),
        Some(Width::Real(mantissa_len)) => {
            let mut ahead = *cursor;
            let first = ahead.u8(WHAT)?;
            let mantissa = match first & 0x3F {
                // Java writers encode a blank as "20 00", C writers as "20".
                0x20 => usize::from(ahead.rest().first() == Some(&0)),
                hint if Real::is_special_byte(hint) => 0,
                _ => mantissa_len(first >> 6),
            };
            cursor.take(1 + mantissa, WHAT)
        }
        None => Err(Malformed::new(cursor.offset(), "set type")),
    }
}
