//! The readers of the ring: what takes a plant's ticks onwards.
//!
//! | file | owns |
//! |---|---|
//! | `hub.rs`, `hub` | OMM clients in RWF and JSON: connections, logins, the hub's loop |
//! | `journal.rs` | the journal, and the gate of those that wait for it |
//! | `images.rs`, `image_server.rs` | the image of each item, and its way to late hubs |
//! | `zeromq.rs`, `zeromq`, `kdb.rs`, `kdb` | ZeroMQ subscribers; kdb+ clients as of a tickerplant |
//! | `bridge.rs`, `bridge` | the bridge to the plants below: lines, re-requests, catching up |
//! | `counting.rs`, `stat`, `web`, `otlp.rs` | figures of the running plant: counted, shared with other processes, served as a page and as metrics, pushed to a collector |
//! | `ticks.rs`, `cursor.rs`, `sequence_cursor.rs`, `journal_follower.rs`, `reader.rs` | reading: the ring's next tick, its place, gaps, ticks before the ring's oldest, a reader's thread |

pub mod bridge;
pub(crate) mod counting;
pub mod cursor;
pub mod hub;
pub mod image_server;
pub(crate) mod images;
pub mod journal;
pub mod journal_follower;
pub mod kdb;
pub mod otlp;
pub(crate) mod reader;
pub(crate) mod sequence_cursor;
pub mod stat;
pub mod ticks;
pub mod web;
pub mod zeromq;
