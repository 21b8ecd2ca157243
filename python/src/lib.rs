//! The compiled part of the Python package `tapeline`: sources that gather ticks and messages into Arrow batches. The names and the
//! documentation for users are in the Python part.

mod batch;
mod cells;
mod columns;
mod consumer;
mod error;
mod journal;
mod last_values;
mod plant;
mod publish;
mod ring;
mod stream;
mod taken;
mod ticks;

use pyo3::prelude::*;

/// The compiled part of the package.
#[pymodule]
fn _tapeline(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<batch::Batch>()?;
    module.add_class::<ring::RingSource>()?;
    module.add_class::<journal::JournalSource>()?;
    module.add_class::<consumer::ConsumerSource>()?;
    module.add_class::<plant::PlantSource>()?;
    module.add_class::<publish::PublisherSource>()?;
    module.add_class::<publish::ProviderSource>()?;
    error::add_to(module)
}
