//! Logins that the server ends.

use std::sync::Arc;

use tapeline_client::{Error, Event, Login};
use tapeline_hub::Access;
use tapeline_hub::access::{LoginPolicy, User, Users};
use tapeline_node::access::AccessConfig;
use tapeline_node::access::secrets::hash_of_password;

use crate::market::{Market, PRICES, Rules, SERVICES, publish, wait_for_bid};

/// The pain: after a forced log-out ("Closed / Suspect / Not entitled") every call of the consumer fails with a null pointer, also of a new
/// consumer in the same process, until the service is started again (Real-Time-SDK #200).
///
/// The promise: the consumer says that it has ended, with the server's reason, and that its items are closed. Requests to it are refused with an
/// error. A new consumer in the same process, made once the user is entitled again, has images and updates. Other users notice nothing.
#[test]
fn a_forced_log_out_is_said_with_its_reason_and_a_new_consumer_takes_over() {
    let hash: Arc<str> = hash_of_password(b"secret").unwrap().into();
    let access = |names: &[&str]| {
        let user = |name: &&str| User { password_hash: Arc::clone(&hash), ..User::new(name) };
        let users = Users::new(names.iter().map(user).collect());
        Access { login: LoginPolicy::Password, users, ..Access::default() }
    };
    let rules = Arc::new(Rules::default());
    let reload = Arc::clone(&rules);
    let first = Arc::new(access(&["alice", "bob"]));
    let market = Market::open(|hub| {
        hub.access = AccessConfig { access: first, reload: Some(reload), ..AccessConfig::default() };
    });
    let mut publisher = market.publisher(SERVICES[0]);
    publish(&mut publisher, "A", 1);
    publisher.flush().unwrap();
    let consumer = |name: &str| {
        let mut consumer = market.consumer(&Login::user(name).with_password(Some("secret".to_owned())));
        consumer.subscribe(PRICES, &["A"]).unwrap();
        wait_for_bid(&mut consumer, 1);
        consumer
    };
    let (mut alice, mut bob) = (consumer("alice"), consumer("bob"));
    rules.change(access(&["bob"]));
    let (mut closed, mut disconnected) = (None, None);
    let ended = loop {
        match alice.next() {
            Ok(Event::State { item, state, .. }) => closed = Some(format!("{item} {state}")),
            Ok(Event::Disconnected { reason, .. }) => disconnected = Some(reason.to_owned()),
            Ok(_) => {}
            Err(Error::Ended(why)) => break why,
            Err(other) => panic!("{other}"),
        }
    };
    assert!(ended.contains("NOT_ENTITLED"), "{ended}");
    assert_eq!(disconnected, Some(ended.clone()));
    assert_eq!(closed, Some(format!("A {ended}")));
    assert!(matches!(alice.subscribe(PRICES, &["A"]), Err(Error::NotOpened(_))));

    rules.change(access(&["alice", "bob"]));
    // The hub reads the rules again in its own time; until then the login is refused.
    let mut alice = loop {
        let login = Login::user("alice").with_password(Some("secret".to_owned()));
        let mut alice = market.consumer(&login);
        alice.subscribe(PRICES, &["A"]).unwrap();
        let is_in = loop {
            match alice.next() {
                Ok(Event::Message(message)) if message.is_image() => break true,
                Ok(_) => {}
                Err(_) => break false,
            }
        };
        if is_in {
            break alice;
        }
    };
    publish(&mut publisher, "A", 2);
    publisher.flush().unwrap();
    wait_for_bid(&mut alice, 2);
    wait_for_bid(&mut bob, 2);
}
