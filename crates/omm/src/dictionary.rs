//! Field dictionary and enumerations: the meaning of each field id.
//!
//! Both come from text files in a fixed format, `RDMFieldDictionary` and `enumtype.def`, or over the wire in parts
//! ([`Download`], [`Dictionary::encode_fields`]). [`Dictionary::builtin`] is this project's own small dictionary: the
//! fields that Tapeline publishes and the fields of the performance tools' messages. With it, no dictionary file is
//! necessary.

mod download;
mod enumerations;
mod error;
mod fields;
mod lines;
mod member_name;
mod parts;

use std::hash::BuildHasher;
use std::sync::LazyLock;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

pub use download::{Download, DownloadError};
pub use enumerations::{EnumeratedValue, EnumerationTable};
pub use error::{DictionaryError, Problem};
pub use fields::{FieldDefinition, MarketfeedType};
pub(crate) use member_name::{MEMBER_NAME, MemberName};
pub use parts::{Part, Verbosity};

use crate::Fid;
use crate::rwf::DataType;

/// Rows of a direct table: one for each of the 65,536 ids.
const IDS: usize = 1 << 16;
/// Row of a direct table that refers to no entry.
const NONE: u16 = u16::MAX;

/// Field dictionary: the definition of every field id.
///
/// Lookup by id is an index into a table, lookup by name a hash. A dictionary does not change after construction; share
/// it by reference.
#[derive(Debug, Clone)]
pub struct Dictionary {
    fields: Vec<FieldDefinition>,
    /// Names of `fields` as members of a JSON object.
    member_names: Vec<MemberName>,
    /// Data type of each id (taken as u16): all that decoding needs.
    types: Table<DataType>,
    /// Index into `fields` of each id (taken as u16).
    places: Table<u16>,
    /// Indexes in `fields`, by name: the names themselves are there.
    names: HashTable<u16>,
    hasher: RandomState,
    tables: Vec<EnumerationTable>,
    /// Index into `tables` of each id (taken as u16).
    enumerated: Table<u16>,
    field_tags: Vec<(Box<str>, Box<str>)>,
    enumeration_tags: Vec<(Box<str>, Box<str>)>,
}

impl Default for Dictionary {
    /// Returns a dictionary without fields.
    fn default() -> Self {
        Self {
            fields: Vec::new(),
            member_names: Vec::new(),
            types: Table::of(DataType::UNKNOWN),
            places: Table::of(NONE),
            names: HashTable::new(),
            hasher: RandomState::default(),
            tables: Vec::new(),
            enumerated: Table::of(NONE),
            field_tags: Vec::new(),
            enumeration_tags: Vec::new(),
        }
    }
}

impl Dictionary {
    /// Parses a field dictionary in the format of `RDMFieldDictionary`.
    ///
    /// ```
    /// use tapeline_omm::{Dictionary, Fid, rwf::DataType};
    ///
    /// let text = "BID \"BID\" 22 NULL PRICE 17 REAL64 7\n";
    /// let dictionary = Dictionary::parse(text)?;
    /// assert_eq!(dictionary.data_type(Fid(22)), Some(DataType::REAL));
    /// assert!(Dictionary::parse("BID \"BID\" 22 NULL PRICE 17 DECIMAL 7\n").is_err());
    /// # Ok::<(), tapeline_omm::dictionary::DictionaryError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Fails at the first invalid line; the error states the line, what was found and what was expected. A duplicate
    /// field id, a duplicate name and field id 0 are errors.
    pub fn parse(text: &str) -> Result<Self, DictionaryError> {
        let mut dictionary = Self::default();
        fields::parse(text, &mut dictionary)?;
        Ok(dictionary)
    }

    /// Returns the same dictionary with the enumerations of a file in the format of `enumtype.def`. Tables of fields
    /// that are not in the dictionary are skipped.
    ///
    /// # Errors
    ///
    /// Fails at the first invalid line. A field under two tables is an error, and so is a name that does not match the
    /// field id.
    pub fn with_enumerations(mut self, text: &str) -> Result<Self, DictionaryError> {
        enumerations::parse(text, &mut self)?;
        Ok(self)
    }

