//! The key `simulate` of a feed: a simulated exchange in place of a real sender, to try a plant out.

use std::net::SocketAddrV4;

use tapeline_console::arguments;
use tapeline_feed::Protocol;
use tapeline_feed::simulate::FASTEST_HZ;
use tapeline_node::config::Feed;
use toml::Spanned;

use super::Source;

/// A simulated exchange that the plant starts as a process of its own, and that sends to a feed's lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SimulatedFeed {
    /// The feed's name.
    pub(crate) feed: String,
    /// Messages a second.
    pub(crate) rate_hz: u64,
    /// One or two lines.
    pub(crate) lines: Vec<SocketAddrV4>,
}

impl Source<'_> {
    /// Checks the key `simulate` of a feed whose other keys are sound, and remembers the exchange to start.
    pub(super) fn simulate(&self, given: Option<&Spanned<String>>, feed: &Feed) {
        let Some(given) = given else { return };
        let span = || given.span();
        let rate_hz = match arguments::rate(given.get_ref()) {
            Ok(rate) if (1..=FASTEST_HZ).contains(&rate) => rate,
            Ok(rate) => {
                let what = format!("simulate is {rate} messages a second; 1 to {FASTEST_HZ} are expected");
                return self.fault(span(), what, "such as simulate = \"1k\"");
            }
            Err(error) => return self.fault(span(), error, "such as simulate = \"1k\""),
        };
        if feed.protocol != Protocol::ItchMoldUdp64 {
            let what = format!("simulate in a feed of the protocol {}", feed.protocol.name());
            return self.fault(span(), what, "the simulated exchange sends \"itch50-moldudp64\" only");
        }
        if !(1..=2).contains(&feed.lines.len()) {
            let what = format!("simulate in a feed with {} lines", feed.lines.len());
            return self.fault(span(), what, "the simulated exchange sends on one line or on two");
        }
        // Simulated prices must not reach anyone who might take them for real.
        let outside = feed.lines.iter().find(|line| {
            let ip = line.address.ip();
            let is_here = ip.is_multicast() && (line.interface == "lo" || line.interface.starts_with("127."));
            !ip.is_loopback() && !is_here
        });
        if let Some(line) = outside {
            let what = format!(
                "simulate in a feed with the line {}, which is not on this machine's own network",
                line.address
            );
            let hint = "interface = \"127.0.0.1\" in each [[feed.line]]; remove simulate for a real feed";
            return self.fault(span(), what, hint);
        }
        let lines = feed.lines.iter().map(|line| line.address).collect();
        self.simulated.borrow_mut().push(SimulatedFeed { feed: feed.name.clone(), rate_hz, lines });
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn checked(feed: &str) -> Result<Vec<SimulatedFeed>, Vec<String>> {
        let text = format!("[plant]\nring = \"r\"\n[[feed]]\nname = \"itch\"\n{feed}");
        let checked = super::super::faults::check(Path::new("plant.toml"), &text);
        let said = |faults: Vec<anyhow::Error>| faults.iter().map(ToString::to_string).collect();
        checked.map(|(_, simulated)| simulated).map_err(said)
    }

    const ITCH: &str = "protocol = \"itch50-moldudp64\"\n";

    #[test]
    fn the_exchange_sends_to_the_lines_of_the_feed() {
        let lines = "[[feed.line]]\naddress = \"127.0.0.1:26477\"\n\
                     [[feed.line]]\naddress = \"239.255.230.111:26478\"\ninterface = \"127.0.0.1\"\n";
        let simulated = checked(&format!("{ITCH}simulate = \"10k\"\n{lines}")).unwrap();
        let lines = vec!["127.0.0.1:26477".parse().unwrap(), "239.255.230.111:26478".parse().unwrap()];
        assert_eq!(simulated, [SimulatedFeed { feed: "itch".to_owned(), rate_hz: 10_000, lines }]);
        let none = checked(&format!("{ITCH}[[feed.line]]\naddress = \"127.0.0.1:26477\"\n")).unwrap();
        assert_eq!(none, []);
    }

    #[test]
    fn simulated_prices_stay_on_this_machine() {
        let outside = "[[feed.line]]\naddress = \"192.0.2.1:26477\"\n";
        let here = "[[feed.line]]\naddress = \"127.0.0.1:26477\"\n";
        let iex = "protocol = \"iex-deep-1.0\"\n";
        let three: String =
            (1..=3).map(|port| format!("[[feed.line]]\naddress = \"127.0.0.1:{port}\"\n")).collect();
        for (text, expected) in [
            (
                format!("{ITCH}simulate = \"10k\"\n{outside}"),
                "simulate in a feed with the line 192.0.2.1:26477",
            ),
            (format!("{ITCH}simulate = \"fast\"\n{here}"), "'fast' is not a rate"),
            (format!("{ITCH}simulate = \"0\"\n{here}"), "simulate is 0 messages a second"),
            (format!("{iex}simulate = \"1k\"\n{here}"), "simulate in a feed of the protocol iex-deep-1.0"),
            (format!("{ITCH}simulate = \"1k\"\n{three}"), "simulate in a feed with 3 lines"),
        ] {
            let said = checked(&text).unwrap_err();
            assert!(
                said.len() == 1 && said[0].contains(expected) && said[0].starts_with("plant.toml:6:12: "),
                "{said:?}"
            );
        }
    }
}
