//! `tapeline omm serve` and `accept` with peers that send invalid or excessive messages.

use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use stage::Running;
use tapeline_measure::Clock;
use tapeline_omm::Refused;
use tapeline_omm::domain::LoginRequest;
use tapeline_omm::rwf::{DataType, Domain, GenericHeader, MessageClass, MessageView, flags};
use tapeline_wire::rssl::{ConnectionSettings, Event, Reactor, Sender, Sent};

use crate::stage;

/// A connection to `server`, until it is closed or `each` returns true. `each` gets `None` first, then every message.
fn meet(server: &Value, mut each: impl FnMut(Option<&[u8]>, &mut Sender<'_>) -> bool) {
    let port = u16::try_from(server["port"].as_u64().unwrap()).unwrap();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let (clock, mut reactor) = (Clock::calibrate(), Reactor::new(1).unwrap());
    let settings = ConnectionSettings {
        guaranteed_output_buffers: 4000,
        sys_recv_buf_size: 65_536,
        ..ConnectionSettings::default()
    };
    reactor.connect(address, &Arc::new(settings), clock.now()).unwrap();
    let mut is_done = false;
    while !is_done {
        reactor.wait(Duration::from_millis(100)).unwrap();
        reactor.each(clock.now(), |_, event, sender| {
            is_done = is_done
                || match event {
                    Event::Connected(_) => each(None, sender),
                    Event::Message(message) => each(Some(message), sender),
                    Event::Closed(_) => true,
                    _ => false,
                };
        });
    }
}

fn send(sender: &mut Sender<'_>, write: impl FnOnce(&mut [u8]) -> Result<usize, Refused>) {
    let mut bytes = vec![0; 2 << 20];
    let len = write(&mut bytes).unwrap();
    assert_eq!(sender.send(&bytes[..len]), Sent::Queued);
}

/// Stops the program and returns its lines on standard error.
fn talk(running: Running, mut talk: impl Read) -> Vec<String> {
    running.ask_to_end();
    let mut text = String::new();
    talk.read_to_string(&mut text).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn who_sends_what_cannot_be_read_is_cut() {
    for server in ["serve", "accept"] {
        let (mut running, stderr) = Running::start_talking(&["omm", server, "--port", "0"]);
        meet(&running.says(), |_, sender| {
            (0..150).for_each(|_| {
                let _ = sender.send(&[0xFF; 3]);
            });
            false
        });
        let gone = running.says();
        assert_eq!((&gone["event"], &gone["malformed"]), (&"gone".into(), &100.into()), "{server}");
        assert_eq!(gone["reason"], "100 of its messages could not be read", "{server}");
        let notes = talk(running, stderr);
        assert_eq!(notes.iter().filter(|line| line.contains("cannot be read")).count(), 1, "{notes:?}");
    }
}

#[test]
fn a_login_too_long_to_be_answered_is_refused_with_one_word() {
    let (mut running, stderr) = Running::start_talking(&["omm", "serve", "--port", "0"]);
    let mut login = LoginRequest::new(b"user");
    let position = vec![b'p'; 32_600];
    login.attributes.position = Some(&position);
    let mut states = Vec::new();
    meet(&running.says(), |message, sender| {
        match message {
            None => send(sender, |room| login.encode(room)),
            Some(message) => {
                let message = MessageView::parse(message).unwrap();
                states.push(message.header().unwrap().state().map(|state| state.text.to_vec()));
            }
        }
        false
    });
    assert_eq!(states, [Some(b"The login is too long to be answered".to_vec())]);
    let gone = running.says();
    assert_eq!((&gone["unwritten"], &gone["reason"]), (&1.into(), &"the login was refused".into()), "{gone}");
    let notes = talk(running, stderr);
    assert_eq!(notes.iter().filter(|line| line.contains("cannot be written")).count(), 1, "{notes:?}");
}

#[test]
fn long_echoes_come_back_also_to_who_reads_late() {
    const MANY: usize = 15;
    const LONG: usize = 1 << 20;
    let mut running = Running::start(&["omm", "serve", "--port", "0", "--sys-send-buf-size", "65536"]);
    let mut echoes = Vec::new();
    meet(&running.says(), |message, sender| {
        let Some(message) = message else {
            send(sender, |room| LoginRequest::new(b"user").encode(room));
            return false;
        };
        let message = MessageView::parse(message).unwrap();
        if message.class() == MessageClass::REFRESH {
            let header = GenericHeader {
                flags: flags::generic::MESSAGE_COMPLETE,
                ..GenericHeader::new(Domain::MARKET_PRICE, 1, DataType::OPAQUE)
            };
            for number in 0..=MANY {
                let len = if number < MANY { LONG } else { 1 };
                send(sender, |room| {
                    header.encode_with(room, |room| {
                        room[..len].fill(number as u8);
                        Ok(len)
                    })
                });
            }
            // Everything is sent before anything is read.
            while !sender.flush() {
                std::thread::yield_now();
            }
        } else {
            echoes.push((message.payload().len(), message.payload()[0]));
        }
        echoes.last().is_some_and(|(len, _)| *len == 1)
    });
    let expected: Vec<_> =
        (0..=MANY).map(|number| (if number < MANY { LONG } else { 1 }, number as u8)).collect();
    assert_eq!(echoes, expected);
}
