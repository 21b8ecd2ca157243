//! Checks a value in one pass: every length is checked before it is used.

use crate::Type;
use crate::cursor::Cursor;
use crate::error::{Fault, Malformed};
use crate::vector::{Vector, head};

/// Checks a value. Returns its type and its count, as q's `count`. At most `depth` more values may be nested.
///
/// Every byte is read at most once: with two passes at each level, the deepest values would be read 2^64 times.
pub(crate) fn check(cursor: &mut Cursor<'_>, depth: usize) -> Result<(Type, usize), Malformed> {
    let Some(within) = depth.checked_sub(1) else { return Err(cursor.fault(Fault::TooDeep)) };
    let at = cursor.at();
    let kind = Type(cursor.number::<u8>("a type")?.cast_signed());
    let count = match kind.0 {
        1..=19 if kind.is_basic() => Vector::check(cursor, kind)?,
        -19..=-1 if kind.is_basic() => {
            match kind.width() {
                0 => cursor.text("a symbol")?,
                width => cursor.take(width, kind.name())?,
            };
            1
        }
        0 => {
            // The shortest values are two bytes: a type and a zero.
            let (_, count) = head(cursor, 2, "a list")?;
            all(cursor, count, within)?
        }
        98 => table(cursor, within)?,
        99 | 127 => {
            let (_, keys) = check(cursor, within)?;
            let (_, values) = check(cursor, within)?;
            if keys != values {
                let fault = Fault::Uneven { what: "values in a dictionary", expected: keys, found: values };
                return Err(Malformed::new(at, fault));
            }
            keys
        }
        100..=111 => {
            // The shortest values are two bytes: a type and a zero.
            let (_, parts) = function(cursor, kind, 2)?;
            all(cursor, parts, within)?;
            1
        }
        -128 => {
            cursor.text("an error's text")?;
            1
        }
        _ => return Err(Malformed::new(at, Fault::UnknownType(kind))),
    };
    Ok((kind, count))
}

/// Checks `count` values. Returns `count`.
fn all(cursor: &mut Cursor<'_>, count: usize, within: usize) -> Result<usize, Malformed> {
    for _ in 0..count {
        check(cursor, within)?;
    }
    Ok(count)
}

/// Checks a table after its type: an attribute, then a dictionary from names to a list of columns. Returns the number
/// of rows.
fn table(cursor: &mut Cursor<'_>, within: usize) -> Result<usize, Malformed> {
    let expect = |at, expected, found| Malformed::new(at, Fault::Table { expected, found });
    let uneven = |at, what, expected, found| Malformed::new(at, Fault::Uneven { what, expected, found });
    let _attribute: u8 = cursor.number("a table's attribute")?;
    let at = cursor.at();
    let dict = Type(cursor.number::<u8>("a table's dictionary")?.cast_signed());
    if !matches!(dict, Type::DICT | Type::SORTED_DICT) {
        return Err(expect(at, "a dictionary", dict));
    }
    let at = cursor.at();
    let (kind, names) = check(cursor, within)?;
    if kind != Type::SYMBOL {
        return Err(expect(at, "the columns' names", kind));
    }
    let at = cursor.at();
    let kind = Type(cursor.number::<u8>("a table's columns")?.cast_signed());
    if kind != Type::LIST {
        return Err(expect(at, "a list of columns", kind));
    }
    let (_, columns) = head(cursor, 2, "columns")?;
    if names != columns {
        return Err(uneven(at, "columns in a table", names, columns));
    }
    let mut rows = None;
    for _ in 0..columns {
        let at = cursor.at();
        let (kind, count) = check(cursor, within)?;
        if kind.0 < 0 || kind.0 > 19 && kind != Type::TABLE {
            return Err(expect(at, "columns", kind));
        }
        let first = *rows.get_or_insert(count);
        if count != first {
            return Err(uneven(at, "rows in a table's column", first, count));
        }
    }
    Ok(rows.unwrap_or(0))
}

/// Reads a function after its type up to its parts, of at least `width` bytes each, in the form observed from kdb+;
/// `code.kx.com/q/kb/serialization` documents lambdas. Returns its head and the number of parts.
pub(crate) fn function<'a>(
    cursor: &mut Cursor<'a>,
    kind: Type,
    width: usize,
) -> Result<(&'a [u8], usize), Malformed> {
    Ok(match kind {
        Type::LAMBDA => (cursor.text("a lambda's namespace")?, 1),
        Type::UNARY | Type::BINARY | Type::ITERATOR => (cursor.take(1, "a function")?, 0),
        Type::PROJECTION | Type::COMPOSITION => (&[], cursor.count(width, false, "a function's parts")?),
        _ => (&[], 1),
    })
}
