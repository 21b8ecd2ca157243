//! The cache against a simple model, on golden messages, on damaged ones, and at its limits.
use crate::mutations;
use crate::shared_data;

mod alike;
mod containers;
mod holds;
mod images;
mod lists;
mod messages;
mod model;
mod shifts;
mod vectors;
