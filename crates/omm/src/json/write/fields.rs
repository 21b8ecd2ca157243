//! Field lists as text.

use super::super::Converter;
use super::super::fault::WriteError;
use super::super::short;
use super::super::text::JsonText;
use super::Writing;
use crate::Dictionary;
use crate::dictionary::MEMBER_NAME;
use crate::rwf::{DataType, Field, Fields, Hint, Real, Time, enum_ahead, int_ahead, uint_ahead};

/// Most bytes of a short field: the longest prepared name, and a short value.
const MOST: usize = 32 + short::ROOM;
/// Buffer for a run of short fields, some twenty.
const ROOM: usize = 512;

impl Writing<'_, '_> {
    /// Writes fields as an object: runs of short fields in place, every other field by its parts.
    pub(super) fn fields(&mut self, mut fields: Fields<'_>, depth: usize) -> Result<(), WriteError> {
        let Converter { dictionary, settings, .. } = self.converter;
        let start = self.out.len();
        loop {
            self.out
                .in_place(|room| short_fields(&mut fields, dictionary, settings.expand_enumerations, room));
            let Some(field) = fields.next() else { break };
            self.any_field(&field?, depth)?;
            self.bounded()?;
        }
        self.out.end_members(start);
        self.bounded()
    }

    /// Writes a field of any type and form with its name, if the dictionary has it.
    fn any_field(&mut self, field: &Field<'_>, depth: usize) -> Result<(), WriteError> {
        let dictionary = self.converter.dictionary;
        let Some(definition) = dictionary.field(field.fid) else {
            self.left_out += 1;
            return Ok(());
        };
        match dictionary.member_name(field.fid).filter(|name| name.is_prepared()) {
            Some(name) => self.out.raw(name.text()),
            None => self.out.any_member(definition.name.as_bytes()),
        }
        match definition.data_type {
            _ if field.is_blank() => self.out.null(),
            DataType::ENUM => self.enumeration(field)?,
            data_type => self.value(&field.value(data_type)?, depth)?,
        }
        Ok(())
    }

    /// Writes an enumerated value, by the settings as its display text.
    fn enumeration(&mut self, field: &Field<'_>) -> Result<(), WriteError> {
        let Converter { dictionary, settings, .. } = self.converter;
        let number = field.enumeration()?;
        let display = number
            .filter(|_| settings.expand_enumerations)
            .and_then(|number| dictionary.display(field.fid, number));
        match display {
            Some(display) => self.out.utf8(display.as_bytes()),
            None => self.out.or_null(number.map(u64::from), JsonText::unsigned),
        }
        Ok(())
    }
}

/// Writes fields with the most common types and forms to the start of `room`, up to the first other one, or as many as
/// certainly fit; returns the length of the text. One check of the room serves a name and its value. Apart from the rest,
/// so that the state of the loop stays in registers (bench `json`).
#[inline(never)]
fn short_fields(
    fields: &mut Fields<'_>,
    dictionary: &Dictionary,
    expands_enumerations: bool,
    room: &mut [u8; ROOM],
) -> usize {
    let mut at = 0;
    fields.take_some(|field| {
        if at > ROOM - MOST {
            return false;
        }
        let room = &mut room[at..at + MOST];
        let Some(name) = dictionary.member_name(field.fid) else { return false };
        room[..MEMBER_NAME].copy_from_slice(&name.bytes);
        let value_at = usize::from(name.len) % 32;
        let Some(room) = room[value_at..].first_chunk_mut() else { return false };
        let Some(len) = short_value(&field, name.data_type, expands_enumerations, room) else { return false };
        at += value_at + len;
        true
    });
    at
}

/// Writes a value with a common type and form; `None` for any other.
#[inline]
fn short_value(
    field: &Field<'_>,
    data_type: DataType,
    expands_enumerations: bool,
    room: &mut short::Room,
) -> Option<usize> {
    let (len, ahead) = (field.data.len(), field.ahead());
    // The types of price records first: a branch costs less than a jump table.
    if data_type == DataType::REAL && len > 1 {
        let (hint, mantissa) = ahead.split_first()?;
        return short::real(Real { mantissa: int_ahead(len - 1, mantissa)?, hint: Hint(*hint) }, room);
    }
    if data_type == DataType::TIME && len > 1 {
        return short::time(Time::ahead(len, ahead)?, room);
    }
    match data_type {
        DataType::UNKNOWN => None,
        _ if len == 0 => short::null(room),
        DataType::RMTES_STRING | DataType::ASCII_STRING | DataType::UTF8_STRING => {
            short::plain(field.word()?, len, room)
        }
        DataType::UINT => short::unsigned(uint_ahead(len, ahead)?, room),
        DataType::ENUM if !expands_enumerations => short::unsigned(enum_ahead(len, ahead)?.into(), room),
        _ => None,
    }
}
