//! The clients of web servers, against servers that are silent, slow, or break the protocol.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tapeline_wire::tls::{Tls, TlsVersions};
use tapeline_wire::web_client::{Url, WebError, WebLimits, WebReceived, WebSocketClient, get};
use tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};
use tungstenite::protocol::{CloseFrame, frame::Frame};
use tungstenite::{Message, WebSocket};

/// How long a server has to answer here.
const SHORT: WebLimits = WebLimits { answer_time: Duration::from_millis(100), longest: 1 << 10 };
/// For servers that answer.
const LONG: WebLimits = WebLimits { answer_time: Duration::from_secs(60), longest: 1 << 10 };

/// Serves one connection, and returns the addresses for a WebSocket and for a request.
fn server<T: Send + 'static>(
    serve: impl FnOnce(TcpStream) -> T + Send + 'static,
) -> (impl Fn(&str) -> Url, JoinHandle<T>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = thread::spawn(move || serve(listener.accept().unwrap().0));
    (move |scheme: &str| Url::parse(&format!("{scheme}://127.0.0.1:{port}/")).unwrap(), serving)
}

/// A server of WebSockets.
fn websocket<T: Send + 'static>(
    serve: impl FnOnce(WebSocket<TcpStream>) -> T + Send + 'static,
) -> (WebSocketClient, JoinHandle<T>) {
    let (url, serving) = server(|stream| serve(tungstenite::accept(stream).unwrap()));
    (WebSocketClient::connect(&url("ws"), None, &LONG).unwrap(), serving)
}

/// Sends a byte now and then, and never the end of the answer, until the other side has gone.
fn drip(mut stream: TcpStream, bytes: impl IntoIterator<Item = u8>) {
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(2))).unwrap();
    let mut room = [0; 1 << 10];
    for byte in bytes {
        // Whatever the other side says meanwhile.
        if stream.write_all(&[byte]).is_err() || matches!(stream.read(&mut room), Ok(0)) {
            return;
        }
    }
}

/// Waits until the other side has gone.
fn say_nothing(mut stream: TcpStream) {
    let mut room = [0; 1 << 10];
    while !matches!(stream.read(&mut room), Ok(0) | Err(_)) {}
}

fn failure(url: &Url, limits: &WebLimits) -> String {
    let key = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let tls = Tls::client(key.cert.pem().as_bytes(), TlsVersions::Both).unwrap();
    match url.is_websocket() {
        true => WebSocketClient::connect(url, Some(&tls), limits).unwrap_err().to_string(),
        false => get(url, Some(&tls), limits).unwrap_err().to_string(),
    }
}

#[test]
fn a_silent_server_is_left() {
    for scheme in ["ws", "wss", "http", "https"] {
        let (url, serving) = server(say_nothing);
        let said = failure(&url(scheme), &SHORT);
        assert!(said.ends_with("the server did not answer in time"), "{scheme}: {said}");
        serving.join().unwrap();
    }
}

#[test]
fn a_server_that_never_comes_to_an_end_is_left() {
    let head: (&[u8], u8) = (b"HTTP/1.1 200 OK\r\nX: ", b'x');
    // A record of TLS with 16 KiB of handshake.
    let record: (&[u8], u8) = (&[22, 3, 3, 64, 0, 2, 0, 63, 252], 0);
    for (scheme, (begin, rest)) in [("ws", head), ("wss", record), ("http", head), ("https", record)] {
        let (url, serving) =
            server(move |stream| drip(stream, begin.iter().copied().chain(std::iter::repeat(rest))));
        let said = failure(&url(scheme), &SHORT);
        assert!(said.ends_with("the server did not answer in time"), "{scheme}: {said}");
        serving.join().unwrap();
    }
}

#[test]
fn a_server_that_takes_nothing_is_left() {
    let (done, is_over) = mpsc::channel::<()>();
    let (url, serving) = server(move |stream| {
        let _socket = tungstenite::accept(stream).unwrap();
        // Reads no more.
        let _ = is_over.recv();
    });
    let limits = WebLimits { longest: 64 << 20, answer_time: Duration::from_secs(2) };
    let mut client = WebSocketClient::connect(&url("ws"), None, &limits).unwrap();
    let said = client.send(&"x".repeat(48 << 20)).unwrap_err().to_string();
    assert!(said.ends_with("the server did not take what was sent in time"), "{said}");
    drop(done);
    serving.join().unwrap();
}

