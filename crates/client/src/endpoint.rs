//! The address of a server and the settings of a connection to it; the address on which a server listens.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;

use tapeline_wire::interface::{self, Interface};
use tapeline_wire::rssl::{ConnectionSettings, ConnectionType, SubProtocol};
use tapeline_wire::tls::Tls;

use crate::Error;
use crate::ema_config::Host;

/// A server and the settings of a connection to it.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Host and port, as the user wrote them.
    pub server: String,
    /// The connection settings.
    pub settings: Arc<ConnectionSettings>,
}

impl Endpoint {
    /// Returns the endpoint of `server`, a host and port such as `localhost:14002`, over TCP with default settings.
    #[must_use]
    pub fn plain(server: &str) -> Self {
        Self::with(server, ConnectionSettings::default())
    }

    /// Returns the same endpoint as [`Self::plain`], with simplified JSON over a WebSocket.
    #[must_use]
    pub fn json(server: &str) -> Self {
        let (connection_type, ws_protocols) = (ConnectionType::WebSocket, vec![SubProtocol::TrJson2]);
        Self::with(server, ConnectionSettings { connection_type, ws_protocols, ..Default::default() })
    }

    fn with(server: &str, settings: ConnectionSettings) -> Self {
        let settings = Arc::new(ConnectionSettings { host: server.to_owned(), ..settings });
        Self { server: server.to_owned(), settings }
    }

    /// Looks up the addresses of the server, which can change when a server comes back. This can take seconds.
    ///
    /// # Errors
    /// The name resolves to no address.
    pub fn resolve(&self) -> Result<Vec<SocketAddr>, Error> {
        resolve(&self.server)
    }
}

/// Looks up the addresses of a host and port.
///
/// # Errors
/// The name resolves to no address.
pub fn resolve(server: &str) -> Result<Vec<SocketAddr>, Error> {
    let addresses = server.to_socket_addrs();
    Ok(addresses.map_err(|cause| Error::Resolve { server: server.to_owned(), cause })?.collect())
}

/// Returns an address of this machine: `interface` itself if it is an address, else the first IPv4 address of the interface of that name.
/// Makes no network request.
///
/// # Errors
/// There is no such interface, or it has no IPv4 address.
pub fn own_address(interface: &str) -> Result<IpAddr, Error> {
    if let Ok(address) = interface.parse() {
        return Ok(address);
    }
    match interface::find(interface) {
        Ok(Interface { address: Some(address), .. }) => Ok(address.into()),
        Ok(_) => Err(Error::Interface(format!(
            "the interface {interface} has no IPv4 address; give one of its others"
        ))),
        Err(unknown) => Err(Error::Interface(unknown.to_string())),
    }
}

/// As [`own_address`]; EMA's files may name this host instead of an interface.
fn own_address_or_host(interface: &str) -> Result<IpAddr, Error> {
    own_address(interface).or_else(|unknown| {
        let mut named = (interface, 0).to_socket_addrs().ok().into_iter().flatten();
        named.next().map(|address| address.ip()).ok_or(unknown)
    })
}

impl Host {
    /// Returns the endpoint of this host for a client. Reads the certificates.
    ///
    /// # Errors
    /// A file that cannot be read or used, or an interface that this machine does not have.
    pub fn endpoint(self) -> Result<Endpoint, Error> {
        let mut settings = self.settings;
        settings.host.clone_from(&self.server);
        settings.interface = self.interface.as_deref().map(own_address_or_host).transpose()?;
        if self.is_encrypted {
            let tls = match &self.trusted {
                Some(path) => Tls::client(&read(path)?, self.tls_versions)
                    .map_err(|source| Error::Certificate { what: path.display().to_string(), source })?,
                None => Tls::client_of_system(self.tls_versions)?,
            };
            settings.tls = Some(tls);
        }
        Ok(Endpoint { server: self.server, settings: Arc::new(settings) })
    }

    /// Returns the address on which a server listens, and the settings of its connections. The default interface is 127.0.0.1, the default port
    /// `usual_port`.
    ///
    /// # Errors
    /// A file that cannot be read or used, none where TLS needs one, or an interface that this machine does not have.
    pub fn listen(self, usual_port: u16) -> Result<(SocketAddr, Arc<ConnectionSettings>), Error> {
        let (interface, port) = self.server.rsplit_once(':').unwrap_or_default();
        let address = match interface {
            "" => Ipv4Addr::LOCALHOST.into(),
            interface => own_address_or_host(interface.trim_matches(['[', ']']))?,
        };
        let mut settings = self.settings;
        if let Some((certificate, key)) = &self.certificate {
            let tls = Tls::server(&read(certificate)?, &read(key)?, self.tls_versions);
            let what = || format!("{} with {}", certificate.display(), key.display());
            settings.tls = Some(tls.map_err(|source| Error::Certificate { what: what(), source })?);
        } else if self.is_encrypted {
            return Err(Error::NoCertificate);
        }
        Ok((SocketAddr::new(address, port.parse().unwrap_or(usual_port)), Arc::new(settings)))
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(|source| Error::Read { path: path.to_owned(), source })
}
