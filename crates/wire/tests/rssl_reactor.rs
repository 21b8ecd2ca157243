//! Connections over real sockets, with this crate at both ends.
use crate::world;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};
use tapeline_measure::Nanos;
use tapeline_wire::rssl::{
    AcceptorHandle, Compression, ConnectionId, ConnectionSettings, ConnectionType, Delivery, Event, Handler,
    Reactor, Sent, SubProtocol, Version,
};
use world::{NOW, REQUEST, SECOND, World, bytes, settings};

#[test]
fn messages_go_both_ways_with_every_compression() {
    for (asked, has, agreed) in [
        (Compression::None, Compression::None, Compression::None),
        (Compression::Zlib, Compression::Zlib, Compression::Zlib),
        (Compression::Lz4, Compression::Zlib, Compression::Lz4),
        (Compression::Zlib, Compression::None, Compression::None),
    ] {
        for level in [0, 6] {
            let server =
                settings(|settings| (settings.compression_type, settings.compression_level) = (has, level));
            let client = settings(|settings| settings.compression_type = asked);
            let (mut world, near, far) = World::pair(&server, &client);
            world.echoing = Some(far);
            assert!(world.connected.iter().all(|(_, negotiated)| negotiated.compression == agreed));
            let sent: Vec<Vec<u8>> = [1, 29, 30, 300, 6141, 6142, 6143, 6144, 50_000, 1_000_000]
                .map(|count| bytes(count, 7))
                .into();
            for (index, message) in sent.iter().enumerate() {
                let mut sender = world.reactor.sender(near).unwrap();
                let taken = if index % 2 == 0 { sender.send(message) } else { sender.pack(message) };
                assert_eq!(taken, Sent::Queued);
                world.until(|world| world.received(far).len() > index);
            }
            world.until(|world| world.received(near).len() == sent.len());
            assert!(world.received(far) == sent && world.received(near) == sent, "{asked:?} {has:?}");
        }
    }
}

/// The messages of one connection, and for each the messages that had arrived behind it.
struct Following {
    of: ConnectionId,
    messages: Vec<(Vec<u8>, Vec<Vec<u8>>)>,
}

impl Handler for Following {
    type Error = std::convert::Infallible;

    fn event(&mut self, delivery: Delivery<'_, '_>) -> Result<(), Self::Error> {
        if let (true, Event::Message(message)) = (delivery.id == self.of, delivery.event) {
            self.messages.push((message.to_vec(), delivery.following.map(<[u8]>::to_vec).collect()));
        }
        Ok(())
    }
}

#[test]
fn the_messages_behind_a_message_are_shown_with_it() {
    for compression in [Compression::None, Compression::Lz4] {
        let both = settings(|settings| settings.compression_type = compression);
        let (mut world, near, far) = World::pair(&both, &both);
        let mut sender = world.reactor.sender(near).unwrap();
        // Plain, packed, plain, in fragments, packed.
        let lengths = [100, 101, 50, 51, 52, 400, 20_000, 60, 61, 70];
        for (index, length) in lengths.into_iter().enumerate() {
            let message = bytes(length, 9);
            let is_packed = matches!(index, 2..=4 | 7..=8);
            let sent = if is_packed { sender.pack(&message) } else { sender.send(&message) };
            assert_eq!(sent, Sent::Queued);
        }
        sender.flush();
        let mut following = Following { of: far, messages: Vec::new() };
        while following.messages.len() < lengths.len() {
            world.reactor.wait(Duration::from_secs(20)).unwrap();
            world.reactor.handle(&mut following, world.now).unwrap();
        }
        let messages = &following.messages;
        for (index, (_, behind)) in messages.iter().enumerate() {
            let later = messages[index + 1..].iter().map(|(message, _)| message);
            assert!(behind.iter().zip(later).all(|(shown, later)| shown == later), "behind message {index}");
        }
        let shown = |index: usize| messages[index].1.len();
        // What the socket brought at once can vary. What is compressed or in fragments ends what is shown.
        assert!((0..=5).all(|index| shown(index) <= 5 - index), "{compression:?}");
        assert!([shown(2), shown(3)].iter().all(|count| *count > 0), "packed together, {compression:?}");
    }
}

#[test]
fn a_client_without_compression_takes_what_is_forced() {
    let server = settings(|settings| {
        (settings.compression_type, settings.compression_forced) = (Compression::Lz4, true);
    });
    let (mut world, near, far) = World::pair(&server, &settings(|_| ()));
    assert!(world.connected.iter().all(|(_, negotiated)| negotiated.compression == Compression::Lz4));
    let message = vec![7; 5000];
    assert_eq!(world.reactor.sender(far).unwrap().send(&message), Sent::Queued);
    world.until(|world| world.received(near) == [message.clone()]);
}

#[test]
fn keys_are_exchanged_where_the_client_asks() {
    let (mut world, near, far) =
        World::pair(&settings(|_| ()), &settings(|settings| settings.key_exchange = true));
    assert_eq!(world.reactor.sender(near).unwrap().send(b"after the key"), Sent::Queued);
    world.until(|world| world.received(far) == [b"after the key".to_vec()]);
}

