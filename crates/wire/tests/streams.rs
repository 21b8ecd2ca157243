//! Connections over TCP and Unix-domain sockets, in one loop.
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use tapeline_wire::streams::{Over, Ready, Socket, StreamId, StreamSettings, Streams};
use tapeline_wire::tcp::Received;

/// A server that echoes received bytes, turn by turn, or sends nothing.
struct Echo {
    is_mute: bool,
    streams: Streams,
    /// The bytes that each connection sent, until it was closed.
    said: BTreeMap<StreamId, Vec<u8>>,
    over: Vec<String>,
}

fn server(queue_bytes: usize, max_connections: usize) -> (Echo, SocketAddr) {
    let mut streams = Streams::new(StreamSettings { max_connections, queue_bytes }).unwrap();
    let address = streams.listen("127.0.0.1:0".parse().unwrap()).unwrap();
    (Echo { is_mute: false, streams, said: BTreeMap::new(), over: Vec::new() }, address)
}

fn path(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("tapeline-test-streams-{name}-{}", std::process::id()))
}

impl Echo {
    /// Runs until the condition is met.
    fn until(&mut self, is_so: impl Fn(&Self) -> bool) {
        let mut room = [0; 8];
        while !is_so(self) {
            self.streams.wait(Some(Duration::from_millis(10))).unwrap();
            while let Some(ready) = self.streams.ready() {
                match ready {
                    Ready::Connected(id) => assert!(self.said.insert(id, Vec::new()).is_none()),
                    Ready::Readable(id) => {
                        let count = self.streams.receive(id, &mut room);
                        self.said.get_mut(&id).unwrap().extend_from_slice(&room[..count]);
                        if !self.is_mute {
                            self.streams.send(id, &room[..count]);
                        }
                    }
                    Ready::Over(id) => {
                        self.over.push(self.streams.why(id).unwrap().to_string());
                        self.said.remove(&id);
                        self.streams.close(id);
                    }
                }
            }
        }
    }

    fn has_said(&self, words: &[u8]) -> bool {
        self.said.values().any(|said| said == words)
    }
}

#[test]
fn tcp_and_local_clients_are_served_in_one_loop() {
    let (mut echo, address) = server(1 << 20, 10);
    let path = path("both");
    echo.streams.listen_local(&path).unwrap();
    let mut tcp = TcpStream::connect(address).unwrap();
    let mut local = UnixStream::connect(&path).unwrap();
    // More than the server's buffer holds at once.
    tcp.write_all(b"from far, and more than eight bytes").unwrap();
    local.write_all(b"from near").unwrap();
    echo.until(|echo| echo.has_said(b"from far, and more than eight bytes") && echo.has_said(b"from near"));
    let is_near = |id: &StreamId| echo.streams.peer_address(*id).is_none();
    assert_eq!(echo.said.keys().filter(|id| is_near(id)).count(), 1);
    echo.streams.flush();
    let mut heard = [0; 9];
    local.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"from near");
    // A connection closed with unread bytes is reset.
    tcp.read_exact(&mut [0; 35]).unwrap();
    drop((tcp, local));
    echo.until(|echo| echo.over.len() == 2);
    assert_eq!(echo.over, ["it has closed the connection"; 2]);
    assert!(echo.streams.is_empty());
    // The next connection gets the same number.
    let mut again = TcpStream::connect(address).unwrap();
    again.write_all(b"again").unwrap();
    echo.until(|echo| echo.has_said(b"again"));
    assert!(echo.said.keys().all(|id| id.0 < 2));
    drop(echo);
    assert!(!path.exists(), "the name goes with the server");
}

#[test]
fn one_who_takes_nothing_is_cut_and_the_others_are_not() {
    let (mut echo, address) = server(64 << 10, 10);
    let mut slow = TcpStream::connect(address).unwrap();
    slow.write_all(b"slow").unwrap();
    echo.until(|echo| echo.has_said(b"slow"));
    let id = *echo.said.keys().next().unwrap();
    let mut quick = TcpStream::connect(address).unwrap();
    quick.write_all(b"quick").unwrap();
    // The kernel buffers some megabytes for a peer that does not read; the rest waits here.
    while echo.streams.why(id).is_none() {
        echo.streams.send(id, &[0; 4096]);
        echo.streams.flush();
    }
    assert!(matches!(echo.streams.why(id), Some(Over::TooSlow { waiting }) if *waiting <= 64 << 10));
    echo.until(|echo| !echo.over.is_empty() && echo.has_said(b"quick"));
    assert!(echo.over[0].starts_with("it is too slow"), "{:?}", echo.over);
    assert_eq!(echo.streams.len(), 1);
}

