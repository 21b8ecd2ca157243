//! The format of `enumtype.def`.
//!
//! ```text
//! ORDER_SIDE  3428
//!       1      "BID"   buyers
//!       2      "ASK"   sellers
//! ```
//!
//! The names and ids of the fields that share a table come first, then the values of the table: number, display text
//! (quoted, or its bytes in hexadecimal between `#`), meaning.

use data_encoding::HEXLOWER_PERMISSIVE;

use super::Dictionary;
use super::error::{DictionaryError, Problem};
use super::lines::{Columns, Line, lines};
use crate::Fid;
use crate::rwf::Rmtes;

/// Maximum number of tables: more than any file has, since each takes at least one field id, and the most that a row of
/// [`Dictionary`] can distinguish.
const MOST_TABLES: usize = super::NONE as usize;

/// Table of the values that one or more enumerated fields can take.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EnumerationTable {
    /// Fields that share the table.
    pub fids: Vec<Fid>,
    /// Values in ascending order of number.
    values: Vec<EnumeratedValue>,
}

impl EnumerationTable {
    /// Returns the values in ascending order of number.
    #[must_use]
    pub fn values(&self) -> &[EnumeratedValue] {
        &self.values
    }

    /// Returns a table of values, given in any order, without fields.
    pub(super) fn of(mut values: Vec<EnumeratedValue>) -> Result<Self, Problem> {
        values.sort_unstable_by_key(|value| value.number);
        match values.windows(2).find(|pair| pair[0].number == pair[1].number) {
            Some(pair) => Err(Problem::DuplicateValue(pair[0].number)),
            None => Ok(Self { fids: Vec::new(), values }),
        }
    }

    /// Adds a value.
    pub(super) fn insert(&mut self, value: EnumeratedValue) -> Result<(), Problem> {
        match self.values.binary_search_by_key(&value.number, |other| other.number) {
            Ok(_) => return Err(Problem::DuplicateValue(value.number)),
            Err(place) => self.values.insert(place, value),
        }
        Ok(())
    }

    /// Returns the value with this number.
    #[inline]
    #[must_use]
    pub fn value(&self, number: u16) -> Option<&EnumeratedValue> {
        // Most tables begin at 0 and have no gaps: the number is the index.
        match self.values.get(usize::from(number)) {
            Some(value) if value.number == number => Some(value),
            _ => self.values.get(self.values.binary_search_by_key(&number, |value| value.number).ok()?),
        }
    }
}

/// One value of an enumeration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnumeratedValue {
    /// Number on the wire.
    pub number: u16,
    /// Display text, with the padding blanks of the file.
    pub display: Box<str>,
    /// Display text as the bytes of an RMTES string, if they are not those of `display`.
    rmtes: Option<Box<[u8]>>,
    /// Meaning, as the file states it.
    pub meaning: Box<str>,
}

impl EnumeratedValue {
    /// Returns a value whose display text is given as the bytes of an RMTES string.
    pub(super) fn new(number: u16, display: &[u8], meaning: &str) -> Self {
        let text = text(display);
        let rmtes = (text.as_bytes() != display).then(|| display.into());
        Self { number, display: text, rmtes, meaning: meaning.into() }
    }

    /// Returns the display text as the bytes of an RMTES string.
    #[must_use]
    pub fn display_bytes(&self) -> &[u8] {
        self.rmtes.as_deref().unwrap_or(self.display.as_bytes())
    }
}

/// Decodes UTF-8 (which includes ASCII), or else RMTES.
pub(super) fn text(bytes: &[u8]) -> Box<str> {
    match str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => Rmtes(bytes).to_text().into(),
    }
}

pub(super) fn parse(text: &str, dictionary: &mut Dictionary) -> Result<(), DictionaryError> {
    let mut table: Option<EnumerationTable> = None;
    for (number, line) in lines(text) {
        match line {
            Line::Tag(name, value) => dictionary.enumeration_tags.push((name.into(), value.into())),
            // Names may begin with digits too.
            Line::Columns(columns) if columns.first().bytes().all(|byte| byte.is_ascii_digit()) => {
                let value = value(columns).map_err(|problem| problem.on(number))?;
                let table = table.as_mut().ok_or(Problem::NoField.on(number))?;
                table.insert(value).map_err(|problem| problem.on(number))?;
            }
            Line::Columns(columns) => {
                // A field after values starts the next table.
                if let Some(table) = table.take_if(|table| !table.values.is_empty()) {
                    dictionary.add_table(table);
                }
                let table = table.get_or_insert_default();
                field(columns, dictionary)
                    .and_then(|fid| fid.map_or(Ok(()), |fid| dictionary.share(fid, table)))
                    .map_err(|problem| problem.on(number))?;
            }
        }
    }
    if let Some(table) = table {
        dictionary.add_table(table);
    }
    Ok(())
}

