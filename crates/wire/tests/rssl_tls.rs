//! Connections with TLS.
use crate::world;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::crypto::CryptoProvider;
use rustls::crypto::cipher::{MessageEncrypter, OutboundChunks, OutboundPlainMessage};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{
    ClientConfig, ClientConnection, ConnectionTrafficSecrets, ContentType, ProtocolVersion, RootCertStore,
    SupportedProtocolVersion,
};
use tapeline_wire::Error;
use tapeline_wire::rssl::{Compression, ConnectionSettings, ConnectionType, SubProtocol};
use tapeline_wire::tls::{Tls, TlsVersions};
use world::{World, settings};

/// A certificate authority, and a server's certificate and key issued by it; all PEM.
struct Trust {
    authority: String,
    certificate: String,
    key: String,
}

fn trust(names: &[&str]) -> Trust {
    let (authority_key, key) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let mut params = CertificateParams::new([]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = params.self_signed(&authority_key).unwrap().pem();
    let issuer = Issuer::new(params, authority_key);
    let params =
        CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap().pem();
    Trust { authority, certificate, key: key.serialize_pem() }
}

impl Trust {
    fn server(&self, change: impl FnOnce(&mut ConnectionSettings)) -> Arc<ConnectionSettings> {
        let tls = Tls::server(self.certificate.as_bytes(), self.key.as_bytes(), TlsVersions::Both).unwrap();
        settings(|settings| {
            settings.tls = Some(tls);
            change(settings);
        })
    }

    fn client(&self, change: impl FnOnce(&mut ConnectionSettings)) -> Arc<ConnectionSettings> {
        let tls = Tls::client(self.authority.as_bytes(), TlsVersions::Both).unwrap();
        settings(|settings| {
            settings.tls = Some(tls);
            change(settings);
        })
    }
}

#[test]
fn everything_goes_through_tls() {
    let trust = trust(&["127.0.0.1"]);
    for (kind, protocol) in [
        (ConnectionType::Socket, SubProtocol::Rwf),
        (ConnectionType::WebSocket, SubProtocol::Rwf),
        (ConnectionType::WebSocket, SubProtocol::TrJson2),
    ] {
        for compression in [Compression::None, Compression::Zlib, Compression::Lz4] {
            let server = trust.server(|settings| settings.compression_type = compression);
            let client = trust.client(|settings| {
                settings.compression_type = compression;
                settings.connection_type = kind;
                settings.ws_protocols = vec![protocol];
            });
            let (mut world, near, far) = World::pair(&server, &client);
            assert_eq!(world.reactor.tls_version(near), Some("TLSv1_3"));
            assert_eq!(world.reactor.tls_version(far), Some("TLSv1_3"));
            // More than TLS or the socket accept at once, in both directions.
            world.echo(near, far, &[5, 16_384, 100_000, 3_000_000]);
        }
    }
}

#[test]
fn a_client_trusts_nobody_else_and_no_other_name() {
    let (ours, others) = (trust(&["127.0.0.1"]), trust(&["127.0.0.1"]));
    let elsewhere = trust(&["elsewhere.example"]);
    for (server, client, said) in [
        (ours.server(|_| ()), others.client(|_| ()), "invalid peer certificate"),
        (elsewhere.server(|_| ()), elsewhere.client(|_| ()), "not valid for"),
        // A server without TLS.
        (settings(|_| ()), ours.client(|_| ()), "the peer closed the connection"),
    ] {
        let mut world = World::new();
        let address = world.reactor.listen("127.0.0.1:0".parse().unwrap(), &server).unwrap();
        let id = world.reactor.connect(address, &client, world.now).unwrap();
        world.until(|world| world.closed.len() == 2);
        assert!(world.connected.is_empty() && world.closed[&id].contains(said), "{:?}", world.closed);
    }
    // An IPv6 address, in the brackets that a port requires.
    let ours = trust(&["::1"]);
    for host in ["::1", "[::1]", "[::1]:14002"] {
        let client = ours.client(|settings| settings.host = host.to_owned());
        let (world, ..) = World::pair(&ours.server(|_| ()), &client);
        assert_eq!(world.connected.len(), 2, "{host}");
    }
    // The configured name is the one that is checked, with or without a port after it.
    for host in ["elsewhere.example", "elsewhere.example:14002"] {
        let client = elsewhere.client(|settings| settings.host = host.to_owned());
        let (world, ..) = World::pair(&elsewhere.server(|_| ()), &client);
        assert_eq!(world.connected.len(), 2);
    }
}

#[test]
fn the_newest_version_that_both_ends_have_is_spoken() {
    use TlsVersions::{Both, V1_2, V1_3};
    let trust = trust(&["127.0.0.1"]);
    let ends = |of_server, of_client| {
        let server = Tls::server(trust.certificate.as_bytes(), trust.key.as_bytes(), of_server).unwrap();
        let client = Tls::client(trust.authority.as_bytes(), of_client).unwrap();
        let end = |tls| settings(|settings| settings.tls = Some(tls));
        (end(server), end(client))
    };
    for (of_server, of_client, spoken) in [
        (V1_2, V1_2, "TLSv1_2"),
        (V1_3, V1_3, "TLSv1_3"),
        (Both, V1_2, "TLSv1_2"),
        (V1_2, Both, "TLSv1_2"),
        (Both, V1_3, "TLSv1_3"),
        (V1_3, Both, "TLSv1_3"),
        (Both, Both, "TLSv1_3"),
    ] {
        let (server, client) = ends(of_server, of_client);
        let (mut world, near, far) = World::pair(&server, &client);
        let found = [near, far].map(|end| world.reactor.tls_version(end));
        assert_eq!(found, [Some(spoken); 2], "{of_server:?} {of_client:?}");
        world.echo(near, far, &[5]);
    }
    for (of_server, of_client) in [(V1_3, V1_2), (V1_2, V1_3)] {
        let (server, client) = ends(of_server, of_client);
        let mut world = World::new();
        let address = world.reactor.listen("127.0.0.1:0".parse().unwrap(), &server).unwrap();
        let id = world.reactor.connect(address, &client, world.now).unwrap();
        world.until(|world| world.closed.len() == 2);
        let reason = &world.closed[&id];
        assert!(world.connected.is_empty() && reason.contains("ProtocolVersion"), "{reason}");
    }
}

/// A connection with an old client: TLS 1.2 and nothing newer.
#[test]
fn a_server_takes_tls_1_2() {
    let trust = trust(&["localhost"]);
    let mut world = World::new();
    let address = world.reactor.listen("127.0.0.1:0".parse().unwrap(), &trust.server(|_| ())).unwrap();
    let (done, waits) = std::sync::mpsc::channel::<()>();
    let peer = std::thread::spawn(move || {
        let mut tls = old_client(&trust);
        let mut socket = TcpStream::connect(address).unwrap();
        let mut stream = rustls::Stream::new(&mut tls, &mut socket);
        stream.write_all(&[0, 19, 0, 0, 0, 0, 0x17, 0, 17, 0, 30, 0, 0, 14, 1, 0, 0, 1, 0]).unwrap();
        stream.write_all(&[0, 5, 2, 7, 8]).unwrap();
        let mut answer = [0; 3];
        stream.read_exact(&mut answer).unwrap();
        let _ = waits.recv();
        answer
    });
    world.until(|world| world.messages.values().any(|messages| *messages == [[7, 8]]));
    let id = world.connected[0].0;
    assert_eq!(world.reactor.tls_version(id), Some("TLSv1_2"));
    drop(done);
    assert_eq!(peer.join().unwrap()[2..], [1]);
}

fn old_client(trust: &Trust) -> ClientConnection {
    client_of(trust, rustls::crypto::ring::default_provider(), &rustls::version::TLS12)
}

fn client_of(
    trust: &Trust,
    provider: CryptoProvider,
    version: &'static SupportedProtocolVersion,
) -> ClientConnection {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(trust.authority.as_bytes()).unwrap()).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[version])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.enable_secret_extraction = true;
    ClientConnection::new(Arc::new(config), ServerName::try_from("localhost").unwrap()).unwrap()
}

