//! Field lists in human-readable form: names and typed values from a dictionary.

use std::fmt;

use super::{DataType, Field, FieldList, Map, MapEntry, TypedFields, Value};
use crate::dictionary::{Dictionary, FieldDefinition};
use crate::{Fid, Malformed};

/// Field with its data from a dictionary.
///
/// Formatting shows only the value: an enumeration as its display text, if the dictionary has one, without the padding
/// blanks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NamedValue<'a, 'd> {
    /// Field id.
    pub fid: Fid,
    /// Definition in the dictionary; `None` for an unknown field.
    pub definition: Option<&'d FieldDefinition>,
    /// The value; [`Value::Unknown`] for an unknown field.
    pub value: Value<'a>,
    /// Display text of an enumerated value, if the dictionary has one.
    pub display: Option<&'d str>,
}

impl<'d> NamedValue<'_, 'd> {
    /// Returns the field's name; `None` for an unknown field.
    #[must_use]
    pub fn name(&self) -> Option<&'d str> {
        self.definition.map(|definition| &*definition.name)
    }
}

impl fmt::Display for NamedValue<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.display {
            Some(display) => f.pad(display.trim_end()),
            None => fmt::Display::fmt(&self.value, f),
        }
    }
}

/// Iterator over the fields of a list with their names and typed values.
///
/// A value that does not match its type is a fault of that field only; a fault in the list's structure ends the
/// iteration.
#[derive(Debug, Clone)]
pub struct NamedValues<'a, 'd> {
    fields: TypedFields<'a>,
    dictionary: &'d Dictionary,
}

impl<'a, 'd> Iterator for NamedValues<'a, 'd> {
    type Item = Result<NamedValue<'a, 'd>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.fields.next()?.and_then(|(field, set_type)| named(&field, set_type, self.dictionary)))
    }
}

pub(super) fn named<'a, 'd>(
    field: &Field<'a>,
    set_type: Option<DataType>,
    dictionary: &'d Dictionary,
) -> Result<NamedValue<'a, 'd>, Malformed> {
    let definition = dictionary.field(field.fid);
    let value = match set_type.or(definition.map(|definition| definition.data_type)) {
        Some(data_type) => field.value(data_type)?,
        None => Value::Unknown(field.data),
    };
    let display = match value {
        Value::Enum(number) => dictionary.display(field.fid, number),
        _ => None,
    };
    Ok(NamedValue { fid: field.fid, definition, value, display })
}

/// Field list that formats as `NAME=value`, separated by spaces, or one per line with `{:#}`. Unknown fields show their
/// number, and values that cannot be read show the reason.
#[derive(Debug, Clone, Copy)]
pub struct Rendered<'a, 'd> {
    list: FieldList<'a>,
    dictionary: &'d Dictionary,
}

impl<'a, 'd> Rendered<'a, 'd> {
    pub(crate) const fn new(list: FieldList<'a>, dictionary: &'d Dictionary) -> Self {
        Self { list, dictionary }
    }

    /// Returns the fields one by one.
    #[must_use]
    pub const fn iter(&self) -> NamedValues<'a, 'd> {
        NamedValues { fields: self.list.typed(), dictionary: self.dictionary }
    }
}

impl<'a, 'd> IntoIterator for Rendered<'a, 'd> {
    type Item = Result<NamedValue<'a, 'd>, Malformed>;
    type IntoIter = NamedValues<'a, 'd>;

    fn into_iter(self) -> NamedValues<'a, 'd> {
        self.iter()
    }
}

impl fmt::Display for Rendered<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separator = if f.alternate() { "\n" } else { " " };
        let mut before = "";
        if let (Some(set), None) = (self.list.set_data(), self.list.set_definition()) {
            write!(f, "<{} bytes by set definition {}>", set.data.len(), set.id)?;
            before = separator;
        }
        for field in self.list.typed() {
            f.write_str(before)?;
            before = separator;
            let (field, set_type) = match field {
                Ok(field) => field,
                Err(fault) => {
                    write!(f, "<{fault}>")?;
                    continue;
                }
            };
            match self.dictionary.field(field.fid) {
                Some(definition) => write!(f, "{}=", definition.name)?,
                None => write!(f, "{}=", field.fid)?,
            }
            match named(&field, set_type, self.dictionary) {
                Ok(field) => fmt::Display::fmt(&field, f)?,
                Err(fault) => write!(f, "<{fault}>")?,
            }
        }
        Ok(())
    }
}

impl<'a> Map<'a> {
    /// Returns the map in human-readable form, with the names and types of `dictionary`.
    #[must_use]
    pub const fn render<'d>(&self, dictionary: &'d Dictionary) -> RenderedMap<'a, 'd> {
        RenderedMap { map: *self, dictionary }
    }
}

/// Map that formats as the summary in square brackets, then each entry as its action, its key and its data, separated
/// by `; `, or each on its own line with `{:#}`. Data other than field lists shows its type and size.
#[derive(Debug, Clone, Copy)]
pub struct RenderedMap<'a, 'd> {
    map: Map<'a>,
    dictionary: &'d Dictionary,
}

