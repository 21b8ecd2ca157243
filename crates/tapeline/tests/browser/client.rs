//! The module `tapeline.js` in a page that imports it from the plant, and the page of `docs/web.md`.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;

use serde_json::{Map, Value, json};
use tapeline_wire::http::{HttpRequest, HttpSettings, Response, Server};
use tungstenite::handshake::server::{Request, Response as Accepted};
use tungstenite::http::HeaderValue;
use tungstenite::{Message, WebSocket};

use crate::chromium::Chromium;
use crate::stage::{Place, Running, tapeline};
use crate::{add_alice, browser, exchange, plant, plant_with};

/// Opens a page of the plant's host that imports the module from the plant. `connect(OPTIONS)` makes a consumer of the
/// hub; `errors`, `sent` and `states` have its errors, messages and connection states.
fn import(page: &mut Chromium, web: SocketAddr, hub: SocketAddr) {
    page.open(&format!("http://{web}/health"));
    page.wait_for("location.pathname === '/health' && document.readyState === 'complete'");
    page.evaluate(&format!(
        "import('/tapeline.js').then(({{ Consumer }}) => {{ \
           window.errors = []; window.sent = []; window.states = []; \
           const send = WebSocket.prototype.send; \
           WebSocket.prototype.send = function (text) {{ sent.push(JSON.parse(text)); send.call(this, text); }}; \
           const options = {{ onError: (error) => errors.push(error), onState: ({{ state }}) => states.push(state) }}; \
           window.connect = (more) => new Consumer('ws://{hub}/WebSocket', {{ ...options, ...more }}); \
         }})"
    ));
}

/// The requests for items, in order.
const REQUESTS: &str = "sent.filter(({ Key: key, Domain: domain, Type: type }) => key && !domain && !type)";

#[test]
fn items_have_the_values_that_the_plant_published() {
    let Some(mut page) = browser() else { return };
    let place = Place::new(1);
    let keys = "unknown = \"wait\"\nposts = \"reflect\"\nslow = \"cut\"\nslow_bytes = \"64MiB\"";
    let (_running, hub, web) = plant_with(&place, "", keys, None);
    let mut watch = Running::start(&[
        "plant",
        "watch",
        "--ring",
        &place.ring,
        "--from",
        "oldest",
        "--until-end-of-session",
        "--format",
        "json",
    ]);
    // A heartbeat brings the service up.
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let heartbeat = [&b"TAPELINE  "[..], &1u64.to_be_bytes(), &[0, 0]].concat();
    socket.send_to(&heartbeat, place.lines[0]).unwrap();

    import(&mut page, web, hub);
    page.evaluate("window.consumer = connect({ user: 'me' }); void 0");
    page.wait_for("[...consumer.services.values()].some(({ name, up }) => name === 'TAPELINE' && up)");
    page.evaluate(
        "window.changes = { TAPE: [], SENA: [], RIMU: [] }; \
         const record = (item, { type, fields }) => type === 'state' || changes[item.name].push([type, { ...fields }]); \
         window.items = consumer.subscribe(['TAPE', 'SENA', 'RIMU'], record).items; \
         window.bids = consumer.subscribe('TAPE', undefined, { fields: ['BID'] }).items; \
         (async () => { window.yielded = new Set(); for await (const item of consumer) yielded.add(item); })()
           .then(() => (window.ended = true)); void 0",
    );
    page.wait_for("[...items, ...bids].every((item) => item.text.includes('no image'))");
    let day = place.folder.path().join("day.itch");
    let write = ["feed", "simulate", "--symbols", "3", "--messages", "3000", "--write"];
    assert!(tapeline(&[&write[..], &[day.to_str().unwrap()]].concat()).output().unwrap().status.success());
    place.replay(&day, 0);

    // Each item's image, then every update, as in the ring.
    let mut published: Map<String, Value> = Map::new();
    while let Some(said) = watch.may_say() {
        let type_ = match said["kind"].as_str() {
            Some("refresh") => "image",
            Some("update") => "update",
            _ => continue,
        };
        let Some(item) = said["item"].as_str() else { continue };
        let changes = published.entry(item).or_insert_with(|| json!([]));
        let fields = said["fields"].as_object().cloned().unwrap_or_default();
        changes.as_array_mut().unwrap().push(json!([type_, fields]));
    }
    assert_eq!(published.len(), 3);
    for (item, published) in &published {
        let published = published.as_array().unwrap();
        assert!(published.len() > 100, "{item}: {}", published.len());
        page.wait_for(&format!("changes['{item}'].length >= {}", published.len()));
        let changes = page.evaluate(&format!("changes['{item}']"));
        for (number, (got, published)) in changes.as_array().unwrap().iter().zip(published).enumerate() {
            assert!(is_same(got, published), "{item}: message {number}: {got} is not {published}");
        }
        let mut merged = Map::new();
        for change in published {
            merged.extend(change[1].as_object().unwrap().clone());
        }
        let fields = page.evaluate(&format!("items.find((item) => item.name === '{item}').fields"));
        assert!(is_same(&fields, &Value::Object(merged)), "{fields}");
    }
    assert_eq!(
        page.evaluate("items.map(({ state, service }) => [state, service])[0]"),
        json!(["open", "TAPELINE"])
    );
    page.wait_for("items.concat(bids).every((item) => yielded.has(item))");

    // A view has its fields alone; subscriptions of the same fields share a stream and its last values.
    assert_eq!(
        page.evaluate("JSON.stringify(bids[0].fields) === JSON.stringify({ BID: items[0].fields.BID })"),
        true
    );
    page.evaluate("new Promise((done) => { window.again = consumer.subscribe('TAPE', (item, { type, fields }) => done([type, fields.BID])); })");
    assert_eq!(page.evaluate("again.items[0] === items[0]"), true);
    assert_eq!(
        page.evaluate(&format!("{REQUESTS}.map(({{ Key: key }}) => key.Name)")),
        json!([["TAPE", "SENA", "RIMU"], "TAPE"])
    );

    // What is posted reaches all who have the item open.
    assert_eq!(page.evaluate("consumer.post('TAPE', { BID: 0.07 }).then(() => 'published')"), "published");
    page.wait_for("items[0].fields.BID === 0.07 && bids[0].fields.BID === 0.07");
    assert_eq!(page.evaluate("errors.map(String)"), json!([]));

    page.evaluate("consumer.close()");
    page.wait_for("window.ended && items.every((item) => item.state === 'closed')");
    assert_eq!(page.evaluate("[...new Set(states)]"), json!(["connecting", "open", "closed"]));
}

