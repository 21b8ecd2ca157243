//! Tests of the loop's turns, with real sockets.
use std::io::{Read, Write};
use std::net::TcpStream;

use tapeline_kdb::{Encoder, Refused, Type};
use tapeline_tickerplant::{Column, Schema};

use super::*;
use crate::kdb::publishing::{self, Saying};
use crate::numbering::Lending;

#[test]
fn only_who_says_nothing_is_silent() {
    let client = |stage| Client::new(1_024, stage, Nanos(5));
    let checking = Stage::Checking {
        number: CheckNumber(1),
        user: "me".to_owned(),
        is_user: true,
        capability: Capability::OURS,
    };
    let late = Nanos(5) + HELLO_LIMIT_NS as u64;
    assert!(client(Stage::Hello).is_silent(late));
    assert!(!client(Stage::Hello).is_silent(Nanos(late.0 - 1)));
    // However long the checking thread takes.
    assert!(!client(checking).is_silent(late));
    assert!(!client(Stage::In).is_silent(late));
}

/// A plant's rows are stamped before they are added: those of the old day are, before it ends.
#[test]
fn the_day_of_stamped_rows_ends_with_the_first_row_of_the_next() {
    let mut server = open(|_| {});
    let today = server.plant.date();
    let tomorrow = Nanos(server.clock.now().0 + 86_400_000_000_000);
    server.has_added_up_to(Nanos(0));
    server.row_of(server.clock.now()).unwrap();
    server.row_of(tomorrow).unwrap();
    server.turn(Duration::ZERO).unwrap();
    assert_eq!(server.plant.date(), today, "a stamp ahead of the clock ends no day");
    server.has_added_up_to(tomorrow);
    server.turn(Duration::ZERO).unwrap();
    assert_eq!(server.plant.date(), today + 1);
}

const NAMES: usize = 20_000;

/// A tickerplant without a log, on a free port.
fn open(change: impl FnOnce(&mut TickerplantConfig)) -> Server {
    open_with(None, change)
}

/// The same, which passes rows of clients to a plant.
fn open_with(onward: Option<Giving>, change: impl FnOnce(&mut TickerplantConfig)) -> Server {
    let column = |name: &str, kind| Column { name: name.into(), kind };
    let columns =
        vec![column("time", Type::TIMESPAN), column("sym", Type::SYMBOL), column("price", Type::FLOAT)];
    let mut config = TickerplantConfig {
        address: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
        unix: None,
        publish_every: None,
        spins: false,
        queue_bytes: 64 << 20,
        most_message: 16 << 20,
        incoming_bytes: 64 << 20,
        max_connections: 1_000,
        timezone: "UTC".to_owned(),
        log: None,
        tables: vec![Schema::new("trade", columns).unwrap()],
        access: None,
    };
    change(&mut config);
    Server::open(config, "the configuration", onward, &Events::default()).unwrap()
}

/// A client that is logged in.
fn connect(server: &mut Server) -> TcpStream {
    let mut stream = TcpStream::connect(server.address.unwrap()).unwrap();
    // Otherwise a query stays in the client's kernel until earlier data is acknowledged.
    stream.set_nodelay(true).unwrap();
    stream.write_all(b"me\x03\0").unwrap();
    stream.set_nonblocking(true).unwrap();
    while stream.read(&mut [0]).unwrap_or(0) == 0 {
        server.turn(SHORT_NAP).unwrap();
    }
    stream.set_nonblocking(false).unwrap();
    stream
}

