//! TLS 1.2 and 1.3 with rustls: trusted certificates, and this side's own.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{
    ClientConfig, ClientConnection, Connection, RootCertStore, ServerConfig, ServerConnection,
    SupportedProtocolVersion, version,
};
use tapeline_nanos::Nanos;
use webpki::{EndEntityCert, KeyUsage};

use crate::Error;

/// The TLS versions that an end offers or accepts. The newest version common to both ends is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsVersions {
    /// TLS 1.2 and 1.3.
    #[default]
    Both,
    /// TLS 1.2 only.
    V1_2,
    /// TLS 1.3 only.
    V1_3,
}

impl TlsVersions {
    fn supported(self) -> &'static [&'static SupportedProtocolVersion] {
        static ONLY_1_2: [&SupportedProtocolVersion; 1] = [&version::TLS12];
        static ONLY_1_3: [&SupportedProtocolVersion; 1] = [&version::TLS13];
        match self {
            Self::Both => rustls::ALL_VERSIONS,
            Self::V1_2 => &ONLY_1_2,
            Self::V1_3 => &ONLY_1_3,
        }
    }
}

/// The TLS configuration of one end. Inside TLS the bytes are those of a plain connection or of a WebSocket.
///
/// A client checks that the server's certificate is signed by a trusted one and names the host name or address that it
/// connects to. A server accepts any name that a client states, also an address, as EMA's servers do; it requests a
/// certificate of the client only if it is told [whose](Self::server_for).
#[derive(Clone)]
pub struct Tls(End);

#[derive(Clone)]
enum End {
    Client(Arc<ClientConfig>),
    Server(Arc<ServerConfig>, Arc<OwnCertificate>),
}

/// A server's certificate chain and key, which can be renewed while the server runs. Each handshake takes the lock
/// once, for reading.
struct OwnCertificate(RwLock<Arc<CertifiedKey>>);

impl OwnCertificate {
    fn now(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ResolvesServerCert for OwnCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.now())
    }
}

impl fmt::Debug for OwnCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the key.
        f.write_str("OwnCertificate")
    }
}

impl Tls {
    /// Creates a client's configuration that trusts these certificates (PEM, one or several).
    ///
    /// # Errors
    /// There is none, or one that cannot be read.
    pub fn client(trusted: &[u8], versions: TlsVersions) -> Result<Self, Error> {
        Self::trusting(roots(trusted)?, versions)
    }

    /// Creates a client's configuration that trusts the system's certificates (usually `/etc/ssl/certs`, or
    /// `SSL_CERT_FILE`).
    ///
    /// # Errors
    /// The system has no trusted certificates.
    pub fn client_of_system(versions: TlsVersions) -> Result<Self, Error> {
        let mut roots = RootCertStore::empty();
        let found = rustls_native_certs::load_native_certs();
        let (added, _) = roots.add_parsable_certificates(found.certs);
        if added == 0 {
            let cause = found.errors.first().map_or("there is none".to_owned(), ToString::to_string);
            return Err(unfit("the system's trusted certificates", cause));
        }
        Self::trusting(roots, versions)
    }

    /// Creates a server's configuration: its certificate chain (PEM, its own certificate first) and its private key
    /// (PEM: PKCS #8, PKCS #1 or SEC 1).
    ///
    /// # Errors
    /// One of them cannot be read, or they do not belong together.
    pub fn server(chain: &[u8], key: &[u8], versions: TlsVersions) -> Result<Self, Error> {
        Self::serving(chain, key, WebPkiClientVerifier::no_client_auth(), versions)
    }