    /// Returns this project's own dictionary: the fields that Tapeline publishes, and those of the performance tools'
    /// messages.
    #[must_use]
    pub fn builtin() -> &'static Self {
        static BUILTIN: LazyLock<Dictionary> = LazyLock::new(|| {
            Dictionary::parse(Dictionary::BUILTIN_FIELDS)
                .and_then(|dictionary| dictionary.with_enumerations(Dictionary::BUILTIN_ENUMERATIONS))
                // Both files are part of the crate; the test `builtin` reads them.
                .expect("the dictionary of this crate is well-formed")
        });
        &BUILTIN
    }

    /// Text of the field dictionary of [`Dictionary::builtin`].
    pub const BUILTIN_FIELDS: &str = include_str!("../dictionary/tapeline.dictionary");
    /// Text of the enumerations of [`Dictionary::builtin`].
    pub const BUILTIN_ENUMERATIONS: &str = include_str!("../dictionary/tapeline.enumerations");

    /// Returns the data type of a field; `None` for an unknown field.
    #[inline]
    #[must_use]
    pub fn data_type(&self, fid: Fid) -> Option<DataType> {
        match self.types.row(fid) {
            DataType::UNKNOWN => None,
            data_type => Some(data_type),
        }
    }

    /// Returns the definition of a field; `None` for an unknown field.
    #[inline]
    #[must_use]
    pub fn field(&self, fid: Fid) -> Option<&FieldDefinition> {
        self.fields.get(usize::from(self.places.row(fid)))
    }

    /// Returns the name of a field as a member of a JSON object; `None` for an unknown field.
    #[inline]
    pub(crate) fn member_name(&self, fid: Fid) -> Option<&MemberName> {
        self.member_names.get(usize::from(self.places.row(fid)))
    }

    /// Returns the field with this name.
    #[must_use]
    pub fn field_named(&self, name: &str) -> Option<&FieldDefinition> {
        let is_wanted = |place: &u16| self.field_at(*place).is_some_and(|field| *field.name == *name);
        self.field_at(*self.names.find(self.hasher.hash_one(name), is_wanted)?)
    }

    fn field_at(&self, place: u16) -> Option<&FieldDefinition> {
        self.fields.get(usize::from(place))
    }

    /// Adds a field with a new name and a new id.
    fn push(&mut self, place: u16, field: FieldDefinition) {
        self.types.set(field.fid, field.data_type);
        self.places.set(field.fid, place);
        self.member_names.push(MemberName::new(&field.name, field.data_type));
        let hash = self.hasher.hash_one(&*field.name);
        self.fields.push(field);
        let (fields, hasher) = (&self.fields, &self.hasher);
        let name = |place: &u16| fields.get(usize::from(*place)).map_or("", |field| &*field.name);
        self.names.insert_unique(hash, place, |place| hasher.hash_one(name(place)));
    }

    /// Returns the field that receives the old value of `fid` when `fid` changes (its ripple field).
    #[must_use]
    pub fn ripples_to(&self, fid: Fid) -> Option<&FieldDefinition> {
        self.field_named(self.field(fid)?.ripples_to.as_deref()?)
    }

    /// Returns all fields in file order.
    pub fn fields(&self) -> impl ExactSizeIterator<Item = &FieldDefinition> {
        self.fields.iter()
    }

    /// Returns the number of fields.
    #[must_use]
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Returns `true` if there are no fields.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Returns the values of an enumerated field.
    #[inline]
    #[must_use]
    pub fn enumeration(&self, fid: Fid) -> Option<&EnumerationTable> {
        self.tables.get(usize::from(self.enumerated.row(fid)))
    }

    /// Returns all tables of enumerations in file order.
    pub fn enumerations(&self) -> impl ExactSizeIterator<Item = &EnumerationTable> {
        self.tables.iter()
    }

    /// Returns the display text of an enumerated value; `None` if the dictionary does not have it.
    #[inline]
    #[must_use]
    pub fn display(&self, fid: Fid, value: u16) -> Option<&str> {
        self.enumeration(fid)?.value(value).map(|value| value.display.as_ref())
    }

    /// Returns a `!tag` of the field file, such as `Version`.
    #[must_use]
    pub fn field_tag(&self, name: &str) -> Option<&str> {
        tag(&self.field_tags, name)
    }

    /// Returns a `!tag` of the enumeration file, such as `RT_Version`.
    #[must_use]
    pub fn enumeration_tag(&self, name: &str) -> Option<&str> {
        tag(&self.enumeration_tags, name)
    }
}

/// Table with a row for each of the 65,536 ids, so that a lookup needs no bounds check.
#[derive(Debug, Clone)]
struct Table<T>(Box<[T; IDS]>);

impl<T: Copy> Table<T> {
    fn of(row: T) -> Self {
        let rows = vec![row; IDS].into_boxed_slice();
        // `rows` has the length of the array, so the conversion does not fail.
        Self(rows.try_into().unwrap_or_else(|_| Box::new([row; IDS])))
    }

    #[inline]
    const fn row(&self, fid: Fid) -> T {
        self.0[fid.0 as u16 as usize]
    }

    fn set(&mut self, fid: Fid, row: T) {
        self.0[usize::from(fid.0 as u16)] = row;
    }
}

fn tag<'a>(tags: &'a [(Box<str>, Box<str>)], name: &str) -> Option<&'a str> {
    tags.iter().find(|(tag, _)| tag.as_ref() == name).map(|(_, value)| value.as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fid;

    #[test]
    fn builtin() {
        let dictionary = Dictionary::builtin();
        // First the fields that have constants, then those of the performance tools' messages.
        let ids: Vec<_> = dictionary.fields().map(|field| (field.name.as_ref(), field.fid)).collect();
        assert_eq!(ids.get(..fid::ALL.len()), Some(fid::ALL));
        for field in dictionary.fields() {
            assert_eq!(
                field.data_type == DataType::ENUM,
                dictionary.enumeration(field.fid).is_some(),
                "{} and its enumeration",
                field.name
            );
        }
        assert_eq!(dictionary.display(fid::TRD_STATUS, 2), Some("H "));
        assert_eq!(dictionary.data_type(Fid(-1)), None);
    }
}