/// An empty TLS 1.3 record with this sequence number.
fn empty_record(encrypter: &mut dyn MessageEncrypter, sequence: u64) -> Vec<u8> {
    let message = OutboundPlainMessage {
        typ: ContentType::ApplicationData,
        version: ProtocolVersion::TLSv1_2,
        payload: OutboundChunks::Single(&[]),
    };
    encrypter.encrypt(message, sequence).unwrap().encode()
}

#[test]
fn records_that_hold_nothing_end_the_connection() {
    let trust = trust(&["localhost"]);
    let mut world = World::new();
    let address = world.reactor.listen("127.0.0.1:0".parse().unwrap(), &trust.server(|_| ())).unwrap();
    let suite = rustls::crypto::ring::cipher_suite::TLS13_CHACHA20_POLY1305_SHA256;
    let mut provider = rustls::crypto::ring::default_provider();
    provider.cipher_suites = vec![suite];
    let mut tls = client_of(&trust, provider, &rustls::version::TLS13);
    let peer = std::thread::spawn(move || {
        let mut socket = TcpStream::connect(address).unwrap();
        let mut stream = rustls::Stream::new(&mut tls, &mut socket);
        stream.write_all(&[0, 19, 0, 0, 0, 0, 0x17, 0, 17, 0, 30, 0, 0, 14, 1, 0, 0, 1, 0]).unwrap();
        // The answer: so the request and the bytes that end the connection arrive separately.
        assert!(stream.read(&mut [0; 64]).unwrap() > 0);
        let (mut sequence, ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv }) =
            tls.dangerous_extract_secrets().unwrap().tx
        else {
            unreachable!()
        };
        let mut encrypter = suite.tls13().unwrap().aead_alg.encrypter(key, iv);
        // Until the peer closes.
        while socket.write_all(&empty_record(&mut *encrypter, sequence)).is_ok() {
            sequence += 1;
        }
    });
    world.until(|world| !world.closed.is_empty());
    let reason = world.closed.values().next().unwrap();
    assert!(world.connected.len() == 1 && reason.contains("TooManyEmptyFragments"), "{reason}");
    drop(world);
    peer.join().unwrap();
}

