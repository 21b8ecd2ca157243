//! Who made which tool, and how each is told the same thing.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::ValueEnum;

use crate::SERVICE;

/// Whose tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Maker {
    /// This project's.
    Tapeline,
    /// LSEG's in C, on ETA.
    Eta,
    /// LSEG's in C++, on EMA.
    Ema,
}

/// What a provider is to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Updates a second.
    pub(crate) rate: u64,
    /// Of these with a time.
    pub(crate) stamps: u64,
}

/// What a consumer is to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asking {
    pub(crate) items: usize,
    /// Requests a second.
    pub(crate) requests: u64,
    /// Seconds from the last image on.
    pub(crate) steady_s: u64,
}

/// Longer than any turn: a provider is ended.
const FOR_LONG: &str = "600";
/// Seconds that EMA's consumer is given more, which counts from its start.
const EMA_EARLIER_S: u64 = 3;
/// Seconds between two lines of statistics: LSEG's consumers look at nothing between.
const INTERVAL_S: &str = "1";

impl Maker {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Tapeline => "Tapeline",
            Self::Eta => "ETA C",
            Self::Ema => "EMA C++",
        }
    }

    fn program(self, tools: Option<&Path>, theirs: &str) -> PathBuf {
        match (self, tools) {
            (Self::Tapeline, _) | (_, None) => PathBuf::from(env!("CARGO_BIN_EXE_tapeline")),
            (_, Some(tools)) => tools.join(theirs),
        }
    }

    /// An interactive provider at a port.
    pub(crate) fn provider(
        self,
        tools: Option<&Path>,
        server: SocketAddr,
        load: Load,
    ) -> (PathBuf, Vec<String>) {
        let (port, rate, stamps) =
            (server.port().to_string(), load.rate.to_string(), load.stamps.to_string());
        match self {
            Self::Tapeline => {
                let options = [
                    "omm",
                    "provider",
                    "--port",
                    &port,
                    "--service-name",
                    SERVICE,
                    "--update-rate",
                    &rate,
                    "--latency-update-rate",
                    &stamps,
                    "--run-time",
                    FOR_LONG,
                    "--no-due",
                    "--run-folder",
                    "provider",
                ];
                (self.program(tools, ""), owned(&options))
            }
            Self::Eta => {
                let options = [
                    "-p",
                    &port,
                    "-serviceName",
                    SERVICE,
                    "-serviceId",
                    "1",
                    "-threads",
                    "-1",
                    "-updateRate",
                    &rate,
                    "-latencyUpdateRate",
                    &stamps,
                    "-runTime",
                    FOR_LONG,
                ];
                (self.program(tools, "ProvPerf"), owned(&options))
            }
            Self::Ema => {
                let options = ["-updateRate", &rate, "-latencyUpdateRate", &stamps, "-runTime", FOR_LONG];
                (self.program(tools, "EmaCppIProvPerf"), owned(&options))
            }
        }
    }

    /// A consumer of it.
    pub(crate) fn consumer(
        self,
        tools: Option<&Path>,
        server: SocketAddr,
        asking: Asking,
    ) -> (PathBuf, Vec<String>) {
        let (items, requests) = (asking.items.to_string(), asking.requests.to_string());
        let steady = match self {
            Self::Ema => asking.steady_s + EMA_EARLIER_S,
            _ => asking.steady_s,
        };
        let (steady, port, server) = (steady.to_string(), server.port().to_string(), server.to_string());
        match self {
            Self::Tapeline => {
                let options = [
                    "omm",
                    "consumer",
                    "--server",
                    &server,
                    "--service-name",
                    SERVICE,
                    "--item-count",
                    &items,
                    "--request-rate",
                    &requests,
                    "--steady-state-time",
                    &steady,
                    "--write-stats-interval",
                    INTERVAL_S,
                    "--run-folder",
                    "consumer",
                ];
                (self.program(tools, ""), owned(&options))
            }
            Self::Eta => {
                let options = [
                    "-h",
                    "127.0.0.1",
                    "-p",
                    &port,
                    "-serviceName",
                    SERVICE,
                    "-threads",
                    "-1",
                    "-itemCount",
                    &items,
                    "-requestRate",
                    &requests,
                    "-steadyStateTime",
                    &steady,
                    "-writeStatsInterval",
                    INTERVAL_S,
                ];
                (self.program(tools, "ConsPerf"), owned(&options))
            }
            Self::Ema => {
                let options = [
                    "-itemCount",
                    &items,
                    "-requestRate",
                    &requests,
                    "-steadyStateTime",
                    &steady,
                    "-writeStatsInterval",
                    INTERVAL_S,
                ];
                (self.program(tools, "EmaCppConsPerf"), owned(&options))
            }
        }
    }

    /// A non-interactive provider of a hub.
    pub(crate) fn ni_provider(
        self,
        tools: Option<&Path>,
        hub: SocketAddr,
        items: usize,
        load: Load,
        run_s: u64,
    ) -> (PathBuf, Vec<String>) {
        let (port, items, rate) = (hub.port().to_string(), items.to_string(), load.rate.to_string());
        let (stamps, run, hub) = (load.stamps.to_string(), run_s.to_string(), hub.to_string());
        match self {
            Self::Tapeline => {
                let options = [
                    "omm",
                    "ni-provider",
                    "--server",
                    &hub,
                    "--service-name",
                    SERVICE,
                    "--item-count",
                    &items,
                    "--update-rate",
                    &rate,
                    "--latency-update-rate",
                    &stamps,
                    "--run-time",
                    &run,
                    "--no-due",
                    "--run-folder",
                    "ni-provider",
                ];
                (self.program(tools, ""), owned(&options))
            }
            Self::Eta => {
                let options = [
                    "-h",
                    "127.0.0.1",
                    "-p",
                    &port,
                    "-serviceName",
                    SERVICE,
                    "-serviceId",
                    "1",
                    "-threads",
                    "-1",
                    "-itemCount",
                    &items,
                    "-updateRate",
                    &rate,
                    "-latencyUpdateRate",
                    &stamps,
                    "-runTime",
                    &run,
                ];
                (self.program(tools, "NIProvPerf"), owned(&options))
            }
            Self::Ema => {
                let options = [
                    "-serviceName",
                    SERVICE,
                    "-itemCount",
                    &items,
                    "-updateRate",
                    &rate,
                    "-latencyUpdateRate",
                    &stamps,
                    "-runTime",
                    &run,
                ];
                (self.program(tools, "EmaCppNIProvPerf"), owned(&options))
            }
        }
    }

    /// A server of messages without a meaning, which sends so many a second.
    pub(crate) fn transport_server(
        self,
        tools: Option<&Path>,
        server: SocketAddr,
        rate: u64,
    ) -> (PathBuf, Vec<String>) {
        let (port, rate) = (server.port().to_string(), rate.to_string());
        match self {
            Self::Tapeline => {
                let options = [
                    "omm",
                    "transport",
                    "server",
                    "--port",
                    &port,
                    "--msg-rate",
                    &rate,
                    "--latency-msg-rate",
                    "1000",
                    "--run-time",
                    FOR_LONG,
                    "--run-folder",
                    "server",
                ];
                (self.program(tools, ""), owned(&options))
            }
            _ => {
                let options = [
                    "-appType",
                    "server",
                    "-p",
                    &port,
                    "-threads",
                    "-1",
                    "-msgRate",
                    &rate,
                    "-latencyMsgRate",
                    "1000",
                    "-runTime",
                    FOR_LONG,
                ];
                (self.program(tools, "TransportPerf"), owned(&options))
            }
        }
    }

    /// A client of it, which sends nothing.
    pub(crate) fn transport_client(
        self,
        tools: Option<&Path>,
        server: SocketAddr,
        run_s: u64,
    ) -> (PathBuf, Vec<String>) {
        let (port, run, server) = (server.port().to_string(), run_s.to_string(), server.to_string());
        match self {
            Self::Tapeline => {
                let options = [
                    "omm",
                    "transport",
                    "client",
                    "--server",
                    &server,
                    "--msg-rate",
                    "0",
                    "--latency-msg-rate",
                    "0",
                    "--run-time",
                    &run,
                    "--write-stats-interval",
                    INTERVAL_S,
                    "--run-folder",
                    "client",
                ];
                (self.program(tools, ""), owned(&options))
            }
            _ => {
                let options = [
                    "-appType",
                    "client",
                    "-h",
                    "127.0.0.1",
                    "-p",
                    &port,
                    "-threads",
                    "-1",
                    "-msgRate",
                    "0",
                    "-latencyMsgRate",
                    "0",
                    "-runTime",
                    &run,
                    "-writeStatsInterval",
                    INTERVAL_S,
                ];
                (self.program(tools, "TransportPerf"), owned(&options))
            }
        }
    }
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

/// A command that runs on one core, if one is given.
pub(crate) fn on_core(core: Option<usize>, program: &Path, options: &[String]) -> Command {
    let mut command = match core {
        Some(core) => {
            let mut command = Command::new("taskset");
            command.args(["-c", &core.to_string()]).arg(program);
            command
        }
        None => Command::new(program),
    };
    command.args(options);
    command
}