#[test]
fn back_pressure_shows_and_ends() {
    let narrow = settings(|settings| {
        (settings.guaranteed_output_buffers, settings.sys_send_buf_size) = (2, 4096);
        settings.sys_recv_buf_size = 4096;
    });
    let mut world = World::new();
    let address = world.reactor.listen("127.0.0.1:0".parse().unwrap(), &narrow).unwrap();
    // A peer that does not read.
    let mut peer = TcpStream::connect(address).unwrap();
    peer.write_all(&[0, 19, 0, 0, 0, 0, 0x17, 0, 17, 0, 30, 0, 0, 14, 1, 0, 0, 1, 0]).unwrap();
    world.until(|world| !world.connected.is_empty());
    let far = world.connected[0].0;
    let message = bytes(3000, 5);
    let mut taken = 0;
    while world.reactor.sender(far).unwrap().send(&message) == Sent::Queued {
        taken += 1;
        assert!(taken < 100_000, "no back pressure");
    }
    assert!(world.reactor.sender(far).unwrap().unsent() > 3000);
    let reader = std::thread::spawn(move || {
        let mut all = Vec::new();
        peer.read_to_end(&mut all).unwrap();
        all
    });
    world.until(|world| world.rooms == 1);
    world.until(|world| world.reactor.sender(far).unwrap().flush());
    world.reactor.close(far);
    let all = reader.join().unwrap();
    let ack = usize::from(u16::from_be_bytes([all[0], all[1]]));
    assert_eq!(all.len(), ack + taken * 3003);
    assert!(all[ack..].chunks(3003).all(|frame| frame[3..] == message));
}

#[test]
fn silence_ends_a_connection_and_pings_keep_it() {
    let short = settings(|settings| {
        (settings.connection_ping_timeout, settings.connection_min_ping_timeout) = (3, 3);
    });
    let (mut world, near, far) = World::pair(&short, &short);
    assert!(world.connected.iter().all(|(_, negotiated)| negotiated.ping_timeout == 3));
    // Both ends ping each second of the simulated time, and nothing else happens.
    world.pass(9);
    assert!(world.closed.is_empty(), "{:?}", world.closed);
    // The time jumps by four seconds.
    world.now = world.now + 4 * SECOND;
    world.until(|world| world.closed.len() == 2);
    let silent = "nothing was received for 3 s, the ping time-out of this connection";
    assert!([near, far].iter().any(|id| world.closed[id] == silent), "{:?}", world.closed);
}

#[test]
fn a_client_falls_back_version_by_version() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // Supports version 12 and nothing newer.
    let server = std::thread::spawn(move || {
        let mut asked = Vec::new();
        loop {
            let (mut stream, _) = listener.accept().unwrap();
            let mut length = [0; 2];
            stream.read_exact(&mut length).unwrap();
            let mut rest = vec![0; usize::from(u16::from_be_bytes(length)) - 2];
            stream.read_exact(&mut rest).unwrap();
            asked.push(rest[4]);
            if rest[4] == 0x15 {
                stream.write_all(&[0, 19, 1, 1, 10, 0, 0, 0, 0, 7, 0x18, 0, 3, 30, 14, 1, 0, 0, 0]).unwrap();
                // A message in two fragments with ids of one byte.
                stream.write_all(&[0, 11, 3, 8, 0, 0, 0, 3, 9, 1, 2, 0, 6, 3, 4, 9, 3]).unwrap();
                let mut end = [0];
                let _ = stream.read(&mut end);
                return asked;
            }
        }
    });
    let mut world = World::new();
    let id = world.reactor.connect(address, &settings(|_| ()), world.now).unwrap();
    world.until(|world| world.received(id) == [vec![1, 2, 3]]);
    assert_eq!(world.connected[0].1.version, Some(Version::V12));
    world.reactor.close(id);
    assert_eq!(server.join().unwrap(), [0x17, 0x16, 0x15]);
    assert!(world.reactor.is_empty() && world.closed.is_empty());
}

#[test]
fn nobody_is_waited_for_longer_than_the_time_to_open() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = listener.local_addr().unwrap();
    let mut world = World::new();
    let id = world.reactor.connect(silent, &settings(|_| ()), world.now).unwrap();
    let address = world.reactor.listen("127.0.0.1:0".parse().unwrap(), &settings(|_| ())).unwrap();
    let _peer = TcpStream::connect(address).unwrap();
    world.until(|world| world.reactor.len() == 2);
    world.now = world.now + 10 * SECOND;
    world.until(|world| world.closed.len() == 2);
    assert!(world.closed[&id].contains("10000 ms, while waiting for the answer to"), "{:?}", world.closed);
}

#[test]
fn a_refused_connection_says_so() {
    let mut world = World::new();
    // No process listens there any more.
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let id = world.reactor.connect(gone, &settings(|_| ()), world.now).unwrap();
    world.until(|world| world.closed.contains_key(&id));
    assert!(world.closed[&id].contains("cannot connect to"), "{:?}", world.closed);
}

