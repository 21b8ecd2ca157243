//! `tapeline omm provider`: IProvPerf.

use clap::Args;
use tapeline_console::omm::dictionaries::DictionaryArgs;
use tapeline_console::omm::transport::{ConfigArgs, ServerArgs};
use tapeline_console::paths::FilePath;

use super::{
    DispatchArgs, PaceArgs, ResultArgs, ServiceArgs, StampRate, ThreadArgs, TimeArgs, rate, seconds,
    stamp_rate,
};

/// What both providers send.
#[derive(Clone, Debug, Args)]
pub(in super::super) struct PublishingArgs {
    /// Updates a second on each connection, of its open items one after the other
    #[arg(long, value_name = "RATE", default_value = "100000", value_parser = rate)]
    pub(in super::super) update_rate: u64,
    /// Updates a second that carry a time, or all [default: 10, or none where none are sent]
    #[arg(long, value_name = "RATE", value_parser = stamp_rate)]
    latency_update_rate: Option<StampRate>,
    /// Images to send between two looks at the clock, in what is left of a slice
    #[arg(long, value_name = "COUNT", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(in super::super) refresh_burst_size: u64,
    /// Encode updates and generic messages once; those with a time are encoded each time
    #[arg(long)]
    pub(in super::super) pre_enc: bool,
    /// Measure how long encoding takes
    #[arg(long)]
    pub(in super::super) measure_encode: bool,
    /// Measure how long decoding takes
    #[arg(long)]
    pub(in super::super) measure_decode: bool,
    /// Leave out when a message was due (TIM_TRK_4)
    #[arg(long)]
    pub(in super::super) no_due: bool,
    /// Seconds to run [default: 360]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(in super::super) run_time: Option<u64>,
    /// Contents of the messages; MsgData.xml of this folder, if it is there, or the one that is built in if not said
    #[arg(long, value_name = "FILE")]
    pub(in super::super) msg_file: Option<FilePath>,
    /// Messages in a frame at most, where frames can carry several
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=65_535))]
    pub(in super::super) max_pack_count: u32,
    /// Bytes that messages in one frame share, each with its length in two; a longer one goes alone [default: 6000]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(1..=65_000))]
    pub(in super::super) pack_buffer_size: Option<u16>,
}

/// Bytes that packed messages share unless it is said, as in the public tools.
const USUAL_PACK: u16 = 6_000;
/// Seconds to run unless it is said, as the guide has it.
const USUAL_RUN_TIME: u64 = 360;

impl PublishingArgs {
    /// Seconds to run.
    pub(in super::super) fn run_time(&self) -> u64 {
        self.run_time.unwrap_or(USUAL_RUN_TIME)
    }

    /// Updates a second that carry a time.
    pub(in super::super) fn stamped_updates(&self) -> StampRate {
        StampRate::or_usual(self.latency_update_rate, self.update_rate > 0)
    }

    /// Bytes that packed messages share.
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
    /// Generic messages a second that carry a time, or all
    #[arg(long, value_name = "RATE", default_value = "0", value_parser = stamp_rate)]
    pub(in super::super) generic_msg_latency_rate: StampRate,
    #[command(flatten)]
    pub(in super::super) service: ServiceArgs,
    /// Items that one connection can have open
    #[arg(long, value_name = "COUNT", default_value_t = 1_000_000)]
    pub(in super::super) open_limit: u32,
    /// Measure round trips with the consumers that take part, one each so many milliseconds on each connection
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    pub(in super::super) rtt: Option<u64>,
    /// Summary's file
    #[arg(long, value_name = "FILE", default_value = "IProvSummary.out")]
    pub(in super::super) summary_file: FilePath,
    /// Statistics' files, one for each thread: NAME1.csv and so on
    #[arg(long, value_name = "NAME", default_value = "ProvStats")]
    pub(in super::super) stats_file: String,
    #[command(flatten)]
    pub(in super::super) pace: PaceArgs,
    #[command(flatten)]
    pub(in super::super) threads: ThreadArgs,
    #[command(flatten)]
    pub(in super::super) dispatch: DispatchArgs,
    #[command(flatten)]
    pub(in super::super) times: TimeArgs,
    #[command(flatten)]
    pub(in super::super) results: ResultArgs,
    #[command(flatten)]
    pub(in super::super) config: ConfigArgs,
    #[command(flatten)]
    pub(in super::super) server: ServerArgs,
    #[command(flatten)]
    pub(in super::super) dictionary: DictionaryArgs,
}
