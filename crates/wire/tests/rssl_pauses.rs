//! A peer that does not read, and messages that are too much work for one turn.
use crate::world;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use rustix::net::sockopt::set_socket_recv_buffer_size;
use rustix::net::{AddressFamily, SocketType, connect, socket};
use tapeline_wire::rssl::{Event, Reactor, Sent};
use world::{REQUEST, World, settings};

/// A client whose socket has small buffers.
fn narrow_client(address: SocketAddr) -> TcpStream {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    set_socket_recv_buffer_size(&socket, 4096).unwrap();
    connect(&socket, &address).unwrap();
    TcpStream::from(socket)
}

#[test]
fn a_peer_that_takes_nothing_is_not_read_until_it_does() {
    let server = settings(|settings| {
        (settings.guaranteed_output_buffers, settings.sys_send_buf_size) = (40, 4096);
        (settings.connection_ping_timeout, settings.connection_min_ping_timeout) = (5, 5);
        settings.pause_when_full = true;
    });
    let mut world = World::new();
    let address = world.reactor.listen("127.0.0.1:0".parse().unwrap(), &server).unwrap();
    let mut peer = narrow_client(address);
    peer.write_all(&REQUEST).unwrap();
    world.until(|world| !world.connected.is_empty());
    let far = world.connected[0].0;
    while world.reactor.sender(far).unwrap().send(&[7; 3000]) == Sent::Queued {}
    peer.write_all(&[0, 4, 2, b'm']).unwrap();
    // The peer reads a little each second, which counts as a sign of life: nothing that it sends is read.
    peer.set_nonblocking(true).unwrap();
    let mut room = [0; 4096];
    for second in 0..12 {
        assert!(peer.read(&mut room).is_ok(), "second {second}");
        world.pass(1);
        assert!(world.received(far).is_empty() && world.closed.is_empty(), "{second}: {:?}", world.closed);
    }
    world.until(|world| {
        while peer.read(&mut room).is_ok_and(|count| count > 0) {}
        world.rooms == 1 && world.received(far) == [b"m".to_vec()]
    });
    // A peer that reads nothing at all is considered gone.
    while world.reactor.sender(far).unwrap().send(&[7; 3000]) == Sent::Queued {}
    world.pass(7);
    assert!(world.closed.contains_key(&far));
}

#[test]
fn a_message_that_is_repeated_comes_again_behind_those_of_others() {
    let mut world = World::new();
    let address = world.reactor.listen("127.0.0.1:0".parse().unwrap(), &settings(|_| ())).unwrap();
    let [mut first, mut second] = [1, 2].map(|count| {
        let mut peer = TcpStream::connect(address).unwrap();
        peer.write_all(&REQUEST).unwrap();
        world.until(|world| world.connected.len() == count);
        peer
    });
    let ids = [world.connected[0].0, world.connected[1].0];
    first.write_all(&[0, 4, 2, b'1', 0, 4, 2, b'2']).unwrap();
    second.write_all(&[0, 4, 2, b'3', 0, 4, 2, b'4']).unwrap();
    let (mut seen, mut repeats) = (Vec::new(), 3);
    while seen.len() < 7 {
        world.reactor.wait(Duration::from_millis(100)).unwrap();
        while let Some((id, event, _)) = world.reactor.next(world.now) {
            let Event::Message(&[byte]) = event else { panic!("{event:?}") };
            seen.push(byte);
            if id == ids[0] && repeats > 0 {
                repeats -= 1;
                world.reactor.repeat(id);
            }
        }
    }
    let of = |id: usize| {
        seen.iter().copied().filter(move |byte| if id == 0 { *byte < b'3' } else { *byte >= b'3' })
    };
    assert_eq!(of(0).collect::<Vec<_>>(), b"11112");
    assert_eq!(of(1).collect::<Vec<_>>(), b"34");
    // Every ready connection has a turn between two of them.
    let last = seen.iter().rposition(|byte| *byte == b'1').unwrap();
    let other = seen.iter().position(|byte| *byte == b'4').unwrap();
    assert!(other < last, "{seen:?}");
}

#[test]
fn a_message_longer_than_is_received_ends_its_connection() {
    let server = settings(|settings| settings.max_received_bytes = Some(50_000));
    let (mut world, near, far) = World::pair(&server, &settings(|_| ()));
    assert_eq!(world.connected.iter().find(|(id, _)| *id == far).unwrap().1.max_received_bytes, 50_000);
    for (bytes, count) in [(50_000, 1), (50_001, 1)] {
        assert_eq!(world.reactor.sender(near).unwrap().send(&vec![7; bytes]), Sent::Queued);
        world.until(|world| {
            world.received(far).len() == count && (bytes == 50_000 || !world.closed.is_empty())
        });
    }
    // Sent messages may be longer.
    assert!(
        world.closed[&far].contains("50000") || world.closed[&far].contains("50,000"),
        "{}",
        world.closed[&far]
    );
}

#[test]
fn refused_connections_are_closed_a_few_a_turn() {
    const REFUSED: usize = 40;
    let mut world = World::new();
    world.reactor = Reactor::new(1).unwrap();
    let address = world.reactor.listen("127.0.0.1:0".parse().unwrap(), &settings(|_| ())).unwrap();
    let mut first = TcpStream::connect(address).unwrap();
    first.write_all(&REQUEST).unwrap();
    world.until(|world| world.connected.len() == 1);
    let mut others: Vec<TcpStream> = Vec::new();
    while others.len() < REFUSED {
        others.push(TcpStream::connect(address).unwrap());
        world.until(|world| world.reactor.len() == 1 + others.len());
    }
    // All of them get the request at the same time.
    others.iter_mut().for_each(|other| other.write_all(&REQUEST).unwrap());
    while world.reactor.len() > 1 {
        world.reactor.wait(Duration::from_millis(100)).unwrap();
        let before = world.reactor.len();
        while world.reactor.next(world.now).is_some() {}
        let closed = before - world.reactor.len();
        assert!(closed <= 4, "{closed} in one turn");
    }
}
