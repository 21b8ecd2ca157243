//! Every command as its users start it: real processes, real sockets. The tests run many at a time, since most of them
//! wait; each has its own rings, ports and folders.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on should stop, and says what it skips"
)]

mod bridge;
mod burst;
mod c_library;
mod certificates;
mod dbn;
mod demo;
mod doctor;
mod examples;
mod faults;
mod feed;
mod feed_iex;
mod hostile;
mod hub_faults;
mod jitter;
mod journal;
mod journal_backup;
mod journal_export;
mod journal_feed;
mod journal_import;
mod journal_serve;
mod kdb;
mod kdb_client;
mod kept_formats;
mod omm;
mod omm_capture;
mod omm_decode;
mod omm_flood;
mod omm_hostile;
mod omm_perf_connections;
mod omm_perf_consumer;
mod omm_perf_ni_provider;
mod omm_perf_options;
mod omm_perf_provider;
mod omm_perf_scenarios;
mod omm_perf_settings;
mod omm_perf_standby;
mod omm_perf_transport;
mod omm_publish;
mod omm_transports;
mod omm_websocket;
mod pages;
mod paths;
mod perf_peer;
mod plant;
mod plant_access;
mod plant_day;
mod plant_disk;
mod plant_files;
mod plant_hub;
mod plant_iex;
mod plant_kdb;
mod plant_kills;
mod plant_passwords;
mod plant_recovery;
mod plant_serve;
mod plant_sources;
mod plant_states;
mod plant_venues;
mod plant_zeromq;
mod recovery;
mod remains;
mod report;
mod ring;
mod service_manager;
mod shared_data;
mod stage;
mod stat;
mod tick;
mod tick_bench;
mod venue_server;
