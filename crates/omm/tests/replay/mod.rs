//! The golden captures played to the roles: what the client sent is fed, the application answers as the recorded server
//! did, and what the role sends is compared with the recording by its meaning. And all messages of the administrative
//! domains in them, read as values and written again.
use crate::shared_data;

mod acceptor;
mod capture;
mod compare;
mod domains;
mod provider;
