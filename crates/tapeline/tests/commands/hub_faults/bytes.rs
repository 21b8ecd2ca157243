//! Bytes that are no valid protocol, or exceed a limit.

use std::io::{Read, Write};
use std::net::TcpStream;

use tungstenite::Message;
use tungstenite::client::IntoClientRequest;

use crate::hub_faults::market::Market;
use crate::hub_faults::peer::Peer;
use crate::hub_faults::{count, timed};

/// Number of bytes received until the hub closes.
fn rest(mut socket: TcpStream) -> usize {
    let mut bytes = Vec::new();
    let _ = socket.read_to_end(&mut bytes);
    bytes.len()
}

#[test]
fn whoever_sends_what_is_no_protocol_is_shut_out() {
    let (report, _) = crate::hub_faults::day(Market::open("", &[]), |market| {
        for (opening, why) in [
            (&[0xA5; 400][..], "never opened"),
            (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "never opened"),
            (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "never opened"),
        ] {
            let mut socket = TcpStream::connect(market.address()).unwrap();
            let from = socket.local_addr().unwrap().to_string();
            socket.write_all(opening).unwrap();
            // One of them is no whole request: close the sending side.
            socket.shutdown(std::net::Shutdown::Write).unwrap();
            rest(socket);
            market.plant.tells(&[why, &from]);
        }
    });
    assert_eq!((count(&report, "sessions"), count(&report, "never_opened")), (1, 3), "{report}");
}

#[test]
fn frames_that_nobody_can_read_end_their_connection_alone() {
    let (report, _) = crate::hub_faults::day(Market::open("", &[]), |market| {
        let garbage: [&[u8]; 4] = [
            // A frame with unknown flags; one shorter than its header; a first fragment of 4 GB; a last fragment
            // without a first.
            &[0, 9, 0x80, 1, 2, 3, 4, 5, 6],
            &[0, 2, 0x02],
            &[0, 14, 0x01, 0x08, 0xFF, 0xFF, 0xFF, 0xFF, 0, 1, 0, 0, 0, 0],
            &[0, 8, 0x01, 0x10, 0, 9, 0, 0],
        ];
        for (bytes, user) in garbage.iter().zip(["flags", "short", "huge", "later"]) {
            let mut peer = Peer::open(market.address(), user, 1);
            peer.socket.write_all(bytes).unwrap();
            timed("a frame that cannot be read: the connection is closed", || peer.last_words());
            let line = market.plant.tells(&[&format!("gone {user}: ")]);
            assert!(line.contains("expected"), "{line}");
        }
    });
    assert_eq!((count(&report, "sessions"), count(&report, "cut")), (5, 0), "{report}");
}

#[test]
fn messages_that_nobody_can_read_are_put_up_with_a_hundred_times() {
    let (report, _) = crate::hub_faults::day(Market::open("", &[]), |market| {
        let mut rwf = Peer::open(market.address(), "rwf", 1);
        for _ in 0..100 {
            rwf.send(&[0xFF; 3]);
        }
        assert_eq!(rwf.last_words().unwrap(), "100 of its messages could not be read");
        market.plant.tells(&["gone rwf: 100 of its messages could not be read"]);

        let mut request = format!("ws://{}/WebSocket", market.server).into_client_request().unwrap();
        request.headers_mut().insert("Sec-WebSocket-Protocol", "tr_json2".parse().unwrap());
        let stream = TcpStream::connect(market.address()).unwrap();
        let (mut json, _) = tungstenite::client(request, stream).unwrap();
        let login = r#"{"ID":1,"Domain":"Login","Key":{"Name":"json"}}"#;
        json.send(Message::text(login)).unwrap();
        let mut sent = 0;
        while sent < 100 && json.send(Message::text("[{]")).is_ok() {
            sent += 1;
        }
        // Each gets an error message, and the last text states the reason of the disconnect.
        let mut last = String::new();
        while let Ok(message) = json.read() {
            if let Message::Text(text) = message {
                last = text.to_string();
            }
        }
        assert!(last.contains("100 of its messages could not be read"), "{last}");
        market.plant.tells(&["gone json: 100 of its messages could not be read"]);
    });
    assert_eq!(count(&report, "sessions"), 3, "{report}");
}
