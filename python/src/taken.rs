//! What a source gives to Python.

use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::batch::Batch;

/// What a source gives: a batch, nothing within the time, or its end.
#[derive(Debug)]
pub(crate) enum Taken {
    Batch(Batch),
    Nothing,
    End,
}

impl<'py> IntoPyObject<'py> for Taken {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(match self {
            Self::Batch(batch) => Bound::new(py, batch)?.into_any(),
            Self::Nothing => py.None().into_bound(py),
            Self::End => pyo3::types::PyTuple::empty(py).into_any(),
        })
    }
}

/// Reads a time in seconds; an hour at most.
///
/// # Errors
/// It is negative or not a number.
pub(crate) fn seconds(what: &str, value: f64) -> PyResult<Duration> {
    // The lesser of an hour and NaN is an hour.
    let longest = if value.is_nan() { value } else { value.min(3_600.0) };
    Duration::try_from_secs_f64(longest)
        .map_err(|_| PyValueError::new_err(format!("{what} is a time in seconds, not {value}")))
}
