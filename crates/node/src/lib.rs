//! A plant as a library. Feeds, providers and kdb+ publishers are its inputs; it publishes one sequence of
//! ticks on a ring in shared memory. The ring serves a journal, a hub for OMM clients, ZeroMQ, kdb+, images
//! for late readers, counters and a page.
//!
//! This crate has the loops that drive the state machines of the other crates over real sockets, files and
//! threads. It parses no command line and no configuration file, prints nothing, and reports [`Events`].
//!
//! ```
//! use tapeline_node::hub::HubConfig;
//! use tapeline_node::{Config, Events, Plant, Stop};
//! use tapeline_ring::Name;
//!
//! // A plant without a feed, and a hub on a free port. `examples/plant.rs` adds a feed and a journal.
//! let name = format!("doc-node-{}", std::process::id());
//! let mut config = Config::new("EXAMPLE", Name::new(&name)?);
//! config.hub = Some(HubConfig::new("127.0.0.1:0".parse()?));
//! let stop = Stop::default();
//! let plant = Plant::open(config, &stop, &Events::new(|event| eprintln!("{event}")))?;
//! assert!(plant.ready().hub.is_some());
//! // A signal handler would do this later.
//! stop.request();
//! let ended = plant.run(false);
//! assert!(ended.failed.is_none());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

pub mod access;
pub mod config;
mod counting;
pub mod cursor;
mod error;
mod events;
pub mod hub;
pub mod image_server;
mod images;
mod intake;
pub mod journal;
pub mod journal_follower;
pub mod kdb;
mod plant;
pub mod queue;
mod reader;
mod recorded;
mod recovery;
pub mod report;
mod sequence_cursor;
mod socket_waker;
pub mod soup;
pub mod sources;
pub mod stat;
mod stop;
pub mod tick;
pub mod ticks;
pub mod web;
pub mod zeromq;

pub use self::config::Config;
pub use self::error::{Error, Result};
pub use self::events::{Event, Events, Severity};
pub use self::plant::{Ended, Plant};
pub use self::stop::Stop;
