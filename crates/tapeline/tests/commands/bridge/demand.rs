//! Demands and posts of far clients: an interactive provider behind the plant above, and hubs on plants below.

use std::io::{BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4, TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tapeline_plant::Seq;
use tapeline_plant::bridge::catch_up::{Beginning, CatchUpReply, CatchUpRequest, HEAD_BYTES, Outcome};
use tapeline_plant::bridge::{BridgeSession, Epoch};

use super::tcp::{CERTIFICATE, TRUST, hear};
use super::{JOURNAL, Scene, free_port, unbound};
use crate::certificates;
use crate::plant_sources::{Provider, wait_for};
use crate::stage::{Running, tapeline};

const SERVICE: &str = "[[service]]\nname = \"FEED\"\nid = 7\n";

impl Provider {
    /// What it has served, once the plant above has left it.
    fn served(&mut self) -> Value {
        wait_for(&mut self.running, |said| said["event"] == "gone")
    }
}

impl Scene {
    /// Starts a plant above with a hub and this provider.
    fn above_provided(&self, port: &str, line: SocketAddrV4, keys: &str) -> (Running, Value) {
        self.above_demanded(port, line, keys, "demands = \"posts\"")
    }

    /// The same, with what plants below may demand.
    fn above_demanded(&self, port: &str, line: SocketAddrV4, keys: &str, demands: &str) -> (Running, Value) {
        let text = format!(
            "[plant]\nring = \"{}-above\"\n[hub]\nport = 0\n{JOURNAL}{SERVICE}{keys}\nproviders = [\"p\"]\n\
             [[provider]]\nname = \"p\"\nservers = [\"127.0.0.1:{port}\"]\n\
             [bridge]\nplant = \"UP\"\nport = {}\n{demands}\n[[bridge.line]]\ntcp = \"{line}\"\n",
            self.name,
            self.server.port()
        );
        self.plant("above", &text, &[])
    }

    /// Starts a plant below with a hub at a port that stays the same, and returns the hub's address.
    fn below_provided(&self, name: &str, line: SocketAddrV4, keys: &str) -> (Running, String) {
        let port = free_port();
        let text = self.demanding(name, line, port, &format!("{SERVICE}{keys}\n"), "stale_after = \"0s\"\n");
        (self.plant(name, &text, &[]).0, format!("127.0.0.1:{port}"))
    }

    /// The configuration of a plant below with these services, and these keys of `[[upstream]]`.
    fn demanding(&self, name: &str, line: SocketAddrV4, port: u16, services: &str, keys: &str) -> String {
        format!(
            "[plant]\nring = \"{}-{name}\"\n[hub]\nport = {port}\n[journal]\nfolder = \"{name}\"\n{services}\
             [[upstream]]\nplant = \"UP\"\nserver = \"{}\"\n{keys}[[upstream.line]]\ntcp = \"{line}\"\n",
            self.name, self.server
        )
    }
}

/// The plant above has so many items open at its provider.
fn is_open(items: u64) -> impl Fn(&Value) -> bool {
    move |seen| count(&seen["sources"][0]["items"]) == items
}

/// A figure, which is not there before the plant has written the first.
fn count(figure: &Value) -> u64 {
    figure.as_u64().unwrap_or_default()
}

/// A consumer of a hub.
fn consumer(hub: &str, items: &[&str], options: &[&str]) -> Running {
    let fixed = ["omm", "watch", "--server", hub, "--service", "FEED", "--format", "json"];
    Running::start(&[&fixed, items, options].concat())
}

fn image_and_updates(consumer: &mut Running, item: &str) {
    for event in ["refresh", "update"] {
        wait_for(consumer, |said| said["item"] == item && said["event"] == event);
    }
}

#[test]
fn an_item_is_requested_once_for_all_hubs_and_closed_with_the_last() {
    let scene = Scene::new("demand-once");
    let line = unbound();
    let mut provider = Provider::start("0");
    let (mut above, ready) = scene.above_provided(&provider.port, line, "");
    let own_hub = ready["hub"].as_str().unwrap().to_owned();
    let (_first, first_hub) = scene.below_provided("first", line, "");
    let (_second, second_hub) = scene.below_provided("second", line, "");
    let mut first = consumer(&first_hub, &["IBM.N"], &[]);
    image_and_updates(&mut first, "IBM.N");
    // A second client of the same hub has the image of its cache, as has one of the other hub, and one of the plant above.
    let mut others = [&first_hub, &second_hub, &own_hub].map(|hub| consumer(hub, &["IBM.N"], &[]));
    others.iter_mut().for_each(|consumer| image_and_updates(consumer, "IBM.N"));
    scene.counters_until("above", |seen| count(&seen["bridge"]["demanded"]) == 2);
    drop(first);
    let [of_first, of_second, of_own] = others;
    drop((of_first, of_own));
    scene.counters_until("above", |seen| count(&seen["bridge"]["demanded"]) == 1 && is_open(1)(seen));
    drop(of_second);
    scene.counters_until("above", is_open(0));
    // Ticks come in sequence: who has this image is told no more of the end of the first item.
    let mut other = consumer(&first_hub, &["MSFT.O"], &[]);
    image_and_updates(&mut other, "MSFT.O");
    // It was closed for all hubs: the next client gets no image of before.
    let mut again = consumer(&first_hub, &["IBM.N"], &[]);
    image_and_updates(&mut again, "IBM.N");
    above.ask_to_end();
    above.says();
    let served = provider.served();
    assert_eq!((&served["requests"], &served["refreshes"]), (&json!(3), &json!(3)), "{served}");
    assert_eq!(served["closes"], json!(1), "{served}");
}

#[test]
fn posts_of_far_clients_and_their_answers_travel() {
    let scene = Scene::new("demand-posts");
    let line = unbound();
    let mut provider = Provider::start("0");
    let (mut above, _) = scene.above_provided(&provider.port, line, "posts = \"forward\"");
    let (_below, hub) = scene.below_provided("below", line, "posts = \"forward\"");
    let post = |hub: &str, item: &str, options: &[&str]| {
        let mut consumer = consumer(hub, &[item], &[&["--post", "BID=39.91"], options].concat());
        wait_for(&mut consumer, |said| said["event"] == "ack")["nak"].clone()
    };
    assert_eq!(post(&hub, "IBM.N", &[]), json!(null));
    assert_eq!(post(&hub, "IBM.N", &["--off-stream"]), json!(null));
    // The provider refuses this one.
    assert_ne!(post(&hub, "NAK", &[]), json!(null));
    // A client posts while the plant above is away.
    let mut command = tapeline(&["omm", "watch", "--server", &hub, "--service", "FEED", "--format", "json"]);
    let (mut posting, _talk) = Running::talking(command.args(["IBM.N", "--commands"]).stdin(Stdio::piped()));
    wait_for(&mut posting, |said| said["event"] == "refresh");
    above.child.kill().unwrap();
    above.child.wait().unwrap();
    let served = provider.served();
    assert_eq!(served["posts"], json!(3), "{served}");
    scene.counters_until("below", |seen| seen["upstream"]["demands_connected"] == false);
    posting.child.stdin.as_mut().unwrap().write_all(b"post IBM.N BID=39.92\n").unwrap();
    let refused = wait_for(&mut posting, |said| said["event"] == "ack");
    assert!(refused.to_string().contains("not connected"), "{refused}");
}

#[test]
fn a_far_client_is_told_that_the_provider_refuses_an_item() {
    let scene = Scene::new("demand-refused");
    let line = unbound();
    let provider = Provider::start("0");
    let (_above, _) = scene.above_provided(&provider.port, line, "");
    let (_below, hub) = scene.below_provided("below", line, "");
    let mut consumer = consumer(&hub, &["UNKNOWN"], &[]);
    let told = wait_for(&mut consumer, |said| said["state"]["stream"] == "CLOSED");
    assert_eq!(told["state"]["code"], json!("NOT_FOUND"), "{told}");
}

#[test]
fn a_killed_plant_above_gives_the_item_again_and_a_killed_plant_below_gives_it_up() {
    let scene = Scene::new("demand-killed");
    let line = unbound();
    let provider = Provider::start("0");
    let (mut above, _) = scene.above_provided(&provider.port, line, "");
    let (mut below, hub) = scene.below_provided("below", line, "");
    let mut consumer = consumer(&hub, &["IBM.N"], &[]);
    image_and_updates(&mut consumer, "IBM.N");
    above.child.kill().unwrap();
    above.child.wait().unwrap();
    let (_above, _) = scene.above_provided(&provider.port, line, "");
    image_and_updates(&mut consumer, "IBM.N");
    scene.counters_until("above", |seen| count(&seen["bridge"]["demanded"]) == 1 && is_open(1)(seen));
    below.child.kill().unwrap();
    below.child.wait().unwrap();
    scene.counters_until("above", |seen| count(&seen["bridge"]["demanded"]) == 0 && is_open(0)(seen));
}

#[test]
fn bytes_that_are_no_demands_end_the_connection_alone() {
    let scene = Scene::new("demand-hostile");
    let line = unbound();
    let provider = Provider::start("0");
    let (_above, ready) = scene.above_provided(&provider.port, line, "");
    let session: BridgeSession = ready["bridge"]["session"].as_str().unwrap().parse().unwrap();
    let (_below, hub) = scene.below_provided("below", line, "");
    let mut consumer = consumer(&hub, &["IBM.N"], &[]);
    image_and_updates(&mut consumer, "IBM.N");
    let ask = |epoch| {
        let (plant, beginning) = (session.plant, Beginning::Demands);
        let mut peer = TcpStream::connect(scene.server).unwrap();
        peer.write_all(&CatchUpRequest { plant, epoch, next: Seq(0), beginning }.encode()).unwrap();
        let mut head = [0; HEAD_BYTES];
        peer.read_exact(&mut head).unwrap();
        (peer, CatchUpReply::decode(&head).unwrap().outcome)
    };
    assert_eq!(ask(Some(Epoch(1))).1, Outcome::Gone);
    let (mut peer, outcome) = ask(Some(session.epoch));
    assert_eq!(outcome, Outcome::Ticks);
    peer.write_all(&[255; 100]).unwrap();
    peer.read_to_end(&mut Vec::new()).unwrap();
    scene.counters_until("above", |seen| count(&seen["bridge"]["demands_cut_off"]) == 1);
    image_and_updates(&mut self::consumer(&hub, &["A"], &[]), "A");
    wait_for(&mut consumer, |said| said["event"] == "update");
}

#[test]
fn a_plant_above_may_refuse_posts_or_all_demands() {
    let scene = Scene::new("demand-policy");
    let line = unbound();
    let provider = Provider::start("0");
    let forward = "posts = \"forward\"";
    let (above, _) = scene.above_demanded(&provider.port, line, forward, "demands = \"items\"");
    let (_below, hub) = scene.below_provided("below", line, forward);
    let mut posting = consumer(&hub, &["IBM.N"], &["--post", "BID=39.91"]);
    let refused = wait_for(&mut posting, |said| said["event"] == "ack");
    assert!(refused.to_string().contains("takes no posts of plants below"), "{refused}");
    drop((posting, above));
    let scene = Scene::new("demand-none");
    let line = unbound();
    let (_above, _) = scene.above_demanded(&provider.port, line, forward, "");
    let (_below, hub) = scene.below_provided("below", line, forward);
    let _waiting = consumer(&hub, &["IBM.N"], &[]);
    scene.counters_until("below", |seen| {
        let upstream = &seen["upstream"];
        count(&upstream["demanded"]) == 1 && count(&upstream["demands_lost"]) > 0
    });
    scene.counters_until("above", is_open(0));
}

/// Forwards connections until they are cut; new ones are forwarded again.
struct Relay {
    address: SocketAddrV4,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Relay {
    fn new(to: SocketAddrV4) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, listener.local_addr().unwrap().port());
        let open = Arc::<Mutex<Vec<TcpStream>>>::default();
        let kept = Arc::clone(&open);
        // It ends with the test's process.
        std::thread::spawn(move || {
            for below in listener.incoming() {
                let (below, above) = (below.unwrap(), TcpStream::connect(to).unwrap());
                for (from, into) in [(&below, &above), (&above, &below)] {
                    let (mut from, mut into) = (from.try_clone().unwrap(), into.try_clone().unwrap());
                    std::thread::spawn(move || {
                        let _ = std::io::copy(&mut from, &mut into);
                        into.shutdown(Shutdown::Both)
                    });
                }
                kept.lock().unwrap().extend([below, above]);
            }
        });
        Self { address, open }
    }

    fn cut(&self) {
        // A connection that has ended by itself cannot be shut down.
        self.open.lock().unwrap().drain(..).for_each(|open| _ = open.shutdown(Shutdown::Both));
    }
}