#[test]
fn both_families_of_addresses_are_spoken() {
    if TcpListener::bind("[::1]:0").is_err() {
        eprintln!("skipped: this machine has no IPv6");
        return;
    }
    for (bound, reached) in [("[::1]:0", "::1"), ("[::]:0", "::1"), ("[::]:0", "127.0.0.1")] {
        let mut world = World::new();
        let mut address = world.reactor.listen(bound.parse().unwrap(), &settings(|_| ())).unwrap();
        address.set_ip(reached.parse().unwrap());
        let near = world.reactor.connect(address, &settings(|_| ()), world.now).unwrap();
        world.until(|world| world.connected.len() == 2);
        let far = world.connected.iter().map(|(id, _)| *id).find(|id| *id != near).unwrap();
        // Also for an IPv4 client on an IPv6 socket.
        assert_eq!(world.reactor.peer_address(far).unwrap().ip(), address.ip());
        world.echo(near, far, &[200]);
    }
}

/// Binds an address and refuses all connections.
fn deaf(address: &str) -> rustix::io::Result<OwnedFd> {
    let address: SocketAddr = address.parse().unwrap();
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let fd = socket(family, SocketType::STREAM, None)?;
    bind(&fd, &address)?;
    Ok(fd)
}

#[test]
fn a_servers_addresses_are_tried_in_turn() {
    // Bound, so that no other process listens there, but not listening; the last cannot be reached at all.
    let taken: Vec<_> = ["127.0.0.1:0", "[::1]:0"].into_iter().filter_map(|at| deaf(at).ok()).collect();
    let mut addresses: Vec<_> =
        taken.iter().filter_map(|fd| SocketAddr::try_from(getsockname(fd).ok()?).ok()).collect();
    addresses.push("[ff02::1]:9".parse().unwrap());
    let mut world = World::new();
    let dead = world.reactor.connect_to_any(&addresses, &settings(|_| ()), world.now).unwrap();
    world.until(|world| world.closed.contains_key(&dead));
    assert!(world.closed[&dead].contains("cannot connect to"), "{:?}", world.closed);
    addresses.push(world.reactor.listen("127.0.0.1:0".parse().unwrap(), &settings(|_| ())).unwrap());
    let near = world.reactor.connect_to_any(&addresses, &settings(|_| ()), world.now).unwrap();
    world.until(|world| world.connected.len() == 2);
    assert!(world.connected.iter().any(|(id, _)| *id == near));
    // A server that accepts connections and sends nothing counts as reached: the next address is not tried.
    assert!(world.reactor.connect_to_any(&[], &settings(|_| ()), world.now).is_err());
}

/// Bytes received before a connection broke are read, also if a send detects the break.
#[test]
fn what_a_peer_sent_before_it_went_is_read() {
    const SENT: usize = 50;
    let (mut near, mut far) = (World::new(), World::new());
    let address = far.reactor.listen("127.0.0.1:0".parse().unwrap(), &settings(|_| ())).unwrap();
    let client = near.reactor.connect(address, &settings(|_| ()), NOW).unwrap();
    far.until(|far| {
        near.reactor.wait(Duration::ZERO).unwrap();
        while let Some((_, event, mut sender)) = near.reactor.next(NOW) {
            if matches!(event, Event::Connected(_)) {
                (0..SENT).for_each(|_| assert_eq!(sender.send(&bytes(1000, 7)), Sent::Queued));
            }
        }
        !far.connected.is_empty()
    });
    let server = far.connected[0].0;
    // Never read by the client, so that its close is a reset.
    assert_eq!(far.reactor.sender(server).unwrap().send(&bytes(100, 1)), Sent::Queued);
    far.reactor.flush();
    near.reactor.close(client);
    let mut sender = far.reactor.sender(server).unwrap();
    while sender.is_open() {
        let _ = sender.send(&bytes(100, 2));
        sender.flush();
    }
    far.until(|far| far.closed.contains_key(&server));
    assert_eq!(far.messages.get(&server).map_or(0, Vec::len), SENT, "{:?}", far.closed);
}

#[test]
fn clients_above_the_limit_are_told() {
    let mut world = World::new();
    world.reactor = Reactor::new(3).unwrap();
    let address = world.reactor.listen("127.0.0.1:0".parse().unwrap(), &settings(|_| ())).unwrap();
    let mut other = World::new();
    for _ in 0..4 {
        other.reactor.connect(address, &settings(|_| ()), NOW).unwrap();
    }
    other.until(|other| {
        world.until(|_| true);
        world.reactor.wait(Duration::ZERO).unwrap();
        while world.reactor.next(NOW).is_some() {}
        other.connected.len() == 3 && other.closed.len() == 1
    });
    assert!(
        other.closed.values().all(|reason| reason == "refused: Too many connections."),
        "{:?}",
        other.closed
    );
}

