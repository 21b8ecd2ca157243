//! Dictionaries for C: names and types of fields.

#![allow(unsafe_code)]

use std::ffi::c_char;

use tapeline_omm::{Dictionary, Fid};

use crate::failure::{self, Failure, given, guarded};
use crate::tapeline_code::{self, *};
use crate::tapeline_text;

/// Names, types and enumerations of fields. Where a dictionary is an argument, NULL is the library's own.
// Only ever behind a pointer, which is one to a `Dictionary`.
#[derive(Debug)]
pub struct tapeline_dictionary(());

/// A field of a dictionary. The struct does not change in later releases.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tapeline_field_info {
    /// The name, such as BID. Valid as long as the dictionary.
    pub name: tapeline_text,
    /// The field's number.
    pub fid: i16,
    /// The RWF type: 3 INT, 4 UINT, 8 REAL, 14 ENUM …, as the standard numbers them.
    pub data_type: u8,
}

impl tapeline_dictionary {
    pub(crate) const fn lend(dictionary: &Dictionary) -> *const Self {
        (&raw const *dictionary).cast()
    }

    /// # Safety
    /// `dictionary` is NULL or a dictionary that outlives `'a`.
    #[inline]
    pub(crate) unsafe fn of<'a>(dictionary: *const Self) -> &'a Dictionary {
        // SAFETY: the caller's promise; `lend` makes all such pointers, of a dictionary.
        unsafe { dictionary.cast::<Dictionary>().as_ref() }.unwrap_or_else(|| Dictionary::builtin())
    }
}

/// The error for a name that no field has.
pub(crate) fn unknown(dictionary: &Dictionary, name: &str) -> Failure {
    let upper = name.to_uppercase();
    let names = || dictionary.fields().map(|field| &*field.name).collect::<Vec<_>>();
    let near = match dictionary.field_named(&upper) {
        Some(field) => Some(&*field.name),
        None => tapeline_client::nearest(name, &names()),
    };
    let hint = near.map_or_else(
        || "fields have the names of the dictionary, such as BID".to_owned(),
        |near| format!("did you mean {near}?"),
    );
    let text = format!("there is no field {name:?} in the dictionary; hint: {hint}");
    Failure::new(TAPELINE_ERROR_FIELD, text)
}

/// Finds a field by its name. TAPELINE_ERROR_FIELD with the nearest name if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeline_field_named(
    dictionary: *const tapeline_dictionary,
    name: *const c_char,
    info: *mut tapeline_field_info,
) -> tapeline_code {
    guarded(|| {
        let place = given(info, "where the field goes")?;
        // SAFETY: NULL or a dictionary that is in use; `name` is NULL or a text.
        let (dictionary, name) =
            unsafe { (tapeline_dictionary::of(dictionary), failure::text(name, "the field's name")?) };
        let field = dictionary.field_named(name).ok_or_else(|| unknown(dictionary, name))?;
        let found = tapeline_field_info {
            name: tapeline_text::lend(field.name.as_bytes()),
            fid: field.fid.0,
            data_type: field.data_type.0,
        };
        // SAFETY: not NULL, so a place for a field.
        unsafe { place.write(found) };
        Ok(TAPELINE_OK)
    })
}

/// Returns the display text of a number of a field's enumeration: TAPELINE_OK, or TAPELINE_EMPTY with "" if the
/// dictionary has none. The text is valid as long as the dictionary.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeline_enum_display(
    dictionary: *const tapeline_dictionary,
    fid: i16,
    number: u64,
    text: *mut tapeline_text,
) -> tapeline_code {
    guarded(|| {
        let place = given(text, "where the text goes")?;
        // SAFETY: NULL or a dictionary that is in use.
        let dictionary = unsafe { tapeline_dictionary::of(dictionary) };
        let number = u16::try_from(number).ok();
        let display = number.and_then(|number| dictionary.display(Fid(fid), number));
        // SAFETY: not NULL, so a place for a text.
        unsafe { place.write(tapeline_text::lend(display.unwrap_or_default().as_bytes())) };
        Ok(if display.is_some() { TAPELINE_OK } else { TAPELINE_EMPTY })
    })
}