/// Returns `true` if two values are the same, where 1 and 1.0 are, and an enumeration's code and its text.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        // `plant watch` prints the text of an enumeration and all digits of a time; the hub sends the code, and no
        // more digits than are needed.
        (Value::Number(_), Value::String(_)) => true,
        (Value::String(one), Value::String(other)) => {
            one.trim_end_matches('0') == other.trim_end_matches('0')
        }
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(name, one)| other.get(name).is_some_and(|other| is_same(one, other)))
        }
        _ => one == other,
    }
}

#[test]
fn items_recover_after_feed_and_plant_are_lost() {
    let Some(mut page) = browser() else { return };
    let place = Place::new(1);
    let (running, hub, web) = plant(&place, None);
    let feed = exchange(&place);
    import(&mut page, web, hub);
    page.evaluate(
        "window.consumer = connect({ fields: ['BID', 'ASK'] }); window.counts = { TAPE: 0, SENA: 0 }; window.texts = new Set(); \
         const count = (item, { type }) => { texts.add(item.text); if (type === 'update') counts[item.name] += 1; }; \
         window.subscriptions = ['TAPE', 'SENA'].map((name) => consumer.subscribe(name, count)); \
         window.items = subscriptions.map(({ items }) => items[0]); void 0",
    );
    page.wait_for("items.every((item) => item.state === 'open') && counts.TAPE > 0 && counts.SENA > 0");

    // What nobody subscribes to any more is closed, and no longer counted.
    page.evaluate("subscriptions[1].unsubscribe()");
    let [before, after] = ["counts", "counts"].map(|counts| {
        let counts = page.evaluate(counts);
        page.wait_for(&format!("counts.TAPE > {} + 5", counts["TAPE"]));
        counts["SENA"].clone()
    });
    assert_eq!(before, after);
    assert_eq!(page.evaluate("sent.filter(({ Type: type }) => type === 'Close').length"), 1);

    drop(feed);
    page.wait_for("items[0].state === 'suspect' && consumer.state === 'open'");
    assert_eq!(page.evaluate("'BID' in items[0].fields"), true);
    drop(running);
    page.wait_for("consumer.state === 'down' && items[0].state === 'suspect'");
    page.wait_for("[...texts].some((text) => text.includes('the connection is down'))");
    let refused = "consumer.post('TAPE', { BID: 1 }).catch(({ name, what, hint }) => [name, what, hint])";
    assert_eq!(
        page.evaluate(refused),
        json!(["TapelineError", "there is no connection", "post it again later"])
    );

    // Before its feed begins, the plant refuses its items: they are requested again.
    let (_running, ..) = plant(&place, Some((hub.port(), web.port())));
    page.wait_for("consumer.state === 'open' && items[0].state === 'closed'");
    let _feed = exchange(&place);
    page.wait_for("items[0].state === 'open'");
    let before = page.evaluate("counts.TAPE");
    page.wait_for(&format!("counts.TAPE > {before} + 5"));
    let names = page.evaluate(&format!("{REQUESTS}.slice(1).map(({{ Key: key }}) => key.Name)"));
    assert!(
        names.as_array().is_some_and(|names| names.len() > 1 && names.iter().all(|name| name == "TAPE")),
        "{names}"
    );
}