/// The number of connections from one address is limited; a closed connection permits another.
#[test]
fn one_address_has_so_many_connections() {
    let mut world = World::new();
    world.reactor.limit_address(2);
    let address = world.reactor.listen("127.0.0.1:0".parse().unwrap(), &settings(|_| ())).unwrap();
    let elsewhere =
        settings(|settings| settings.interface = Some(std::net::Ipv4Addr::new(127, 0, 0, 2).into()));
    let mut other = World::new();
    let mut turn = |other: &mut World, is_done: &dyn Fn(&World) -> bool| {
        other.until(|other| {
            world.reactor.wait(Duration::ZERO).unwrap();
            while world.reactor.next(NOW).is_some() {}
            is_done(other)
        });
    };
    for _ in 0..2 {
        other.reactor.connect(address, &settings(|_| ()), NOW).unwrap();
    }
    turn(&mut other, &|other| other.connected.len() == 2);
    let third = other.reactor.connect(address, &settings(|_| ()), NOW).unwrap();
    turn(&mut other, &|other| other.closed.len() == 1);
    assert_eq!(other.closed[&third], "refused: Too many connections from this address.");
    other.reactor.connect(address, &elsewhere, NOW).unwrap();
    turn(&mut other, &|other| other.connected.len() == 3);
    let first = other.connected[0].0;
    other.reactor.close(first);
    let mut tries = 1;
    while other.connected.len() < 4 {
        // The server detects the end a little later.
        other.reactor.connect(address, &settings(|_| ()), NOW).unwrap();
        tries += 1;
        let tried = tries;
        turn(&mut other, &|other| other.connected.len() == 4 || other.closed.len() == tried);
    }
}

/// All connections are silent: after a second the oldest can be replaced; those that are open stay.
#[test]
fn idle_connections_keep_nobody_out() {
    let mut world = World::new();
    world.reactor = Reactor::new(3).unwrap();
    let address = world.reactor.listen("127.0.0.1:0".parse().unwrap(), &settings(|_| ())).unwrap();
    let mut other = World::new();
    let mut turn = |other: &mut World, now: Nanos, is_done: &dyn Fn(&World, &Reactor) -> bool| {
        other.until(|other| {
            world.reactor.wait(Duration::ZERO).unwrap();
            while world.reactor.next(now).is_some() {}
            is_done(other, &world.reactor)
        });
    };
    other.reactor.connect(address, &settings(|_| ()), NOW).unwrap();
    turn(&mut other, NOW, &|other, _| other.connected.len() == 1);
    let idle = [(); 2].map(|()| TcpStream::connect(address).unwrap());
    turn(&mut other, NOW, &|_, reactor| reactor.len() == 3);
    // One that connects at once is refused with the reason.
    other.reactor.connect(address, &settings(|_| ()), NOW).unwrap();
    turn(&mut other, NOW, &|other, _| other.closed.len() == 1);
    let later = Nanos(NOW.0 + 1_000_000_000);
    other.reactor.connect(address, &settings(|_| ()), NOW).unwrap();
    turn(&mut other, later, &|other, _| other.connected.len() == 2);
    assert_eq!(other.closed.len(), 1, "{:?}", other.closed);
    let mut first = &idle[0];
    assert_eq!(first.read(&mut [0; 1]).unwrap_or(0), 0);
}

#[test]
fn who_holds_most_is_ended_where_all_hold_too_much() {
    let (mut world, near, far) = World::pair(&settings(|_| ()), &settings(|_| ()));
    let address = world.reactor.listen("127.0.0.1:0".parse().unwrap(), &settings(|_| ())).unwrap();
    world.reactor.limit_held(1 << 20);
    // Frames of a message of 1 MiB whose last part does not arrive.
    let part = |first: bool, len: u16| {
        let header = if first { 10 } else { 6 };
        let [high, low] = (len + header).to_be_bytes();
        let mut frame = vec![high, low, 3, if first { 8 } else { 4 }];
        if first {
            frame.extend([0, 0x10, 0, 0]);
        }
        frame.extend([0, 9]);
        frame.extend(bytes(len.into(), 1));
        frame
    };
    let mut peers = Vec::new();
    for count in [60, 100, 80] {
        let mut peer = TcpStream::connect(address).unwrap();
        peer.write_all(&[0, 19, 0, 0, 0, 0, 0x17, 0, 17, 0, 30, 0, 0, 14, 1, 0, 0, 1, 0]).unwrap();
        for number in 0..count {
            peer.write_all(&part(number == 0, 6000)).unwrap();
            world.reactor.wait(Duration::ZERO).unwrap();
            world.until(|_| true);
        }
        peers.push(peer);
    }
    world.until(|world| !world.closed.is_empty());
    let reasons: Vec<_> = world.closed.values().collect();
    assert!(reasons[0].contains("bytes of messages that are not complete"), "{reasons:?}");
    assert!(reasons[0].contains("at most 1048576 on all connections"), "{reasons:?}");
    // The one that used most is closed; the others stay open, and those that use nothing are unaffected.
    assert_eq!(peers[1].read_to_end(&mut Vec::new()).map_or(0, |_| 1), 1);
    for peer in [&peers[0], &peers[2]] {
        peer.set_nonblocking(true).unwrap();
        let mut rest = [0; 256];
        while let Ok(count) = (&*peer).read(&mut rest) {
            assert!(count > 0, "it was ended too");
        }
    }
    assert_eq!(world.reactor.sender(near).unwrap().send(b"still here"), Sent::Queued);
    world.until(|world| world.received(far) == [b"still here".to_vec()]);
}

