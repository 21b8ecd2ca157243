//! The format of `RDMFieldDictionary`.
//!
//! ```text
//! !tag Version 1.0
//! TRDPRC_1   "LAST"            6  TRDPRC_2  PRICE       17       REAL64  7
//! CURRENCY   "CURRENCY"       15  NULL      ENUMERATED  5 ( 3 )  ENUM    2
//! ```
//!
//! Columns: name, long name, id, name of the field that it ripples to, Marketfeed type and length (with the length of
//! the display text for enumerations), RWF type, maximum length of the RWF value in a cache.

use super::Dictionary;
use super::error::{DictionaryError, Problem};
use super::lines::{Columns, Line, lines};
use crate::Fid;
use crate::rwf::DataType;

/// Definition of one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldDefinition {
    /// Field id.
    pub fid: Fid,
    /// Name ("acronym").
    pub name: Box<str>,
    /// Long name ("DDE acronym").
    pub long_name: Box<str>,
    /// Name of the field that receives the old value when this field changes.
    pub ripples_to: Option<Box<str>>,
    /// Type in Marketfeed, the format before RWF.
    pub marketfeed_type: MarketfeedType,
    /// Length in Marketfeed.
    pub marketfeed_len: u16,
    /// Length of the display text of an enumeration.
    pub display_len: Option<u16>,
    /// Type on the wire.
    pub data_type: DataType,
    /// Maximum length of a value in a cache, bytes.
    pub data_len: u16,
}