impl Dictionary {
    /// Records that a field of the dictionary uses `table`, the next table to be added.
    pub(super) fn share(&mut self, fid: Fid, table: &mut EnumerationTable) -> Result<(), Problem> {
        if self.enumerated.row(fid) != super::NONE {
            return Err(Problem::SecondTable(fid));
        }
        let place = match u16::try_from(self.tables.len()) {
            Ok(place) if place < super::NONE => place,
            _ => return Err(Problem::TooMany(MOST_TABLES)),
        };
        self.enumerated.set(fid, place);
        table.fids.push(fid);
        Ok(())
    }

    /// Adds a table if a field of the dictionary uses it.
    pub(super) fn add_table(&mut self, table: EnumerationTable) {
        if !table.fids.is_empty() {
            self.tables.push(table);
        }
    }
}

/// Reads a name and an id; `None` if the field is not in the dictionary.
fn field(mut columns: Columns<'_>, dictionary: &Dictionary) -> Result<Option<Fid>, Problem> {
    let name = columns.word("name")?;
    let fid = Fid(columns.number("field id")?);
    if !columns.rest().is_empty() {
        return Err(Problem::Surplus(columns.rest().to_owned()));
    }
    match dictionary.field(fid) {
        Some(field) if field.name.as_ref() != name => {
            Err(Problem::OtherName { fid, expected: field.name.to_string(), found: name.to_owned() })
        }
        Some(_) => Ok(Some(fid)),
        None => Ok(None),
    }
}

fn value(mut columns: Columns<'_>) -> Result<EnumeratedValue, Problem> {
    let number = columns.number("value")?;
    let display_bytes: Box<[u8]> = if columns.rest().starts_with('#') {
        let digits = columns.between('#', "display")?;
        let bytes = HEXLOWER_PERMISSIVE.decode(digits.as_bytes()).map_err(|_| Problem::Word {
            what: "display",
            found: digits.to_owned(),
            expected: "pairs of hexadecimal digits",
        })?;
        bytes.into()
    } else {
        columns.between('"', "display")?.as_bytes().into()
    };
    Ok(EnumeratedValue::new(number, &display_bytes, columns.rest()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: &str = "SIDE \"SIDE\" 1 NULL ENUMERATED 3 ( 3 ) ENUM 1\n\
                          TICK \"TICK\" 2 NULL ENUMERATED 1 ( 1 ) ENUM 1\n\
                          TICK_2 \"TICK 2\" 3 NULL ENUMERATED 1 ( 1 ) ENUM 1\n";

    fn read(text: &str) -> Result<Dictionary, DictionaryError> {
        Dictionary::parse(FIELDS).unwrap().with_enumerations(text)
    }

    #[test]
    fn tables_are_shared() {
        let text = "!tag RT_Version 1\nSIDE 1\n 1 \"BID\" who buys\n 2 \"ASK\" who sells\n!\nTICK 2\nTICK_2 3\n\
                    52W_HIND 9\n 0 #DE# up\nELSEWHERE 10\n 1 \"x\" y\n";
        let dictionary = read(text).unwrap();
        assert_eq!(dictionary.enumeration_tag("RT_Version"), Some("1"));
        assert_eq!(dictionary.enumerations().len(), 2);
        let side = dictionary.enumeration(Fid(1)).unwrap();
        assert_eq!(side.value(2).unwrap().meaning.as_ref(), "who sells");
        assert_eq!(side.value(3), None);
        assert_eq!(dictionary.enumeration(Fid(3)).unwrap().fids, [Fid(2), Fid(3)]);
        assert_eq!(dictionary.display(Fid(2), 0), Some("\u{21E7}"));
        assert_eq!(dictionary.enumeration(Fid(9)), None);
    }

    #[test]
    fn faults_name_the_line() {
        for (text, message) in [
            ("1 \"A\" a", "line 1: a value comes before the fields that have it"),
            ("SIDE 1\n1 \"A\" a\n1 \"B\" b", "line 3: value 1 comes twice in its table"),
            ("SIDE 1\n1 \"A\" a\nSIDE 1", "line 3: field id 1 has a table already"),
            ("SIDE 2", "line 1: field id 2 is named TICK, not SIDE"),
            ("SIDE one", "line 1: field id \"one\" is no number from -32768 to 32767"),
            ("SIDE 1\n70000 \"A\" a", "line 2: value \"70000\" is no number from 0 to 65535"),
            ("SIDE 1\n1 \"A", "line 2: the quoted display does not end"),
            (
                "SIDE 1\n1 #D# a",
                "line 2: display \"D\" is not known; expected one of pairs of hexadecimal digits",
            ),
        ] {
            assert_eq!(read(text).unwrap_err().to_string(), message);
        }
    }
}
