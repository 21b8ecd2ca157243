//! The work of all threads: the options, with their files loaded and their items divided.

use std::sync::Arc;

use tapeline_client::connection::JsonSettings;
use tapeline_client::ema_config::{Chosen, Group};
use tapeline_client::endpoint::Endpoint;
use tapeline_client::login::Login;
use tapeline_console::failure::Hinted;
use tapeline_omm::Dictionary;
use tapeline_omm::domain::ServiceEntry;
use tapeline_omm::domain::directory::ServiceState;
use tapeline_omm::role::ni_provider::NiProviderSettings;

use super::super::consumer::plan::backoff;
use super::super::consumer::servers::names;
use super::super::division::Division;
use super::super::item_list::{self, ListedItem};
use super::super::options::NiProviderArgs;
use super::super::publishing::Publishing;

/// The work of all threads.
pub(super) struct NiProviderPlan {
    /// The options, with the dictionary's files that are used.
    pub(super) args: NiProviderArgs,
    /// Name of the settings in the configuration.
    name: String,
    pub(super) publishing: Publishing,
    /// Endpoints of each thread, to be tried in turn; at least one each.
    pub(super) endpoints: Vec<Vec<Endpoint>>,
    pub(super) credentials: Login,
    pub(super) settings: NiProviderSettings,
    pub(super) json: JsonSettings,
    pub(super) dictionary: Arc<Dictionary>,
    pub(super) service: ServiceEntry,
    /// Of all threads: first the common ones.
    items: Vec<ListedItem>,
    division: Division,
}

const USUAL: &str = "localhost:14003";

impl NiProviderPlan {
    /// Loads the files; refuses options that contradict each other or the files.
    pub(super) fn new(args: &NiProviderArgs) -> anyhow::Result<Self> {
        let mut chosen = args.run.config.load(Group::NiProvider)?;
        let dictionary_files = args.dictionary.clone().or(chosen.dictionary.take()).or_usual();
        let dictionary = dictionary_files.load()?;
        let publishing = Publishing::new(&args.publishing, &args.run, &dictionary)?;
        let threads = args.run.threads().max(1);
        let division = args.items.division(threads);
        let items = item_list::load(args.items.item_file.as_deref(), division.listed())?;
        if let Some(item) = items.iter().find(|item| publishing.is_book(item.domain).is_none()) {
            let what =
                format!("item {} is of {}, and there are no messages of that domain", item.name, item.domain);
            return Err(Hinted::new(what, "--msg-file names a file that has some").into());
        }
        let settings = settings(&chosen, items.len());
        let mut endpoints = vec![args.server.endpoints(chosen.hosts, USUAL)?; threads];
        for (place, name) in args.run.config.further(Group::NiProvider, threads)? {
            let chosen = args.run.config.load_further(Group::NiProvider, place, &name)?;
            endpoints[place] = args.server.endpoints(chosen.hosts, USUAL)?;
        }
        for endpoint in endpoints.iter_mut().flatten() {
            Arc::make_mut(&mut endpoint.settings).pack_bytes = Some(args.publishing.pack_bytes());
        }
        let (id, name, vendor) = args.service.or(chosen.services);
        Ok(Self {
            name: chosen.name,
            service: ServiceEntry::new(id, publishing.info(name, vendor), ServiceState::UP),
            publishing,
            endpoints,
            credentials: args.login.credentials()?,
            settings,
            json: chosen.json,
            dictionary,
            args: NiProviderArgs { dictionary: dictionary_files, ..args.clone() },
            items,
            division,
        })
    }

    pub(super) fn items_of(&self, thread: usize) -> impl Iterator<Item = &ListedItem> {
        self.division.items(&self.items, thread)
    }

    pub(super) fn inputs(&self) -> Vec<(&'static str, String)> {
        let mut servers: Vec<String> = self.endpoints.iter().map(|endpoints| names(endpoints)).collect();
        servers.dedup();
        let service = self.service.name().unwrap_or_default();
        self.args.test_inputs(&self.name, service, &servers.join("; "))
    }
}

/// The role's settings, from the configuration; without reconnect settings, one connection attempt per second.
fn settings(chosen: &Chosen, items: usize) -> NiProviderSettings {
    let usual = NiProviderSettings::default();
    NiProviderSettings {
        reconnect: backoff(chosen),
        reconnect_attempts: chosen.reconnect_attempts,
        login_timeout: chosen.login_timeout.unwrap_or(usual.login_timeout),
        most_items: usual.most_items.max(items),
        ..usual
    }
}
