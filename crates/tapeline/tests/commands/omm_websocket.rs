//! `tapeline omm serve` with generic clients of the WebSocket API, over an independent WebSocket library: the requests
//! of that API's public samples (market price, batch and view, posting, ping), and the answers that they wait for.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, TcpStream};

use serde_json::{Value, json};
use stage::Running;
use tungstenite::client::IntoClientRequest;
use tungstenite::http::HeaderValue;
use tungstenite::{Message, WebSocket};

use crate::stage;

/// A client like the samples: it parses each text as an array of messages, and answers pings.
struct Client {
    socket: WebSocket<TcpStream>,
    messages: VecDeque<Value>,
}

const LOGIN: &str = r#"{"ID":1,"Domain":"Login","Key":{"Name":"root","Elements":{"ApplicationId":"256","Position":"127.0.0.1"}}}"#;

impl Client {
    fn connect(port: u64, protocol: &str) -> Self {
        let mut request = format!("ws://localhost:{port}/WebSocket").into_client_request().unwrap();
        request.headers_mut().insert("Sec-WebSocket-Protocol", HeaderValue::from_str(protocol).unwrap());
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, u16::try_from(port).unwrap())).unwrap();
        let (socket, answer) = tungstenite::client(request, stream).unwrap();
        assert_eq!(answer.headers()["Sec-WebSocket-Protocol"], protocol);
        Self { socket, messages: VecDeque::new() }
    }

    /// Connects, and logs in as the samples do.
    fn log_in(port: u64) -> Self {
        let mut client = Self::connect(port, "tr_json2");
        client.send(LOGIN);
        let answer = client.next();
        assert_eq!((&answer["Type"], &answer["Domain"]), (&json!("Refresh"), &json!("Login")));
        assert_eq!((&answer["ID"], &answer["State"]["Stream"]), (&json!(1), &json!("Open")), "{answer}");
        // The ping sample needs nothing else.
        assert!(answer["Elements"]["PingTimeout"].as_u64().unwrap() > 0, "{answer}");
        assert!(answer["Elements"]["MaxMsgSize"].as_u64().unwrap() >= 61_440, "{answer}");
        client
    }

    fn send(&mut self, text: &str) {
        self.socket.send(Message::text(text)).unwrap();
    }

    /// The next message; `None` at the end of the connection.
    fn may_have(&mut self) -> Option<Value> {
        while self.messages.is_empty() {
            let text = match self.socket.read() {
                Ok(Message::Text(text)) => text,
                Ok(Message::Close(_)) | Err(_) => return None,
                Ok(other) => panic!("{other:?}"),
            };
            let Value::Array(messages) = serde_json::from_str(&text).unwrap() else { panic!("{text}") };
            self.messages.extend(messages);
        }
        let message = self.messages.pop_front()?;
        if message["Type"] == "Ping" {
            self.send(r#"{"Type":"Pong"}"#);
            return self.may_have();
        }
        Some(message)
    }

    fn next(&mut self) -> Value {
        self.may_have().expect("the connection goes on")
    }

    /// The next message of this type on this stream.
    fn next_of(&mut self, kind: &str, id: i32) -> Value {
        loop {
            let message = self.next();
            assert!(kind == "Error" || message["Type"] != "Error", "{message}");
            if message["Type"] == kind && message["ID"] == id {
                return message;
            }
        }
    }
}

fn provider(more: &[&str]) -> (Running, u64) {
    let mut running = Running::start(&[&["omm", "serve", "--port", "0"], more].concat());
    let port = running.says()["port"].as_u64().unwrap();
    (running, port)
}

