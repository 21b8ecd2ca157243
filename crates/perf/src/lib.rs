//! Measuring tools: LSEG's performance tools for the Open Message Model, bursts of datagrams, the noise of cores;
//! and the evaluation of their runs: run folders, plots, reports.
//!
//! Each tool is a set of options and a `run`; the binary adds them to its command line. A plant links none of this.

#![forbid(unsafe_code)]

pub mod burst;
pub mod jitter;
pub mod omm;
pub mod plot;
pub mod report;
pub mod run_folder;
