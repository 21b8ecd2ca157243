//! Conversion of field values to the types of columns.

use tapeline_omm::rwf::Value;
use tapeline_omm::{Malformed, Real};

use crate::Error;
use crate::batch::Unfit;

/// Returns a value of an exact numeric type: `Some(None)` if it is blank, `None` if it is anything else.
pub(crate) fn real(value: &Value<'_>) -> Option<Option<Real>> {
    Some(match *value {
        Value::Blank => None,
        Value::Real(real) => Some(real),
        Value::Int(number) => Some(Real::integer(number)),
        Value::UInt(number) => Some(Real::integer(i64::try_from(number).ok()?)),
        _ => return None,
    })
}

/// Returns a value as a time of day in ns; the result is as in [`real`]. A partly unknown time is not a time.
pub(crate) fn ns_of_day(value: &Value<'_>) -> Option<Option<i64>> {
    Some(match value {
        Value::Blank => None,
        // The ns of a day have 47 bits.
        Value::Time(time) => Some(time.ns_of_day()?.cast_signed()),
        _ => return None,
    })
}

/// Returns a value as a double, if it is a number.
pub(crate) fn double(value: &Value<'_>) -> Option<f64> {
    Some(match *value {
        Value::Int(number) => number as f64,
        Value::UInt(number) => number as f64,
        Value::Enum(number) => f64::from(number),
        Value::Float(number) => f64::from(number),
        Value::Double(number) => number,
        Value::Real(real) => real.to_f64(),
        _ => return None,
    })
}

/// An error of a tick, before its sequence is added.
pub(crate) enum Fault {
    Malformed(Malformed),
    Unfit(Unfit),
    Other(Error),
}

impl Fault {
    pub(crate) fn at(self, seq: u64) -> Error {
        match self {
            Self::Malformed(source) => Error::Message { seq, source },
            Self::Unfit(Unfit { column, value, expected }) => {
                Error::Number { seq, column, value: value.to_string(), expected }
            }
            Self::Other(error) => error,
        }
    }
}

impl From<Malformed> for Fault {
    fn from(fault: Malformed) -> Self {
        Self::Malformed(fault)
    }
}

impl From<Unfit> for Fault {
    fn from(fault: Unfit) -> Self {
        Self::Unfit(fault)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}