#[test]
fn market_price() {
    let (_provider, port) = provider(&["--update-rate", "100"]);
    let mut client = Client::log_in(port);
    client.send(r#"{"ID":2,"Key":{"Name":"TRI.N"},"Streaming":true}"#);
    let refresh = client.next_of("Refresh", 2);
    assert_eq!(refresh["Key"], json!({"Service": "DIRECT_FEED", "Name": "TRI.N"}));
    assert_eq!((&refresh["State"]["Stream"], &refresh["State"]["Data"]), (&json!("Open"), &json!("Ok")));
    assert!(refresh["Fields"]["BID"].is_number() && refresh["Domain"].is_null(), "{refresh}");
    assert!(client.next_of("Update", 2)["Fields"].is_object());
    // A repeated request, as some of the samples send at every login refresh.
    client.send(r#"{"ID":2,"Key":{"Name":"TRI.N"},"Streaming":true}"#);
    client.next_of("Refresh", 2);

    client.send(r#"{"ID":3,"Key":{"Name":"TRI.N","Service":"DIRECT_FEED"},"Streaming":false}"#);
    assert_eq!(client.next_of("Refresh", 3)["State"]["Stream"], "NonStreaming");
    client.send(r#"{"ID":4,"Key":{"Name":"UNKNOWN"}}"#);
    let status = client.next_of("Status", 4);
    assert_eq!(
        (&status["State"]["Stream"], &status["State"]["Code"]),
        (&json!("Closed"), &json!("NotFound"))
    );
    client.send(r#"{"ID":5,"Key":{"Name":"A"},"Domain":"MarketByOrder"}"#);
    let book = client.next_of("Refresh", 5);
    assert_eq!(
        (&book["Domain"], &book["Map"]["Entries"][0]["Action"]),
        (&json!("MarketByOrder"), &json!("Add"))
    );
}

/// LSEG's Java tools send a service as a number, and cannot read a name.
#[test]
fn a_service_is_answered_in_the_form_that_the_client_uses() {
    let (_provider, port) = provider(&["--update-rate", "0", "--service-id", "7"]);
    let mut client = Client::log_in(port);
    let mut service = |id: i32, key: &str| {
        client.send(&format!(r#"{{"ID":{id},"Key":{{"Name":"A"{key}}}}}"#));
        client.next_of("Refresh", id)["Key"]["Service"].clone()
    };
    assert_eq!(service(2, ""), json!("DIRECT_FEED"));
    assert_eq!(service(3, r#","Service":7"#), json!(7));
    assert_eq!(service(4, ""), json!(7), "as it has been used last");
    assert_eq!(service(5, r#","Service":"DIRECT_FEED""#), json!("DIRECT_FEED"));
    // Both forms in one text.
    client.send(
        r#"[{"ID":6,"Key":{"Name":"B","Service":7}},{"ID":7,"Key":{"Name":"B","Service":"DIRECT_FEED"}}]"#,
    );
    assert_eq!(client.next_of("Refresh", 6)["Key"]["Service"], 7);
    assert_eq!(client.next_of("Refresh", 7)["Key"]["Service"], "DIRECT_FEED");
}

/// Login by token and its renewal, as cloud clients do.
#[test]
fn logins_by_token() {
    let (_provider, port) = provider(&["--update-rate", "0"]);
    let mut client = Client::connect(port, "tr_json2");
    let login = |more: &str| {
        format!(
            r#"{{"ID":1,"Domain":"Login","Key":{{"NameType":"AuthnToken","Elements":{{"ApplicationId":"256","Position":"127.0.0.1/net","AuthenticationToken":"secret"}}}}{more}}}"#
        )
    };
    client.send(&login(""));
    let answer = client.next_of("Refresh", 1);
    assert_eq!(answer["Key"]["NameType"], "AuthnToken", "{answer}");
    assert_eq!(answer["Key"]["Elements"]["AuthenticationErrorText"], "Success", "{answer}");
    client.send(&login(r#","Refresh":false"#));
    client.send(r#"{"ID":2,"Key":{"Name":"A","Service":"DIRECT_FEED"}}"#);
    // The renewed login gets no answer.
    let next = client.next();
    assert_eq!((&next["Type"], &next["ID"]), (&json!("Refresh"), &json!(2)), "{next}");
}

#[test]
fn batches_and_views() {
    let (mut provider, port) = provider(&["--update-rate", "0"]);
    let mut client = Client::log_in(port);
    client.send(r#"{"ID":2,"Key":{"Name":["TRI.N","IBM.N","T.N"]},"View":["BID","ASK","BIDSIZE"]}"#);
    let status = client.next_of("Status", 2);
    assert_eq!(status["State"]["Text"], "Processed 3 total items from Batch Request. 3 Ok.");
    assert_eq!((&status["State"]["Stream"], &status["State"]["Data"]), (&json!("Closed"), &json!("Ok")));
    for (id, name) in [(3, "TRI.N"), (4, "IBM.N"), (5, "T.N")] {
        let refresh = client.next_of("Refresh", id);
        let mut fields: Vec<&str> =
            refresh["Fields"].as_object().unwrap().keys().map(String::as_str).collect();
        fields.sort();
        assert_eq!((&refresh["Key"]["Name"], fields), (&json!(name), vec!["ASK", "BID", "BIDSIZE"]));
    }
    // Stream ids that the client chooses.
    client.send(r#"{"ID":[20,30],"Key":{"Name":["A","B"]}}"#);
    assert_eq!(client.next_of("Refresh", 20)["Key"]["Name"], "A");
    assert_eq!(client.next_of("Refresh", 30)["Key"]["Name"], "B");
    // Closes several streams at once; one was never open.
    client.send(r#"{"ID":[3,4,20,99],"Type":"Close"}"#);
    let status = client.next_of("Status", 3);
    let text = status["State"]["Text"].as_str().unwrap();
    assert_eq!(text.trim_end(), "Processed 4 total stream ids from Batch Close Request. 3 Ok.");
    assert_eq!((&status["State"]["Stream"], &status["State"]["Data"]), (&json!("Closed"), &json!("Ok")));
    // The ids can be used again.
    client.send(r#"{"ID":4,"Key":{"Name":"NEW"}}"#);
    assert_eq!(client.next_of("Refresh", 4)["Key"]["Name"], "NEW");
    client.socket.close(None).unwrap();
    while client.may_have().is_some() {}
    assert_eq!(provider.says()["event"], "login");
    assert_eq!(provider.says()["closes"], 3);
}

#[test]
fn posting() {
    let (_provider, port) = provider(&["--update-rate", "0"]);
    let mut client = Client::log_in(port);
    client.send(r#"{"ID":2,"Key":{"Name":"TRI.N"}}"#);
    client.next_of("Refresh", 2);
    client.send(r#"{"ID":2,"Type":"Post","Domain":"MarketPrice","Ack":true,"PostID":7,"PostUserInfo":{"Address":"127.0.0.1","UserID":77},"Message":{"ID":0,"Type":"Update","Domain":"MarketPrice","Fields":{"BID":45.55,"BIDSIZE":18,"ASK":45.57,"ASKSIZE":19}}}"#);
    let ack = client.next_of("Ack", 2);
    assert_eq!((&ack["AckID"], &ack["NakCode"]), (&json!(7), &Value::Null));
    assert_eq!(
        client.next_of("Update", 2)["Fields"],
        json!({"BID": 45.55, "BIDSIZE": 18, "ASK": 45.57, "ASKSIZE": 19})
    );
    // Off-stream: on the login stream.
    client.send(r#"{"ID":1,"Type":"Post","Domain":"MarketPrice","Ack":true,"PostID":8,"Key":{"Name":"NAK","Service":"DIRECT_FEED"},"Message":{"ID":0,"Type":"Update","Key":{"Name":"NAK"},"Fields":{"BID":1}}}"#);
    let ack = client.next_of("Ack", 1);
    assert_eq!((&ack["AckID"], &ack["NakCode"]), (&json!(8), &json!("DeniedBySrc")));
}

#[test]
fn pings() {
    let (_provider, port) = provider(&["--connection-ping-timeout", "3"]);
    // Pings work before the login too.
    let mut client = Client::connect(port, "rssl.json.v2");
    client.send(r#"{"Type":"Ping"}"#);
    assert_eq!(client.next(), json!({"Type": "Pong"}));
    client.send(&format!(r#"[{{"Type":"Ping"}},{LOGIN}]"#));
    assert_eq!(client.next(), json!({"Type": "Pong"}));
    assert_eq!(client.next_of("Refresh", 1)["Elements"]["PingTimeout"], 3);
}

#[test]
fn what_cannot_be_read_is_answered_and_nothing_else_is_lost() {
    let (_provider, port) = provider(&["--update-rate", "0"]);
    let mut client = Client::log_in(port);
    for (text, id, why) in [
        (r#"{"ID":7,"Key":{"Name":"#, 0, "JSON Converter parse error"),
        (r#"{"ID":"x","Key":{"Name":"A"}}"#, 0, "Expected 'PRIMITIVE' for key 'ID'"),
        (r#"{"ID":7,"Type":"ExtraInfo"}"#, 7, "JSON Unexpected Value. Received 'ExtraInfo' for key 'Type'"),
        (r#"{"ID":7}"#, 7, "JSON Missing required key 'Key'"),
        (r#"{"ID":7,"Key":{"Name":"A","Service":"NOPE"}}"#, 7, "Received 'NOPE' for key 'Service'"),
    ] {
        client.send(text);
        let error = client.next();
        assert_eq!((&error["Type"], &error["ID"]), (&json!("Error"), &json!(id)), "{error}");
        assert!(error["Text"].as_str().unwrap().contains(why), "{error}");
        let debug = &error["Debug"];
        assert_eq!(debug["Message"], text);
        assert!(debug["File"].is_string() && debug["Line"].is_u64() && debug["Offset"].is_u64(), "{error}");
    }
    // Two invalid messages and a valid one.
    client.send(r#"[{"ID":8},{"ID":9,"Key":{"Name":"A"}},{"ID":10}]"#);
    assert_eq!(client.next_of("Error", 8)["ID"], 8);
    assert_eq!(client.next_of("Refresh", 9)["Key"]["Name"], "A");
    assert_eq!(client.next_of("Error", 10)["ID"], 10);
}

#[test]
fn who_sends_nothing_but_that_is_cut() {
    for server in ["serve", "accept"] {
        let mut running = Running::start(&["omm", server, "--port", "0"]);
        let port = running.says()["port"].as_u64().unwrap();
        let mut client = Client::connect(port, "tr_json2");
        for _ in 0..40 {
            client.send("nonsense");
        }
        client.send(&format!("[{}5]", "5,".repeat(200)));
        while client.may_have().is_some() {}
        let gone = running.says();
        assert_eq!((&gone["event"], &gone["malformed"]), (&json!("gone"), &json!(140)), "{server}");
        assert_eq!(gone["reason"], "100 of its messages could not be read", "{server}");
    }
}
