//! Field lists for people: names and typed values from a dictionary.

use std::fmt;

use super::{FieldList, Fields, Value};
use crate::dictionary::{Dictionary, FieldDefinition};
use crate::{Fid, Malformed};

/// A field with what a dictionary knows of it.
///
/// Formatting shows the value alone: an enumeration as its display text where the dictionary has one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NamedValue<'a, 'd> {
    /// Which field.
    pub fid: Fid,
    /// What the dictionary says; `None` if it does not know the field.
    pub definition: Option<&'d FieldDefinition>,
    /// The value; [`Value::Unknown`] for a field that the dictionary does not know.
    pub value: Value<'a>,
    /// Display text of an enumerated value, if the dictionary has one.
    pub display: Option<&'d str>,
}

impl<'d> NamedValue<'_, 'd> {
    /// The field's name, if the dictionary knows it.
    #[must_use]
    pub fn name(&self) -> Option<&'d str> {
        self.definition.map(|definition| &*definition.name)
    }
}

impl fmt::Display for NamedValue<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.display {
            Some(display) => f.pad(display),
            None => fmt::Display::fmt(&self.value, f),
        }
    }
}

/// The fields of a list with their names and typed values.
///
/// A value that is not of its type is a fault of that field alone; a fault in the list's structure ends it.
#[derive(Debug, Clone)]
pub struct NamedValues<'a, 'd> {
    fields: Fields<'a>,
    dictionary: &'d Dictionary,
}

impl<'a, 'd> Iterator for NamedValues<'a, 'd> {
    type Item = Result<NamedValue<'a, 'd>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.fields.next()?.and_then(|field| {
            let definition = self.dictionary.field(field.fid);
            let value = match definition {
                Some(definition) => field.value(definition.data_type)?,
                None => Value::Unknown(field.data),
            };
            let display = match value {
                Value::Enum(number) => self.dictionary.display(field.fid, number),
                _ => None,
            };
            Ok(NamedValue { fid: field.fid, definition, value, display })
        }))
    }
}

/// A field list that can be formatted: `NAME=value`, separated by spaces, or one per line with `{:#}`. Fields that
/// the dictionary does not know go by their number, values that cannot be read say why.
#[derive(Debug, Clone, Copy)]
pub struct Rendered<'a, 'd> {
    list: FieldList<'a>,
    dictionary: &'d Dictionary,
}

impl<'a, 'd> Rendered<'a, 'd> {
    pub(crate) const fn new(list: FieldList<'a>, dictionary: &'d Dictionary) -> Self {
        Self { list, dictionary }
    }

    /// The fields one by one.
    #[must_use]
    pub const fn iter(&self) -> NamedValues<'a, 'd> {
        NamedValues { fields: self.list.iter(), dictionary: self.dictionary }
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
        if let Some(set) = self.list.set_data() {
            write!(f, "<{} bytes by set definition {}>", set.data.len(), set.id)?;
            before = separator;
        }
        for field in self.iter() {
            f.write_str(before)?;
            match field {
                Ok(field) => match field.name() {
                    Some(name) => write!(f, "{name}={field}")?,
                    None => write!(f, "{}={field}", field.fid)?,
                },
                Err(fault) => write!(f, "<{fault}>")?,
            }
            before = separator;
        }
        Ok(())
    }
}
