//! Connections over the loopback interface, through the public interface.
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::AsFd;
use std::time::Duration;

use tapeline_wire::Error;
use tapeline_wire::tcp::{Interest, Listener, Received, Stream, wait};

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
