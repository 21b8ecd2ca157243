//! A batch of rows, as Python sees it.

use arrow_array::ffi::to_ffi;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array, RecordBatch, RecordBatchIterator, StructArray};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::error::Error;

/// Rows in Arrow's memory layout, which polars, pyarrow, pandas, DuckDB and others take without a copy.
#[pyclass(frozen, module = "tapeline")]
#[derive(Debug)]
pub(crate) struct Batch {
    rows: RecordBatch,
    /// The sequence of the first tick; `None` for messages without a sequence.
    #[pyo3(get)]
    first_sequence: Option<u64>,
    /// The sequence of the last tick.
    #[pyo3(get)]
    last_sequence: Option<u64>,
    /// How many ticks are missing directly before the first one.
    #[pyo3(get)]
    missing: u64,
}

impl Batch {
    pub(crate) const fn new(rows: RecordBatch, sequences: Option<(u64, u64)>, missing: u64) -> Self {
        let (first_sequence, last_sequence) = match sequences {
            Some((first, last)) => (Some(first), Some(last)),
            None => (None, None),
        };
        Self { rows, first_sequence, last_sequence, missing }
    }

    pub(crate) fn into_rows(self) -> RecordBatch {
        self.rows
    }
}

#[pymethods]
impl Batch {
    /// The number of rows.
    fn __len__(&self) -> usize {
        self.rows.num_rows()
    }

    /// The rows as a `polars.DataFrame`.
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        convert(slf, "to_polars")
    }

    /// The rows as a `pyarrow.Table`.
    fn to_arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        convert(slf, "to_arrow")
    }

    /// The rows as a `pandas.DataFrame`.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        convert(slf, "to_pandas")
    }

    /// The names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.rows.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __repr__(&self) -> String {
        let (rows, columns) = (self.rows.num_rows(), self.rows.num_columns());
        match (self.first_sequence, self.last_sequence) {
            (Some(first), Some(last)) => {
                format!("<tapeline.Batch: {rows} rows, {columns} columns, ticks {first} to {last}>")
            }
            _ => format!("<tapeline.Batch: {rows} rows, {columns} columns>"),
        }
    }

    /// The rows by Arrow's C data interface.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        // Optional in the interface: the consumer casts.
        drop(requested_schema);
        let rows = StructArray::from(self.rows.clone());
        let (array, schema) = to_ffi(&rows.to_data()).map_err(|error| Error::fault(error.to_string()))?;
        Ok((
            PyCapsule::new_with_value(py, schema, c"arrow_schema")?,
            PyCapsule::new_with_value(py, array, c"arrow_array")?,
        ))
    }

    /// The rows by Arrow's C stream interface, as one batch.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let rows = RecordBatchIterator::new([Ok(self.rows.clone())], self.rows.schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(rows)), c"arrow_array_stream")
    }
}

/// The conversions of a scan are those of a batch.
fn convert<'py>(batch: &Bound<'py, Batch>, how: &str) -> PyResult<Bound<'py, PyAny>> {
    batch.py().import("tapeline._batches")?.getattr("Table")?.getattr(how)?.call1((batch,))
}