#[test]
fn items_outlive_a_lost_connection_and_are_stated_again() {
    let mut scene = Scene::new("demand-cut");
    let line = unbound();
    let mut provider = Provider::start("0");
    let (mut above, _) = scene.above_provided(&provider.port, line, "");
    let relay = Relay::new(scene.server);
    scene.server = relay.address;
    let (_below, hub) = scene.below_provided("below", line, "");
    let mut consumer = consumer(&hub, &["IBM.N"], &[]);
    image_and_updates(&mut consumer, "IBM.N");
    relay.cut();
    scene.counters_until("below", |seen| {
        let upstream = &seen["upstream"];
        count(&upstream["demands_lost"]) == 1 && upstream["demands_connected"] == true
    });
    // The lost connection counts as a hub for 5 s, and the new one goes on having the item open.
    scene.counters_until("above", |seen| count(&seen["bridge"]["demanded"]) == 2);
    scene.counters_until("above", |seen| count(&seen["bridge"]["demanded"]) == 1 && is_open(1)(seen));
    wait_for(&mut consumer, |said| said["event"] == "update");
    above.ask_to_end();
    above.says();
    let served = provider.served();
    assert_eq!((&served["requests"], &served["closes"]), (&json!(1), &json!(0)), "{served}");
}

#[test]
fn each_far_client_has_a_private_stream_of_its_own_which_ends_with_the_connection() {
    let mut scene = Scene::new("demand-private");
    let line = unbound();
    let mut provider = Provider::start("0");
    let (mut above, _) = scene.above_provided(&provider.port, line, "");
    let relay = Relay::new(scene.server);
    scene.server = relay.address;
    let (_below, hub) = scene.below_provided("below", line, "");
    // A private stream does not wait for the plant above.
    scene.counters_until("below", |seen| seen["upstream"]["demands_connected"] == true);
    let mut clients = [(); 2].map(|()| consumer(&hub, &["IBM.N"], &["--private"]));
    clients.iter_mut().for_each(|client| image_and_updates(client, "IBM.N"));
    let [mut first, second] = clients;
    drop(second);
    relay.cut();
    let told = wait_for(&mut first, |said| said["state"]["stream"].as_str().is_some_and(|is| is != "OPEN"));
    assert!(told.to_string().contains("The plant above was lost"), "{told}");
    above.ask_to_end();
    above.says();
    let served = provider.served();
    assert!(count(&served["requests"]) >= 2 && count(&served["closes"]) >= 2, "{served}");
}

