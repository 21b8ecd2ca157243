//! Connections over the loopback interface, through the public interface.
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::AsFd;
use std::time::Duration;

use tapeline_wire::Error;
use tapeline_wire::tcp::{Interest, Listener, Received, Stream, wait};
use tapeline_wire::tls::{Tls, TlsVersions};

/// Far longer than loopback ever needs: a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(20);

fn listener() -> Listener {
    Listener::open(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap()
}

/// Returns both ends of a connection.
fn pair(input_bytes: usize) -> (Stream, Stream) {
    let mut listener = listener();
    let mut client = Stream::connect(listener.local_address(), input_bytes).unwrap();
    assert!(wait([(listener.as_fd(), Interest::Read)], PATIENCE));
    let server = listener.accept(input_bytes).unwrap().unwrap();
    assert!(client.wait(PATIENCE));
    assert!(client.flush().unwrap() && client.is_connected());
    assert!(listener.accept(1).unwrap().is_none());
    (client, server)
}

/// Reads until something has arrived.
fn receive(stream: &mut Stream) -> Received {
    loop {
        match stream.receive().unwrap() {
            Received::Nothing => assert!(stream.wait(PATIENCE), "silence"),
            received => return received,
        }
    }
}

#[test]
fn bytes_go_both_ways_and_stay_until_they_are_taken() {
    let (mut client, mut server) = pair(16);
    client.output().extend(b"hello, ");
    client.output().extend(b"world");
    assert_eq!(client.unsent(), 12);
    assert!(client.flush().unwrap());
    while server.bytes().len() < 12 {
        assert!(matches!(receive(&mut server), Received::Bytes(_)));
    }
    assert_eq!(server.bytes(), b"hello, world");
    server.consume(7);
    assert_eq!(server.bytes(), b"world");
    // The rest moves to the front, so there is space for eleven more bytes, but not for a twelfth.
    client.output().extend(b"0123456789ab");
    assert!(client.flush().unwrap());
    while server.bytes().len() < 16 {
        assert!(matches!(receive(&mut server), Received::Bytes(_)));
    }
    assert_eq!(server.bytes(), b"world0123456789a");
    assert_eq!(server.receive().unwrap(), Received::Full);
    server.consume(usize::MAX / 2);
    assert_eq!(receive(&mut server), Received::Bytes(1));

    let (there, output) = server.split();
    output.extend(there);
    assert!(server.flush().unwrap());
    assert_eq!(receive(&mut client), Received::Bytes(1));
    assert_eq!(client.bytes(), b"b");
    drop(server);
    assert_eq!(receive(&mut client), Received::Closed);
    assert_eq!(client.bytes(), b"b");
}

#[test]
fn what_the_kernel_has_no_room_for_waits_in_the_output() {
    let (mut client, mut server) = pair(1 << 16);
    let all: Vec<u8> = (0..16 << 20).map(|at: u32| at.to_le_bytes()[1]).collect();
    client.output().extend(&all);
    assert!(!client.flush().unwrap(), "16 MiB cannot all be on their way");
    assert!(client.unsent() > 0 && client.unsent() < all.len());
    assert_eq!(client.interest(), Interest::ReadOrWrite);
    let mut came: Vec<u8> = Vec::new();
    while came.len() < all.len() {
        client.flush().unwrap();
        assert!(wait([(client.as_fd(), client.interest()), (server.as_fd(), server.interest())], PATIENCE));
        let _ = server.receive().unwrap();
        came.extend(server.bytes());
        server.consume(usize::MAX / 2);
    }
    assert!(came == all && client.flush().unwrap());
    assert_eq!((client.unsent(), client.interest()), (0, Interest::Read));
}

#[test]
fn a_port_where_nobody_listens_and_one_that_is_taken() {
    let gone = listener().local_address();
    let refused = Stream::connect(gone, 16).and_then(|mut stream| {
        stream.output().extend(b"hello");
        loop {
            assert!(stream.wait(PATIENCE));
            if stream.flush()? {
                return Ok(());
            }
        }
    });
    let refused = refused.unwrap_err();
    assert!(refused.to_string().starts_with(&format!("cannot connect to {gone}")), "{refused}");
    assert!(refused.hint().unwrap().contains("nothing listens there"));

    let listener = listener();
    let taken = Listener::open(listener.local_address()).unwrap_err();
    assert!(matches!(taken, Error::Socket { .. }) && taken.hint().unwrap().contains("port 0"), "{taken}");
}

/// A server's and a client's settings of TLS; the certificate is for `name`.
fn tls(name: &str) -> (Tls, Tls) {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new([name.to_owned()]).unwrap();
    params.distinguished_name.push(rcgen::DnType::CommonName, name);
    let pem = params.self_signed(&key).unwrap().pem();
    let server = Tls::server(pem.as_bytes(), key.serialize_pem().as_bytes(), TlsVersions::Both).unwrap();
    (server, Tls::client(pem.as_bytes(), TlsVersions::Both).unwrap())
}

/// Flushes both ends until the client has agreed on TLS and has sent everything.
fn agree(client: &mut Stream, server: &mut Stream) -> Result<(), Error> {
    while !client.flush()? {
        server.flush()?;
        wait([(client.as_fd(), client.interest()), (server.as_fd(), server.interest())], PATIENCE);
    }
    Ok(())
}

/// Connects, with these settings at each end. Returns the outcome of the handshake, and both ends.
fn meet(server: Option<&Tls>, client: &Tls) -> (Result<(), Error>, Stream, Stream) {
    let mut listener = listener();
    let mut dialed = Stream::connect_tls(listener.local_address(), client, "127.0.0.1", 1 << 16).unwrap();
    assert!(wait([(listener.as_fd(), Interest::Read)], PATIENCE));
    let accepted = match server {
        Some(tls) => listener.accept_tls(tls, 1 << 16),
        None => listener.accept(1 << 16),
    };
    let mut accepted = accepted.unwrap().unwrap();
    if server.is_none() {
        accepted.output().extend(b"HTTP/1.1 400 Bad Request\r\n");
    }
    let agreed = agree(&mut dialed, &mut accepted);
    (agreed, dialed, accepted)
}

#[test]
fn bytes_go_through_tls_both_ways_however_many() {
    let (server, client) = tls("127.0.0.1");
    let (agreed, mut dialed, mut accepted) = meet(Some(&server), &client);
    agreed.unwrap();
    assert!(dialed.is_connected());
    let all: Vec<u8> = (0..4 << 20).map(|at: u32| at.to_le_bytes()[1]).collect();
    accepted.output().extend(&all);
    dialed.output().extend(b"please");
    let (mut came, mut is_flushed) = (Vec::<u8>::new(), false);
    while came.len() < all.len() {
        is_flushed = accepted.flush().unwrap();
        dialed.flush().unwrap();
        if matches!(dialed.receive().unwrap(), Received::Nothing) {
            wait([(accepted.as_fd(), accepted.interest()), (dialed.as_fd(), dialed.interest())], PATIENCE);
        }
        came.extend(dialed.bytes());
        dialed.consume(usize::MAX / 2);
    }
    assert!(came == all && is_flushed && accepted.unsent() == 0);
    assert_eq!(receive(&mut accepted), Received::Bytes(6));
    accepted.finish();
    assert_eq!(receive(&mut dialed), Received::Closed);
}

#[test]
fn a_handshake_that_fails_says_why_and_what_to_do() {
    let (server, _) = tls("127.0.0.1");
    let (other, of_other) = tls("other.example");
    let failed = |server, client| {
        let error = meet(server, client).0.unwrap_err();
        (error.to_string(), error.hint().unwrap_or_default())
    };
    let (said, hint) = failed(Some(&server), &of_other);
    assert!(said.starts_with("TLS with 127.0.0.1:") && said.contains("UnknownIssuer"), "{said}");
    assert!(hint.contains("does ca name the right file?"), "{hint}");
    let (said, hint) = failed(Some(&other), &of_other);
    assert!(said.contains("not valid for name"), "{said}");
    assert!(hint.contains("another name or address"), "{hint}");
    let (said, hint) = failed(None, &of_other);
    assert!(hint.contains("does not speak TLS"), "{said}: {hint}");
}
