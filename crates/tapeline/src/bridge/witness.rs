//! `tapeline bridge witness`: one of those that decide which of two plants leads.

use std::net::SocketAddrV4;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use tapeline_console::output::print_json_line;
use tapeline_console::{FilePath, Format, LogArgs, Stop, log};
use tapeline_node::lease::{WitnessConfig, WitnessServer};
use tapeline_plant::bridge::lease::WitnessSettings;

use crate::events;

/// Grant the lease under which one of two plants leads; run one, three or five witnesses, on different hosts
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        tapeline bridge witness --bind 10.0.0.7:14050 --file witness   the others, and both plants, on other hosts\n  \
        tapeline bridge witness --file witness                         on this host, for a trial")]
pub(crate) struct WitnessArgs {
    /// The address at which plants ask, over UDP; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:14050")]
    bind: SocketAddrV4,
    /// The file with the epochs that were granted: it must survive the witness. No other witness may use it
    #[arg(long, value_name = "FILE")]
    file: FilePath,
    /// Output format of the totals at the end
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    #[command(flatten)]
    log: LogArgs,
}

impl WitnessArgs {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        self.log.begin("witness")?;
        log::time_each_line();
        let stop = Stop::on_signals()?;
        let settings = WitnessSettings::default();
        let config = WitnessConfig { bind: self.bind, file: self.file.to_path_buf(), settings };
        let witness = WitnessServer::open(&config, &events::printed())?;
        let (address, file) = (witness.address(), self.file.display());
        match self.format {
            Format::Json => print_json_line(&json!({ "ready": address }))?,
            Format::Table => {
                log::info(format_args!("plants ask at {address}; leases are in {file}; Ctrl-C ends it"));
            }
        }
        let report = witness.run(&stop.flag().into())?;
        match self.format {
            Format::Json => print_json_line(&report)?,
            Format::Table => log::info(format_args!(
                "{} leases granted, {} renewals, {} requests refused, {} datagrams malformed",
                report.granted, report.renewed, report.refused, report.malformed
            )),
        }
        Ok(ExitCode::SUCCESS)
    }
}
