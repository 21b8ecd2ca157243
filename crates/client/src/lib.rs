//! Client-side access to Open Message Model services: the roles of [`tapeline_omm`] on the connections of [`tapeline_wire`].
//!
//! [`Consumer`], [`Publisher`] and [`Provider`] contain their own connections and event loop: subscribe or publish, then take events
//! one at a time. [`Request`] says what a consumer wants of an item, [`Payload`] what a message contains.
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
//! A program with its own event loop uses the parts:
//!
//! | module | owns |
//! |---|---|
//! | [`dialer`] | a role that connects out: its servers, its connection, its reconnects |
//! | [`server`] | connections from clients |
//! | [`connection`] | one role's messages on one connection: RWF unchanged, simplified JSON converted in both directions |
//! | [`endpoint`] | the address of a server, and the connection settings |
//! | [`login`] | the login of a user |
//! | [`ema_config`] | `EmaConfig.xml`, and the same settings in TOML |
//! | `stream` | with the feature `tokio`: the events of a consumer as a `Stream` |
//! | [`xml`] | XML files, read with line numbers |
//!
//! This crate prints nothing: messages for the user are returned as data.

#![forbid(unsafe_code)]

pub mod connection;
mod consumer;
pub mod dialer;
pub mod ema_config;
pub mod endpoint;
mod error;
pub mod login;
mod near;
mod payload;
mod provider;
mod publisher;
mod request;
pub mod server;
#[cfg(feature = "tokio")]
pub mod stream;
mod values;
pub mod xml;

pub use consumer::{Consumer, Event, Item, ItemMessage, LoginMessage, Refusal};
pub use endpoint::Endpoint;
pub use error::Error;
pub use login::Login;
pub use near::nearest;
pub use payload::{MapRow, Payload};
pub use provider::{ItemStream, LoginAnswer, Provider, ProviderEvent};
pub use publisher::Publisher;
pub use request::Request;