#[test]
fn refusals_say_why_and_are_not_repeated() {
    let Some(mut page) = browser() else { return };
    let place = Place::new(1);
    add_alice(&place);
    let keys = "unknown = \"closed\"\n[hub.access]\nlogin = \"password\"\nusers = \"users.txt\"";
    let (_running, hub, web) = plant_with(&place, "", keys, None);
    let _feed = exchange(&place);
    import(&mut page, web, hub);

    page.evaluate(
        "window.refused = connect({ user: 'alice', password: 'wrong' }); window.item = refused.subscribe('TAPE').items[0]; void 0",
    );
    page.wait_for("refused.state === 'refused'");
    let text = "the login is refused: The name or the password is wrong";
    assert_eq!(page.evaluate("[refused.text, item.state, item.text]"), json!([text, "closed", text]));
    assert_eq!(page.evaluate("errors.map(({ what, code }) => [what, code])"), json!([[text, "NotEntitled"]]));
    let loops = "(async () => { for await (const item of refused); })().catch(({ what }) => what)";
    assert_eq!(page.evaluate(loops), text);
    assert_eq!(page.evaluate("refused.subscribe('SENA').items[0].state"), "closed");

    // The plant has published its three items, and so refuses the others alone.
    page.evaluate(
        "(async () => { \
           const items = async () => (await (await fetch('/stat.json')).json()).hub?.cache?.items; \
           while ((await items()) !== 3); \
         })()",
    );
    // Another consumer in the same page is let in; meanwhile the first one has not tried again.
    page.evaluate("errors.length = 0; window.consumer = connect({ user: 'alice', password: 'correct horse' }); window.items = consumer.subscribe(['TAPE', 'NOBODY']).items; void 0");
    page.wait_for("items[0].state === 'open' && items[1].state === 'closed'");
    assert_eq!(page.evaluate("[items[1].code, items[1].text]"), json!(["NotFound", "There is no such item"]));
    page.evaluate(
        "window.other = consumer.subscribe('TAPE', undefined, { service: 'NOPE' }).items[0]; void 0",
    );
    page.wait_for("other.state === 'closed' && other.text.includes('NOPE')");
    assert_eq!(page.evaluate("errors.map(({ what }) => what.includes('NOPE'))"), json!([true]));
    assert_eq!(
        page.evaluate("consumer.post('TAPE', { BID: 1 }).catch(({ what, code }) => [what, code])"),
        json!(["the post is refused: Posts are not taken here", "DeniedBySrc"])
    );
    assert_eq!(page.evaluate("sent.filter(({ Domain: domain }) => domain === 'Login').length"), 2);

    // What the program itself does wrong is thrown, or reported where it cannot be thrown.
    let throws =
        |call: &str| format!("(() => {{ try {{ {call}; }} catch (error) {{ return error.message; }} }})()");
    let said = page.evaluate(&throws("consumer.subscribe('')"));
    assert_eq!(said, "\"\" is no name of an item (names); expected a text of 1 to 255 characters");
    page.evaluate(
        "errors.length = 0; consumer.subscribe('TAPE', () => { throw new Error('mine'); }); void 0",
    );
    page.wait_for(
        "errors.some(({ what, cause }) => what.includes('has thrown') && cause.message === 'mine')",
    );
    page.evaluate("consumer.close()");
    let said = page.evaluate(&throws("consumer.subscribe('TAPE')"));
    assert_eq!(said, "this consumer is closed (subscribe); hint: make a new Consumer");
}

/// A server of the test's own, which sends any texts.
struct Hostile {
    listener: TcpListener,
}