macro_rules! marketfeed_types {
    ($($(#[$doc:meta])* $name:ident = $number:literal $text:literal,)*) => {
        /// Type of a field in Marketfeed, the format before RWF.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum MarketfeedType {
            $($(#[$doc])* $name,)*
        }

        impl MarketfeedType {
            /// All names, for error messages.
            const NAMES: &str = concat!($($text, " "),*);

            /// Returns the name in the file.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }

            /// Returns the number on the wire.
            #[must_use]
            pub const fn number(self) -> i8 {
                match self {
                    $(Self::$name => $number,)*
                }
            }

            pub(super) fn from_number(number: i64) -> Option<Self> {
                match number {
                    $($number => Some(Self::$name),)*
                    _ => None,
                }
            }

            fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($text => Some(Self::$name),)*
                    _ => None,
                }
            }
        }
    };
}

marketfeed_types! {
    /// Time with seconds.
    TimeSeconds = 0 "TIME_SECONDS",
    /// Whole number.
    Integer = 1 "INTEGER",
    /// Number.
    Numeric = 2 "NUMERIC",
    /// Date.
    Date = 3 "DATE",
    /// Price.
    Price = 4 "PRICE",
    /// Text.
    Alphanumeric = 5 "ALPHANUMERIC",
    /// Enumeration.
    Enumerated = 6 "ENUMERATED",
    /// Time without seconds.
    Time = 7 "TIME",
    /// Bytes.
    Binary = 8 "BINARY",
    /// Long text.
    LongAlphanumeric = 9 "LONG_ALPHANUMERIC",
    /// Opaque data.
    Opaque = 10 "OPAQUE",
    /// No Marketfeed type: the field exists in RWF only.
    None = -1 "NONE",
}

/// Names of RWF types in older files.
const OLDER_TYPES: &[(&str, DataType)] = &[
    ("INT64", DataType::INT),
    ("INT32", DataType::INT),
    ("UINT64", DataType::UINT),
    ("UINT32", DataType::UINT),
    ("REAL64", DataType::REAL),
    ("REAL32", DataType::REAL),
    ("ELEM_LIST", DataType::ELEMENT_LIST),
];

/// Returns the RWF type with this name.
fn data_type(name: &str) -> Option<DataType> {
    let mut types = DataType::WORDS.iter().map(|(_, number)| DataType(*number));
    let older = || OLDER_TYPES.iter().find(|(older, _)| *older == name).map(|(_, data_type)| *data_type);
    types.find(|data_type| data_type.name() == Some(name)).or_else(older)
}

/// The usual names of RWF types, for error messages.
const TYPE_NAMES: &str = "INT64 UINT64 FLOAT DOUBLE REAL64 DATE TIME DATETIME QOS STATE ENUM ARRAY BUFFER \
    ASCII_STRING UTF8_STRING RMTES_STRING OPAQUE XML FIELD_LIST ELEMENT_LIST ANSI_PAGE FILTER_LIST VECTOR MAP \
    SERIES MSG JSON";

pub(super) fn parse(text: &str, dictionary: &mut Dictionary) -> Result<(), DictionaryError> {
    for (number, line) in lines(text) {
        match line {
            Line::Tag(name, value) => dictionary.field_tags.push((name.into(), value.into())),
            Line::Columns(columns) => field(columns)
                .and_then(|field| add(field, dictionary))
                .map_err(|problem| problem.on(number))?,
        }
    }
    Ok(())
}

fn field(mut columns: Columns<'_>) -> Result<FieldDefinition, Problem> {
    let name = columns.word("name")?;
    let long_name = columns.between('"', "long name")?;
    let fid = Fid(columns.number("field id")?);
    let ripples_to = columns.word("field that it ripples to")?;
    let old = columns.word("field type")?;
    let marketfeed_type = MarketfeedType::from_name(old).ok_or_else(|| Problem::Word {
        what: "field type",
        found: old.to_owned(),
        expected: MarketfeedType::NAMES.trim_end(),
    })?;
    let marketfeed_len = columns.number("length")?;
    let display_len = columns.parenthesised("display length")?;
    let rwf = columns.word("RWF type")?;
    let data_type = data_type(rwf).ok_or_else(|| Problem::Word {
        what: "RWF type",
        found: rwf.to_owned(),
        expected: TYPE_NAMES,
    })?;
    let data_len = columns.number("RWF length")?;
    if !columns.rest().is_empty() {
        return Err(Problem::Surplus(columns.rest().to_owned()));
    }
    Ok(FieldDefinition {
        fid,
        name: name.into(),
        long_name: long_name.into(),
        ripples_to: (ripples_to != "NULL").then(|| ripples_to.into()),
        marketfeed_type,
        marketfeed_len,
        display_len,
        data_type,
        data_len,
    })
}

pub(super) fn add(field: FieldDefinition, dictionary: &mut Dictionary) -> Result<(), Problem> {
    if field.fid == Fid(0) {
        return Err(Problem::NoFid);
    }
    if let Some(other) = dictionary.field(field.fid) {
        return Err(Problem::DuplicateFid { fid: field.fid, name: other.name.to_string() });
    }
    if let Some(other) = dictionary.field_named(&field.name) {
        return Err(Problem::DuplicateName { fid: other.fid, name: field.name.into() });
    }
    // All 65,536 ids except 0 can be in use.
    let place = u16::try_from(dictionary.fields.len()).unwrap_or(super::NONE);
    if place == super::NONE {
        return Err(Problem::TooMany(usize::from(super::NONE)));
    }
    dictionary.push(place, field);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> String {
        Dictionary::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn columns() {
        let text = "!tag Version 4.2\n\nCURRENCY \"MONEY OF\" 15 NULL ENUMERATED 5 ( 3 ) ENUM 2\n! comment\n\
                    X -\n";
        assert_eq!(fault(text), "line 5: long name is missing");
        let dictionary = Dictionary::parse(text.trim_end().trim_end_matches("X -")).unwrap();
        assert_eq!(dictionary.field_tag("Version"), Some("4.2"));
        let field = dictionary.field_named("CURRENCY").unwrap();
        assert_eq!(
            (field.fid, field.long_name.as_ref(), field.marketfeed_len, field.display_len),
            (Fid(15), "MONEY OF", 5, Some(3))
        );
        assert_eq!((field.data_type, field.data_len), (DataType::ENUM, 2));
        assert_eq!(field.ripples_to, None);
    }

    #[test]
    fn faults_name_the_line_and_what_was_expected() {
        let good = "BID \"BID\" 22 BID_1 PRICE 17 REAL64 7\n";
        for (bad, message) in [
            ("BID", "line 2: long name is missing"),
            ("BID \"BID", "line 2: the quoted long name does not end"),
            ("X \"X\" 99999", "line 2: field id \"99999\" is no number from -32768 to 32767"),
            ("X \"X\" 1 NULL PRICE 17", "line 2: RWF type is missing"),
            (
                "X \"X\" 0 NULL PRICE 17 REAL64 7",
                "line 2: field id 0 stands for no field; ids from 1 on are the standard's, below 0 a site's own",
            ),
            ("X \"X\" 1 NULL PRICE 17 REAL64 7 8", "line 2: \"8\" follows the last column"),
            ("ASK \"ASK\" 22 NULL PRICE 17 REAL64 7", "line 2: field id 22 was given to BID before"),
            ("BID \"BID\" 23 NULL PRICE 17 REAL64 7", "line 2: the name BID was given to field id 22 before"),
            ("X \"X\" 1 NULL PRICE 1 ( 2 REAL64 7", "line 2: the quoted display length does not end"),
        ] {
            assert_eq!(fault(&format!("{good}{bad}\n")), message);
        }
        let unknown = fault("X \"X\" 1 NULL PRICE 17 DECIMAL 7");
        assert!(
            unknown.starts_with("line 1: RWF type \"DECIMAL\" is not known; expected one of INT64 "),
            "{unknown}"
        );
        let unknown = fault("X \"X\" 1 NULL MONEY 17 REAL64 7");
        assert!(
            unknown.starts_with("line 1: field type \"MONEY\" is not known; expected one of "),
            "{unknown}"
        );
    }

    #[test]
    fn ripples() {
        let text = "BID \"BID\" 22 BID_1 PRICE 17 REAL64 7\nBID_1 \"BID 1\" 23 BID_2 PRICE 17 REAL64 7\n";
        let dictionary = Dictionary::parse(text).unwrap();
        assert_eq!(dictionary.ripples_to(Fid(22)).unwrap().fid, Fid(23));
        assert_eq!(dictionary.ripples_to(Fid(23)), None);
    }
}