fn message(kind: MessageKind, write: impl FnOnce(&mut Encoder<'_>) -> Result<(), Refused>) -> Vec<u8> {
    let mut room = vec![0; 4 << 20];
    let mut message = Encoder::message(&mut room, kind).unwrap();
    write(&mut message).unwrap();
    let len = message.finish().unwrap();
    room.truncate(len);
    room
}

/// A subscription to so many names that the answer to `.u.w` is long.
fn subscription() -> Vec<u8> {
    let names: Vec<_> = (0..NAMES).map(|at| format!("{at:036}")).collect();
    message(MessageKind::Async, |out| {
        out.list(3)?;
        out.string(b".u.sub")?;
        out.symbol(b"trade")?;
        out.symbols(names.iter().map(String::as_bytes))
    })
}

/// One client requests the longest answers repeatedly: each turn makes one of them, and other clients are
/// served in between.
#[test]
fn who_asks_for_much_does_not_hold_up_others() {
    const ASKED: u64 = 20;
    let mut server = open(|_| {});
    let (mut greedy, mut other) = (connect(&mut server), connect(&mut server));
    let subscribe = subscription();
    let writing = std::thread::spawn(move || {
        greedy.write_all(&subscribe).unwrap();
        greedy
    });
    while server.report().answered == 0 {
        server.turn(SHORT_NAP).unwrap();
    }
    let mut greedy = writing.join().unwrap();
    let query = message(MessageKind::Sync, |out| out.string(b".u.w"));
    greedy.write_all(&query.repeat(ASKED as usize)).unwrap();
    other.write_all(&message(MessageKind::Sync, |out| out.string(b".u.i"))).unwrap();
    other.set_nonblocking(true).unwrap();
    let before = server.report().answered;
    let mut answered = 0;
    while other.read(&mut [0; 64]).unwrap_or(0) == 0 {
        server.turn(SHORT_NAP).unwrap();
        let now = server.report().answered - before;
        assert!(now - answered <= 2, "{now} answers after {answered}, in one turn");
        answered = now;
    }
    assert!(answered < ASKED / 2, "the other waited for {answered} answers");
    // The remaining work is done turn by turn, without further input.
    while server.report().answered - before < ASKED + 1 {
        assert!(
            server.turn(Duration::ZERO).unwrap(),
            "it would sleep while somebody waits: {}",
            server.report()
        );
    }
}

/// An answer that turns out too long costs what was written of it, although an error of a few bytes is sent.
#[test]
fn answers_that_are_too_long_do_not_hold_up_others() {
    let mut server = open(|_| {});
    let subscribe = subscription();
    // Six lists of 740 kB: more than the 4 MiB of the longest answer.
    let mut greedy = Vec::new();
    for count in 1..=6 {
        let (mut stream, subscribe) = (connect(&mut server), subscribe.clone());
        let writing = std::thread::spawn(move || {
            stream.write_all(&subscribe).unwrap();
            stream
        });
        while server.report().answered < count {
            server.turn(SHORT_NAP).unwrap();
        }
        greedy.push(writing.join().unwrap());
    }
    let query = message(MessageKind::Sync, |out| out.string(b".u.w"));
    greedy[0].write_all(&query.repeat(20)).unwrap();
    let before = server.report().answered;
    let mut answered = 0;
    while answered < 20 {
        server.turn(SHORT_NAP).unwrap();
        let now = server.report().answered - before;
        assert!(now - answered <= 1, "{now} answers after {answered}, in one turn");
        answered = now;
    }
}

/// No client waits for the answers: none is made.
#[test]
fn queries_without_an_answer_cost_a_turn_nothing() {
    let mut server = open(|_| {});
    let mut client = connect(&mut server);
    let query = message(MessageKind::Async, |out| out.string(b".u.w"));
    client.write_all(&query.repeat(1_000)).unwrap();
    while server.report().answered < 1_000 {
        server.turn(SHORT_NAP).unwrap();
    }
    assert_eq!(server.plant.counters().answer_bytes, 0);
}

/// Partial messages take memory: the bound is over all connections, not per connection.
#[test]
fn messages_that_never_end_are_bounded_over_all_connections() {
    let mut server = open(|config| (config.incoming_bytes, config.most_message) = (4 << 20, 1 << 20));
    let beginning = [&[1, 0, 0, 0][..], &(1_u32 << 20).to_le_bytes(), &[0; 900_000]].concat();
    let mut streams = Vec::new();
    for _ in 0..10 {
        let mut stream = connect(&mut server);
        let beginning = beginning.clone();
        streams.push(std::thread::spawn(move || {
            // The connection may be closed before that.
            let _ = stream.write_all(&beginning);
            stream
        }));
    }
    while !streams.iter().all(std::thread::JoinHandle::is_finished) || server.report().turned_away == 0 {
        server.turn(SHORT_NAP).unwrap();
        let held: usize = server.clients.values().map(|client| client.frames.held()).sum();
        assert!(held <= 4 << 20, "{held} bytes");
    }
    // A client that has sent little is still connected.
    let mut other = connect(&mut server);
    other.write_all(&message(MessageKind::Sync, |out| out.string(b".u.i"))).unwrap();
    other.set_nonblocking(true).unwrap();
    while other.read(&mut [0; 64]).unwrap_or(0) == 0 {
        server.turn(SHORT_NAP).unwrap();
    }
}

/// A plant has not published the rows of one client when it loses ticks: that client gets no answer, and nobody else notices.
#[test]
fn whose_rows_may_be_lost_is_disconnected() {
    let tables = vec![Saying::default()];
    let (giving, _publishing) = publishing::open(tables, ".X".to_owned(), 3, 1 << 10, Lending::default());
    let mut server = open_with(Some(giving), |_| {});
    let (mut publisher, mut other) = (connect(&mut server), connect(&mut server));
    let update = message(MessageKind::Sync, |out| {
        out.list(3)?;
        out.symbol(b".u.upd")?;
        out.symbol(b"trade")?;
        out.list(2)?;
        out.symbols([b"A".as_slice()])?;
        out.column(Type::FLOAT, [1.5_f64])
    });
    publisher.write_all(&update).unwrap();
    while !server.awaits_rows() {
        server.turn(SHORT_NAP).unwrap();
    }
    let query = message(MessageKind::Sync, |out| out.string(b".u.i"));
    let mut ask = |server: &mut Server| {
        other.write_all(&query).unwrap();
        other.set_nonblocking(true).unwrap();
        // One answer is of 17 bytes.
        let mut got = 0;
        while got < 17 {
            server.turn(SHORT_NAP).unwrap();
            got += other.read(&mut [0; 17]).unwrap_or(0);
        }
        other.set_nonblocking(false).unwrap();
    };
    // Twice: a question makes its client wait for nobody's rows.
    ask(&mut server);
    ask(&mut server);
    assert_eq!(server.report().turned_away, 0);
    server.has_lost_rows();
    ask(&mut server);
    assert_eq!(server.report().turned_away, 1);
    assert_eq!(publisher.read(&mut [0; 64]).unwrap(), 0, "no answer, and the end");
}