#[test]
fn one_too_many_is_closed_at_once() {
    let (mut echo, address) = server(1 << 20, 1);
    let mut first = TcpStream::connect(address).unwrap();
    first.write_all(b"first").unwrap();
    echo.until(|echo| echo.has_said(b"first"));
    let mut second = TcpStream::connect(address).unwrap();
    echo.until(|echo| echo.streams.refused() == 1);
    assert_eq!(second.read(&mut [0; 8]).unwrap_or(0), 0, "it is closed, or reset");
    assert_eq!(echo.streams.len(), 1);
}

/// A connection that has sent nothing for a second can be replaced; one that has sent something stays.
#[test]
fn idle_connections_keep_nobody_out() {
    let (mut echo, address) = server(1 << 20, 2);
    let mut first = TcpStream::connect(address).unwrap();
    first.write_all(b"first").unwrap();
    echo.until(|echo| echo.has_said(b"first"));
    let mut idle = TcpStream::connect(address).unwrap();
    echo.until(|echo| echo.streams.len() == 2);
    // At first the new connection is refused; once the silence has lasted a second it is accepted.
    let (last, refused) = (RefCell::new(None), Cell::new(u64::MAX));
    echo.until(|echo| {
        // One at a time.
        if refused.replace(echo.streams.refused()) != echo.streams.refused() {
            let mut next = TcpStream::connect(address).unwrap();
            next.write_all(b"next").unwrap();
            last.replace(Some(next));
        }
        echo.has_said(b"next")
    });
    assert!(
        echo.over.iter().any(|why| why == "it has sent nothing, and another connection needs its place"),
        "{:?}",
        echo.over
    );
    assert_eq!(idle.read(&mut [0; 8]).unwrap_or(0), 0);
    first.write_all(b"still").unwrap();
    echo.until(|echo| echo.has_said(b"firststill"));
}

#[test]
fn clients_have_sockets_of_the_same_kinds() {
    let (mut echo, address) = server(1 << 20, 10);
    let path = path("clients");
    echo.streams.listen_local(&path).unwrap();
    for is_local in [false, true] {
        let socket = if is_local { Socket::connect_local(&path) } else { Socket::connect(address) };
        let mut socket = socket.unwrap();
        let mut sent = 0;
        while sent < 5 {
            sent += socket.send(&b"hello"[sent..]).unwrap();
        }
        echo.until(|echo| echo.has_said(b"hello"));
        echo.streams.flush();
        let mut heard = Vec::new();
        let mut room = [0; 16];
        while heard.len() < 5 {
            socket.wait(false, Duration::from_secs(60));
            match socket.receive(&mut room).unwrap() {
                Received::Bytes(count) => heard.extend_from_slice(&room[..count]),
                Received::Nothing => {}
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(heard, b"hello");
        drop(socket);
        echo.until(|echo| echo.streams.is_empty());
    }
    assert!(Socket::connect_local(&path.with_extension("nobody")).is_err());
}

#[test]
fn who_sends_and_closes_at_once_is_read_and_noticed() {
    let (mut echo, address) = server(1 << 20, 8);
    let path = path("hasty");
    // An answer would detect the end through a write error.
    echo.is_mute = true;
    echo.streams.listen_local(&path).unwrap();
    // More than the maximum at a time: each end must be detected.
    for turn in 0..20 {
        if turn % 2 == 0 {
            TcpStream::connect(address).unwrap().write_all(b"hello").unwrap();
        } else {
            UnixStream::connect(&path).unwrap().write_all(b"hello").unwrap();
        }
        echo.until(|echo| echo.over.len() == turn + 1);
    }
    assert_eq!((echo.streams.len(), echo.streams.refused()), (0, 0));
}

#[test]
fn who_is_prompt_is_not_cut_for_what_comes_between_two_flushes() {
    let (mut echo, address) = server(1 << 10, 10);
    let mut client = TcpStream::connect(address).unwrap();
    client.write_all(b"prompt").unwrap();
    echo.until(|echo| echo.has_said(b"prompt"));
    let id = *echo.said.keys().next().unwrap();
    echo.streams.flush();
    for _ in 0..3 {
        echo.streams.send(id, &[1; 1 << 10]);
    }
    assert!(echo.streams.why(id).is_none());
    echo.streams.flush();
    let mut heard = vec![0; 6 + (3 << 10)];
    client.read_exact(&mut heard).unwrap();
    // But not without limit: one turn has a limit, too.
    for _ in 0..5 {
        echo.streams.send(id, &[1; 1 << 10]);
    }
    assert!(matches!(echo.streams.why(id), Some(Over::TooSlow { .. })));
}
