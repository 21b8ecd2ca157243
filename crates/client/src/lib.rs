//! Open Message Model services from a program's side: the roles of [`tapeline_omm`] on the connections of [`tapeline_wire`].
//!
//! [`Consumer`], [`Publisher`] and [`Provider`] have their connections and their loops: subscribe or publish, and take one event after
//! the other.
//!
//! ```no_run
//! use tapeline_client::{Consumer, Event, Login};
//!
//! let mut consumer = Consumer::connect("localhost:14002", &Login::user("me"))?;
//! consumer.subscribe("TAPELINE", &["AAPL"])?;
//! loop {
//!     if let Event::Message(message) = consumer.next()? {
//!         println!("{message}");
//!     }
//! }
//! # Ok::<(), tapeline_client::Error>(())
//! ```
//!
//! A program with a loop of its own takes the parts:
//!
//! | module | owns |
//! |---|---|
//! | [`dialer`] | a role that connects out: its servers, its connection, when to connect again |
//! | [`server`] | connections that clients make |
//! | [`connection`] | one role's messages on one connection: RWF as it is, simplified JSON converted both ways |
//! | [`endpoint`] | where a server is, and how to connect to it |
//! | [`login`] | who logs in |
//! | [`ema_config`] | `EmaConfig.xml`, and the same settings in TOML |
//! | [`xml`] | files of elements with the line of everything in them |
//!
//! Nothing is printed here: what a program may want to say comes back as data.

#![forbid(unsafe_code)]

pub mod connection;
mod consumer;
pub mod dialer;
pub mod ema_config;
pub mod endpoint;
mod error;
pub mod login;
mod near;
mod provider;
mod publisher;
pub mod server;
mod values;
pub mod xml;

pub use consumer::{Consumer, Event, ItemMessage};
pub use endpoint::Endpoint;
pub use error::Error;
pub use login::Login;
pub use near::nearest;
pub use provider::{Provider, Request};
pub use publisher::Publisher;
