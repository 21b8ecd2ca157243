//! A session that sends a script's messages, into buffers and a socket that are too small.

use std::collections::VecDeque;
use std::sync::Arc;

use tapeline_measure::Nanos;
use tapeline_wire::rssl::{Compression, ConnectionSettings, Event, Sent, Session, Version};

const NOW: Nanos = Nanos(0);

/// Runs a script: each byte pair sends or packs a message, or carries some bytes. Queued messages arrive, in
/// order and whole.
pub(crate) fn script(input: &[u8]) {
    let [first, script @ ..] = input else { return };
    let compression_type =
        [Compression::None, Compression::Zlib, Compression::Lz4, Compression::None][usize::from(first % 4)];
    let settings = Arc::new(ConnectionSettings {
        compression_type,
        compression_threshold: Some(30),
        max_fragment_size: 256,
        guaranteed_output_buffers: 2 + u32::from(first / 64),
        max_message_bytes: 5000,
        ..ConnectionSettings::default()
    });
    let mut client = Session::client(settings.clone(), Version::V14, NOW);
    let mut server = Session::server(settings, NOW);
    let mut received = Vec::new();
    pump(&mut client, &mut server, usize::MAX, &mut Vec::new(), &mut received);
    pump(&mut server, &mut client, usize::MAX, &mut Vec::new(), &mut received);

    let (mut queued, mut wire) = (VecDeque::new(), Vec::new());
    for (number, step) in script.as_chunks::<2>().0.iter().take(400).enumerate() {
        let [what, size] = *step;
        let length = usize::from(size) * [1, 1, 4, 20][usize::from(what >> 6)];
        let message: Vec<u8> =
            (0..length).map(|at| (at as u8).wrapping_mul(what | 1) ^ (number as u8)).collect();
        match what % 4 {
            // If possible, written in the output buffer, in more space than it needs.
            1 if client.output().claim(length + usize::from(what >> 2 & 7)).is_some() => {
                let room = client.output().claim(length).expect("less room is there too");
                room.copy_from_slice(&message);
                client.output().commit(length);
                if length > 0 {
                    queued.push_back(message);
                }
            }
            0 | 1 => match client.output().send(&message) {
                Sent::Queued => queued.push_back(message),
                Sent::Unfit => assert!(message.is_empty() || message.len() > 5000),
                Sent::Full => assert!(client.output().unsent() > 0),
                Sent::NotOpen => panic!("it is open"),
            },
            2 => match client.output().pack(&message) {
                Sent::Queued => queued.push_back(message),
                Sent::Unfit => assert!(message.is_empty() || message.len() > 5000),
                Sent::Full => assert!(client.output().unsent() > 0),
                Sent::NotOpen => panic!("it is open"),
            },
            _ => pump(&mut client, &mut server, length, &mut wire, &mut received),
        }
        // The unsent messages are exactly those that the other end, with all sent bytes, could not complete.
        if compression_type == Compression::None {
            let (mut unsent, mut readable) = (0, Vec::new());
            client.output().unsent_messages(|message| {
                unsent += 1;
                readable.extend(message.map(<[u8]>::to_vec));
            });
            assert_eq!(unsent, queued.len() - received.len());
            let mut rest = queued.iter().skip(received.len());
            assert!(readable.iter().all(|message| rest.any(|queued| queued == message)));
        }
        // Buffers of 2 to 5 frames, a pack, and the rest of a long message.
        assert!(client.output().unsent() <= 5 * 300 + 300 + 5000, "{}", client.output().unsent());
    }
    while client.output().unsent() > 0 {
        let before = client.output().unsent();
        pump(&mut client, &mut server, 1000, &mut wire, &mut received);
        assert!(client.output().unsent() < before);
    }
    pump(&mut client, &mut server, usize::MAX, &mut wire, &mut received);
    assert!(wire.is_empty() && received.iter().eq(queued.iter()));
}

/// Carries at most `count` bytes from one session to the other.
fn pump(from: &mut Session, to: &mut Session, count: usize, wire: &mut Vec<u8>, received: &mut Vec<Vec<u8>>) {
    wire.extend(from.drain_at_most(count));
    loop {
        let (consumed, event) = to.take(wire, NOW).unwrap();
        let done = event.is_none();
        if let Some(Event::Message(message)) = event {
            received.push(message.to_vec());
        }
        wire.drain(..consumed);
        if done {
            return;
        }
    }
}

/// Seed inputs.
pub(crate) fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let script = |first: u8| {
        let steps = [
            [0, 200],
            [2, 20],
            [2, 40],
            [3, 100],
            [0xC0, 200],
            [0, 9],
            [3, 255],
            [0x82, 60],
            [2, 250],
            [0xC3, 255],
        ];
        [&[first], &steps.as_flattened().repeat(4)[..]].concat()
    };
    vec![("plain", script(0)), ("zlib", script(1)), ("lz4", script(2)), ("wide", script(0xC0))]
}
