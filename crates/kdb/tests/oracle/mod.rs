//! A second writer of values, from the same specification and in either byte order, as a reference for the encoder and
//! the reader. It is written for correctness only.
#![allow(dead_code, reason = "each test that has it uses a part")]

use tapeline_kdb::{Atom, Order, Type, Value};

/// Returns a value's bytes.
pub(crate) fn bytes(value: &Value, order: Order) -> Vec<u8> {
    let mut out = Vec::new();
    put(value, order, &mut out);
    out
}

/// Appends a number's bytes, given with the least significant one first.
fn number<const N: usize>(little: [u8; N], order: Order, out: &mut Vec<u8>) {
    match order {
        Order::Little => out.extend(little),
        Order::Big => out.extend(little.iter().rev()),
    }
}

fn count(count: usize, order: Order, out: &mut Vec<u8>) {
    number((count as u32).to_le_bytes(), order, out);
}

fn text(text: &[u8], out: &mut Vec<u8>) {
    out.extend(text);
    out.push(0);
}

fn item(atom: &Atom<Box<[u8]>>, order: Order, out: &mut Vec<u8>) {
    match atom {
        Atom::Boolean(value) => out.push(u8::from(*value)),
        Atom::Guid(value) => out.extend(value),
        Atom::Byte(value) | Atom::Char(value) => out.push(*value),
        Atom::Symbol(name) => text(name, out),
        Atom::Short(value) => number(value.to_le_bytes(), order, out),
        Atom::Int(value)
        | Atom::Month(value)
        | Atom::Date(value)
        | Atom::Minute(value)
        | Atom::Second(value)
        | Atom::Time(value) => number(value.to_le_bytes(), order, out),
        Atom::Long(value) | Atom::Timestamp(value) | Atom::Timespan(value) => {
            number(value.to_le_bytes(), order, out);
        }
        Atom::Real(value) => number(value.to_le_bytes(), order, out),
        Atom::Float(value) | Atom::Datetime(value) => number(value.to_le_bytes(), order, out),
    }
}

fn list(values: &[Value], order: Order, out: &mut Vec<u8>) {
    out.extend([0, 0]);
    count(values.len(), order, out);
    values.iter().for_each(|value| put(value, order, out));
}

fn put(value: &Value, order: Order, out: &mut Vec<u8>) {
    match value {
        Value::Atom(atom) => {
            out.push(atom.kind().0 as u8);
            item(atom, order, out);
        }
        Value::Vector { kind, attribute, items } => {
            out.extend([kind.0 as u8, attribute.0]);
            count(items.len(), order, out);
            items.iter().for_each(|atom| item(atom, order, out));
        }
        Value::List(values) => list(values, order, out),
        Value::Dict { is_sorted, keys, values } => {
            out.push(if *is_sorted { 127 } else { 99 });
            put(keys, order, out);
            put(values, order, out);
        }
        Value::Table { names, columns } => {
            out.extend([98, 0, 99, 11, 0]);
            count(names.len(), order, out);
            names.iter().for_each(|name| text(name, out));
            list(columns, order, out);
        }
        Value::Function { kind, head, parts } => {
            out.push(kind.0 as u8);
            match *kind {
                Type::LAMBDA => text(head, out),
                Type::PROJECTION | Type::COMPOSITION => count(parts.len(), order, out),
                _ => out.extend(head),
            }
            parts.iter().for_each(|part| put(part, order, out));
        }
        Value::Error(message) => {
            out.push(128);
            text(message, out);
        }
        _ => unreachable!("every kind of value is above"),
    }
}