#[test]
fn demands_travel_over_tls_and_of_plants_with_a_certificate_alone_where_one_is_required() {
    let scene = Scene::new("demand-tls");
    certificates::write(scene.folder.path());
    let line = unbound();
    let mut provider = Provider::start("0");
    let forward = "posts = \"forward\"";
    let bridge = format!("demands = \"posts\"\n{CERTIFICATE}client_ca = \"ca.pem\"");
    let (mut above, _) = scene.above_demanded(&provider.port, line, forward, &bridge);
    let services = format!("{SERVICE}{forward}\n");
    let start = |name: &str, keys: &str| {
        let (port, config) = (free_port(), scene.path(&format!("{name}.toml")));
        std::fs::write(&config, scene.demanding(name, line, port, &services, keys)).unwrap();
        let config = config.to_str().unwrap();
        let (mut plant, talk) = Running::start_talking(&["plant", "--config", config, "--format", "json"]);
        assert_eq!(plant.says()["ready"], json!(format!("{}-{name}", scene.name)));
        (plant, BufReader::new(talk), format!("127.0.0.1:{port}"))
    };
    let (_without, mut talk, _) = start("without", TRUST);
    hear(&mut talk, "CertificateRequired");
    let (_below, _talk, hub) = start("below", &format!("{TRUST}{CERTIFICATE}"));
    scene.counters_until("below", |seen| seen["upstream"]["demands_connected"] == true);
    let mut posting = consumer(&hub, &["IBM.N"], &["--post", "BID=39.91"]);
    let receipt = wait_for(&mut posting, |said| said["event"] == "ack");
    assert_eq!(receipt["nak"], json!(null), "{receipt}");
    wait_for(&mut posting, |said| said["event"] == "update");
    scene.counters_until("above", |seen| count(&seen["bridge"]["demanded"]) == 1 && is_open(1)(seen));
    above.ask_to_end();
    above.says();
    assert_eq!(provider.served()["posts"], json!(1));
}

