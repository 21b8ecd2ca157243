//! Measuring tools: LSEG's performance tools for the Open Message Model, the path through a plant hop by hop, rings and
//! tickerplants under load, bursts of datagrams, the path of a bridge, the sending side of a feed, the noise and the settings of a machine; and
//! the evaluation of their runs: run folders, plots, reports.
//!
//! Each tool is a set of options and a `run`; the binary adds them to its command line. A plant links none of this.

#![forbid(unsafe_code)]

pub mod burst;
pub mod doctor;
pub mod exchange;
pub mod jitter;
pub mod omm;
pub mod path;
pub mod plot;
pub mod probe;
pub mod report;
pub mod ring;
pub mod run_folder;
mod spread;
pub mod tick;
