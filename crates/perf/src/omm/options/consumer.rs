//! `tapeline omm consumer`: ConsPerf.

use clap::{Args, ValueEnum};
use tapeline_client::ema_config::StandbyMode;
use tapeline_console::omm::dictionaries::DictionaryArgs;
use tapeline_console::omm::login::LoginArgs;
use tapeline_console::omm::transport::ClientArgs;
use tapeline_console::paths::FilePath;

use super::{ItemArgs, RunArgs, rate, seconds};

/// Open many items of a provider, and measure the received messages.
#[derive(Clone, Debug, Args)]
pub struct ConsumerArgs {
    /// Service name of the items
    #[arg(long, value_name = "NAME", default_value = "DIRECT_FEED")]
    pub(in super::super) service_name: String,
    /// Request items by the service's number instead of its name
    #[arg(long)]
    pub(in super::super) use_service_id: bool,
    #[command(flatten)]
    pub(in super::super) items: ItemArgs,
    /// Contents of posts and generic messages [default: MsgData.xml in the current folder, or else the built-in file]
    #[arg(long, value_name = "FILE")]
    pub(in super::super) msg_file: Option<FilePath>,
    /// Requests a second
    #[arg(long, value_name = "RATE", default_value = "35000", value_parser = rate)]
    pub(in super::super) request_rate: u64,
    /// Open all items as snapshots, and end when all have arrived
    #[arg(long)]
    pub(in super::super) snapshot: bool,
    /// Seconds to measure after the last image; also the time limit for all images
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = seconds)]
    pub(in super::super) steady_state_time: u64,
    /// Milliseconds after the last image to exclude from latencies
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pub(in super::super) delay_steady_state_calc: u64,
    /// Posts a second, to items that allow them
    #[arg(long, value_name = "RATE", default_value = "0", value_parser = rate)]
    pub(in super::super) posting_rate: u64,
    /// Posts a second that carry a time stamp
    #[arg(long, value_name = "RATE", default_value = "0", value_parser = rate)]
    pub(in super::super) posting_latency_rate: u64,
    /// Generic messages a second, to items that allow them
    #[arg(long, value_name = "RATE", default_value = "0", value_parser = rate)]
    pub(in super::super) generic_msg_rate: u64,
    /// Generic messages a second that carry a time stamp
    #[arg(long, value_name = "RATE", default_value = "0", value_parser = rate)]
    pub(in super::super) generic_msg_latency_rate: u64,
    /// Measure the decoding time
    #[arg(long)]
    pub(in super::super) measure_decode: bool,
    /// Do not take part in the provider's round-trip measurement
    #[arg(long)]
    pub(in super::super) no_rtt: bool,
    /// Poll for messages without sleeping: lowest latency, uses a whole core
    #[arg(long)]
    pub(in super::super) busy_read: bool,
    /// Omit the due time of posts and generic messages (TIM_TRK_4)
    #[arg(long)]
    pub(in super::super) no_due: bool,
    /// Summary file
    #[arg(long, value_name = "FILE", default_value = "ConsSummary.out")]
    pub(in super::super) summary_file: FilePath,
    /// Statistics files, one for each thread: NAME1.csv and so on
    #[arg(long, value_name = "NAME", default_value = "ConsStats")]
    pub(in super::super) stats_file: String,
    #[command(flatten)]
    pub(in super::super) run: RunArgs,
    #[command(flatten)]
    pub(in super::super) server: ClientArgs,
    /// Warm standby server, which takes over when the server of --server is lost; can be given several times
    #[arg(long, value_name = "HOST:PORT", help_heading = "Warm standby")]
    pub(in super::super) standby: Vec<String>,
    /// When a standby server takes over: for a lost connection, or also for a service that goes down [default: that of
    /// the configuration, or login]
    #[arg(long, value_enum, value_name = "MODE", help_heading = "Warm standby")]
    pub(in super::super) standby_mode: Option<StandbyModeArg>,
    #[command(flatten)]
    pub(in super::super) login: LoginArgs,
    #[command(flatten)]
    pub(in super::super) dictionary: DictionaryArgs,
}

/// The standby mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in super::super) enum StandbyModeArg {
    /// When the connection to the active server is lost
    Login,
    /// Also when the service goes down at the active server
    Service,
}

impl From<StandbyModeArg> for StandbyMode {
    fn from(mode: StandbyModeArg) -> Self {
        match mode {
            StandbyModeArg::Login => Self::Login,
            StandbyModeArg::Service => Self::Service,
        }
    }
}
