//! Where the servers of this command line listen.

use serde_json::Value as Json;
use tapeline_client::ema_config::Host;
use tapeline_wire::rssl::Reactor;

use super::lines::Lines;
use super::transport::ServerArgs;

/// Says on standard error why nobody can be let in, where that is so.
pub(super) fn say_accept_error(reactor: &mut Reactor) {
    if let Some(cause) = reactor.accept_error() {
        anstream::eprintln!("note: nobody can be let in: {cause}");
    }
}

impl ServerArgs {
    /// Listens for at most so many connections, and says where.
    pub(super) fn open(
        &self,
        hosts: Vec<Host>,
        usual_port: u16,
        limit: usize,
        lines: &mut Lines,
    ) -> anyhow::Result<Reactor> {
        let (address, settings) = self.listen(hosts, usual_port)?;
        let mut reactor = Reactor::new(limit)?;
        let address = reactor.listen(address, &settings)?;
        let members: [(&str, Json); 2] =
            [("address", address.to_string().into()), ("port", address.port().into())];
        lines.event("listening", &members);
        lines.flush()?;
        Ok(reactor)
    }
}
