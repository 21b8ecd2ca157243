//! The fields of a message, for C.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::fmt;
use std::mem::{align_of, size_of};
use std::slice;

use tapeline_omm::rwf::{Container, DataType, Field, Fields, MessageView};
use tapeline_omm::{Dictionary, Fid, FieldList};

use crate::failure::{Failure, is_null};
use crate::tapeline_code::{self, *};
use crate::{tapeline_bytes, tapeline_dictionary, tapeline_text, tapeline_value, value};

/// A position in the fields of a message, in memory of the caller. There is nothing to free. It must not outlive the
/// message and the dictionary.
#[repr(C)]
#[derive(Debug)]
pub struct tapeline_fields {
    /// The library's.
    pub opaque: [u64; 24],
}

/// A field of a message. All that it points to is in the message or in the dictionary. The struct does not change in
/// later releases.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tapeline_field {
    /// The name; "" if the dictionary has no such field.
    pub name: tapeline_text,
    /// The value. Without a type in the dictionary: TAPELINE_VALUE_BYTES.
    pub value: tapeline_value,
    /// The value as on the wire.
    pub bytes: tapeline_bytes,
    /// The field's number.
    pub fid: i16,
    /// The RWF type in the dictionary; 0 if there is none.
    pub data_type: u8,
}

/// The contents of a `tapeline_fields`; its first word is the mark.
#[repr(C)]
struct Position {
    mark: u64,
    fields: Fields<'static>,
    dictionary: &'static Dictionary,
}

/// The first word of an opened position, "tapefiel": a struct that was not opened has another with near certainty.
const MARK: u64 = 0x7461_7065_6669_656c;

const _: () = assert!(
    size_of::<Position>() <= size_of::<tapeline_fields>()
        && align_of::<Position>() <= align_of::<tapeline_fields>()
);

#[cold]
fn malformed(what: &str, fault: impl fmt::Display) -> tapeline_code {
    Failure::new(TAPELINE_ERROR_MALFORMED, format!("{what} cannot be read: {fault}")).tell()
}

/// Opens the list of fields in a message; `None` if the message has other contents.
///
/// # Safety
/// `message` has `len` bytes, which stay unchanged for `'a`.
#[inline]
unsafe fn list<'a>(message: *const c_void, len: usize) -> Result<Option<FieldList<'a>>, tapeline_code> {
    if message.is_null() || len > isize::MAX as usize {
        return Err(is_null("the message"));
    }
    // SAFETY: not NULL, so `len` bytes by the caller's promise.
    let bytes = unsafe { slice::from_raw_parts(message.cast::<u8>(), len) };
    let view = MessageView::parse(bytes).map_err(|fault| malformed("the message", fault))?;
    if view.container() != DataType::FIELD_LIST {
        return Ok(None);
    }
    match view.open() {
        Ok(Container::FieldList(list)) => Ok(Some(list)),
        Ok(_) => Ok(None),
        Err(fault) => Err(malformed("the message's list of fields", fault)),
    }
}

/// Begins with the first field of an RWF message, such as `message` of an event or `body` of a tick: TAPELINE_OK, or
/// TAPELINE_NO_FIELDS. `dictionary` may be NULL: the library's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeline_fields_open(
    message: *const c_void,
    len: usize,
    dictionary: *const tapeline_dictionary,
    fields: *mut tapeline_fields,
) -> tapeline_code {
    if fields.is_null() {
        return is_null("where the fields go");
    }
    // SAFETY: NULL, or `len` bytes that the caller keeps as long as the position.
    let list: Option<FieldList<'static>> = match unsafe { list(message, len) } {
        Ok(list) => list,
        Err(code) => return code,
    };
    let none = || FieldList::parse(&[]).ok();
    let Some(opened) = list.or_else(none) else { return TAPELINE_ERROR_OTHER };
    // SAFETY: NULL, or a dictionary that the caller keeps as long as the position; `fields` is a place that is large
    // and aligned enough, as asserted above.
    unsafe {
        let dictionary = tapeline_dictionary::of(dictionary);
        fields.cast::<Position>().write(Position { mark: MARK, fields: opened.iter(), dictionary });
    }
    if list.is_some() { TAPELINE_OK } else { TAPELINE_NO_FIELDS }
}

/// Returns the next field: TAPELINE_FIELD, TAPELINE_ENDED, or TAPELINE_ERROR_MALFORMED. A value that is malformed is
/// returned with the kind TAPELINE_VALUE_BYTES.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeline_fields_next(
    fields: *mut tapeline_fields,
    field: *mut tapeline_field,
) -> tapeline_code {
    if fields.is_null() || field.is_null() {
        return is_null("the fields, or where the field goes,");
    }
    // SAFETY: not NULL, so a struct of the caller, whose first word is a number; only an opened one has the mark.
    let position = unsafe {
        let position = fields.cast::<Position>();
        if (&raw const (*position).mark).read() != MARK {
            return not_opened();
        }
        &mut *position
    };
    match position.fields.next() {
        Some(Ok(found)) => {
            // SAFETY: not NULL, so a place for a field.
            unsafe { field.write(borrowed(&found, position.dictionary)) };
            TAPELINE_FIELD
        }
        None => TAPELINE_ENDED,
        Some(Err(fault)) => malformed("the next field of the message", fault),
    }
}

#[cold]
fn not_opened() -> tapeline_code {
    let text = "the fields were not opened; hint: call tapeline_fields_open first";
    Failure::new(TAPELINE_ERROR_ORDER, text).tell()
}

/// Finds the first field of a message with this number, without reading the values before it: TAPELINE_FIELD, or
/// TAPELINE_EMPTY if the message does not have it, or TAPELINE_NO_FIELDS.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeline_fields_find(
    message: *const c_void,
    len: usize,
    dictionary: *const tapeline_dictionary,
    fid: i16,
    field: *mut tapeline_field,
) -> tapeline_code {
    if field.is_null() {
        return is_null("where the field goes");
    }
    // SAFETY: NULL, or `len` bytes that nobody changes meanwhile.
    let list = match unsafe { list(message, len) } {
        Ok(Some(list)) => list,
        Ok(None) => return TAPELINE_NO_FIELDS,
        Err(code) => return code,
    };
    match list.find(Fid(fid)) {
        Ok(Some(found)) => {
            // SAFETY: NULL or a dictionary that is in use; `field` is not NULL, so a place for a field.
            unsafe { field.write(borrowed(&found, tapeline_dictionary::of(dictionary))) };
            TAPELINE_FIELD
        }
        Ok(None) => TAPELINE_EMPTY,
        Err(fault) => malformed("a field of the message", fault),
    }
}

/// Inlined, so that each member of the field is written once, where C reads it.
#[inline(always)]
fn borrowed(found: &Field<'_>, dictionary: &Dictionary) -> tapeline_field {
    let definition = dictionary.field(found.fid);
    let data_type = definition.map_or(DataType::UNKNOWN, |definition| definition.data_type);
    let bytes = tapeline_bytes::lend(found.data);
    let value = match found.value(data_type) {
        Ok(it) => value::of(&it, found.data),
        Err(_) => value::of(&tapeline_omm::Value::Unknown(found.data), found.data),
    };
    let name = definition.map_or(&[][..], |definition| definition.name.as_bytes());
    tapeline_field { name: tapeline_text::lend(name), value, bytes, fid: found.fid.0, data_type: data_type.0 }
}
