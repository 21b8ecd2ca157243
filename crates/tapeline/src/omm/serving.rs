//! Where the servers of this command line listen.

use serde_json::Value as Json;
use tapeline_client::ema_config::Host;
use tapeline_console::omm::transport::ServerArgs;
use tapeline_wire::rssl::Reactor;

use super::lines::Lines;

/// Listens for at most `limit` connections, and prints the address.
pub(super) fn listen(
    server: &ServerArgs,
    hosts: Vec<Host>,
    usual_port: u16,
    limit: usize,
    lines: &mut Lines,
) -> anyhow::Result<Reactor> {
    let (address, settings) = server.listen(hosts, usual_port)?;
    let mut reactor = Reactor::new(limit)?;
    let address = reactor.listen(address, &settings)?;
    let members: [(&str, Json); 2] =
        [("address", address.to_string().into()), ("port", address.port().into())];
    lines.event("listening", &members);
    lines.flush()?;
    Ok(reactor)
}
