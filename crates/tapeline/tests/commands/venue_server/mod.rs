//! A server that behaves as a crypto venue does: WebSocket and HTTPS behind TLS on one port. It plays a script, honours subscriptions, and keeps the
//! true books by an implementation of its own, from which it answers requests for snapshots.

mod books;

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use tungstenite::protocol::Role;
use tungstenite::{Message, WebSocket};

pub(crate) use books::{Books, Side};

use crate::certificates;

/// One step of a script.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Sends a message.
    Send(String),
    /// The venue's books change, but the message is not sent.
    Lose(String),
    /// Sends a message that no book takes note of.
    Bad(String),
    /// Waits until the books were asked for in all this many times: by HTTPS, or by subscriptions.
    AwaitSnapshots(usize),
    /// Waits until the test [says](VenueServer::go_on) to go on.
    Hold,
    /// Waits until the client has sent this many pings in all, each of which is answered.
    AwaitPings(usize),
    /// Sends and answers nothing more, as a venue behind a broken network, until the client has gone; the next connection goes on behind it.
    Deaf,
    /// Cuts the connection without a word; the next connection goes on behind it.
    Cut,
}

/// A venue's answers.
pub(crate) trait Behaviour: Send {
    /// Takes note of a message of the script, sent or lost.
    fn see(&mut self, message: &str);
    /// Answers a message of the client.
    fn answer(&mut self, request: &str) -> Vec<String>;
    /// Answers a request for a snapshot by HTTPS.
    fn snapshot(&mut self, query: &str) -> Option<String>;
    /// Refuses a request for a snapshot: the status and further headers in place of an answer.
    fn refuse(&mut self) -> Option<String> {
        None
    }
    /// Refuses a WebSocket, in the same way.
    fn refuse_stream(&mut self) -> Option<String> {
        None
    }
    /// The true books.
    fn books(&self) -> &Books;
}

struct Playing {
    script: std::vec::IntoIter<Step>,
    behaviour: Box<dyn Behaviour>,
    snapshots: usize,
    pings: usize,
    goes_on: bool,
    /// Every message of a client.
    requests: Vec<String>,
}

type Shared = Arc<(Mutex<Playing>, Condvar)>;

/// A running server. Its threads end with the test's process.
pub(crate) struct VenueServer {
    pub(crate) port: u16,
    shared: Shared,
}

impl VenueServer {
    /// Starts a server with a certificate for `localhost`, and writes its authority to `ca.pem` in the folder.
    pub(crate) fn start(folder: &Path, script: Vec<Step>, behaviour: impl Behaviour + 'static) -> Self {
        certificates::write(folder);
        let chain: Vec<CertificateDer<'static>> =
            CertificateDer::pem_file_iter(folder.join("server.pem")).unwrap().map(Result::unwrap).collect();
        let key = PrivateKeyDer::from_pem_file(folder.join("server.key")).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let behaviour = Box::new(behaviour);
        let script = script.into_iter();
        let playing =
            Playing { script, behaviour, snapshots: 0, pings: 0, goes_on: false, requests: Vec::new() };
        let shared: Shared = Arc::new((Mutex::new(playing), Condvar::new()));
        let (serving, config) = (Arc::clone(&shared), Arc::new(config));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (shared, config) = (Arc::clone(&serving), Arc::clone(&config));
                // A client that goes away ends its thread.
                std::thread::spawn(move || stream.and_then(|stream| serve(stream, config, &shared)));
            }
        });
        Self { port, shared }
    }

    pub(crate) fn with<T>(&self, look: impl FnOnce(&Books) -> T) -> T {
        look(lock(&self.shared).behaviour.books())
    }

    /// The messages of clients so far.
    pub(crate) fn requests(&self) -> Vec<String> {
        lock(&self.shared).requests.clone()
    }

    /// Ends all waits for the test.
    pub(crate) fn go_on(&self) {
        lock(&self.shared).goes_on = true;
    }

    /// How often books were asked for.
    pub(crate) fn snapshots(&self) -> usize {
        lock(&self.shared).snapshots
    }
}

fn lock(shared: &Shared) -> MutexGuard<'_, Playing> {
    shared.0.lock().unwrap()
}

type Tls = StreamOwned<ServerConnection, TcpStream>;

fn serve(stream: TcpStream, config: Arc<ServerConfig>, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut tls = StreamOwned::new(ServerConnection::new(config).map_err(io::Error::other)?, stream);
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        tls.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let key = head.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: "));
    match key {
        Some(key) => {
            let refused = lock(shared).behaviour.refuse_stream();
            if let Some(refused) = refused {
                return refuse(tls, &refused);
            }
            let accept = tungstenite::handshake::derive_accept_key(key.trim().as_bytes());
            write!(
                tls,
                "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                 Sec-WebSocket-Accept: {accept}\r\n\r\n"
            )?;
            tls.flush()?;
            play(WebSocket::from_raw_socket(tls, Role::Server, None), shared)
        }
        None => answer_get(tls, &head, shared),
    }
}

