//! `[lease]`: which of two plants numbers.

use std::net::SocketAddrV4;

use serde::Deserialize;
use tapeline_console::arguments;
use tapeline_node::bridge::BridgeConfig;
use tapeline_node::lease::{LEASE_TIME, LeaseConfig};
use tapeline_node::upstream::UpstreamConfig;
use tapeline_plant::bridge::lease::WitnessSettings;
use toml::Spanned;

use super::Source;
use super::source::span;

const MAX_WITNESSES: usize = 15;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawLease {
    name: Spanned<String>,
    witnesses: Spanned<Vec<Spanned<String>>>,
    time: Option<Spanned<String>>,
}

impl Source<'_> {
    /// Checks the lease, if there is one, and that the plant has what it needs: ticks that survive it, and the way to the other plant and from it.
    pub(super) fn lease(
        &self,
        raw: Option<RawLease>,
        (bridge, upstream): (Option<&BridgeConfig>, Option<&UpstreamConfig>),
        has_journal: bool,
    ) -> Option<LeaseConfig> {
        let raw = raw?;
        let of_name = raw.name.span();
        let holder = raw.name.get_ref().parse().map_err(|error| {
            let what = format!("name is \"{}\": {error}", raw.name.get_ref());
            self.wrong(of_name.clone(), what, "such as name = \"host-a\": the other plant has another one")
        });
        let holder = self.sound(holder);
        for (is_there, table, hint) in [
            (has_journal, "[journal]", "the next leader numbers on from its journal's last tick"),
            (
                bridge.is_some(),
                "[bridge]",
                "the plants below, and the other plant, follow this one while it leads",
            ),
            (upstream.is_some(), "[[upstream]]", "this plant follows the other one while that leads"),
        ] {
            if !is_there {
                self.fault(of_name.clone(), format!("[lease] without {table}"), hint);
            }
        }
        if let Some((bridge, upstream)) = bridge.zip(upstream)
            && bridge.plant != upstream.follower.plant
        {
            let what = format!(
                "[bridge] is plant {}, and [[upstream]] is plant {}",
                bridge.plant, upstream.follower.plant
            );
            self.fault(of_name, what, "with a lease both are one plant under one id, on two hosts");
        }
        let witnesses = self.witnesses(&raw.witnesses);
        let hint = "time = \"1s\" is the default: so long does nobody lead after the leader was killed";
        let time = self.time(&raw.time, arguments::some_duration, hint).unwrap_or(LEASE_TIME);
        let (shortest, longest) = WitnessSettings::default().durations_ns;
        if !(shortest..=longest).contains(&u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)) {
            let what = format!("time is {time:?}; 100 ms to one minute are expected");
            self.fault(span(&raw.time), what, hint);
        }
        Some(LeaseConfig { holder: holder?, witnesses: witnesses?, time, takes: false })
    }

    fn witnesses(&self, raw: &Spanned<Vec<Spanned<String>>>) -> Option<Vec<SocketAddrV4>> {
        let count = raw.get_ref().len();
        if count.is_multiple_of(2) || count > MAX_WITNESSES {
            let what = format!("{count} witnesses; an odd number up to {MAX_WITNESSES} is expected");
            let hint = "three on three hosts outlast one of them; a fourth outlasts no more, because a majority of four is three";
            self.fault(raw.span(), what, hint);
        }
        let mut all: Vec<SocketAddrV4> = Vec::new();
        for witness in raw.get_ref() {
            let address = witness.get_ref().parse().map_err(|_| {
                let what = format!("witness \"{}\" is not an IPv4 address with a port", witness.get_ref());
                self.wrong(witness.span(), what, "such as witnesses = [\"10.0.0.7:14050\"]")
            });
            let address = self.sound(address)?;
            if all.contains(&address) {
                let hint = "each has one vote: name three different ones";
                self.fault(witness.span(), format!("witness {address} is named twice"), hint);
            }
            all.push(address);
        }
        Some(all)
    }
}

#[cfg(test)]
mod tests {
    use crate::plant::config::parse;
    use crate::plant::config::testing::{PLANT, checked};

    const LEASE: &str =
        "[lease]\nname = \"a\"\nwitnesses = [\"127.0.0.1:1\", \"127.0.0.1:2\", \"127.0.0.1:3\"]\n";
    const BOTH_WAYS: &str = "[journal]\nfolder = \"j\"\n[bridge]\nplant = \"NY1\"\n[[bridge.line]]\naddress = \"239.1.2.3:5\"\n\
                             [[upstream]]\nplant = \"NY1\"\nserver = \"127.0.0.1:14041\"\n[[upstream.line]]\naddress = \"239.1.2.3:5\"\n";

    #[test]
    fn a_plant_with_a_lease_has_feeds_and_both_ways() {
        let config = parse("plant.toml", &format!("{PLANT}{LEASE}{BOTH_WAYS}")).unwrap();
        let lease = config.lease.unwrap();
        assert_eq!((lease.witnesses.len(), lease.time.as_millis()), (3, 1_000));
        assert!(config.bridge.is_some() && config.upstream.is_some() && config.feeds.len() == 1);
    }

    #[test]
    fn what_cannot_be_a_lease_is_told_with_its_place() {
        let all = format!("{PLANT}{LEASE}{BOTH_WAYS}");
        for (text, says) in [
            (format!("{PLANT}{LEASE}"), "plant.toml:10:8: [lease] without [journal]"),
            (all.replace("[journal]\nfolder = \"j\"\n", ""), "[lease] without [journal]"),
            (all.replace(", \"127.0.0.1:3\"", ""), "plant.toml:11:13: 2 witnesses; an odd number"),
            (all.replace("0.1:3", "0.1:2"), "witness 127.0.0.1:2 is named twice"),
            (all.replace("0.1:3", "0.1"), "witness \"127.0.0.1\" is not an IPv4 address"),
            (all.replace("name = \"a\"", "name = \"a b\""), "plant.toml:10:8: name is \"a b\""),
            (
                all.replace("]\n[journal]", "]\ntime = \"10ms\"\n[journal]"),
                "plant.toml:12:8: time is 10ms; 100 ms to one minute",
            ),
            (
                all.replace("[bridge]\nplant = \"NY1\"", "[bridge]\nplant = \"NY2\""),
                "[bridge] is plant NY2, and [[upstream]] is plant NY1",
            ),
            (
                format!("{all}[[service]]\nname = \"X\"\nid = 3\n[publishers]\n"),
                "services are in a plant with a lease",
            ),
        ] {
            let said = checked(&text).err().unwrap();
            assert!(said.contains(says), "{text}\n{said}");
        }
    }
}
