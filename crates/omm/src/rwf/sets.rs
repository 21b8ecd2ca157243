//! Set definitions: names and types that lists need not repeat (RWF chapter 5).
//!
//! A map, vector or series may bring them for the lists inside. A list with set data then holds values alone, in the
//! order of one definition.

use super::{Cursor, DataType, Real};
use crate::{Fid, Malformed};

/// Definitions of one container: their numbers are 0 to 15.
const MOST_SETS: usize = 16;

/// The set definitions of a container, checked and found by number.
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

    /// Takes apart the bytes of definitions for lists of `container`: a field list or an element list. For any other
    /// container there are none. Where a number comes twice, the later definition counts.
    ///
    /// # Errors
    ///
    /// A definition that is cut off, or a number above 15.
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

    /// The definition of this number for lists of `container`.
    pub(super) fn of(&self, id: u16, container: DataType) -> Option<SetDefinition<'a>> {
        self.get(id).filter(|definition| definition.container == container)
    }

    /// The definition of this number.
    #[must_use]
    pub fn get(&self, id: u16) -> Option<SetDefinition<'a>> {
        *self.sets.get(usize::from(id))?
    }

    /// Every definition in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = SetDefinition<'a>> {
        self.sets.into_iter().flatten()
    }
}

/// One definition: the names and types of a list's values in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetDefinition<'a> {
    /// Its number, 0–15.
    pub id: u16,
    container: DataType,
    count: u8,
    /// Exactly `count` entries: they were read once already.
    entries: &'a [u8],
}

impl<'a> SetDefinition<'a> {
    /// Number of values.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there are no values.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// What each value is.
    #[must_use]
    pub const fn iter(&self) -> SetEntries<'a> {
        SetEntries { entries: self.entries, container: self.container }
    }

    /// The values in `data`, which ends `end` bytes behind the start of the list.
    pub(super) const fn values(&self, data: &'a [u8], end: usize) -> SetValues<'a> {
        SetValues { entries: self.iter(), data, end }
    }
}

/// What one value of a set is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SetName<'a> {
    /// In a field list.
    Field(Fid),
    /// In an element list.
    Element(&'a [u8]),
}

/// What one value of a set is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SetEntry<'a> {
    /// What it is called.
    pub name: SetName<'a>,
    /// Its type: a primitive, a container, or one of fixed size such as [`DataType::UINT_2`].
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

/// The entries of a [`SetDefinition`] in order.
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

/// The values of a list's set data, one by one. After a fault there are no more.
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

/// How long a value in set data is.
pub(super) enum Width {
    /// Always so many bytes.
    Fixed(usize),
    /// A u8 length in front.
    B8,
    /// A u16ob length in front.
    B16,
    /// A REAL whose first byte says it.
    Real(fn(u8) -> usize),
}

impl DataType {
    /// How values of this type lie in set data; `None` if the format has no such type.
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

    /// The type of which this is a form of fixed size, or an old number; every other type is itself.
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

/// The bytes of one value of set data.
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
                // A blank is "20 00" from Java writers and "20" from C ones.
                0x20 => usize::from(ahead.rest().first() == Some(&0)),
                hint if Real::is_special_byte(hint) => 0,
                _ => mantissa_len(first >> 6),
            };
            cursor.take(1 + mantissa, WHAT)
        }
        None => Err(Malformed::new(cursor.offset(), "set type")),
    }
}
