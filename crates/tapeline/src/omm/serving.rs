//! What the servers of this command line share: where they listen, and how they refuse.

use tapeline_client::ema_config::Host;
use tapeline_console::omm::transport::ServerArgs;
use tapeline_omm::State;
use tapeline_omm::rwf::{DataState, StateCode, StreamState};
use tapeline_wire::rssl::Reactor;

use super::lines::Lines;

/// The state of a stream that is closed for this reason.
pub(super) fn closed(code: StateCode, text: &[u8]) -> State<'_> {
    State { stream: StreamState::CLOSED, data: DataState::SUSPECT, code, text }
}

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
    lines.event("listening", &[("address", address.to_string().into()), ("port", address.port().into())]);
    lines.flush()?;
    Ok(reactor)
}
