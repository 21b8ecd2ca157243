//! What users of other OMM libraries and servers complained about, one test for each complaint: a whole plant with its hub, and Tapeline's own
//! clients, over real sockets. `docs/pains.md` has the table. `Real-Time-SDK` is LSEG's, github.com/Refinitiv/Real-Time-SDK; earlier
//! Elektron-SDK.

#![allow(clippy::unwrap_used, reason = "a test")]

mod allocator;
mod closing;
mod configuration;
mod dictionary;
mod leaks;
mod logins;
mod market;
mod mass;
mod naming;
mod relay;
mod services;
mod slow;
mod snapshots;
