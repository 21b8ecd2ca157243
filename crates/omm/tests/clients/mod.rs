//! The client's side of a connection, consumer and NI provider, against captured conversations, made-up peers, and
//! hostile ones.

#[allow(dead_code, reason = "texts are for other tests")]
use crate::shared_data;

mod captured;
mod desk;
mod publishing;
mod recovery;
mod replay;
mod requests;
mod simulation;
mod standby;
