//! Tables of other libraries, read by Arrow's C stream interface. Sound as long as a capsule of the name that the interface gives holds such a
//! stream, which is the interface's own rule.

use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::error::Error;

/// The batches of anything that has Arrow's C stream interface: frames of polars, tables of pyarrow, ours.
///
/// # Errors
/// It has no such interface.
pub(crate) fn stream(table: &Bound<'_, PyAny>) -> PyResult<RecordBatchStreamReader> {
    let Ok(export) = table.getattr("__arrow_c_stream__") else {
        let text = format!("expected a table, found {}", table.get_type().name()?);
        let hint = "a frame of polars or pandas, a table of pyarrow, or a dict of one item's fields";
        return Err(Error::argument(text, hint).into());
    };
    let capsule = export.call0().map_err(|error| {
        let hint = "each column has values of one type: text, numbers or booleans";
        Error::argument(format!("the table cannot be read: {error}"), hint)
    })?;
    let capsule = capsule.cast_into::<PyCapsule>()?;
    let stream = capsule.pointer_checked(Some(c"arrow_array_stream"))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: the pointer is that of a live capsule with the name by which the interface says what it points to. The
    // stream is moved out: what is left is an empty one, which the capsule's destructor passes over. Without this block
    // tests/test_omm.py's test_a_table_is_published fails.
    #[allow(unsafe_code)]
    let stream = unsafe { RecordBatchStreamReader::from_raw(stream.as_ptr()) };
    stream.map_err(|error| {
        Error::argument(
            format!("the table cannot be read: {error}"),
            "cast columns without any value to the type of their field",
        )
        .into()
    })
}
