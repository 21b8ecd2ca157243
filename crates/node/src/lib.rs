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
pub mod certificates;
pub mod config;
mod error;
mod events;
mod inputs;
pub mod lease;
mod liveness;
mod numbering;
mod plant;
mod readers;
pub mod report;
mod ring;
mod socket_waker;
mod stop;
pub mod tick;

pub use self::config::Config;
pub use self::error::{Error, Result};
pub use self::events::{Event, Events, Severity};
pub use self::inputs::{queue, soup, sources, upstream};
pub use self::liveness::Liveness;
pub use self::plant::{Ended, Plant};
pub use self::readers::{
    bridge, cursor, hub, image_server, journal, journal_follower, kdb, otlp, stat, ticks, web, zeromq,
};
pub use self::stop::Stop;