    /// Creates a server's configuration for clients with a certificate that is signed by one of `clients` (PEM, one or
    /// several). Others are refused in the handshake.
    ///
    /// # Errors
    /// As [`server`](Self::server); or there is no certificate in `clients`, or one that cannot be read.
    pub fn server_for(
        clients: &[u8],
        chain: &[u8],
        key: &[u8],
        versions: TlsVersions,
    ) -> Result<Self, Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots(clients)?), provider)
            .build()
            .map_err(|cause| unfit("the certificates of clients", cause))?;
        Self::serving(chain, key, verifier, versions)
    }

    fn serving(
        chain: &[u8],
        key: &[u8],
        verifier: Arc<dyn ClientCertVerifier>,
        versions: TlsVersions,
    ) -> Result<Self, Error> {
        let own = Arc::new(OwnCertificate(RwLock::new(Arc::new(certified(chain, key)?))));
        let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_protocol_versions(versions.supported())
            .map_err(|cause| unfit("the versions of TLS", cause))?
            .with_client_cert_verifier(verifier)
            .with_cert_resolver(Arc::clone(&own) as Arc<dyn ResolvesServerCert>);
        Ok(Self(End::Server(Arc::new(config), own)))
    }

    /// Gives a client a certificate chain and its key (as those of a [`server`](Self::server)), for servers that request one.
    ///
    /// # Errors
    /// One of them cannot be read, or they do not belong together; or this is a server.
    pub fn presenting(self, chain: &[u8], key: &[u8]) -> Result<Self, Error> {
        let End::Client(mut config) = self.0 else {
            return Err(unfit("these settings", "they are a server's, which has a certificate already"));
        };
        let own = SingleCertAndKey::from(certified(chain, key)?);
        Arc::make_mut(&mut config).client_auth_cert_resolver = Arc::new(own);
        Ok(Self(End::Client(config)))
    }

    /// Gives a server, in all clones of this value, the certificate chain and key of another. Connections that exist
    /// keep what they have; later ones get the new chain. Returns whether the chain differs from the last one; a
    /// client has none, and nothing changes.
    pub fn renew(&self, from: &Self) -> bool {
        let (End::Server(_, own), End::Server(_, new)) = (&self.0, &from.0) else { return false };
        let new = new.now();
        let mut now = own.0.write().unwrap_or_else(PoisonError::into_inner);
        let is_other = now.cert != new.cert;
        *now = new;
        is_other
    }

    /// Returns when the first certificate of a server's chain ends, in seconds; `None` for a client, or if the
    /// certificates do not say.
    #[must_use]
    pub fn ends(&self) -> Option<Nanos> {
        let End::Server(_, own) = &self.0 else { return None };
        own.now().cert.iter().filter_map(end_of).min()
    }

    fn trusting(roots: RootCertStore, versions: TlsVersions) -> Result<Self, Error> {
        let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_protocol_versions(versions.supported())
            .map_err(|cause| unfit("the versions of TLS", cause))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self(End::Client(Arc::new(config))))
    }

    /// Creates the client's side of a connection to the server of this name, or name and port.
    pub(crate) fn dial(&self, host: &str) -> Result<Connection, Error> {
        self.client_connection(host).map(Connection::from)
    }

    /// As [`dial`](Self::dial), as the type of a client alone.
    pub(crate) fn client_connection(&self, host: &str) -> Result<ClientConnection, Error> {
        let End::Client(config) = &self.0 else {
            return Err(unfit("these settings", "a client needs certificates to trust"));
        };
        let name = name_of(host);
        let server = ServerName::try_from(name.to_owned())
            .map_err(|cause| unfit("the server's name", format!("\"{name}\": {cause}")))?;
        ClientConnection::new(config.clone(), server).map_err(|cause| unfit("a connection", cause))
    }

    /// Creates the server's side of a connection.
    pub(crate) fn accept(&self) -> Result<Connection, Error> {
        let End::Server(config, _) = &self.0 else {
            return Err(unfit("these settings", "a server needs a certificate and a key"));
        };
        let server = ServerConnection::new(config.clone()).map_err(|cause| unfit("a connection", cause))?;
        Ok(server.into())
    }
}

/// Returns a server's name or address without the port, and without the brackets around an IPv6 address.
fn name_of(host: &str) -> &str {
    if let Some((address, _)) = host.strip_prefix('[').and_then(|host| host.split_once(']')) {
        return address;
    }
    match host.split_once(':') {
        // More than one colon: an IPv6 address without a port.
        Some((name, port)) if !port.contains(':') => name,
        _ => host,
    }
}

/// Trusted certificates.
fn roots(pem: &[u8]) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(pem)? {
        roots.add(certificate).map_err(|cause| unfit("a trusted certificate", cause))?;
    }
    Ok(roots)
}

/// A chain and its key, which must belong together.
fn certified(chain: &[u8], key: &[u8]) -> Result<CertifiedKey, Error> {
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|cause| match cause {
        pem::Error::NoItemsFound => unfit("the private key", "the file has no -----BEGIN PRIVATE KEY-----"),
        cause => unfit("the private key", cause),
    })?;
    CertifiedKey::from_der(certificates(chain)?, key, &rustls::crypto::ring::default_provider()).map_err(
        |cause| match cause {
            rustls::Error::InconsistentKeys(_) => {
                unfit("the certificate and key", "the certificate is of another key")
            }
            cause => unfit("the certificate and key", cause),
        },
    )
}

/// When a certificate ends. Its checker says so when it refuses the certificate because the end has passed, so it is
/// asked about the end of all time.
fn end_of(certificate: &CertificateDer<'_>) -> Option<Nanos> {
    let last = UnixTime::since_unix_epoch(Duration::from_secs(u64::MAX));
    let checked = EndEntityCert::try_from(certificate).ok()?;
    match checked.verify_for_usage(&[], &[], &[], last, KeyUsage::server_auth(), None, None) {
        Err(webpki::Error::CertExpired { not_after, .. }) => {
            Some(Nanos(not_after.as_secs().saturating_mul(1_000_000_000)))
        }
        _ => None,
    }
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, Error> {
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|cause| unfit("a certificate", cause))?;
    if certificates.is_empty() {
        return Err(unfit("a certificate", "the file has no -----BEGIN CERTIFICATE-----"));
    }
    Ok(certificates)
}

fn unfit(what: &'static str, cause: impl fmt::Display) -> Error {
    Error::Tls { what, cause: cause.to_string() }
}

impl PartialEq for Tls {
    /// Compares identity: the same settings, not equal ones.
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (End::Client(ours), End::Client(theirs)) => Arc::ptr_eq(ours, theirs),
            (End::Server(ours, _), End::Server(theirs, _)) => Arc::ptr_eq(ours, theirs),
            _ => false,
        }
    }
}

impl Eq for Tls {}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the key.
        f.write_str(match self.0 {
            End::Client(_) => "Tls(client)",
            End::Server(..) => "Tls(server)",
        })
    }
}
