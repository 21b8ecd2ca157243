//! The work of all threads: the options, with their files loaded.

use std::sync::Arc;
use std::time::Duration;

use tapeline_client::connection::JsonSettings;
use tapeline_client::ema_config::Chosen;
use tapeline_console::failure::Hinted;
use tapeline_omm::Dictionary;
use tapeline_omm::domain::directory::{Load, ServiceState};
use tapeline_omm::domain::{Directory, ServiceEntry, ServicePart};
use tapeline_omm::role::provider::ProviderSettings;
use tapeline_omm::rwf::FilterAction;

use super::super::options::ProviderArgs;
use super::super::publishing::Publishing;

/// The work of all threads of the interactive provider.
pub(super) struct ProviderPlan {
    /// The options, with the dictionary's files that are used.
    pub(super) args: ProviderArgs,
    /// Name of the settings in the configuration.
    pub(super) name: String,
    pub(super) publishing: Publishing,
    pub(super) services: Directory,
    pub(super) dictionary: Arc<Dictionary>,
    pub(super) settings: ProviderSettings,
    pub(super) json: JsonSettings,
}

/// Streams of a consumer that are not items: directory and dictionaries.
const OTHER_STREAMS: u32 = 64;
/// Maximum bytes queued for a consumer that does not read, beside images: acknowledgements, and a long generic message.
const MOST_OWED: usize = 17 << 20;

impl ProviderPlan {
    /// Loads the files; refuses options that contradict them.
    pub(super) fn new(args: &ProviderArgs, chosen: Chosen) -> anyhow::Result<Self> {
        let dictionary_files = args.dictionary.clone().or(chosen.dictionary).or_usual();
        let dictionary = dictionary_files.load()?;
        let publishing = Publishing::new(&args.publishing, &args.run, &dictionary)?;
        let rate = args.generic_msg_rate;
        let books = publishing.books.as_ref().map(|books| ("MarketByOrder", books));
        let without = [("MarketPrice", &publishing.prices)]
            .into_iter()
            .chain(books)
            .find(|(_, contents)| contents.messages.generics.is_empty());
        if let Some((domain, _)) = without.filter(|_| rate > 0) {
            let what =
                format!("--generic-msg-rate is {rate}, and the messages have no generic one for {domain}");
            return Err(Hinted::new(what, "--msg-file names a file with a genericMsg").into());
        }
        let (id, name, vendor) = args.service.or(chosen.services);
        let mut service = ServiceEntry::new(id, publishing.info(name, vendor), ServiceState::UP);
        let load = Load { open_limit: Some(args.open_limit.into()), ..Load::default() };
        service.parts.push((FilterAction::SET, ServicePart::Load(load)));
        let mut services = Directory::new();
        services.apply(&service);
        Ok(Self {
            name: chosen.name,
            services,
            dictionary,
            settings: ProviderSettings {
                most_streams: args.open_limit.saturating_add(OTHER_STREAMS),
                owed_bytes: MOST_OWED,
                round_trip_interval_ms: args.rtt.unwrap_or(0),
                ..ProviderSettings::default()
            },
            json: chosen.json,
            publishing,
            args: ProviderArgs { dictionary: dictionary_files, ..args.clone() },
        })
    }

    /// Interval between round trips on a connection, if they are measured.
    pub(super) fn round_trips(&self) -> Option<Duration> {
        let interval = self.settings.round_trip_interval_ms;
        (interval > 0).then(|| Duration::from_millis(interval))
    }
}