#[test]
fn a_large_message_that_arrives_slowly_shows_that_the_server_is_alive() {
    let (seen, is_seen) = mpsc::channel();
    let (mut client, serving) = websocket(move |mut socket| {
        // The header, and a text of eight bytes.
        for byte in [0x81, 8].into_iter().chain(*b"01234567") {
            is_seen.recv().unwrap();
            socket.get_mut().write_all(&[byte]).unwrap();
        }
        let _ = is_seen.recv();
    });
    for _ in 0..9 {
        seen.send(()).unwrap();
        assert!(matches!(next(&mut client), WebReceived::Alive));
    }
    seen.send(()).unwrap();
    let WebReceived::Text(text) = next(&mut client) else { panic!("no text") };
    assert_eq!(text.as_bytes(), b"01234567");
    assert!(matches!(client.receive(Duration::from_millis(5)).unwrap(), WebReceived::Nothing));
    drop(seen);
    serving.join().unwrap();
}

/// Waits for what is received next.
fn next(client: &mut WebSocketClient) -> WebReceived {
    loop {
        match client.receive(Duration::from_millis(50)).unwrap() {
            WebReceived::Nothing => {}
            received => return received,
        }
    }
}

#[test]
fn pings_are_answered_fragments_joined_and_the_reason_of_a_close_is_told() {
    let (mut client, serving) = websocket(|mut socket| {
        socket.send(Message::Ping(b"?".as_slice().into())).unwrap();
        let answer = socket.read().unwrap();
        let parts = [
            Frame::message(b"one ".to_vec(), OpCode::Data(Data::Text), false),
            Frame::message(b"two".to_vec(), OpCode::Data(Data::Continue), true),
        ];
        parts.into_iter().for_each(|part| socket.send(Message::Frame(part)).unwrap());
        socket.send(Message::Binary(b"\0".as_slice().into())).unwrap();
        let reason = "maintenance at noon".into();
        socket.close(Some(CloseFrame { code: CloseCode::Restart, reason })).unwrap();
        // The client's answer to the close.
        while socket.read().is_ok() {}
        answer
    });
    assert!(matches!(next(&mut client), WebReceived::Alive));
    let text = loop {
        match next(&mut client) {
            WebReceived::Text(text) => break text,
            WebReceived::Alive => {}
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(text.as_bytes(), b"one two");
    assert!(matches!(next(&mut client), WebReceived::Alive));
    let WebReceived::Closed(reason) = next(&mut client) else { panic!("not closed") };
    assert!(reason.contains("maintenance at noon"), "{reason}");
    drop(client);
    assert_eq!(serving.join().unwrap(), Message::Pong(b"?".as_slice().into()));
}

#[test]
fn what_breaks_the_protocol_ends_the_connection() {
    // A text of 2 KiB, where 1 KiB is allowed; a masked frame; a text that is not UTF-8; an unknown opcode.
    let frames: [(&[u8], &str); 4] = [
        (&[0x81, 126, 8, 0], "too long"),
        (&[0x81, 0x81, 1, 2, 3, 4, 5], "masked"),
        (&[0x81, 1, 0xff], "UTF-8"),
        (&[0x83, 0], "opcode"),
    ];
    for (frame, part) in frames {
        let (mut client, serving) = websocket(move |mut socket| {
            socket.get_mut().write_all(frame).unwrap();
            let gone = socket.read().unwrap_err();
            !matches!(gone, tungstenite::Error::Io(ref cause) if cause.kind() == ErrorKind::WouldBlock)
        });
        let said = loop {
            match client.receive(Duration::from_millis(50)) {
                Ok(WebReceived::Nothing | WebReceived::Alive) => {}
                Ok(other) => panic!("{part}: {other:?}"),
                Err(error) => break error.to_string(),
            }
        };
        assert!(said.to_lowercase().contains(&part.to_lowercase()), "{part}: {said}");
        drop(client);
        assert!(serving.join().unwrap());
    }
}

#[test]
fn a_server_that_does_not_want_a_websocket_is_named() {
    let (url, serving) = server(|mut stream| {
        let mut room = [0; 4 << 10];
        let _ = stream.read(&mut room).unwrap();
        stream.write_all(b"HTTP/1.1 429 Slow down\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n").unwrap();
    });
    let refused = WebSocketClient::connect(&url("ws"), None, &LONG).unwrap_err();
    let said = refused.to_string();
    assert!(
        said.ends_with("the server refuses the WebSocket with HTTP status 429 Too Many Requests"),
        "{said}"
    );
    let WebError::Refused { retry_after, .. } = refused else { panic!("{refused:?}") };
    assert_eq!(retry_after, Some(Duration::from_secs(7)));
    serving.join().unwrap();
    let unknown = Url::parse("ws://no-such-host.invalid/").unwrap();
    let said = failure(&unknown, &LONG);
    assert!(said.starts_with("cannot find the address of no-such-host.invalid: "), "{said}");
}
