//! The servers of a thread: one, or with warm standby several, one of which is active.

use tapeline_client::ema_config::{Chosen, Group, Host, StandbyMode, StandbyServer};
use tapeline_client::endpoint::Endpoint;
use tapeline_console::failure::Hinted;
use tapeline_console::log;

use crate::omm::options::ConsumerArgs;

#[derive(Clone)]
pub(super) struct Servers {
    /// Endpoints of each server, to be tried in turn; at least one server, and at least one endpoint each.
    pub(super) all: Vec<Vec<Endpoint>>,
    /// The standby mode; `None` with a single server.
    pub(super) standby: Option<StandbyMode>,
    /// The server that is active at first.
    pub(super) first: usize,
}

impl Servers {
    /// The servers of the command line, or else of the configuration: --server alone replaces all of those.
    pub(super) fn new(args: &ConsumerArgs, chosen: &mut Chosen) -> anyhow::Result<Self> {
        let mut hosts = std::mem::take(&mut chosen.hosts);
        let (mut standbys, mut mode, mut active) = (Vec::new(), StandbyMode::default(), Vec::new());
        if let Some(standby) = chosen.standby.take() {
            mode = standby.mode;
            let mut servers = standby.servers.into_iter();
            if let Some(StandbyServer { host, services }) = servers.next() {
                hosts.insert(0, host);
                active = services;
            }
            standbys.extend(servers);
        }
        if args.server.server.is_some() && args.standby.is_empty() && !standbys.is_empty() {
            let what = "--server takes the place of all servers of the configuration: none stands by";
            log::note(what);
            standbys.clear();
        }
        let option = if args.standby.is_empty() { "WarmStandbyChannelSet" } else { "--standby" };
        if !args.standby.is_empty() {
            let server = |server| StandbyServer { host: Host::plain(server), services: Vec::new() };
            standbys = args.standby.iter().map(|name| server(name)).collect();
        }
        if standbys.is_empty() {
            if args.standby_mode.is_some() {
                let what = "--standby-mode is given, and there is no server that stands by";
                return Err(Hinted::of_options(what, "--standby names one").into());
            }
            let all = vec![args.server.endpoints(hosts, USUAL)?];
            return Ok(Self { all, standby: None, first: 0 });
        }
        check(args, option)?;
        let mode = args.standby_mode.map_or(mode, StandbyMode::from);
        let of_service = |services: &[String]| services.contains(&args.service_name);
        let is_first = |server: &StandbyServer| of_service(&server.services);
        // In service mode, a server that lists its services is active for them.
        let first = match mode {
            StandbyMode::Service if !of_service(&active) => {
                standbys.iter().position(is_first).map_or(0, |place| place + 1)
            }
            _ => 0,
        };
        let mut all = vec![args.server.endpoints(hosts, USUAL)?];
        for StandbyServer { host, .. } in standbys {
            all.push(vec![args.server.endpoint(host)?]);
        }
        let names: Vec<&str> =
            all.iter().filter_map(|server| Some(server.first()?.server.as_str())).collect();
        if let Some(twice) = (1..names.len()).find(|place| names[..*place].contains(&names[*place])) {
            let what = format!("{} is named twice among the servers", names[twice]);
            return Err(Hinted::of_options(what, "who stands by is another one than who is active").into());
        }
        Ok(Self { all, standby: Some(mode), first })
    }

    /// The servers of each thread: the configuration's entry for the thread's number, or else its entry for all.
    pub(super) fn of_threads(
        args: &ConsumerArgs,
        chosen: &mut Chosen,
        threads: usize,
    ) -> anyhow::Result<Vec<Self>> {
        let mut all = vec![Self::new(args, chosen)?; threads];
        for (place, name) in args.run.config.further(Group::Consumer, threads)? {
            let mut chosen = args.run.config.load_further(Group::Consumer, place, &name)?;
            all[place] = Self::new(args, &mut chosen)?;
        }
        Ok(all)
    }
}

pub(in super::super) fn names(endpoints: &[Endpoint]) -> String {
    endpoints.iter().map(|endpoint| endpoint.server.as_str()).collect::<Vec<_>>().join(", ")
}

const USUAL: &str = "localhost:14002";

/// Refuses options that do not work with a standby.
fn check(args: &ConsumerArgs, option: &str) -> Result<(), Hinted> {
    let hint = "leave one of them out";
    if args.snapshot {
        let what = format!("{option} is given, and --snapshot closes every item with its image");
        return Err(Hinted::of_options(what, hint));
    }
    let rate = args.generic_msg_rate;
    if rate > 0 {
        let why = "their streams are private, and end with their server";
        let what = format!("{option} is given, and --generic-msg-rate is {rate}: {why}");
        return Err(Hinted::of_options(what, hint));
    }
    Ok(())
}