fn answer_get(mut tls: Tls, head: &str, shared: &Shared) -> io::Result<()> {
    let refused = lock(shared).behaviour.refuse();
    if let Some(refused) = refused {
        return refuse(tls, &refused);
    }
    let path = head.split(' ').nth(1).unwrap_or_default();
    let body = lock(shared).behaviour.snapshot(path.split('?').nth(1).unwrap_or_default());
    let (status, body) = body.map_or(("400 Bad Request", String::new()), |body| ("200 OK", body));
    write!(tls, "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())?;
    tls.flush()?;
    tls.conn.send_close_notify();
    tls.flush()?;
    note_snapshot(shared);
    Ok(())
}

/// Answers with a status and further headers, without a body.
fn refuse(mut tls: Tls, refused: &str) -> io::Result<()> {
    write!(tls, "HTTP/1.1 {refused}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")?;
    tls.flush()?;
    tls.conn.send_close_notify();
    tls.flush()
}

fn note_snapshot(shared: &Shared) {
    lock(shared).snapshots += 1;
    shared.1.notify_all();
}

/// How long a wait for a message of the client takes.
const LISTENING: Duration = Duration::from_millis(1);

/// Plays the script, after the first message of the client.
fn play(mut socket: WebSocket<Tls>, shared: &Shared) -> io::Result<()> {
    let first = socket.read().map_err(io::Error::other)?;
    take(&mut socket, &first, shared)?;
    socket.get_ref().sock.set_read_timeout(Some(LISTENING))?;
    for count in 1_usize.. {
        let step = lock(shared).script.next();
        match step {
            Some(Step::Send(text)) => {
                lock(shared).behaviour.see(&text);
                socket.write(Message::text(text)).map_err(io::Error::other)?;
            }
            Some(Step::Bad(text)) => socket.write(Message::text(text)).map_err(io::Error::other)?,
            Some(Step::Lose(text)) => lock(shared).behaviour.see(&text),
            Some(Step::AwaitSnapshots(wanted)) => {
                listen_until(&mut socket, shared, |playing| playing.snapshots >= wanted)?;
            }
            Some(Step::AwaitPings(wanted)) => {
                listen_until(&mut socket, shared, |playing| playing.pings >= wanted)?;
            }
            Some(Step::Hold) => listen_until(&mut socket, shared, |playing| playing.goes_on)?,
            Some(Step::Deaf) => {
                socket.flush().map_err(io::Error::other)?;
                let stream = &mut socket.get_mut().sock;
                stream.set_read_timeout(None)?;
                let mut room = [0; 1 << 10];
                while stream.read(&mut room)? > 0 {}
                return Ok(());
            }
            Some(Step::Cut) => {
                socket.flush().map_err(io::Error::other)?;
                return socket.get_ref().sock.shutdown(Shutdown::Both);
            }
            None => {
                socket.flush().map_err(io::Error::other)?;
                listen(&mut socket, shared)?;
            }
        }
        if count % 256 == 0 {
            listen(&mut socket, shared)?;
        }
    }
    Ok(())
}

/// Sends what was written, and takes what the client sends until `is_met`.
fn listen_until(
    socket: &mut WebSocket<Tls>,
    shared: &Shared,
    is_met: impl Fn(&Playing) -> bool,
) -> io::Result<()> {
    socket.flush().map_err(io::Error::other)?;
    while !is_met(&lock(shared)) {
        listen(socket, shared)?;
    }
    Ok(())
}

/// Takes what the client sends, until it sends nothing for a moment.
fn listen(socket: &mut WebSocket<Tls>, shared: &Shared) -> io::Result<()> {
    loop {
        match socket.read() {
            Ok(message) => take(socket, &message, shared)?,
            Err(tungstenite::Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(io::Error::other(error)),
        }
    }
}

fn take(socket: &mut WebSocket<Tls>, message: &Message, shared: &Shared) -> io::Result<()> {
    let text = match message {
        Message::Text(text) => text,
        Message::Ping(_) => {
            lock(shared).pings += 1;
            return socket.flush().map_err(io::Error::other);
        }
        _ => return Ok(()),
    };
    let answers = {
        let mut playing = lock(shared);
        playing.requests.push(text.to_string());
        playing.behaviour.answer(text)
    };
    let are_books = !answers.is_empty();
    for answer in answers {
        socket.send(Message::text(answer)).map_err(io::Error::other)?;
    }
    if are_books {
        note_snapshot(shared);
    }
    Ok(())
}
