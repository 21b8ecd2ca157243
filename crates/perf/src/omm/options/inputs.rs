//! TEST INPUTS of a summary: the names of the guide's samples in their order, then Tapeline's own.

use std::path::Path;

use tapeline_client::ema_config::StandbyMode;
use tapeline_console::arguments::Core;
use tapeline_console::omm::dictionaries::DictionaryArgs;
use tapeline_console::paths;

use super::{
    ConsumerArgs, ItemArgs, NiProviderArgs, ProviderArgs, PublishingArgs, ResultArgs, RunArgs, ThreadArgs,
};
use crate::omm::item_list;
use crate::omm::messages::Messages;
use crate::omm::source::InputSource;

pub(in super::super) type Inputs = Vec<(&'static str, String)>;

impl ConsumerArgs {
    /// `user` logs in at the first of the `servers`, and at warm standby servers if there are any.
    pub(in super::super) fn test_inputs(
        &self,
        user: &str,
        servers: &[String],
        standby: Option<StandbyMode>,
    ) -> Inputs {
        let (first, others) = servers.split_first().map_or(("", &[][..]), |(first, others)| (first, others));
        let (run, api_threads) = (&self.run, self.run.api_threads());
        let mut inputs = vec![
            ("Steady State Time", self.steady_state_time.to_string()),
            ("Delay Steady State Time", self.delay_steady_state_calc.to_string()),
            ("Service", self.service_name.clone()),
            ("useUserDispatch", u8::from(api_threads.is_empty()).to_string()),
            ("mainThread", core(&run.threads.main_thread)),
            ("Thread List", run.threads.shown()),
            ("ApiThread List", if api_threads.is_empty() { NONE.to_owned() } else { cores(&api_threads) }),
            ("Username", user.to_owned()),
            ("Item Count", self.items.item_count.to_string()),
            ("Common Item Count", self.items.common_item_count.to_string()),
            ("Request Rate", self.request_rate.to_string()),
            ("Request Snapshots", yes(self.snapshot)),
            ("Posting Rate", self.posting_rate.to_string()),
            ("Latency Posting Rate", self.posting_latency_rate.to_string()),
            ("Generic Msg Rate", self.generic_msg_rate.to_string()),
            ("Latency Generic Msg Rate", self.generic_msg_latency_rate.to_string()),
            ("Item File", self.items.source()),
            ("Data File", data_source(self.msg_file.as_deref())),
            ("Summary File", paths::shown(&self.summary_file).to_string()),
            ("Stats File", self.stats_file.clone()),
            ("Latency Log File", run.results.latency_file()),
            ("Tick Rate", run.pace.tick_rate.to_string()),
            ("Server", first.to_owned()),
            ("Use Service Id", yes(self.use_service_id)),
            ("Dictionary", self.dictionary.shown()),
            ("Nanosecond Time", yes(run.nano_time)),
            ("Measure Decode", yes(self.measure_decode)),
            ("Due Time", yes(!self.no_due)),
            ("Round Trips", yes(!self.no_rtt)),
        ];
        if let Some(mode) = standby {
            inputs.extend([("Standby Servers", others.join(", ")), ("Standby Mode", mode.what().to_owned())]);
        }
        inputs
    }
}

impl ProviderArgs {
    /// `name` is the name of the settings in the configuration, `service` the service.
    pub(in super::super) fn test_inputs(&self, name: &str, service: &str) -> Inputs {
        let (publishing, run) = (&self.publishing, &self.run);
        let mut inputs = publishing.first(name, run);
        inputs.extend([
            ("Summary File", paths::shown(&self.summary_file).to_string()),
            ("Stats File", self.stats_file.clone()),
            ("Latency Log File", run.results.latency_file()),
            ("Write Stats Interval", run.results.write_stats_interval.to_string()),
            ("Display Stats", yes(!run.results.no_display_stats)),
            ("Tick Rate", run.pace.tick_rate.to_string()),
            ("Update Rate", publishing.update_rate.to_string()),
            ("Latency Update Rate", publishing.stamped_updates().to_string()),
            ("Generic Msg Rate", self.generic_msg_rate.to_string()),
            ("Latency Generic Msg Rate", self.generic_msg_latency_rate.to_string()),
            ("Refresh Burst Size", publishing.refresh_burst_size.to_string()),
            ("Data File", data_source(publishing.msg_file.as_deref())),
            ("Pre-Encoded Updates", yes(publishing.pre_enc)),
            ("Nanosecond Time", yes(run.nano_time)),
            ("Measure Encode", yes(publishing.measure_encode)),
            ("Service Name", service.to_owned()),
            ("Open Limit", self.open_limit.to_string()),
        ]);
        inputs.extend(self.rtt.map(|ms| ("Round Trip Interval", ms.to_string())));
        inputs.extend(publishing.last(&self.dictionary));
        inputs
    }
}

impl NiProviderArgs {
    /// As [`ProviderArgs::test_inputs`]; the service is published to one of the `servers`.
    pub(in super::super) fn test_inputs(&self, name: &str, service: &str, servers: &str) -> Inputs {
        let (publishing, run) = (&self.publishing, &self.run);
        let mut inputs = publishing.first(name, run);
        inputs.extend([
            ("Summary File", paths::shown(&self.summary_file).to_string()),
            ("Stats File", self.stats_file.clone()),
            ("Write Stats Interval", run.results.write_stats_interval.to_string()),
            ("Display Stats", yes(!run.results.no_display_stats)),
            ("Item Count", self.items.item_count.to_string()),
            ("Tick Rate", run.pace.tick_rate.to_string()),
            ("Update Rate", publishing.update_rate.to_string()),
            ("Latency Update Rate", publishing.stamped_updates().to_string()),
            ("Refresh Burst Size", publishing.refresh_burst_size.to_string()),
            ("Item File", self.items.source()),
            ("Data File", data_source(publishing.msg_file.as_deref())),
        ]);
        inputs.extend(self.service.service_id.map(|id| ("Service ID", id.to_string())));
        inputs.extend([
            ("Service Name", service.to_owned()),
            ("Pre-Encoded Updates", yes(publishing.pre_enc)),
            ("Nanosecond Time", yes(run.nano_time)),
            ("Measure Encode", yes(publishing.measure_encode)),
            ("Common Item Count", self.items.common_item_count.to_string()),
            ("Latency Log File", run.results.latency_file()),
            ("Server", servers.to_owned()),
        ]);
        inputs.extend(publishing.last(&self.dictionary));
        inputs
    }
}

impl PublishingArgs {
    /// The inputs that both providers list first.
    fn first(&self, name: &str, run: &RunArgs) -> Inputs {
        let name = if name.is_empty() { NONE } else { name };
        let api_threads = run.api_threads();
        let mut inputs = vec![
            ("Run Time", self.run_time().to_string()),
            ("Provider Name", name.to_owned()),
            ("useUserDispatch", yes(api_threads.is_empty())),
            ("mainThread CpuId", core(&run.threads.main_thread)),
            ("Thread List", run.threads.shown()),
        ];
        if !api_threads.is_empty() {
            inputs.push(("ApiThread List", cores(&api_threads)));
        }
        inputs
    }

    /// The inputs of both providers that the guide does not have.
    fn last(&self, dictionary: &DictionaryArgs) -> Inputs {
        let mut inputs = vec![("Max Pack Count", self.max_pack_count.to_string())];
        if self.max_pack_count > 1 {
            inputs.push(("Pack Buffer Size", self.pack_bytes().to_string()));
        }
        inputs.extend([
            ("Dictionary", dictionary.shown()),
            ("Measure Decode", yes(self.measure_decode)),
            ("Due Time", yes(!self.no_due)),
        ]);
        inputs
    }
}

fn core(core: &Core) -> String {
    core.0.map_or_else(|| "-1".to_owned(), |core| core.to_string())
}

fn cores(threads: &[Core]) -> String {
    threads.iter().map(core).collect::<Vec<_>>().join(",")
}

pub(super) fn yes(is: bool) -> String {
    if is { "Yes" } else { "No" }.to_owned()
}

/// The value of an input that is not set.
const NONE: &str = "(none)";

impl ThreadArgs {
    /// The cores of the threads.
    pub(super) fn shown(&self) -> String {
        cores(&self.threads)
    }
}

impl ResultArgs {
    pub(super) fn latency_file(&self) -> String {
        self.latency_file.clone().unwrap_or_else(|| NONE.to_owned())
    }
}

impl ItemArgs {
    fn source(&self) -> String {
        InputSource::of(self.item_file.as_deref(), item_list::FILE).to_string()
    }
}

fn data_source(msg_file: Option<&Path>) -> String {
    InputSource::of(msg_file, Messages::FILE).to_string()
}

#[cfg(test)]
mod tests {
    use super::super::of;
    use super::*;

    fn names(inputs: &Inputs) -> String {
        inputs.iter().map(|(name, _)| format!("{name}, ")).collect()
    }

    fn value<'a>(inputs: &'a Inputs, name: &str) -> &'a str {
        &inputs.iter().find(|(found, _)| *found == name).unwrap().1
    }

    #[test]
    fn names_and_order_are_the_guides() {
        let args = of::<ConsumerArgs>("--threads 0,-1 --item-file a.xml");
        let servers = ["a:1", "b:2", "c:3"].map(str::to_owned);
        let inputs = args.test_inputs("joe", &servers, Some(StandbyMode::Service));
        let last: Vec<&str> = inputs.iter().rev().take(2).map(|(_, value)| value.as_str()).collect();
        assert_eq!(last, ["service", "b:2, c:3"]);
        let inputs = args.test_inputs("joe", &servers[..1], None);
        let guide = "Steady State Time, Delay Steady State Time, Service, useUserDispatch, mainThread, \
                     Thread List, ApiThread List, Username, Item Count, Common Item Count, Request Rate, \
                     Request Snapshots, Posting Rate, Latency Posting Rate, Generic Msg Rate, \
                     Latency Generic Msg Rate, Item File, Data File, Summary File, Stats File, Latency Log File, \
                     Tick Rate, ";
        assert!(names(&inputs).starts_with(guide), "{inputs:?}");
        for (name, expected) in [
            ("Steady State Time", "300"),
            ("Service", "DIRECT_FEED"),
            ("Thread List", "0,-1"),
            ("Username", "joe"),
            ("Item Count", "100000"),
            ("Request Rate", "35000"),
            ("Request Snapshots", "No"),
            ("Item File", "a.xml"),
            ("Data File", "(built in)"),
            ("Summary File", "ConsSummary.out"),
            ("Latency Log File", "(none)"),
            ("Tick Rate", "1000"),
            ("Dictionary", "(built in)"),
        ] {
            assert_eq!(value(&inputs, name), expected, "{name}");
        }
        let inputs = of::<ProviderArgs>("--latency-update-rate all").test_inputs("", "DIRECT_FEED");
        let guide = "Run Time, Provider Name, useUserDispatch, mainThread CpuId, Thread List, Summary File, \
                     Stats File, Latency Log File, Write Stats Interval, Display Stats, Tick Rate, Update Rate, \
                     Latency Update Rate, Generic Msg Rate, Latency Generic Msg Rate, Refresh Burst Size, \
                     Data File, Pre-Encoded Updates, Nanosecond Time, Measure Encode, ";
        assert!(names(&inputs).starts_with(guide), "{inputs:?}");
        assert_eq!((value(&inputs, "Latency Update Rate"), value(&inputs, "Run Time")), ("all", "360"));
        let inputs = of::<NiProviderArgs>("--service-id 7").test_inputs("P", "NI_PUB", "a:1");
        let guide = "Run Time, Provider Name, useUserDispatch, mainThread CpuId, Thread List, Summary File, \
                     Stats File, Write Stats Interval, Display Stats, Item Count, Tick Rate, Update Rate, \
                     Latency Update Rate, Refresh Burst Size, Item File, Data File, Service ID, Service Name, \
                     Pre-Encoded Updates, Nanosecond Time, Measure Encode, ";
        assert!(names(&inputs).starts_with(guide), "{inputs:?}");
        assert_eq!((value(&inputs, "Service Name"), value(&inputs, "Service ID")), ("NI_PUB", "7"));
    }
}
