//! `tapeline omm ni-provider`: NIProvPerf.

use std::path::PathBuf;

use clap::Args;

use super::provider::PublishingArgs;
use super::{PaceArgs, ResultArgs, ThreadArgs, TimeArgs};
use crate::omm::dictionaries::DictionaryArgs;
use crate::omm::login::LoginArgs;
use crate::omm::transport::{ClientArgs, ConfigArgs};

/// Publish many items to a hub, at a rate.
#[derive(Clone, Debug, Args)]
pub(crate) struct NiProviderArgs {
    #[command(flatten)]
    pub(in super::super) publishing: PublishingArgs,
    /// Items in all, over all threads
    #[arg(long, value_name = "COUNT", default_value_t = 100_000)]
    pub(in super::super) item_count: usize,
    /// Of these, items that every thread publishes
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    pub(in super::super) common_item_count: usize,
    /// List of the items; 350k.xml of this folder, if it is there, or RDT1 to RDT350000 if not said
    #[arg(long, value_name = "FILE")]
    pub(in super::super) item_file: Option<PathBuf>,
    /// Name of the service [default: that of the configuration, or DIRECT_FEED]
    #[arg(long, value_name = "NAME")]
    pub(in super::super) service_name: Option<String>,
    /// Number of the service [default: that of the configuration, or 1]
    #[arg(long, value_name = "NUMBER")]
    pub(in super::super) service_id: Option<u16>,
    /// Summary's file
    #[arg(long, value_name = "FILE", default_value = "NIProvSummary.out")]
    pub(in super::super) summary_file: PathBuf,
    /// Statistics' files, one for each thread: NAME1.csv and so on
    #[arg(long, value_name = "NAME", default_value = "NIProvStats")]
    pub(in super::super) stats_file: String,
    #[command(flatten)]
    pub(in super::super) pace: PaceArgs,
    #[command(flatten)]
    pub(in super::super) threads: ThreadArgs,
    #[command(flatten)]
    pub(in super::super) times: TimeArgs,
    #[command(flatten)]
    pub(in super::super) results: ResultArgs,
    #[command(flatten)]
    pub(in super::super) config: ConfigArgs,
    #[command(flatten)]
    pub(in super::super) server: ClientArgs,
    #[command(flatten)]
    pub(in super::super) login: LoginArgs,
    #[command(flatten)]
    pub(in super::super) dictionary: DictionaryArgs,
}
