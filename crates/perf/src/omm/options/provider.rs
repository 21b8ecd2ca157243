//! `tapeline omm provider`: IProvPerf.

use clap::Args;
use tapeline_console::omm::dictionaries::DictionaryArgs;
use tapeline_console::omm::transport::ServerArgs;
use tapeline_console::paths::FilePath;

use super::{RunArgs, ServiceArgs, StampRate, rate, seconds, stamp_rate};

/// Traffic of both providers.
#[derive(Clone, Debug, Args)]
pub(in super::super) struct PublishingArgs {
    /// Updates a second on each connection; its open items are updated in turn
    #[arg(long, value_name = "RATE", default_value = "100000", value_parser = rate)]
    pub(in super::super) update_rate: u64,
    /// Updates a second that carry a time stamp, or all [default: 10, or none if none are sent]
    #[arg(long, value_name = "RATE", value_parser = stamp_rate)]
    latency_update_rate: Option<StampRate>,
    /// Images to send between two clock reads, in the time left after the updates of a slice
    #[arg(long, value_name = "COUNT", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(in super::super) refresh_burst_size: u64,
    /// Encode updates and generic messages once; those with a time stamp are encoded each time
    #[arg(long)]
    pub(in super::super) pre_enc: bool,
    /// Measure the encoding time
    #[arg(long)]
    pub(in super::super) measure_encode: bool,
    /// Measure the decoding time
    #[arg(long)]
    pub(in super::super) measure_decode: bool,
    /// Omit the due time of messages (TIM_TRK_4)
    #[arg(long)]
    pub(in super::super) no_due: bool,
    /// Run time in seconds [default: 360]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(in super::super) run_time: Option<u64>,
    /// Contents of the messages [default: MsgData.xml in the current folder, or else the built-in file]
    #[arg(long, value_name = "FILE")]
    pub(in super::super) msg_file: Option<FilePath>,
    /// Maximum number of messages in a frame, on connections whose frames can carry several
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=65_535))]
    pub(in super::super) max_pack_count: u32,
    /// Maximum bytes of the messages packed into one frame, each with a 2-byte length; a longer message gets a frame of
    /// its own [default: 6000]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(1..=65_000))]
    pub(in super::super) pack_buffer_size: Option<u16>,
}

/// Default of `--pack-buffer-size`, as in the public tools.
const USUAL_PACK: u16 = 6_000;
/// Default run time in seconds, as in the guide.
const USUAL_RUN_TIME: u64 = 360;

impl PublishingArgs {
    /// Run time in seconds.
    pub(in super::super) fn run_time(&self) -> u64 {
        self.run_time.unwrap_or(USUAL_RUN_TIME)
    }

    /// Updates a second that carry a time.
    pub(in super::super) fn stamped_updates(&self) -> StampRate {
        StampRate::or_usual(self.latency_update_rate, self.update_rate > 0)
    }

    /// Maximum bytes of the messages in a packed frame.
    pub(in super::super) fn pack_bytes(&self) -> u16 {
        self.pack_buffer_size.unwrap_or(USUAL_PACK)
    }
}

/// Serve many items to consumers, at a rate.
#[derive(Clone, Debug, Args)]
pub struct ProviderArgs {
    #[command(flatten)]
    pub(in super::super) publishing: PublishingArgs,
    /// Generic messages a second on each connection
    #[arg(long, value_name = "RATE", default_value = "0", value_parser = rate)]
    pub(in super::super) generic_msg_rate: u64,
    /// Generic messages a second that carry a time stamp, or all
    #[arg(long, value_name = "RATE", default_value = "0", value_parser = stamp_rate)]
    pub(in super::super) generic_msg_latency_rate: StampRate,
    #[command(flatten)]
    pub(in super::super) service: ServiceArgs,
    /// Maximum number of open items on one connection
    #[arg(long, value_name = "COUNT", default_value_t = 1_000_000)]
    pub(in super::super) open_limit: u32,
    /// Measure round trips with consumers that support this, on each connection at this interval in milliseconds
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    pub(in super::super) rtt: Option<u64>,
    /// Summary file
    #[arg(long, value_name = "FILE", default_value = "IProvSummary.out")]
    pub(in super::super) summary_file: FilePath,
    /// Statistics files, one for each thread: NAME1.csv and so on
    #[arg(long, value_name = "NAME", default_value = "ProvStats")]
    pub(in super::super) stats_file: String,
    #[command(flatten)]
    pub(in super::super) run: RunArgs,
    #[command(flatten)]
    pub(in super::super) server: ServerArgs,
    #[command(flatten)]
    pub(in super::super) dictionary: DictionaryArgs,
}
