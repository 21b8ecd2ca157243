//! The HTTP server, with a socket as its client.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use tapeline_wire::http::{HttpSettings, Response, Server};

fn server(settings: HttpSettings) -> Server {
    Server::start("127.0.0.1:0".parse().unwrap(), settings, |request| Response {
        status: if request.path == "/there" { 200 } else { 404 },
        content_type: "text/plain; charset=utf-8",
        body: format!("{} at {}", request.path, request.host).into_bytes(),
        headers: vec![("x-more", "yes".to_owned()), ("x-bad", "a\r\nb: c".to_owned())],
    })
    .unwrap()
}

/// Returns the response, up to its end.
fn ask(address: SocketAddr, request: &str) -> String {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn it_answers_and_hangs_up() {
    let server = server(HttpSettings::default());
    let host = server.address();
    let answer = ask(host, &format!("GET /there?a=b HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\n/there at 127.0.0.1"), "{answer}");
    for header in
        ["x-content-type-options: nosniff", "x-more: yes", "cache-control: no-store", "connection: close"]
    {
        assert!(answer.contains(header), "{header}: {answer}");
    }
    assert!(!answer.contains("x-bad"), "{answer}");
    let head = ask(host, &format!("HEAD /there HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    assert!(head.starts_with("HTTP/1.1 200") && head.ends_with("\r\n\r\n"), "{head}");
    assert!(ask(host, "GET /not HTTP/1.0\r\n\r\n").starts_with("HTTP/1.0 404"));
    assert!(ask(host, "GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 400"));
}

#[test]
fn what_is_not_asked_plainly_is_refused() {
    let server = server(HttpSettings { names: vec!["plant.example".to_owned()], ..HttpSettings::default() });
    let at = server.address();
    let asked = |line: &str, host: &str| ask(at, &format!("{line} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
        let answer = asked(&format!("{method} /there"), "localhost");
        assert!(answer.starts_with("HTTP/1.1 405") && answer.contains("allow: GET, HEAD"), "{answer}");
    }
    // A foreign name for this address.
    assert!(asked("GET /there", "evil.example:80").starts_with("HTTP/1.1 403"));
    assert!(asked("GET /there", "Plant.Example:80").starts_with("HTTP/1.1 200"));
    let long = format!("GET /there HTTP/1.1\r\nHost: localhost\r\nCookie: {}\r\n\r\n", "x".repeat(20_000));
    let answer = ask_anyway(at, long.as_bytes());
    assert!(!answer.contains("200 OK"), "{answer}");
    assert!(!ask_anyway(at, &[0xff; 100]).contains("200 OK"));
}

/// The same for a server that may close before it has read everything.
fn ask_anyway(address: SocketAddr, request: &[u8]) -> String {
    let mut socket = TcpStream::connect(address).unwrap();
    let _ = socket.write_all(request);
    let mut answer = Vec::new();
    let _ = socket.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn who_dawdles_is_hung_up_on_and_keeps_nobody_out_for_long() {
    let (head_time, connection_time) = (Duration::from_millis(300), Duration::from_millis(300));
    let server =
        server(HttpSettings { max_connections: 2, head_time, connection_time, ..HttpSettings::default() });
    let at = server.address();
    // All connections belong to clients that never complete a head, or that never read.
    let mut slow: Vec<TcpStream> = (0..4).map(|_| TcpStream::connect(at).unwrap()).collect();
    for socket in &mut slow {
        socket.write_all(b"GET /there HTTP/1.1\r\nHost: local").unwrap();
    }
    let answer = ask(at, "GET /there HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    for mut socket in slow {
        // Closed, with or without a response.
        let mut rest = Vec::new();
        let _ = socket.read_to_end(&mut rest);
        assert!(!rest.starts_with(b"HTTP/1.1 200"));
    }
}

/// Hundreds of silent connections, each permitted an hour: a client that sends a request still gets a
/// response.
#[test]
fn idle_connections_keep_nobody_out() {
    let hour = Duration::from_secs(3_600);
    let settings = HttpSettings {
        head_time: hour,
        connection_time: hour,
        max_connections: 32,
        ..HttpSettings::default()
    };
    let server = server(settings);
    let address = server.address();
    let idle: Vec<TcpStream> = (0..200).map(|_| TcpStream::connect(address).unwrap()).collect();
    for _ in 0..3 {
        assert!(ask(address, "GET /there HTTP/1.0\r\n\r\n").starts_with("HTTP/1.0 200"));
    }
    // The oldest was closed.
    assert_eq!((&idle[0]).read(&mut [0; 1]).unwrap_or(0), 0);
}

/// A client may lose its core for a while between connect and request: it is not replaced meanwhile.
#[test]
fn who_has_just_come_has_its_time_to_ask() {
    let ask_time = Duration::from_secs(3_600);
    let server = server(HttpSettings { max_connections: 2, ask_time, ..HttpSettings::default() });
    let address = server.address();
    let mut first = TcpStream::connect(address).unwrap();
    let _second = TcpStream::connect(address).unwrap();
    let mut third = TcpStream::connect(address).unwrap();
    third.write_all(b"GET /there HTTP/1.0\r\n\r\n").unwrap();
    // If it were accepted at once, its response would usually be here by now, and the first connection
    // closed.
    third.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    assert!(third.read(&mut [0]).is_err());
    third.set_read_timeout(None).unwrap();
    first.write_all(b"GET /there HTTP/1.0\r\n\r\n").unwrap();
    for mut client in [first, third] {
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.0 200"), "{answer}");
    }
}
