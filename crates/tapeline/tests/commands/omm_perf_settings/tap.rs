//! A relay that records the lengths of the TLS records that a tool writes. Each write becomes one record.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use crate::omm_perf_settings::perf_peer::Tool;

/// Direction of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    FromClient,
    FromServer,
}

/// A relay to a server, for one client.
pub(crate) struct Tap {
    pub(crate) port: u16,
    seen: Arc<Seen>,
}

/// Lengths of records of application data, by direction.
#[derive(Default)]
struct Seen {
    records: Mutex<[Vec<usize>; 2]>,
    more: Condvar,
}

impl Tap {
    /// A relay to the server at this port.
    pub(crate) fn before(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Seen::default());
        let of_wire = Arc::clone(&seen);
        thread::spawn(move || {
            let (client, _) = listener.accept().unwrap();
            let server = TcpStream::connect(("127.0.0.1", server)).unwrap();
            let back = (server.try_clone().unwrap(), client.try_clone().unwrap());
            let of_back = Arc::clone(&of_wire);
            thread::spawn(move || carry(back.0, back.1, Way::FromServer, &of_back));
            carry(client, server, Way::FromClient, &of_wire);
        });
        Self { port, seen }
    }

    /// The records in this direction, once they have this many bytes in total. Panics if the tool ends first.
    pub(crate) fn until(&self, way: Way, bytes: usize, tool: &mut Tool) -> Vec<usize> {
        let mut records = self.seen.records.lock().unwrap();
        while records[way as usize].iter().sum::<usize>() < bytes {
            assert!(tool.runs(), "it ended before: {:?}", *records);
            records = self.seen.more.wait_timeout(records, Duration::from_millis(100)).unwrap().0;
        }
        records[way as usize].clone()
    }
}

/// Relays data in one direction until the connection is closed.
fn carry(mut from: TcpStream, mut to: TcpStream, way: Way, seen: &Seen) {
    let (mut bytes, mut waiting) = (vec![0; 65_536], Vec::new());
    while let Ok(count) = from.read(&mut bytes)
        && count > 0
        && to.write_all(&bytes[..count]).is_ok()
    {
        waiting.extend_from_slice(&bytes[..count]);
        // RFC 5246, 6.2.1: type, version, length. 23 is application data.
        while let [kind, _, _, high, low, ..] = waiting[..] {
            let length = usize::from(u16::from_be_bytes([high, low]));
            if waiting.len() < 5 + length {
                break;
            }
            waiting.drain(..5 + length);
            if kind == 23 {
                seen.records.lock().unwrap()[way as usize].push(length);
                seen.more.notify_all();
            }
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}
