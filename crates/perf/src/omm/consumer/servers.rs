//! Whom a thread connects to: one server, or with warm standby several of which one is the active one.

use tapeline_client::ema_config::{Chosen, Group, Host, StandbyMode, StandbyServer};
use tapeline_client::endpoint::Endpoint;
use tapeline_console::failure::Hinted;

use crate::omm::options::ConsumerArgs;

/// The servers of a thread.
#[derive(Clone)]
pub(super) struct Servers {
    /// Where each is; of several endpoints one after the other is tried. There is one at least, and one in each.
    all: Vec<Vec<Endpoint>>,
    /// What they are told by; `None` where there is one.
    pub(super) standby: Option<StandbyMode>,
    /// Which one is active at first.
    pub(super) first: usize,
}

impl Servers {
    /// Those of the command line, and where that names none those of the configuration: --server alone takes the place of all.
    ///
    /// # Errors
    /// Options that contradict each other, or the standby; certificates that cannot be had.
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
            anstream::eprintln!(
                "note: --server takes the place of all servers of the configuration: none stands by"
            );
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
        // A server that names the services that it is to have has them, if they are told one by one.
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

    /// Those of each of so many threads: what the configuration has for a thread by its number, and for the others what it has
    /// for all.
    ///
    /// # Errors
    /// Those of [`Self::new`].
    pub(super) fn of_threads(
        args: &ConsumerArgs,
        chosen: &mut Chosen,
        threads: usize,
    ) -> anyhow::Result<Vec<Self>> {
        let mut all = vec![Self::new(args, chosen)?; threads];
        for (place, name) in args.config.further(Group::Consumer, threads)? {
            let mut chosen = args.config.load_further(Group::Consumer, place, &name)?;
            all[place] = Self::new(args, &mut chosen)?;
        }
        Ok(all)
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.all.len()
    }

    /// Where one of them is.
    pub(super) fn endpoints(&self, number: usize) -> &[Endpoint] {
        self.all.get(number).map_or(&[], Vec::as_slice)
    }

    /// All endpoints of one of them, for people.
    pub(super) fn names(&self, number: usize) -> String {
        let names: Vec<&str> =
            self.endpoints(number).iter().map(|endpoint| endpoint.server.as_str()).collect();
        names.join(", ")
    }
}

const USUAL: &str = "localhost:14002";

/// What a standby cannot be for.
fn check(args: &ConsumerArgs, option: &str) -> Result<(), Hinted> {
    let hint = "leave one of them out";
    if args.snapshot {
        let what = format!("{option} is given, and --snapshot closes every item with its image");
        return Err(Hinted::of_options(what, hint));
    }
    if args.generic_msg_rate > 0 {
        let what = format!(
            "{option} is given, and --generic-msg-rate is {}: their streams are private, and end with their server",
            args.generic_msg_rate
        );
        return Err(Hinted::of_options(what, hint));
    }
    Ok(())
}