impl RenderedMap<'_, '_> {
    fn data(&self, f: &mut fmt::Formatter<'_>, data: &[u8]) -> fmt::Result {
        match self.map.head().container {
            DataType::NO_DATA => Ok(()),
            DataType::FIELD_LIST => match FieldList::parse_with(data, &self.map.sets().unwrap_or_default()) {
                Ok(list) => write!(f, "{}", list.render(self.dictionary)),
                Err(fault) => write!(f, "<{fault}>"),
            },
            other => write!(f, "<{} bytes of {other}>", data.len()),
        }
    }

    fn entry(&self, f: &mut fmt::Formatter<'_>, entry: &MapEntry<'_>) -> fmt::Result {
        write!(f, "{} ", entry.action)?;
        match entry.key_value(self.map.head().key_type) {
            Ok(Value::Buffer(key)) => fmt::Display::fmt(&Printable(key), f)?,
            Ok(value) => fmt::Display::fmt(&value, f)?,
            Err(fault) => write!(f, "<{fault}>")?,
        }
        if entry.data.is_empty() {
            return Ok(());
        }
        f.write_str(" ")?;
        self.data(f, entry.data)
    }
}

impl fmt::Display for RenderedMap<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (beside, between) = if f.alternate() { ("\n", "\n") } else { (" ", "; ") };
        let mut before = "";
        if let Some(summary) = self.map.head().summary {
            f.write_str("[")?;
            self.data(f, summary)?;
            f.write_str("]")?;
            before = beside;
        }
        for entry in self.map.iter() {
            f.write_str(before)?;
            before = between;
            match entry {
                Ok(entry) => self.entry(f, &entry)?,
                Err(fault) => write!(f, "<{fault}>")?,
            }
        }
        Ok(())
    }
}

/// Bytes in hexadecimal.
pub(super) struct Hex<'a>(pub(super) &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Bytes that are mostly text, such as keys of orders: shown as text if they are.
pub(super) struct Printable<'a>(pub(super) &'a [u8]);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match str::from_utf8(self.0) {
            Ok(text) if text.chars().all(|c| !c.is_control()) => f.write_str(text),
            _ => fmt::Display::fmt(&Hex(self.0), f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{FieldListEncoder, MapAction, MapEncoder, MapHead, Time};
    use super::*;
    use crate::{Real, fid};

    #[test]
    fn fields_show_by_name_and_faults_by_themselves() {
        let mut out = [0; 128];
        let mut list = FieldListEncoder::new(&mut out).unwrap();
        list.real(fid::TRDPRC_1, Real::decimal(1_234_500, 4)).unwrap();
        list.enumeration(fid::TRD_STATUS, 2).unwrap();
        list.enumeration(fid::TRD_STATUS, 99).unwrap();
        list.blank(fid::HALT_REASN).unwrap();
        list.raw(fid::BID, &[31, 1]).unwrap();
        list.raw(Fid(-7), &[0xAB, 0x01]).unwrap();
        list.time(fid::QUOTIM_NS, Time::from_ns_of_day(34_200_000_000_001)).unwrap();
        let len = list.finish();
        let list = FieldList::parse(&out[..len]).unwrap();
        let rendered = list.render(Dictionary::builtin());
        assert_eq!(
            rendered.to_string(),
            "TRDPRC_1=123.4500 TRD_STATUS=H TRD_STATUS=99 HALT_REASN= BID=<malformed REAL hint at byte 0> -7=ab01 \
             QUOTIM_NS=09:30:00.000000001"
        );
        assert_eq!(format!("{rendered:#}").lines().count(), 7);
        let cut = FieldList::parse(&out[..len - 1]).unwrap().render(Dictionary::builtin()).to_string();
        assert!(cut.ends_with("-7=ab01 <malformed field value at byte 33>"), "{cut}");
        let set = FieldList::parse(&[0x06, 3, 1, 2]).unwrap().render(Dictionary::builtin()).to_string();
        assert_eq!(set, "<2 bytes by set definition 3>");
    }

    #[test]
    fn maps_show_summary_actions_and_keys() {
        let mut out = [0; 128];
        let head =
            MapHead { summary: Some(&[8, 0, 0]), ..MapHead::new(DataType::BUFFER, DataType::FIELD_LIST) };
        let mut map = MapEncoder::new(&mut out, &head).unwrap();
        map.entry_in_place(MapAction::ADD, b"1234", None, |room| {
            let mut list = FieldListEncoder::new(room)?;
            list.real(fid::BID, Real::decimal(4000, 2))?;
            list.real(fid::BIDSIZE, Real::integer(100))?;
            Ok(list.finish())
        })
        .unwrap();
        map.delete(&[0, 7]).unwrap();
        let len = map.finish();
        let rendered = Map::parse(&out[..len]).unwrap().render(Dictionary::builtin());
        assert_eq!(rendered.to_string(), "[] ADD 1234 BID=40.00 BIDSIZE=100; DELETE 0007");
        assert_eq!(format!("{rendered:#}").lines().count(), 3);
        let cut = Map::parse(&out[..len - 1]).unwrap().render(Dictionary::builtin()).to_string();
        assert!(cut.ends_with("; <malformed map key at byte 33>"), "{cut}");
    }
}