#[test]
fn a_broken_frame_ends_its_connection_alone() {
    let (mut world, near, far) = World::pair(&settings(|_| ()), &settings(|_| ()));
    let address = world.reactor.listen("127.0.0.1:0".parse().unwrap(), &settings(|_| ())).unwrap();
    let mut peer = TcpStream::connect(address).unwrap();
    peer.write_all(&[0, 19, 0, 0, 0, 0, 0x17, 0, 17, 0, 30, 0, 0, 14, 1, 0, 0, 1, 0]).unwrap();
    peer.write_all(&[0, 4, 2, 9, 0, 5, 0x12, 0, 9]).unwrap();
    world.until(|world| !world.closed.is_empty());
    let reason = world.closed.values().next().unwrap();
    assert_eq!(
        reason,
        "packed message of 9 bytes at byte 26 of what was received, expected at most 0, the rest of its frame"
    );
    assert_eq!(world.reactor.sender(near).unwrap().send(b"still here"), Sent::Queued);
    world.until(|world| world.received(far) == [b"still here".to_vec()]);
}

#[test]
fn websockets_of_every_kind_share_the_port() {
    let protocols = [SubProtocol::Rwf, SubProtocol::TrJson2, SubProtocol::RsslJsonV2];
    for protocol in protocols {
        for (asked, has) in [
            (Compression::None, Compression::None),
            (Compression::Zlib, Compression::Zlib),
            (Compression::Lz4, Compression::Zlib),
            (Compression::Zlib, Compression::None),
        ] {
            let server = settings(|settings| settings.compression_type = has);
            let client = settings(|settings| {
                settings.connection_type = ConnectionType::WebSocket;
                settings.compression_type = asked;
                settings.ws_protocols = vec![protocol];
            });
            let (mut world, near, far) = World::pair(&server, &client);
            world.echoing = Some(far);
            assert!(world.connected.iter().all(|(_, negotiated)| negotiated.websocket == Some(protocol)));
            let compression = &world.connected[0].1.compression;
            let agreed = match (asked, has) {
                (_, Compression::None) | (Compression::None, _) => Compression::None,
                (Compression::Lz4, _) if !protocol.is_json() => Compression::Lz4,
                _ => Compression::Zlib,
            };
            assert_eq!(*compression, agreed, "{protocol:?} {asked:?} {has:?}");
            // Lengths around each step in the size of a header or a frame.
            let lengths = [2, 120, 125, 126, 6141, 6142, 6147, 6148, 65_535, 65_536, 70_000, 1_000_000];
            world.echo(near, far, &lengths);
        }
    }
}

#[test]
fn json_is_kept_alive_by_pings_that_nobody_sees() {
    let short = |settings: &mut ConnectionSettings| {
        (settings.connection_ping_timeout, settings.connection_min_ping_timeout) = (3, 3);
    };
    let client = settings(|settings| {
        short(settings);
        settings.connection_type = ConnectionType::WebSocket;
        settings.ws_protocols = vec![SubProtocol::TrJson2];
    });
    let (mut world, ..) = World::pair(&settings(short), &client);
    world.pass(9);
    assert!(world.closed.is_empty() && world.messages.is_empty(), "{:?} {:?}", world.closed, world.messages);
}

#[test]
fn an_http_request_that_is_no_websocket_is_told_so() {
    let mut world = World::new();
    let address = world.reactor.listen("127.0.0.1:0".parse().unwrap(), &settings(|_| ())).unwrap();
    let mut peer = TcpStream::connect(address).unwrap();
    peer.write_all(b"GET /index.html HTTP/1.1\r\nHost: here\r\n\r\n").unwrap();
    world.until(|world| !world.closed.is_empty());
    let mut answer = String::new();
    peer.read_to_string(&mut answer).unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 400 ") && answer.ends_with("not a WebSocket opening request\r\n"),
        "{answer}"
    );
}

#[test]
fn many_connections_have_their_turn() {
    const MANY: usize = 200;
    let mut world = World::new();
    world.reactor = Reactor::new(2 * MANY).unwrap();
    let common = settings(|settings| settings.guaranteed_output_buffers = 4);
    let address = world.reactor.listen("127.0.0.1:0".parse().unwrap(), &common).unwrap();
    let near: Vec<_> =
        (0..MANY).map(|_| world.reactor.connect(address, &common, world.now).unwrap()).collect();
    world.until(|world| world.connected.len() == 2 * MANY);
    // One peer sends more than all others together, and delays none of them.
    let (loud, others) = near.split_first().unwrap();
    let long = bytes(4_000_000, 1);
    assert_eq!(world.reactor.sender(*loud).unwrap().send(&long), Sent::Queued);
    for id in others {
        assert_eq!(world.reactor.sender(*id).unwrap().send(b"here too"), Sent::Queued);
    }
    world.until(|world| world.messages.len() == MANY);
    let all: Vec<&Vec<u8>> = world.messages.values().flatten().collect();
    assert_eq!(all.iter().filter(|message| ***message == b"here too").count(), MANY - 1);
    assert_eq!(all.iter().filter(|message| ***message == long).count(), 1);
    for id in near {
        world.reactor.close(id);
    }
    world.until(|world| world.reactor.is_empty());
    assert_eq!(world.closed.len(), MANY);
}

