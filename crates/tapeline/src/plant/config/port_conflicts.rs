//! Checks that every listener has a port of its own.

use std::net::{IpAddr, SocketAddr};

use serde::Deserialize;
use tapeline_node::config::SourcesConfig;
use tapeline_node::hub::HubConfig;
use tapeline_node::kdb::KdbConfig;
use toml::Spanned;

use super::Source;

/// The ports of a file, read again only for their positions in it.
#[derive(Default, Deserialize)]
struct RawPorts {
    hub: Option<RawHub>,
    publishers: Option<RawPort>,
    kdb: Option<RawPort>,
}

#[derive(Default, Deserialize)]
struct RawHub {
    port: Option<Spanned<u16>>,
    web: Option<RawPort>,
    zeromq: Option<RawPort>,
}

#[derive(Deserialize)]
struct RawPort {
    port: Option<Spanned<u16>>,
}

/// A listener by its table: its address, and the position of the port in the file, unless it is the default port.
type Listens = (&'static str, Option<SocketAddr>, Option<Spanned<u16>>);

impl Source<'_> {
    /// Adds a fault, with both names, for two parts of a plant that use the same port.
    pub(super) fn ports_apart(
        &self,
        hub: Option<&HubConfig>,
        sources: Option<&SourcesConfig>,
        kdb: Option<&KdbConfig>,
    ) {
        let RawPorts { hub: raw_hub, publishers, kdb: raw_kdb } =
            toml::from_str(self.text).unwrap_or_default();
        let RawHub { port, web, zeromq } = raw_hub.unwrap_or_default();
        let of = |raw: Option<RawPort>| raw.and_then(|raw| raw.port);
        let all: [Listens; 5] = [
            ("[hub]", hub.map(|hub| hub.address), port),
            ("[hub.web]", hub.and_then(|hub| Some(hub.web.as_ref()?.address)), of(web)),
            ("[hub.zeromq]", hub.and_then(|hub| Some(hub.zeromq.as_ref()?.address)), of(zeromq)),
            (
                "[publishers]",
                sources.and_then(|sources| Some(sources.door.as_ref()?.address)),
                of(publishers),
            ),
            ("[kdb]", kdb.and_then(|kdb| kdb.serve.address), of(raw_kdb)),
        ];
        for (at, (table, address, port)) in all.iter().enumerate() {
            let Some(address) = *address else { continue };
            let is_at_one = |other: Option<SocketAddr>| other.is_some_and(|other| are_one(address, other));
            let before = all[..at].iter().find(|before| is_at_one(before.1));
            let Some((other, _, others_port)) = before else { continue };
            let what = format!("port {} is that of {table} and of {other}", address.port());
            let span = port.as_ref().or(others_port.as_ref()).map_or_else(|| self.end(), Spanned::span);
            let hint = "each needs a port of its own; port = 0 takes a free one";
            self.fault(span, what, hint);
        }
    }
}

/// Whether two listeners conflict: the same port, and the same address or all addresses.
fn are_one(one: SocketAddr, other: SocketAddr) -> bool {
    // `::` means all addresses of both families.
    let is_in = |all: IpAddr, one: IpAddr| all.is_unspecified() && (all.is_ipv6() || one.is_ipv4());
    let (here, there) = (one.ip(), other.ip());
    let are_at_one = here == there || is_in(here, there) || is_in(there, here);
    one.port() == other.port() && one.port() != 0 && are_at_one
}

#[cfg(test)]
mod tests {
    use crate::plant::config::parse;
    use crate::plant::config::testing::PLANT;

    const TABLE: &str = "[[kdb.table]]\nname = \"t\"\ncolumns = [\"time timespan\", \"sym symbol\", \"level float TRDPRC_1\"]\n";

    #[test]
    fn a_port_is_of_one_part_alone() {
        for (ports, says) in [
            ("[hub]\nport = 5010\n[kdb]\n", "plant.toml:10:8: port 5010 is that of [kdb] and of [hub]"),
            (
                "[hub]\nport = 0\n[hub.web]\nport = 6000\n[kdb]\nport = 6000\n",
                "plant.toml:14:8: port 6000 is that of [kdb] and of [hub.web]",
            ),
            (
                "[hub]\nbind = \"0.0.0.0\"\nport = 6000\n[hub.zeromq]\nport = 6000\n[kdb]\n",
                "plant.toml:13:8: port 6000 is that of [hub.zeromq] and of [hub]",
            ),
            (
                "[[service]]\nname = \"S\"\nid = 8\n[publishers]\nbind = \"::\"\nport = 6000\n[kdb]\nport = 6000\n",
                "plant.toml:16:8: port 6000 is that of [kdb] and of [publishers]",
            ),
        ] {
            let said = parse("plant.toml", &format!("{PLANT}{ports}{TABLE}")).unwrap_err().to_string();
            assert_eq!(said, says, "{ports}");
        }
        for ports in [
            "[hub]\nport = 0\n[hub.web]\nport = 0\n[kdb]\nport = 0\n",
            "[hub]\nport = 6000\n[kdb]\nbind = \"127.0.0.2\"\nport = 6000\n",
            "[hub]\nport = 5010\n[kdb]\ntcp = false\nunix = \"@/tmp/kx.5010\"\n",
        ] {
            parse("plant.toml", &format!("{PLANT}{ports}{TABLE}")).unwrap();
        }
    }
}
