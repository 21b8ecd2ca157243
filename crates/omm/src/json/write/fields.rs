//! Field lists as text.

use super::super::Converter;
use super::super::fault::WriteError;
use super::super::short;
use super::super::text::JsonText;
use super::Writing;
use crate::Dictionary;
use crate::dictionary::MEMBER_NAME;
use crate::rwf::{DataType, Field, Fields, Real, Time, enum_ahead, uint_ahead};

/// Most bytes of a short field: the longest prepared name, and a short value.
const MOST: usize = 32 + short::ROOM;
/// Buffer for a run of short fields, some twenty.
const ROOM: usize = 512;
/// The part of the buffer for the text before the fields.
const HEAD: usize = 96;

impl Writing<'_, '_> {
    /// Writes fields as an object: runs of short fields in place, every other field by its parts.
    pub(super) fn fields(&mut self, fields: Fields<'_>, depth: usize) -> Result<(), WriteError> {
        self.fields_after(|_| Some(0), fields, depth).map(|_| ())
    }

    /// Writes what `head` writes to a buffer and returns the length of, and then fields as an object. Returns `false`, and
    /// writes nothing, if `head` returns `None`.
    #[inline]
    pub(super) fn fields_after(
        &mut self,
        head: impl FnOnce(&mut [u8; HEAD]) -> Option<usize>,
        mut fields: Fields<'_>,
        depth: usize,
    ) -> Result<bool, WriteError> {
        let Converter { dictionary, settings, .. } = self.converter;
        let mut start = None;
        let at = self.out.len();
        self.out.in_place(|room: &mut [u8; ROOM]| {
            start = room.first_chunk_mut().and_then(head);
            start.map_or(0, |start| {
                short_fields(&mut fields, dictionary, settings.expand_enumerations, start, room)
            })
        });
        let Some(start) = start else { return Ok(false) };
        while let Some(field) = fields.next() {
            self.any_field(&field?, depth)?;
            self.bounded()?;
            self.out.in_place(|room| {
                short_fields(&mut fields, dictionary, settings.expand_enumerations, 0, room)
            });
        }
        self.out.end_members(at + start);
        self.bounded()?;
        Ok(true)
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

/// Writes fields with the most common types and forms to `room` from `at` on, up to the first other one, or as many as
/// certainly fit; returns their end. One check of the room serves a name and its value. Apart from the rest,
/// so that the state of the loop stays in registers (bench `json`).
#[inline(never)]
fn short_fields(
    fields: &mut Fields<'_>,
    dictionary: &Dictionary,
    expands_enumerations: bool,
    mut at: usize,
    room: &mut [u8; ROOM],
) -> usize {
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
        return short::real(Real::any_ahead(len, ahead)?, room);
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