/// More bytes than one turn reads.
const TURN: usize = 1 << 20;

/// Two open clients, as sockets.
fn loud_and_quiet(world: &mut World) -> [TcpStream; 2] {
    let address = world.reactor.listen("127.0.0.1:0".parse().unwrap(), &settings(|_| ())).unwrap();
    [1, 2].map(|count| {
        let mut peer = TcpStream::connect(address).unwrap();
        peer.write_all(&REQUEST).unwrap();
        world.until(|world| world.connected.len() == count);
        peer
    })
}

#[test]
fn a_peer_that_never_stops_keeps_no_other_waiting() {
    let mut world = World::new();
    let [mut loud, mut quiet] = loud_and_quiet(&mut world);
    let far = world.connected[1].0;
    loud.set_nonblocking(true).unwrap();
    // As many as fit into the socket: a whole number of frames, however long that takes.
    let frames = [0, 4, 2, b'm'].repeat(TURN / 4);
    let mut sent = 0;
    let mut fill = || {
        while let Ok(count) = loud.write(&frames[sent % 4..]) {
            sent += count;
        }
    };
    fill();
    let (mut taken, mut has_said, mut was_heard) = (0, false, false);
    while !was_heard {
        world.reactor.wait(Duration::from_millis(100)).unwrap();
        while let Some((id, event, _)) = world.reactor.next(world.now) {
            let Event::Message(_) = event else { panic!("{event:?}") };
            was_heard |= id == far;
            taken += 1;
            if !std::mem::replace(&mut has_said, true) {
                quiet.write_all(&[0, 4, 2, b'q']).unwrap();
            }
            // The socket is never empty.
            if taken % 4096 == 0 {
                fill();
                assert!(was_heard || taken < 4 * TURN, "only one is listened to");
            }
        }
    }
}

#[test]
fn a_peer_that_never_pauses_does_not_keep_room_from_being_told() {
    let mut world = World::new();
    let narrow = settings(|settings| {
        (settings.guaranteed_output_buffers, settings.sys_send_buf_size) = (2, 4096);
    });
    let address = world.reactor.listen("127.0.0.1:0".parse().unwrap(), &narrow).unwrap();
    let mut peer = TcpStream::connect(address).unwrap();
    peer.write_all(&REQUEST).unwrap();
    world.until(|world| !world.connected.is_empty());
    let far = world.connected[0].0;
    while world.reactor.sender(far).unwrap().send(&[7; 3000]) == Sent::Queued {}
    peer.set_nonblocking(true).unwrap();
    // As many as fit into the socket; its other direction is drained.
    let frames = [0, 4, 2, b'm'].repeat(TURN / 4);
    let (mut sent, mut room) = (0, [0; 4096]);
    let mut fill = || {
        while let Ok(count) = peer.write(&frames[sent % 4..]) {
            sent += count;
        }
        while peer.read(&mut room).is_ok_and(|count| count > 0) {}
    };
    fill();
    let (mut taken, mut has_room) = (0, false);
    while !has_room {
        world.reactor.wait(Duration::from_millis(100)).unwrap();
        while let Some((_, event, _)) = world.reactor.next(world.now) {
            has_room |= matches!(event, Event::Room);
            taken += usize::from(matches!(event, Event::Message(_)));
            // The socket is never empty.
            if taken % 4096 == 0 {
                fill();
                assert!(has_room || taken < TURN, "nothing is told of the room that there is");
            }
        }
    }
}

#[test]
fn a_turn_ends_also_where_nothing_is_said() {
    let mut world = World::new();
    let [mut loud, _quiet] = loud_and_quiet(&mut world);
    let writer = std::thread::spawn(move || {
        loud.write_all(&[0, 3, 2].repeat(8 * TURN / 3)).unwrap();
        loud.write_all(&[0, 4, 2, b'm']).unwrap();
        loud
    });
    let (mut turns, mut was_heard) = (0, false);
    while !was_heard {
        world.reactor.wait(Duration::from_millis(100)).unwrap();
        while let Some((_, event, _)) = world.reactor.next(world.now) {
            was_heard |= matches!(event, Event::Message(_));
        }
        turns += 1;
    }
    drop(writer.join().unwrap());
    assert!(turns >= 8, "{turns} turns");
}

