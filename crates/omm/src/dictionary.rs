//! What a field id means: the field dictionary and its enumerations.
//!
//! Both are text files of fixed habits, `RDMFieldDictionary` and `enumtype.def`, or come over the wire in parts
//! ([`Download`], [`Dictionary::encode_fields`]). [`Dictionary::builtin`] is this
//! project's own small one with the fields that Tapeline publishes and those of the performance tools' messages, so that
//! nothing else need be there.

mod download;
mod enumerations;
mod error;
mod fields;
mod lines;
mod parts;

use std::collections::HashMap;
use std::sync::LazyLock;

use foldhash::fast::RandomState;

pub use download::{Download, DownloadError};
pub use enumerations::{EnumeratedValue, EnumerationTable};
pub use error::{DictionaryError, Problem};
pub use fields::{FieldDefinition, MarketfeedType};
pub use parts::{Part, Verbosity};

use crate::Fid;
use crate::rwf::DataType;

/// One row of the direct table for each of the 65,536 ids.
const IDS: usize = 1 << 16;
/// A row of a direct table without a place.
const NONE: u16 = u16::MAX;

/// A field dictionary: what every field id means.
///
/// Looking up by id is an index into a table, by name a hash. A dictionary never changes once it is made; share it
/// by reference.
#[derive(Debug, Clone)]
pub struct Dictionary {
    fields: Vec<FieldDefinition>,
    /// By id taken as u16: the data type alone, which is what decoding needs.
    types: Table<DataType>,
    /// By id taken as u16: the place in `fields`.
    places: Table<u16>,
    names: HashMap<Box<str>, Fid, RandomState>,
    tables: Vec<EnumerationTable>,
    /// By id taken as u16: the place in `tables`.
    enumerated: Table<u16>,
    field_tags: Vec<(Box<str>, Box<str>)>,
    enumeration_tags: Vec<(Box<str>, Box<str>)>,
}

impl Dictionary {
    /// Reads a field dictionary in the format of `RDMFieldDictionary`.
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
    /// The first line that is not as it should be: which one, what it has and what was expected. A field id or a
    /// name that comes twice is refused, and so is field id 0.
    pub fn parse(text: &str) -> Result<Self, DictionaryError> {
        let mut dictionary = Self::empty();
        fields::parse(text, &mut dictionary)?;
        Ok(dictionary)
    }

    fn empty() -> Self {
        Self {
            fields: Vec::new(),
            types: Table::of(DataType::UNKNOWN),
            places: Table::of(NONE),
            names: HashMap::default(),
            tables: Vec::new(),
            enumerated: Table::of(NONE),
            field_tags: Vec::new(),
            enumeration_tags: Vec::new(),
        }
    }

    /// The same dictionary with the enumerations of a file in the format of `enumtype.def`. Tables of fields that
    /// the dictionary does not have are left out.
    ///
    /// # Errors
    ///
    /// The first line that is not as it should be. A field that comes under two tables is refused, as is one whose
    /// name is not that of its id.
    pub fn with_enumerations(mut self, text: &str) -> Result<Self, DictionaryError> {
        enumerations::parse(text, &mut self)?;
        Ok(self)
    }

    /// This project's own dictionary: the fields that Tapeline publishes, and those of the performance tools' messages.
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

    /// Type of a field; `None` if it is not known.
    #[inline]
    #[must_use]
    pub fn data_type(&self, fid: Fid) -> Option<DataType> {
        match self.types.row(fid) {
            DataType::UNKNOWN => None,
            data_type => Some(data_type),
        }
    }

    /// All that is known of a field.
    #[inline]
    #[must_use]
    pub fn field(&self, fid: Fid) -> Option<&FieldDefinition> {
        self.fields.get(usize::from(self.places.row(fid)))
    }

    /// The field of this name.
    #[must_use]
    pub fn field_named(&self, name: &str) -> Option<&FieldDefinition> {
        self.field(*self.names.get(name)?)
    }

    /// The field that takes over a field's old value when that one changes.
    #[must_use]
    pub fn ripples_to(&self, fid: Fid) -> Option<&FieldDefinition> {
        self.field_named(self.field(fid)?.ripples_to.as_deref()?)
    }

    /// Every field in the order of the file.
    pub fn fields(&self) -> impl ExactSizeIterator<Item = &FieldDefinition> {
        self.fields.iter()
    }

    /// Number of fields.
    #[must_use]
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Whether there are no fields.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// The values of an enumerated field.
    #[inline]
    #[must_use]
    pub fn enumeration(&self, fid: Fid) -> Option<&EnumerationTable> {
        self.tables.get(usize::from(self.enumerated.row(fid)))
    }

    /// Every table of enumerations in the order of the file.
    pub fn enumerations(&self) -> impl ExactSizeIterator<Item = &EnumerationTable> {
        self.tables.iter()
    }

    /// What an enumerated value shows as; `None` if the dictionary does not have it.
    #[inline]
    #[must_use]
    pub fn display(&self, fid: Fid, value: u16) -> Option<&str> {
        self.enumeration(fid)?.value(value).map(|value| value.display.as_ref())
    }

    /// A `!tag` of the field file, such as `Version`.
    #[must_use]
    pub fn field_tag(&self, name: &str) -> Option<&str> {
        tag(&self.field_tags, name)
    }

    /// A `!tag` of the enumeration file, such as `RT_Version`.
    #[must_use]
    pub fn enumeration_tag(&self, name: &str) -> Option<&str> {
        tag(&self.enumeration_tags, name)
    }
}

/// A row for each of the 65,536 ids: so many that looking one up needs no check.
#[derive(Debug, Clone)]
struct Table<T>(Box<[T; IDS]>);

impl<T: Copy> Table<T> {
    fn of(row: T) -> Self {
        let rows = vec![row; IDS].into_boxed_slice();
        // As many rows as the array has, so this does not fail.
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
        // First those that have constants, then those of the performance tools' messages.
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
