//! A value against what the reference decoder says of it, and written again.

use serde_json::Value as Json;
use tapeline_omm::rwf::DataType;
use tapeline_omm::{Date, DateTime, Field, FieldListEncoder, Real, Time, Value};

use super::{headers, unhex};

/// Compares a decoded value with its description.
pub(crate) fn check(name: &str, value: Value<'_>, expected: &Json) {
    if expected["blank"] == true {
        assert_eq!(value, Value::Blank, "{name}");
        return;
    }
    let said = &expected["value"];
    match value {
        Value::Int(value) => assert_eq!(value, *said, "{name}"),
        Value::UInt(value) => assert_eq!(value, *said, "{name}"),
        Value::Enum(value) => assert_eq!(u64::from(value), *said, "{name}"),
        Value::Float(value) => check_double(name, f64::from(value), said, 1e-7),
        Value::Double(value) => check_double(name, value, said, 0.0),
        Value::Real(value) => check_real(name, value, expected),
        Value::Date(value) => check_date(name, value, said),
        Value::Time(value) => assert_eq!(serde_json::json!(time_parts(value)), expected["parts"], "{name}"),
        Value::DateTime(DateTime { date, time }) => {
            let mut parts = vec![date.year, u16::from(date.month), u16::from(date.day)];
            parts.extend(time_parts(time));
            assert_eq!(serde_json::json!(parts), expected["parts"], "{name}");
        }
        Value::Qos(value) => headers::check_qos(name, Some(value), said),
        Value::State(value) => headers::check_state(name, Some(value), said),
        // The reference shows a byte for a character.
        Value::Buffer(value) | Value::Ascii(value) => {
            let text: String = value.iter().copied().map(char::from).collect();
            assert_eq!(text, *said, "{name}");
        }
        Value::Utf8(value) => assert_eq!(str::from_utf8(value).unwrap(), *said, "{name}"),
        // The reference shows control characters of the right half as the lower byte of U+FFFD.
        Value::Rmtes(value) => assert_eq!(value.to_text().replace('\u{82}', "\u{FD}"), *said, "{name}"),
        Value::Array(array) => {
            assert_eq!(array.item_type.name().unwrap(), expected["arrayType"], "{name}");
            assert_eq!(u64::from(array.item_len), expected["itemLength"], "{name}");
            let items = expected["items"].as_array().unwrap();
            assert_eq!(usize::from(array.count), items.len(), "{name}");
            for ((bytes, value), expected) in array.iter().zip(array.values()).zip(items) {
                assert_eq!(bytes.unwrap(), unhex(expected["hex"].as_str().unwrap()), "{name}");
                check(name, value.unwrap(), expected);
            }
        }
        other => panic!("{name}: {other:?} has no test"),
    }
}

fn check_double(name: &str, value: f64, said: &Json, tolerance: f64) {
    match said.as_str() {
        Some("NaN") => assert!(value.is_nan(), "{name}"),
        Some("Infinity" | "Inf") => assert_eq!(value, f64::INFINITY, "{name}"),
        Some("-Infinity" | "-Inf") => assert_eq!(value, f64::NEG_INFINITY, "{name}"),
        Some(text) => check_close(name, value, text.parse().unwrap(), tolerance),
        None => check_close(name, value, said.as_f64().unwrap(), tolerance),
    }
}

fn check_close(name: &str, value: f64, said: f64, tolerance: f64) {
    // The smallest floats have no seven digits.
    if tolerance > 0.0 && value as f32 == said as f32 {
        return;
    }
    assert!((value - said).abs() <= said.abs() * tolerance, "{name}: {value} is not {said}");
}

fn check_real(name: &str, value: Real, expected: &Json) {
    assert_eq!(u64::from(value.hint.0), expected["hint"], "{name}");
    assert_eq!(value.mantissa, expected["mantissa"], "{name}");
    // The reference goes by way of a double, so the last of 17 digits may differ.
    check_double(name, value.to_f64(), &expected["value"], 1e-15);
    if !value.hint.is_special() {
        check_close(name, value.to_string().parse().unwrap(), value.to_f64(), 1e-15);
    }
}

/// Such as `29 FEB 2024`, or the year alone.
fn check_date(name: &str, date: Date, said: &Json) {
    const MONTHS: [&str; 12] =
        ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
    let said: Vec<_> = said.as_str().unwrap().split_whitespace().collect();
    let mut found = Vec::new();
    if date.day > 0 {
        found.push(format!("{:02}", date.day));
    }
    if date.month > 0 {
        found.push(MONTHS[usize::from(date.month) - 1].to_owned());
    }
    found.push(date.year.to_string());
    assert_eq!(found, said, "{name}");
}

fn time_parts(time: Time) -> [u16; 6] {
    let whole = [time.hour, time.minute, time.second].map(u16::from);
    [whole[0], whole[1], whole[2], time.millisecond, time.microsecond, time.nanosecond]
}

/// Writes a field again from its decoded value, by the method of its type. Where blank was written as a value it
/// is written so again.
pub(crate) fn encode_again(list: &mut FieldListEncoder<'_>, field: &Field<'_>, data_type: DataType) {
    let fid = field.fid;
    let value = field.value(data_type).unwrap();
    let done = match value {
        Value::Blank if field.data.is_empty() => list.blank(fid),
        Value::Blank => match data_type {
            DataType::DATE => list.date(fid, Date::BLANK),
            DataType::TIME => list.time(fid, Time::BLANK),
            DataType::DATETIME => list.date_time(fid, DateTime::BLANK),
            // The vendor's JSON converter writes a hint alone.
            DataType::REAL if field.data == [0] => list.raw(fid, field.data),
            _ => panic!("{fid}: blank as a value"),
        },
        Value::Int(value) => list.int(fid, value),
        Value::UInt(value) => list.uint(fid, value),
        Value::Float(value) => list.float(fid, value),
        Value::Double(value) => list.double(fid, value),
        Value::Real(value) => list.real(fid, value),
        Value::Date(value) => list.date(fid, value),
        Value::Time(value) => list.time(fid, value),
        Value::DateTime(value) => list.date_time(fid, value),
        Value::Qos(value) => list.qos(fid, value),
        Value::State(value) => list.state(fid, &value),
        Value::Enum(value) => list.enumeration(fid, value),
        Value::Buffer(value) => list.buffer(fid, value),
        Value::Ascii(value) => list.ascii(fid, value),
        Value::Utf8(value) => list.utf8(fid, str::from_utf8(value).unwrap()),
        Value::Rmtes(value) => list.rmtes(fid, value.0),
        Value::Array(array) => list.array(fid, array.item_type, array.item_len, |items| {
            array.values().try_for_each(|value| items.value(&value.unwrap()))
        }),
        other => list.value(fid, &other),
    };
    done.unwrap();
    if data_type != DataType::ARRAY && !matches!(value, Value::Blank) {
        // The way of values of any type comes to the same.
        let size = field.data.len() + 16;
        let (mut by_type, mut by_value) = (vec![0; size], vec![0; size]);
        let mut one = FieldListEncoder::new(&mut by_type).unwrap();
        one.raw(fid, field.data).unwrap();
        let mut other = FieldListEncoder::new(&mut by_value).unwrap();
        other.value(fid, &value).unwrap();
        assert_eq!(one.finish(), other.finish());
        assert_eq!(by_type, by_value);
    }
}