#[test]
fn many_messages_in_few_bytes_are_no_longer_turn() {
    let zlib = settings(|settings| settings.compression_type = Compression::Zlib);
    let (mut world, near, far) = World::pair(&zlib, &zlib);
    // All of them fit into one or two packed frames, and those compress to a hundred bytes each.
    const MANY: usize = 15_000;
    for _ in 0..MANY {
        assert_eq!(world.reactor.sender(near).unwrap().pack(b"p"), Sent::Queued);
    }
    let (mut heard, mut most) = (0, 0);
    while heard < MANY {
        world.reactor.wait(Duration::from_millis(100)).unwrap();
        let before = heard;
        while let Some((id, event, _)) = world.reactor.next(world.now) {
            heard += usize::from(id == far && matches!(event, Event::Message(b"p")));
        }
        most = most.max(heard - before);
    }
    assert!(heard == MANY && most <= 4096, "{most} at once");
}

#[test]
fn packed_json_is_an_array() {
    for compression in [Compression::None, Compression::Zlib] {
        let json = settings(|settings| {
            settings.connection_type = ConnectionType::WebSocket;
            settings.ws_protocols = vec![SubProtocol::TrJson2];
            (settings.max_fragment_size, settings.compression_type) = (300, compression);
        });
        let (mut world, near, far) = World::pair(&json, &json);
        let long = format!("{{\"ID\":2,\"Text\":\"{}\"}}", "x".repeat(280));
        let longest = format!("{{\"ID\":3,\"Text\":\"{}\"}}", "x".repeat(400));
        let mut sender = world.reactor.sender(near).unwrap();
        for text in ["{\"ID\":1}", " [{\"ID\":5} , {\"ID\":6}] ", "[]", &long, "{\"ID\":4}", &longest] {
            assert_eq!(sender.pack(text.as_bytes()), Sent::Queued);
        }
        let _ = sender.pack(b"{\"ID\":7}");
        world.until(|world| world.received(far).len() == 6);
        let texts: Vec<String> =
            world.received(far).iter().map(|text| String::from_utf8(text.clone()).unwrap()).collect();
        // Each array has as many as fit into a frame, in order.
        let expected = [
            "[{\"ID\":1},{\"ID\":5} , {\"ID\":6}]".to_owned(),
            "[]".to_owned(),
            format!("[{long}]"),
            "[{\"ID\":4}]".to_owned(),
            longest,
            "[{\"ID\":7}]".to_owned(),
        ];
        assert_eq!(texts, expected);
    }
}

/// Returns the turns until `count` messages were received, and the maximum number of messages in one turn.
fn turns(world: &mut World, count: usize) -> (usize, usize) {
    let (mut turns, mut heard, mut most) = (0, 0, 0);
    while heard < count {
        world.reactor.wait(Duration::from_millis(100)).unwrap();
        let before = heard;
        while let Some((_, event, _)) = world.reactor.next(world.now) {
            assert!(!matches!(event, Event::Closed(_)), "{event:?}");
            heard += usize::from(matches!(event, Event::Message(_)));
        }
        (turns, most) = (turns + 1, most.max(heard - before));
    }
    (turns, most)
}

#[test]
fn what_inflates_to_a_thousand_times_as_much_is_many_turns() {
    // A megabyte each, from so few bytes that all of them arrive with one read.
    const MANY: usize = 8;
    let spaces = vec![b' '; 1 << 20];
    for protocol in [None, Some(SubProtocol::Rwf), Some(SubProtocol::TrJson2)] {
        let deflated = settings(|settings| {
            (settings.compression_type, settings.max_fragment_size) = (Compression::Zlib, 65_000);
            if let Some(protocol) = protocol {
                settings.connection_type = ConnectionType::WebSocket;
                settings.ws_protocols = vec![protocol];
            }
        });
        let (mut world, near, _) = World::pair(&deflated, &deflated);
        for _ in 0..MANY {
            assert_eq!(world.reactor.sender(near).unwrap().send(&spaces), Sent::Queued);
        }
        let (turns, most) = turns(&mut world, MANY);
        assert!(turns >= MANY && most <= 2, "{protocol:?}: {turns} turns, {most} in one");
    }
}

#[test]
fn closing_one_that_is_over_leaves_the_next_in_its_place() {
    let (mut world, near, far) = World::pair(&settings(|_| ()), &settings(|_| ()));
    let address = world.reactor.listen("127.0.0.1:0".parse().unwrap(), &settings(|_| ())).unwrap();
    world.reactor.close(near);
    let mut next = None;
    while next.is_none() {
        world.reactor.wait(Duration::from_millis(100)).unwrap();
        while let Some((id, event, _)) = world.reactor.next(world.now) {
            assert!(id == far && matches!(event, Event::Closed(_)), "{event:?}");
            world.reactor.close(id);
            // Reuses the slots of both.
            next = Some([(); 2].map(|()| world.reactor.connect(address, &settings(|_| ()), NOW).unwrap()));
        }
    }
    world.connected.clear();
    world.until(|world| world.connected.len() == 4);
    let is_there = |id| world.connected.iter().any(|(connected, _)| *connected == id);
    assert!(next.unwrap().into_iter().all(is_there));
}