impl Hostile {
    fn accept(&self) -> WebSocket<TcpStream> {
        let (stream, _) = self.listener.accept().unwrap();
        #[allow(clippy::result_large_err, reason = "the signature is the library's")]
        let choose = |_: &Request, mut accepted: Accepted| {
            accepted.headers_mut().insert("Sec-WebSocket-Protocol", HeaderValue::from_static("tr_json2"));
            Ok(accepted)
        };
        let mut socket = tungstenite::accept_hdr(stream, choose).unwrap();
        assert_eq!(next(&mut socket)["Domain"], "Login");
        send(&mut socket, r#"[{"ID":1,"Type":"Refresh","Domain":"Login","Elements":{"PingTimeout":-1}}]"#);
        assert_eq!(next(&mut socket)["Domain"], "Source");
        socket
    }
}

fn next(socket: &mut WebSocket<TcpStream>) -> Value {
    serde_json::from_str(socket.read().unwrap().to_text().unwrap()).unwrap()
}

fn send(socket: &mut WebSocket<TcpStream>, text: &str) {
    socket.send(Message::text(text)).unwrap();
}

/// Texts that no server of the protocol sends.
const HOSTILE: [&str; 18] = [
    "",
    "nonsense",
    "7",
    "[null]",
    r#"["x"]"#,
    r#"[[{"Type":"Ping"}]]"#,
    r#"{"ID":3,"Type":"Refresh","Fields":7,"State":{}}"#,
    r#"{"ID":3,"Type":"Refresh","State":7}"#,
    r#"{"ID":3,"Type":"Refresh","Key":[]}"#,
    r#"{"ID":3,"Type":"Update","Fields":[1]}"#,
    r#"{"ID":3,"Type":"Status","State":null}"#,
    r#"{"ID":1,"Type":"Refresh","State":[]}"#,
    r#"{"ID":1,"Type":"Refresh","State":"x"}"#,
    r#"{"ID":2,"Type":"Refresh","Map":{"Entries":{}}}"#,
    r#"{"ID":2,"Type":"Refresh","Map":{"Entries":[{"Key":"x"}]}}"#,
    r#"{"ID":2,"Type":"Refresh","Map":{"Entries":[{"Key":1,"FilterList":{"Entries":[{"ID":2,"Elements":{"ServiceState":0,"Status":"x"}}]}}]}}"#,
    r#"{"ID":2,"Type":"Refresh","Map":{"Entries":[{"Key":2,"FilterList":{"Entries":[null]}}]}}"#,
    r#"{"Type":"Error","ID":{},"Text":{"toString":1}}"#,
];

#[test]
fn nothing_that_a_server_sends_makes_the_module_throw() {
    let Some(mut page) = browser() else { return };
    let place = Place::new(1);
    let (_running, _, web) = plant(&place, None);
    let server = Hostile { listener: TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap() };
    import(&mut page, web, server.listener.local_addr().unwrap());
    page.evaluate(
        "window.thrown = []; addEventListener('error', ({ message }) => thrown.push(message)); \
         addEventListener('unhandledrejection', ({ reason }) => thrown.push(String(reason))); \
         window.consumer = connect({}); window.item = consumer.subscribe('A').items[0]; void 0",
    );
    let mut socket = server.accept();
    assert_eq!(next(&mut socket), json!({ "ID": 3, "Key": { "Name": "A" } }));
    for text in HOSTILE {
        send(&mut socket, text);
    }
    // Unknown streams and types, and names that mean something to JavaScript, are no errors.
    send(
        &mut socket,
        r#"[{"ID":99,"Type":"Update","Fields":{"X":1}},{"ID":3,"Type":"Generic"},{"Type":"Ack","AckID":9},{}]"#,
    );
    send(
        &mut socket,
        r#"{"ID":3,"Type":"Refresh","Fields":{"__proto__":{"polluted":1},"constructor":2,"BID":1},"State":{"Text":{"toString":1}}}"#,
    );
    send(&mut socket, r#"[{"Type":"Ping"},{"ID":3,"Type":"Update","Fields":{"BID":null}}]"#);
    assert_eq!(next(&mut socket), json!({ "Type": "Pong" }));
    page.wait_for("item.state === 'open' && item.fields.BID === null && item.fields.constructor === 2");
    assert_eq!(page.evaluate("({}).polluted === undefined && item.fields.polluted === undefined"), true);
    assert_eq!(page.evaluate("errors.length"), HOSTILE.len());
    assert_eq!(
        page.evaluate(
            "errors.every(({ name, where, message }) => name === 'TapelineError' && where && message)"
        ),
        true
    );

    // An item has so many fields at most.
    let fields: Map<String, Value> = (0..5000).map(|number| (format!("F{number}"), json!(number))).collect();
    send(&mut socket, &json!({ "ID": 3, "Type": "Update", "Fields": fields }).to_string());
    page.wait_for("errors.at(-1).what === 'A has more than 4096 fields'");
    assert_eq!(page.evaluate("Object.keys(item.fields).length"), 4096);

    // After a hundred such texts the consumer connects anew, and requests its items again.
    while page.evaluate("states.includes('down')") != true {
        // Fails once the consumer is gone.
        let _ = socket.send(Message::text("nonsense"));
    }
    assert_eq!(page.evaluate("item.state"), "suspect");
    let mut socket = server.accept();
    assert_eq!(next(&mut socket), json!({ "ID": 3, "Key": { "Name": "A" } }));
    send(&mut socket, r#"{"ID":3,"Type":"Refresh","Fields":{"BID":2}}"#);
    page.wait_for("item.state === 'open' && item.fields.BID === 2");
    assert_eq!(page.evaluate("Object.keys(item.fields)"), json!(["BID"]));

    // A login that is refused for now is repeated.
    send(
        &mut socket,
        r#"{"ID":1,"Type":"Status","Domain":"Login","State":{"Stream":"ClosedRecover","Data":"Suspect","Text":"later"}}"#,
    );
    page.wait_for("item.text.includes('the login is refused for now: later')");
    let mut socket = server.accept();
    assert_eq!(next(&mut socket)["ID"], 3);
    // A text of a server is cut off.
    let long = "x".repeat(5000);
    let state = json!({ "Stream": "Closed", "Data": "Suspect", "Text": long });
    send(&mut socket, &json!({ "ID": 1, "Type": "Status", "Domain": "Login", "State": state }).to_string());
    page.wait_for("consumer.state === 'refused'");
    assert_eq!(page.evaluate("item.text.length < 600"), true);
    assert_eq!(page.evaluate("thrown"), json!([]));
}

#[test]
fn the_page_of_the_documentation_shows_prices() {
    let Some(mut page) = browser() else { return };
    let place = Place::new(0);
    let text =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/web.md")).unwrap();
    let block = |kind: &str| text.split(&format!("```{kind}\n")).nth(1).unwrap().split("```").next().unwrap();

    // Its plant, with ports, ring and folder of this test, and a shorter day.
    let config = place.folder.path().join("plant.toml");
    let plant = block("toml").replace("14002", "0").replace("14080", "0").replace("web-page", &place.ring);
    std::fs::write(&config, plant).unwrap();
    let commands = block("sh").replace("10m", "1m").replace("plant.toml", config.to_str().unwrap());
    let mut commands = commands.lines().map(|line| line.split(' ').skip(1).collect::<Vec<_>>());
    let (simulate, serve) = (commands.next().unwrap(), commands.next().unwrap());
    let written = tapeline(&simulate).current_dir(place.folder.path()).output().unwrap();
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    let serve = [&serve[..], &["--format", "json"]].concat();
    let mut running = Running::start(&serve);
    let ready = running.says();
    let at = |key: &str| ready[key].as_str().unwrap().parse::<SocketAddr>().unwrap();

    // The folder that the page is served from.
    page.open(&format!("http://{}/health", at("web")));
    page.wait_for("location.pathname === '/health' && document.readyState === 'complete'");
    let module =
        page.evaluate("fetch('/tapeline.js').then((answer) => answer.text())").as_str().unwrap().to_owned();
    let html = block("html").replace("localhost:14002", &format!("localhost:{}", at("hub").port()));
    let answer = move |request: &HttpRequest<'_>| {
        let (content_type, body) = match request.path {
            "/" => ("text/html", &html),
            _ => ("text/javascript", &module),
        };
        Response { status: 200, content_type, body: body.clone().into_bytes(), headers: Vec::new() }
    };
    let server = Server::start((Ipv4Addr::LOCALHOST, 0).into(), HttpSettings::default(), answer).unwrap();
    page.open(&format!("http://localhost:{}/", server.address().port()));
    page.wait_for("document.getElementById('connection').textContent === 'open '");
    page.wait_for(
        "[...document.querySelectorAll('#prices tr')].filter(({ cells: [item, bid, ask, state] }) => \
         item.textContent && bid.textContent > 0 && ask.textContent > 0 && state.textContent === 'open').length === 3",
    );
    let before = page.evaluate("document.getElementById('prices').textContent");
    page.wait_for(&format!("document.getElementById('prices').textContent !== {before}"));
}