#[test]
fn a_service_that_the_plant_above_does_not_have_is_told_with_those_that_it_has() {
    let scene = Scene::new("demand-service");
    let line = unbound();
    let provider = Provider::start("0");
    let (_above, _) = scene.above_provided(&provider.port, line, "");
    let services = format!("{SERVICE}[[service]]\nname = \"OTHER\"\nid = 9\n");
    let config = scene.path("below.toml");
    std::fs::write(&config, scene.demanding("below", line, free_port(), &services, "")).unwrap();
    let (_below, talk) = Running::start_talking(&["plant", "--config", config.to_str().unwrap()]);
    let told = hear(&mut BufReader::new(talk), "has no service");
    assert!(told.contains("upstream UP: the plant above has no service OTHER with number 9"), "{told}");
    assert!(told.contains("hint: it has FEED (number 7); [[service]] here needs the same name"), "{told}");
}

#[test]
fn items_of_providers_are_suspect_while_the_plant_above_is_silent_and_good_again_afterwards() {
    let scene = Scene::new("demand-silent");
    let line = unbound();
    let provider = Provider::start("0");
    let (above, _) = scene.above_provided(&provider.port, line, "");
    let port = free_port();
    let text = scene.demanding("below", line, port, SERVICE, "stale_after = \"500ms\"\n");
    let (_below, _) = scene.plant("below", &text, &[]);
    let hub = format!("127.0.0.1:{port}");
    let (mut rwf, mut websocket) =
        (consumer(&hub, &["IBM.N"], &[]), consumer(&hub, &["IBM.N"], &["--websocket", "tr_json2"]));
    image_and_updates(&mut rwf, "IBM.N");
    image_and_updates(&mut websocket, "IBM.N");
    let becomes = |consumer: &mut Running, data: &str| {
        wait_for(consumer, |said| said["state"]["data"] == data);
    };
    let above_process = Pid::from_child(&above.child);
    kill_process(above_process, Signal::STOP).unwrap();
    becomes(&mut rwf, "SUSPECT");
    becomes(&mut websocket, "SUSPECT");
    // The hub has an image of before.
    let mut late = consumer(&hub, &["IBM.N"], &[]);
    let image = wait_for(&mut late, |said| said["event"] == "refresh");
    assert_eq!(image["state"]["data"], json!("SUSPECT"), "{image}");
    kill_process(above_process, Signal::CONT).unwrap();
    for mut consumer in [rwf, websocket, late] {
        becomes(&mut consumer, "OK");
        wait_for(&mut consumer, |said| said["event"] == "update");
    }
}