#[test]
fn settings_out_of_their_range_are_brought_into_it() {
    let wild = settings(|settings| {
        (settings.num_input_buffers, settings.guaranteed_output_buffers) = (u32::MAX, u32::MAX);
        (settings.max_fragment_size, settings.connection_ping_timeout) = (0, 0);
        settings.connection_min_ping_timeout = 200;
        settings.compression_level = 99;
        settings.component_version = "\u{e4}".repeat(300);
        settings.host_name = "n".repeat(300);
    });
    let (mut world, near, far) = World::pair(&wild, &wild);
    assert!(world.connected.iter().all(|(_, negotiated)| negotiated.ping_timeout == 1));
    assert!(world.connected.iter().all(|(_, negotiated)| negotiated.max_fragment_size == 256));
    assert!(world.connected.iter().all(|(_, negotiated)| negotiated.peer_version.len() == 252));
    let message = bytes(1000, 1);
    assert_eq!(world.reactor.sender(near).unwrap().send(&message), Sent::Queued);
    world.until(|world| world.received(far) == [message.clone()]);
}

#[test]
fn a_lookout_says_when_there_is_something_to_do() {
    let mut server = Reactor::new(4).unwrap();
    let address = server.listen("127.0.0.1:0".parse().unwrap(), &settings(|_| ())).unwrap();
    let (mut lookout, end) = server.lookout().unwrap();
    std::thread::scope(|scope| {
        let looking = scope.spawn(move || {
            // A client connects, and then sends something.
            assert!(lookout.wait(None).unwrap());
            lookout
        });
        let mut client = TcpStream::connect(address).unwrap();
        let mut lookout = looking.join().unwrap();
        // Events that the reactor has consumed do not signal.
        server.wait(Duration::ZERO).unwrap();
        assert!(server.next(NOW).is_none());
        client.write_all(b"what is no handshake").unwrap();
        assert!(lookout.wait(None).unwrap());
        server.wait(Duration::ZERO).unwrap();
        assert!(matches!(server.next(NOW), Some((_, Event::Closed(_), _))));
        end.wake().unwrap();
        while lookout.wait(None).unwrap() {}
    });
}

#[test]
fn who_has_the_fewest_connections_gets_the_next() {
    let mut reactors = [(); 3].map(|()| Reactor::new(10).unwrap());
    let doors = reactors.each_mut().map(|reactor| reactor.door().unwrap());
    let address = "127.0.0.1:0".parse().unwrap();
    // The first two get its connections.
    let address = reactors[0].listen_for(&doors[..2], address, &settings(|_| ())).unwrap();
    let mut open: [Vec<_>; 2] = [Vec::new(), Vec::new()];
    let mut clients = Vec::new();
    let turn = |reactors: &mut [Reactor; 3], open: &mut [Vec<_>; 2]| {
        for (reactor, open) in reactors.iter_mut().zip(open) {
            reactor.wait(Duration::from_millis(1)).unwrap();
            while let Some((id, event, _)) = reactor.next(NOW) {
                match event {
                    Event::Connected(_) => open.push(id),
                    Event::Closed(_) => open.retain(|other| *other != id),
                    _ => {}
                }
            }
        }
        let client = &mut reactors[2];
        client.wait(Duration::ZERO).unwrap();
        while client.next(NOW).is_some() {}
    };
    for (count, expected) in [(1, [1, 0]), (2, [1, 1]), (3, [2, 1]), (4, [2, 2])] {
        clients.push(reactors[2].connect(address, &settings(|_| ()), NOW).unwrap());
        while open.iter().map(Vec::len).sum::<usize>() < count {
            turn(&mut reactors, &mut open);
        }
        assert_eq!(open.each_ref().map(Vec::len), expected);
        assert_eq!(doors.each_ref().map(AcceptorHandle::inside)[..2], expected);
    }
    // The second reactor's connections close.
    let all_of_second = open[1].clone();
    for id in all_of_second {
        reactors[1].close(id);
    }
    open[1].clear();
    for count in [3, 4] {
        clients.push(reactors[2].connect(address, &settings(|_| ()), NOW).unwrap());
        while open.iter().map(Vec::len).sum::<usize>() < count {
            turn(&mut reactors, &mut open);
        }
    }
    assert_eq!(open.each_ref().map(Vec::len), [2, 2]);
    // A dropped reactor gets none.
    let [first, second, mut client] = reactors;
    drop(second);
    let mut first = [first];
    clients.extend([(); 2].map(|()| client.connect(address, &settings(|_| ()), NOW).unwrap()));
    while open[0].len() < 3 {
        first[0].wait(Duration::from_millis(1)).unwrap();
        while let Some((id, event, _)) = first[0].next(NOW) {
            match event {
                Event::Connected(_) => open[0].push(id),
                Event::Closed(_) => open[0].retain(|other| *other != id),
                _ => {}
            }
        }
        client.wait(Duration::ZERO).unwrap();
        while client.next(NOW).is_some() {}
    }
}
