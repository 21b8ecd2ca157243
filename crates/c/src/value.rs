//! Values of fields, in both directions.

use tapeline_omm::rwf::{Date, DateTime, Time, Value};

use crate::{tapeline_bytes, tapeline_text};

/// The form of a value.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum tapeline_value_kind {
    /// No value: the field is blank.
    TAPELINE_VALUE_BLANK = 0,
    /// `data.integer`.
    TAPELINE_VALUE_INT = 1,
    /// `data.whole`.
    TAPELINE_VALUE_UINT = 2,
    /// `data.number`: FLOAT and DOUBLE.
    TAPELINE_VALUE_DOUBLE = 3,
    /// `data.real`: a decimal number or a fraction, such as a price.
    TAPELINE_VALUE_REAL = 4,
    /// `data.time`: its day.
    TAPELINE_VALUE_DATE = 5,
    /// `data.time`: its time of day.
    TAPELINE_VALUE_TIME = 6,
    /// `data.time`: day and time of day.
    TAPELINE_VALUE_DATETIME = 7,
    /// `data.whole`: a number of an enumeration. tapeline_enum_display() returns its text.
    TAPELINE_VALUE_ENUM = 8,
    /// `data.text`: a string. The bytes of an RMTES string are as received; most are ASCII.
    TAPELINE_VALUE_TEXT = 9,
    /// `data.bytes`: every other type, as on the wire.
    TAPELINE_VALUE_BYTES = 10,
}

use tapeline_value_kind::*;

/// A REAL: a whole number with a hint for its point.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tapeline_real {
    /// The whole number; 0 for the hints 33 to 35.
    pub mantissa: i64,
    /// The value as a double, the nearest one. Only read: to publish, set mantissa and hint, or publish a
    /// TAPELINE_VALUE_DOUBLE.
    pub number: f64,
    /// 0 to 21: × 10^(hint - 14). 22 to 30: ÷ 2^(hint - 22). 33, 34, 35: infinity, minus infinity, not a number.
    pub hint: u32,
}

/// A day, a time of day, or both. Members that a value does not have, or that are unknown, are as stated.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct tapeline_date_time {
    /// The year; 0 if unknown.
    pub year: u16,
    /// 1 to 12; 0 if unknown.
    pub month: u8,
    /// 1 to 31; 0 if unknown.
    pub day: u8,
    /// 0 to 23; 255 if unknown.
    pub hour: u8,
    /// 0 to 59; 255 if unknown.
    pub minute: u8,
    /// 0 to 60; 255 if unknown.
    pub second: u8,
    /// 0.
    pub reserved: u8,
    /// Nanoseconds of the second; UINT32_MAX if the milliseconds are unknown.
    pub nanosecond: u32,
}

/// The member that the value's kind names.
#[repr(C)]
#[derive(Clone, Copy)]
pub union tapeline_value_data {
    /// TAPELINE_VALUE_INT.
    pub integer: i64,
    /// TAPELINE_VALUE_UINT and TAPELINE_VALUE_ENUM.
    pub whole: u64,
    /// TAPELINE_VALUE_DOUBLE.
    pub number: f64,
    /// TAPELINE_VALUE_REAL.
    pub real: tapeline_real,
    /// TAPELINE_VALUE_DATE, TAPELINE_VALUE_TIME and TAPELINE_VALUE_DATETIME.
    pub time: tapeline_date_time,
    /// TAPELINE_VALUE_TEXT.
    pub text: tapeline_text,
    /// TAPELINE_VALUE_BYTES.
    pub bytes: tapeline_bytes,
}

impl std::fmt::Debug for tapeline_value_data {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("tapeline_value_data").finish_non_exhaustive()
    }
}

/// A value: its kind, and one member of `data`. The struct does not change in later releases.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tapeline_value {
    /// A tapeline_value_kind.
    pub kind: u32,
    /// The member that the kind names.
    pub data: tapeline_value_data,
}

const NO_DAY: Date = Date::BLANK;
const NO_TIME: Time = Time::BLANK;

#[inline(never)]
fn date_time(date: Date, time: Time) -> tapeline_date_time {
    let below = |part: u16| if part < 1_000 { u32::from(part) } else { 0 };
    let nanosecond = if time.millisecond < 1_000 {
        u32::from(time.millisecond) * 1_000_000 + below(time.microsecond) * 1_000 + below(time.nanosecond)
    } else {
        u32::MAX
    };
    let (year, month, day) = (date.year, date.month, date.day);
    let (hour, minute, second) = (time.hour, time.minute, time.second);
    tapeline_date_time { year, month, day, hour, minute, second, reserved: 0, nanosecond }
}

impl tapeline_date_time {
    pub(crate) const fn date(self) -> Date {
        Date { day: self.day, month: self.month, year: self.year }
    }

    pub(crate) fn time(self) -> Time {
        let is_known = self.nanosecond < 1_000_000_000;
        let part = |by: u32| (self.nanosecond / by % 1_000) as u16;
        let (hour, minute, second) = (self.hour, self.minute, self.second);
        if !is_known {
            return Time { hour, minute, second, ..NO_TIME };
        }
        Time {
            hour,
            minute,
            second,
            millisecond: (self.nanosecond / 1_000_000) as u16,
            microsecond: part(1_000),
            nanosecond: part(1),
        }
    }

    pub(crate) fn both(self) -> DateTime {
        DateTime { date: self.date(), time: self.time() }
    }
}

/// Returns a value with its bytes on the wire, for kinds that have no member of their own.
#[inline(always)]
pub(crate) fn of(value: &Value<'_>, wire: &[u8]) -> tapeline_value {
    let (kind, data) = match *value {
        Value::Blank => (TAPELINE_VALUE_BLANK, tapeline_value_data { whole: 0 }),
        Value::Int(integer) => (TAPELINE_VALUE_INT, tapeline_value_data { integer }),
        Value::UInt(whole) => (TAPELINE_VALUE_UINT, tapeline_value_data { whole }),
        Value::Float(number) => (TAPELINE_VALUE_DOUBLE, tapeline_value_data { number: number.into() }),
        Value::Double(number) => (TAPELINE_VALUE_DOUBLE, tapeline_value_data { number }),
        Value::Real(real) => {
            let (mantissa, hint) = (real.mantissa, u32::from(real.hint.0));
            let real = tapeline_real { mantissa, number: real.to_f64(), hint };
            (TAPELINE_VALUE_REAL, tapeline_value_data { real })
        }
        Value::Date(date) => (TAPELINE_VALUE_DATE, tapeline_value_data { time: date_time(date, NO_TIME) }),
        Value::Time(time) => (TAPELINE_VALUE_TIME, tapeline_value_data { time: date_time(NO_DAY, time) }),
        Value::DateTime(both) => {
            (TAPELINE_VALUE_DATETIME, tapeline_value_data { time: date_time(both.date, both.time) })
        }
        Value::Enum(number) => (TAPELINE_VALUE_ENUM, tapeline_value_data { whole: number.into() }),
        Value::Ascii(bytes) | Value::Utf8(bytes) => {
            (TAPELINE_VALUE_TEXT, tapeline_value_data { text: tapeline_text::lend(bytes) })
        }
        Value::Rmtes(rmtes) => {
            (TAPELINE_VALUE_TEXT, tapeline_value_data { text: tapeline_text::lend(rmtes.0) })
        }
        _ => (TAPELINE_VALUE_BYTES, tapeline_value_data { bytes: tapeline_bytes::lend(wire) }),
    };
    tapeline_value { kind: kind as u32, data }
}