/// EMA's clients state the server's address where only a name is permitted.
#[test]
fn a_server_tolerates_an_address_as_the_stated_name() {
    let trust = trust(&["127.0.0.1"]);
    let mut world = World::new();
    let address: SocketAddr =
        world.reactor.listen("127.0.0.1:0".parse().unwrap(), &trust.server(|_| ())).unwrap();
    let mut hello = Vec::new();
    old_client(&trust).write_tls(&mut hello).unwrap();
    let name = hello.windows(9).position(|window| window == b"localhost").unwrap();
    hello[name..name + 9].copy_from_slice(b"127.0.0.1");
    let peer = std::thread::spawn(move || {
        let mut socket = TcpStream::connect(address).unwrap();
        socket.write_all(&hello).unwrap();
        let mut kind = [0];
        socket.read_exact(&mut kind).unwrap();
        kind
    });
    world.until(|_| peer.is_finished());
    // A handshake record; an alert would be 21.
    assert_eq!(peer.join().unwrap(), [22]);
}

#[test]
fn what_cannot_be_used_is_said() {
    let trust = trust(&["127.0.0.1"]);
    let other = KeyPair::generate().unwrap().serialize_pem();
    for error in [
        Tls::client(b"", TlsVersions::Both).unwrap_err(),
        Tls::client(trust.key.as_bytes(), TlsVersions::Both).unwrap_err(),
        Tls::server(trust.certificate.as_bytes(), b"no key", TlsVersions::Both).unwrap_err(),
        Tls::server(trust.certificate.as_bytes(), other.as_bytes(), TlsVersions::Both).unwrap_err(),
    ] {
        assert!(matches!(error, Error::Tls { .. }), "{error}");
    }
    let mut world = World::new();
    let address = "127.0.0.1:0".parse().unwrap();
    assert!(matches!(world.reactor.listen(address, &trust.client(|_| ())), Err(Error::Tls { .. })));
    assert!(matches!(
        world.reactor.connect(address, &trust.server(|_| ()), world.now),
        Err(Error::Tls { .. })
    ));
}
