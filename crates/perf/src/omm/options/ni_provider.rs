//! `tapeline omm ni-provider`: NIProvPerf.

use clap::Args;
use tapeline_console::omm::dictionaries::DictionaryArgs;
use tapeline_console::omm::login::LoginArgs;
use tapeline_console::omm::transport::ClientArgs;
use tapeline_console::paths::FilePath;

use super::provider::PublishingArgs;
use super::{ItemArgs, RunArgs, ServiceArgs};

/// Publish many items to a hub, at a rate.
#[derive(Clone, Debug, Args)]
pub struct NiProviderArgs {
    #[command(flatten)]
    pub(in super::super) publishing: PublishingArgs,
    #[command(flatten)]
    pub(in super::super) items: ItemArgs,
    #[command(flatten)]
    pub(in super::super) service: ServiceArgs,
    /// Summary file
    #[arg(long, value_name = "FILE", default_value = "NIProvSummary.out")]
    pub(in super::super) summary_file: FilePath,
    /// Statistics files, one for each thread: NAME1.csv and so on
    #[arg(long, value_name = "NAME", default_value = "NIProvStats")]
    pub(in super::super) stats_file: String,
    #[command(flatten)]
    pub(in super::super) run: RunArgs,
    #[command(flatten)]
    pub(in super::super) server: ClientArgs,
    #[command(flatten)]
    pub(in super::super) login: LoginArgs,
    #[command(flatten)]
    pub(in super::super) dictionary: DictionaryArgs,
}
