//! Who may in, and who may see what.
use crate::exchange;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use exchange::{Client, Exchange, bid, close, item, message, quote, request};
use tapeline_hub::access::{Action, Code, Coded, LoginPolicy, Pattern, Proof, Rule, TokenHash, User, Users};
use tapeline_hub::{Access, Check, End, HubEvent, Peer, Service, SessionId, Settings, Verdict};
use tapeline_omm::State;
use tapeline_omm::domain::{LoginRequest, login};
use tapeline_omm::rwf::{
    DataState, DataType, Domain, FieldListEncoder, Key, MessageClass, RefreshHeader, StateCode, StreamState,
    flags,
};
use tapeline_plant::demand::Demand;
use tapeline_plant::tick::{self, Kind};

const PASSWORD: &[u8] = b"correct horse";

fn encrypted(last: u8) -> Peer {
    Peer {
        address: Some(SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, last)), 50_000)),
        is_encrypted: true,
        ..Peer::default()
    }
}

/// alice and bob, each with the hash `hash of NAME`.
fn users() -> Users {
    Users::new(["alice", "bob"].map(user).into())
}

fn user(name: &str) -> User {
    User { password_hash: format!("hash of {name}").into(), ..User::new(name) }
}

fn settings(access: Access) -> Settings {
    Settings { access: Arc::new(access), max_checks: 100, ..Settings::default() }
}

fn with_passwords() -> Access {
    Access { login: LoginPolicy::Password, users: users(), ..Access::default() }
}

fn rule(users: &[&str], items: &[&str], action: Action) -> Rule {
    let patterns = |texts: &[&str]| texts.iter().map(|text| Pattern::new(text)).collect();
    Rule {
        users: patterns(users),
        groups: Vec::new(),
        services: Vec::new(),
        items: patterns(items),
        domains: Vec::new(),
        codes: Vec::new(),
        action,
    }
}

const ALLOW: Action = Action::Allow { post: false };

fn ruled(rules: Vec<Rule>) -> Access {
    Access { rules, ..Access::default() }
}

fn login_request(user: &str, password: Option<&[u8]>) -> Vec<u8> {
    let mut request = LoginRequest::new(user.as_bytes());
    request.attributes.password = password;
    request.attributes.position = Some(b"192.0.2.1/net");
    message(|room| request.encode(room))
}

fn token_request(token: &[u8], flags: tapeline_omm::rwf::Flags) -> Vec<u8> {
    let mut request = LoginRequest::new(b"\0");
    request.name_type = login::USER_AUTHENTICATION_TOKEN;
    request.flags |= flags;
    request.attributes.authentication_token = Some(token);
    message(|room| request.encode(room))
}

/// A stand-in for the hash of a token.
fn token_hash(token: &[u8]) -> TokenHash {
    let mut hash = [0; 32];
    hash[..token.len()].copy_from_slice(token);
    hash
}

/// What whoever checks would say: passwords are right for users that there are.
fn verdict(check: &Check) -> Verdict {
    match &check.proof {
        Proof::Password { password, hash } if password.bytes() == PASSWORD && hash.starts_with("hash of") => {
            Verdict::Right(0)
        }
        Proof::Token { token, hashes } => {
            let place = hashes.iter().position(|hash| *hash == token_hash(token.bytes()));
            place.map_or(Verdict::Wrong, Verdict::Right)
        }
        _ => Verdict::Wrong,
    }
}

/// Makes all checks that wait; how many those were.
fn check_all(exchange: &mut Exchange) -> usize {
    let mut made = 0;
    while let Some(check) = exchange.hub.next_check() {
        exchange.hub.checked(exchange.now, check.number, verdict(&check), &mut exchange.queues);
        made += 1;
    }
    made
}

/// The state of the last message on a stream.
fn state(exchange: &mut Exchange, client: &mut Client, stream: i32) -> Option<(StreamState, StateCode)> {
    exchange.read_all(client);
    let last = client.on(stream).last().and_then(|received| received.state);
    last.map(|(stream, _, code)| (stream, code))
}

const IN: Option<(StreamState, StateCode)> = Some((StreamState::OPEN, StateCode::NONE));
const OUT: Option<(StreamState, StateCode)> = Some((StreamState::CLOSED, StateCode::NOT_ENTITLED));
const LATER: Option<(StreamState, StateCode)> = Some((StreamState::CLOSED_RECOVER, StateCode::NOT_ENTITLED));
const BUSY: Option<(StreamState, StateCode)> = Some((StreamState::CLOSED_RECOVER, StateCode::NO_RESOURCES));

/// Tries to log in and is gone again: what it was told.
fn attempt(
    exchange: &mut Exchange,
    user: &str,
    password: &[u8],
    peer: Peer,
) -> Option<(StreamState, StateCode)> {
    let mut client = exchange.connect(peer);
    exchange.say(&client, &login_request(user, Some(password)));
    check_all(exchange);
    let state = state(exchange, &mut client, 1);
    while exchange.over().is_some() {}
    exchange.leave(&client);
    state
}

/// The sessions that the hub has ended, once they had the time to take why.
fn over(exchange: &mut Exchange) -> Vec<SessionId> {
    let mut over = Vec::new();
    for _ in 0..4 {
        over.extend(std::iter::from_fn(|| exchange.over()));
        exchange.pass(1_000);
    }
    over
}

/// A client that is logged in without a word about who it is.
fn logged_in(exchange: &mut Exchange, user: &str) -> Client {
    let client = exchange.connect(encrypted(1));
    exchange.say(&client, &login_request(user, None));
    client
}

/// A refresh of an item with permission data.
fn refresh_with(exchange: &mut Exchange, name: &str, permission: &[u8]) {
    exchange.tick(Kind::Refresh, tick::Flags::default(), 0, name, |out| {
        let mut header = RefreshHeader::new(Domain::MARKET_PRICE, 0, State::OPEN_OK, DataType::FIELD_LIST);
        header.flags = flags::refresh::REFRESH_COMPLETE | flags::refresh::CLEAR_CACHE;
        header.permission_data = Some(permission);
        header.encode_with(out, |room| Ok(FieldListEncoder::new(room)?.finish()))
    });
}

#[test]
fn a_password_lets_in_and_until_then_nothing_is_answered() {
    let mut exchange = Exchange::new(settings(with_passwords()));
    exchange.refresh("AAPL", &quote(1, 2));
    let mut client = exchange.connect(encrypted(1));
    exchange.say(&client, &login_request("alice", Some(PASSWORD)));
    exchange.say(&client, &item(5, "AAPL"));
    assert_eq!(state(&mut exchange, &mut client, 1), None);
    // As the role refuses before a login: to be asked again.
    let early = state(&mut exchange, &mut client, 5);
    assert_eq!(early, Some((StreamState::CLOSED_RECOVER, StateCode::USAGE_ERROR)));
    assert_eq!(check_all(&mut exchange), 1);
    assert_eq!(state(&mut exchange, &mut client, 1), IN);
    exchange.say(&client, &item(6, "AAPL"));
    exchange.update("AAPL", &bid(3));
    exchange.read_all(&mut client);
    assert_eq!(client.folded(6), Some(quote(3, 2)));
    let notes = exchange.notes();
    let Some(HubEvent::Login { user, who, .. }) = notes.first() else { panic!("{notes:?}") };
    assert_eq!((&**user, &*who.position), ("alice", "192.0.2.1/net"));
    assert!(!format!("{notes:?} {:?}", exchange.hub).contains("horse"));
}

#[test]
fn what_is_wrong_is_not_told() {
    let mut exchange = Exchange::new(settings(with_passwords()));
    let mut texts = BTreeMap::new();
    for (number, (user, password)) in
        [("alice", &b"wrong"[..]), ("nobody", PASSWORD), ("", PASSWORD), ("nobody", b"wrong")]
            .into_iter()
            .enumerate()
    {
        let mut client = exchange.connect(encrypted(number as u8));
        exchange.say(&client, &login_request(user, Some(password)));
        // There is a check for each, so that it takes as long for all.
        assert_eq!(check_all(&mut exchange), 1, "{user}");
        assert_eq!(state(&mut exchange, &mut client, 1), OUT, "{user}");
        let answer = client.on(1).last().unwrap().bytes.clone();
        *texts.entry(answer).or_insert(0) += 1;
        assert_eq!(over(&mut exchange), [client.session]);
    }
    assert_eq!(texts.len(), 1, "one answer for all");
    let refused =
        exchange.notes().into_iter().filter(|note| matches!(note, HubEvent::Refused { .. })).count();
    assert_eq!((refused, exchange.hub.access_counters().refused), (4, 4));
}

#[test]
fn a_login_without_a_password_and_one_that_can_be_read_on_its_way_are_refused() {
    let plain = Peer { is_encrypted: false, ..encrypted(1) };
    let local = Peer { address: Some("[::ffff:127.0.0.1]:1".parse().unwrap()), ..Peer::default() };
    let unknown = Peer::default();
    let mut exchange = Exchange::new(settings(with_passwords()));
    let mut client = exchange.connect(encrypted(1));
    exchange.say(&client, &login_request("alice", None));
    assert_eq!(state(&mut exchange, &mut client, 1), OUT);
    assert_eq!(attempt(&mut exchange, "alice", PASSWORD, plain), OUT);
    assert_eq!(attempt(&mut exchange, "alice", PASSWORD, unknown), OUT);
    assert_eq!(attempt(&mut exchange, "alice", PASSWORD, local), IN);
    assert_eq!(exchange.hub.access_counters().checks, 1);
    let mut careless = Exchange::new(settings(Access { plain_secrets: true, ..with_passwords() }));
    assert_eq!(attempt(&mut careless, "alice", PASSWORD, plain), IN);
}

#[test]
fn who_guesses_waits_and_others_do_not() {
    let mut exchange = Exchange::new(settings(with_passwords()));
    for _ in 0..4 {
        assert_eq!(attempt(&mut exchange, "alice", b"wrong", encrypted(1)), OUT);
    }
    let checks = exchange.hub.access_counters().checks;
    // Even with the right password; nothing is checked.
    assert_eq!(attempt(&mut exchange, "alice", PASSWORD, encrypted(1)), LATER);
    assert_eq!(attempt(&mut exchange, "bob", PASSWORD, encrypted(1)), LATER);
    assert_eq!(attempt(&mut exchange, "alice", PASSWORD, encrypted(2)), LATER);
    assert_eq!(exchange.hub.access_counters().checks, checks);
    assert_eq!(attempt(&mut exchange, "bob", PASSWORD, encrypted(2)), IN);
    exchange.pass(1_000);
    assert_eq!(attempt(&mut exchange, "alice", PASSWORD, encrypted(1)), IN);
}

#[test]
fn a_storm_of_wrong_passwords_leaves_the_others_their_turn() {
    let mut exchange = Exchange::new(settings(with_passwords()));
    exchange.refresh("AAPL", &quote(0, 0));
    let mut witness = exchange.connect(encrypted(1));
    exchange.say(&witness, &login_request("bob", Some(PASSWORD)));
    check_all(&mut exchange);
    exchange.say(&witness, &item(5, "AAPL"));
    let mut storm: Vec<Client> = (0..1_000)
        .map(|number| {
            let client = exchange.connect(encrypted(66));
            exchange.say(&client, &login_request(&format!("guess {number}"), Some(b"wrong")));
            exchange.update("AAPL", &bid(number));
            client
        })
        .collect();
    // Half of what there is room for, and the rest is told to come again.
    assert_eq!(exchange.hub.access_counters().checks, 1 + 50);
    assert_eq!(state(&mut exchange, &mut storm[999], 1), BUSY);
    let mut other = exchange.connect(encrypted(2));
    exchange.say(&other, &login_request("alice", Some(PASSWORD)));
    // The next one but one, however many came before.
    for _ in 0..2 {
        let check = exchange.hub.next_check().unwrap();
        exchange.hub.checked(exchange.now, check.number, verdict(&check), &mut exchange.queues);
    }
    assert_eq!(state(&mut exchange, &mut other, 1), IN);
    exchange.read_all(&mut witness);
    let bids: Vec<i64> =
        witness.on(5).iter().map(|received| received.values[&tapeline_omm::fid::BID]).collect();
    assert_eq!(bids, std::iter::once(0).chain(0..1_000).collect::<Vec<_>>());
    // Who goes before its turn costs no check.
    storm.iter().for_each(|client| exchange.leave(client));
    assert!(exchange.hub.next_check().is_none());
}

#[test]
fn a_guess_counts_when_its_session_is_gone() {
    let mut exchange = Exchange::new(settings(with_passwords()));
    for _ in 0..4 {
        let client = exchange.connect(encrypted(1));
        exchange.say(&client, &login_request("alice", Some(b"wrong")));
        let check = exchange.hub.next_check().unwrap();
        exchange.leave(&client);
        // Another has its number now, and is not meant.
        let mut other = exchange.connect(encrypted(2));
        exchange.hub.checked(exchange.now, check.number, verdict(&check), &mut exchange.queues);
        assert_eq!(state(&mut exchange, &mut other, 1), None);
        exchange.leave(&other);
    }
    assert_eq!(attempt(&mut exchange, "alice", PASSWORD, encrypted(1)), LATER);
}

#[test]
fn a_verdict_is_for_who_asked_and_not_for_who_has_the_number_now() {
    let mut exchange = Exchange::new(settings(with_passwords()));
    let first = exchange.connect(encrypted(1));
    exchange.say(&first, &login_request("alice", Some(PASSWORD)));
    let right = exchange.hub.next_check().unwrap();
    exchange.leave(&first);
    let mut other = exchange.connect(encrypted(2));
    assert_eq!(other.session, first.session);
    exchange.say(&other, &login_request("alice", Some(b"wrong")));
    exchange.hub.checked(exchange.now, right.number, verdict(&right), &mut exchange.queues);
    assert_eq!(state(&mut exchange, &mut other, 1), None);
    check_all(&mut exchange);
    assert_eq!(state(&mut exchange, &mut other, 1), OUT);
}

#[test]
fn who_has_no_password_is_not_let_in_with_that_of_another() {
    let access = Access { users: Users::new(vec![user("alice"), User::new("robot")]), ..with_passwords() };
    let mut exchange = Exchange::new(settings(access));
    assert_eq!(attempt(&mut exchange, "robot", PASSWORD, encrypted(1)), OUT);
    assert_eq!(attempt(&mut exchange, "alice", PASSWORD, encrypted(1)), IN);
}

#[test]
fn the_check_of_a_login_that_is_too_long_is_nobody_elses() {
    let mut exchange = Exchange::new(settings(with_passwords()));
    let long = exchange.connect(encrypted(1));
    let mut request = LoginRequest::new(b"bob");
    request.attributes.password = Some(PASSWORD);
    request.attributes.application_name = Some(&[b'x'; 1_025]);
    exchange.say(&long, &message(|room| request.encode(room)));
    let check = exchange.hub.next_check();
    exchange.leave(&long);
    // Another has its number now, and waits as well.
    let mut other = exchange.connect(encrypted(2));
    assert_eq!(other.session, long.session);
    exchange.say(&other, &login_request("alice", Some(b"wrong")));
    if let Some(check) = check {
        exchange.hub.checked(exchange.now, check.number, verdict(&check), &mut exchange.queues);
    }
    assert_eq!(state(&mut exchange, &mut other, 1), None);
    assert_eq!(check_all(&mut exchange), 1);
    assert_eq!(state(&mut exchange, &mut other, 1), OUT);
}

#[test]
fn a_second_login_while_the_first_is_checked_ends_the_session() {
    let mut exchange = Exchange::new(settings(with_passwords()));
    let mut client = exchange.connect(encrypted(1));
    exchange.say(&client, &login_request("alice", Some(b"wrong")));
    exchange.say(&client, &login_request("alice", Some(PASSWORD)));
    let state = state(&mut exchange, &mut client, 1);
    assert_eq!(state, Some((StreamState::CLOSED, StateCode::USAGE_ERROR)));
    assert_eq!(over(&mut exchange), [client.session]);
    assert_eq!(check_all(&mut exchange), 0);
}

fn with_tokens() -> Access {
    let tokens = |name, tokens: &[&[u8]]| User {
        tokens: tokens.iter().map(|token| token_hash(token)).collect(),
        ..User::new(name)
    };
    let users = Users::new(vec![tokens("alice", &[b"a1", b"a2"]), tokens("bob", &[b"b1"])]);
    Access { login: LoginPolicy::Token, users, ..Access::default() }
}

#[test]
fn a_token_is_no_name() {
    let token = |flags| {
        let mut request = LoginRequest::new(b"s3cret");
        request.name_type = login::USER_TOKEN;
        request.flags |= flags;
        message(|room| request.encode(room))
    };
    let plain = Peer { is_encrypted: false, ..encrypted(1) };
    // Refused before it is looked at, let in by a hub that asks for nothing, and by one that asks for something else.
    for (access, peer) in
        [(with_tokens(), plain), (Access::default(), plain), (with_passwords(), encrypted(1))]
    {
        let mut exchange = Exchange::new(settings(access));
        exchange.refresh("AAPL", &quote(1, 2));
        let mut client = exchange.connect(peer);
        exchange.say(&client, &token(tapeline_omm::rwf::Flags::NONE));
        check_all(&mut exchange);
        exchange.say(&client, &item(5, "AAPL"));
        exchange.read_all(&mut client);
        exchange.leave(&client);
        let notes = exchange.notes();
        assert!(notes.len() >= 2, "{notes:?}");
        assert!(!format!("{notes:?} {:?}", exchange.hub).contains("s3cret"), "{notes:?}");
    }
}

#[test]
fn a_token_stands_for_its_user_and_is_renewed_by_another_of_the_same() {
    let mut exchange = Exchange::new(settings(with_tokens()));
    let mut client = exchange.connect(encrypted(1));
    exchange.say(&client, &token_request(b"a1", tapeline_omm::rwf::Flags::NONE));
    check_all(&mut exchange);
    assert_eq!(state(&mut exchange, &mut client, 1), IN);
    let Some(HubEvent::Login { user, .. }) = exchange.notes().pop() else { panic!() };
    assert_eq!(user, "alice");
    exchange.say(&client, &token_request(b"a2", flags::request::NO_REFRESH));
    assert_eq!(check_all(&mut exchange), 1);
    assert_eq!(state(&mut exchange, &mut client, 1), IN);
    // The first one is worth nothing now; the second holds the session.
    let mut access = with_tokens();
    access.users = Users::new(vec![User { tokens: vec![token_hash(b"a2")], ..User::new("alice") }]);
    exchange.hub.set_access(Arc::new(access));
    exchange.pass(10);
    assert_eq!(state(&mut exchange, &mut client, 1), IN);
    exchange.say(&client, &token_request(b"b1", flags::request::NO_REFRESH));
    check_all(&mut exchange);
    assert_eq!(state(&mut exchange, &mut client, 1), OUT);
    // As a name of type 3, too; and not as a password.
    let mut exchange = Exchange::new(settings(with_tokens()));
    let mut by_name = LoginRequest::new(b"b1");
    by_name.name_type = login::USER_TOKEN;
    let mut client = exchange.connect(encrypted(1));
    exchange.say(&client, &message(|room| by_name.encode(room)));
    check_all(&mut exchange);
    assert_eq!(state(&mut exchange, &mut client, 1), IN);
    assert_eq!(attempt(&mut exchange, "alice", b"a1", encrypted(2)), OUT);
}

#[test]
fn a_token_of_somebody_else_does_not_renew_a_login() {
    let mut exchange = Exchange::new(settings(with_tokens()));
    let mut client = exchange.connect(encrypted(1));
    exchange.say(&client, &token_request(b"a1", tapeline_omm::rwf::Flags::NONE));
    check_all(&mut exchange);
    exchange.say(&client, &token_request(b"b1", flags::request::NO_REFRESH));
    check_all(&mut exchange);
    let state = state(&mut exchange, &mut client, 1);
    assert_eq!(state, Some((StreamState::CLOSED, StateCode::USAGE_ERROR)));
}

#[test]
fn a_user_has_so_many_connections_and_items() {
    let mut access = with_passwords();
    (access.max_connections, access.max_streams) = (Some(2), Some(3));
    let bob = User { max_connections: Some(1), ..user("bob") };
    access.users = Users::new(vec![user("alice"), bob]);
    let mut exchange = Exchange::new(settings(access));
    exchange.refresh("AAPL", &quote(1, 2));
    let enter = |exchange: &mut Exchange, user| {
        let mut client = exchange.connect(encrypted(1));
        exchange.say(&client, &login_request(user, Some(PASSWORD)));
        check_all(exchange);
        let state = state(exchange, &mut client, 1);
        (client, state)
    };
    let full = Some((StreamState::CLOSED, StateCode::DACS_MAX_LOGINS_REACHED));
    let (mut one, first) = enter(&mut exchange, "alice");
    let (mut two, second) = enter(&mut exchange, "alice");
    assert_eq!([first, second, enter(&mut exchange, "alice").1], [IN, IN, full]);
    assert_eq!([enter(&mut exchange, "bob").1, enter(&mut exchange, "bob").1], [IN, full]);
    for (client, streams) in [(&one, 5..7), (&two, 5..7)] {
        streams.for_each(|stream| exchange.say(client, &item(stream, "AAPL")));
    }
    assert_eq!(state(&mut exchange, &mut one, 6), IN);
    let too_many = Some((StreamState::CLOSED, StateCode::TOO_MANY_ITEMS));
    assert_eq!([state(&mut exchange, &mut two, 5), state(&mut exchange, &mut two, 6)], [IN, too_many]);
    exchange.leave(&one);
    exchange.say(&two, &item(7, "AAPL"));
    assert_eq!(state(&mut exchange, &mut two, 7), IN);
    assert_eq!(enter(&mut exchange, "alice").1, IN);
}

/// Who connects and never logs in has its place for a second, where there are many of its kind; who is logged in, or waits for a check, stays.
#[test]
fn who_never_logs_in_gives_way() {
    let mut exchange = Exchange::new(Settings { max_strangers: 2, ..settings(Access::default()) });
    let strangers: Vec<Client> = (0..3).map(|_| exchange.connect(Peer::default())).collect();
    let mut known = exchange.client(1 << 20);
    exchange.pass(900);
    assert_eq!(exchange.over(), None, "each has its second");
    exchange.pass(200);
    assert_eq!((exchange.over(), exchange.over()), (Some(strangers[0].session), None));
    let ends: Vec<_> = exchange
        .notes()
        .into_iter()
        .filter_map(|note| match note {
            HubEvent::Gone { end, .. } => Some(end),
            _ => None,
        })
        .collect();
    assert_eq!(ends, [End::Stranger]);
    exchange.pass(5_000);
    assert_eq!(exchange.over(), None, "as many as may be");
    exchange.refresh("AAPL", &quote(1, 2));
    exchange.say(&known, &item(5, "AAPL"));
    assert_eq!(state(&mut exchange, &mut known, 5), IN);
}

/// Each tick costs a look at every stream: nobody has an item open a thousand times.
#[test]
fn a_client_has_an_item_open_on_so_many_streams_and_no_more() {
    let mut exchange = Exchange::new(Settings { max_streams_of_item: 3, ..settings(Access::default()) });
    exchange.refresh("AAPL", &quote(1, 2));
    exchange.refresh("MSFT", &quote(1, 2));
    let (mut one, mut two) = (exchange.client(1 << 20), exchange.client(1 << 20));
    (5..9).for_each(|stream| exchange.say(&one, &item(stream, "AAPL")));
    exchange.say(&one, &item(9, "MSFT"));
    (5..8).for_each(|stream| exchange.say(&two, &item(stream, "AAPL")));
    let too_many = Some((StreamState::CLOSED, StateCode::TOO_MANY_ITEMS));
    for (stream, expected) in [(5, IN), (7, IN), (8, too_many), (9, IN)] {
        assert_eq!(state(&mut exchange, &mut one, stream), expected, "{stream}");
    }
    assert_eq!(state(&mut exchange, &mut two, 7), IN);
    let refused: Vec<_> = exchange
        .notes()
        .into_iter()
        .filter_map(|note| match note {
            HubEvent::ItemRefused { name, why, .. } => Some((name, why)),
            _ => None,
        })
        .collect();
    assert_eq!(refused, [("AAPL".to_owned(), "You have this item open on as many streams as may be")]);
    exchange.say(&one, &close(6));
    exchange.say(&one, &item(10, "AAPL"));
    assert_eq!(state(&mut exchange, &mut one, 10), IN);
}

#[test]
fn the_first_rule_that_fits_decides_and_who_fits_none_sees_nothing() {
    let group = Rule { groups: vec!["desk".into()], ..rule(&[], &["M*"], ALLOW) };
    let rules = vec![rule(&["*"], &["AAPL"], Action::Deny), rule(&["al*"], &["A*"], ALLOW), group];
    let users = Users::new(vec![User { groups: vec!["desk".into()], ..User::new("bob") }]);
    let mut exchange = Exchange::new(settings(Access { users, ..ruled(rules) }));
    for name in ["AAPL", "AMZN", "MSFT"] {
        exchange.refresh(name, &quote(1, 2));
    }
    exchange.notes();
    for (user, seen) in [("alice", ["AMZN"].as_slice()), ("bob", &["MSFT"]), ("eve", &[])] {
        let mut client = logged_in(&mut exchange, user);
        for (name, stream) in ["AAPL", "AMZN", "MSFT", "NONE"].into_iter().zip(5..) {
            exchange.say(&client, &item(stream, name));
            // Whether there is such an item is not told either.
            let expected = if seen.contains(&name) { IN } else { OUT };
            assert_eq!(state(&mut exchange, &mut client, stream), expected, "{user} {name}");
        }
    }
    let denied: Vec<(String, String)> = exchange
        .notes()
        .into_iter()
        .filter_map(|note| match note {
            HubEvent::Denied { user, name, .. } => Some((user, name)),
            HubEvent::ItemRefused { .. } => {
                panic!("{note:?} would tell a denied item from one that does not exist")
            }
            _ => None,
        })
        .collect();
    assert_eq!(denied.len() as u64, exchange.hub.access_counters().denied);
    assert!(denied.contains(&("alice".to_owned(), "MSFT".to_owned())), "{denied:?}");
    assert_eq!(denied.len(), 10);
}

#[test]
fn codes_decide_when_the_image_brings_them_and_when_they_change() {
    let coded = Rule { codes: vec![Code::Number(7)], ..rule(&[], &[], ALLOW) };
    let access = Access {
        codes: vec![Coded { services: Vec::new(), items: vec![Pattern::new("F*")], codes: vec![7] }],
        ..ruled(vec![coded])
    };
    let wait = Settings { unknown: tapeline_hub::Unknown::Wait, ..settings(access) };
    let mut exchange = Exchange::new(wait);
    let mut client = logged_in(&mut exchange, "alice");
    for (stream, name) in [(5, "YES"), (6, "NO"), (7, "NONE"), (8, "FEED")] {
        exchange.say(&client, &item(stream, name));
    }
    let pending = Some((StreamState::OPEN, StateCode::NONE));
    for stream in 5..9 {
        assert_eq!(state(&mut exchange, &mut client, stream), pending);
    }
    refresh_with(&mut exchange, "YES", b"7");
    refresh_with(&mut exchange, "NO", b"7,8");
    exchange.refresh("NONE", &quote(1, 2));
    exchange.refresh("FEED", &quote(1, 2));
    let states = |exchange: &mut Exchange, client: &mut Client| {
        [5, 6, 7, 8].map(|stream| state(exchange, client, stream))
    };
    assert_eq!(states(&mut exchange, &mut client), [IN, OUT, OUT, IN]);
    // What is closed gets no image, and what is open loses it with its code.
    assert!(client.on(6).iter().all(|received| received.class == MessageClass::STATUS));
    refresh_with(&mut exchange, "YES", b"7;7");
    assert_eq!(state(&mut exchange, &mut client, 5), IN);
    refresh_with(&mut exchange, "YES", b"9");
    assert_eq!(state(&mut exchange, &mut client, 5), OUT);
    let came = client.on(5).len();
    exchange.update("YES", &bid(1));
    exchange.read_all(&mut client);
    assert_eq!(client.on(5).len(), came);
    // Who asks now is answered at once.
    exchange.say(&client, &item(9, "YES"));
    assert_eq!(state(&mut exchange, &mut client, 9), OUT);
}

#[test]
fn new_rules_close_what_may_not_be_seen_any_more_and_touch_nothing_else() {
    let mut exchange = Exchange::new(settings(ruled(vec![rule(&["*"], &["*"], ALLOW)])));
    exchange.refresh("AAPL", &quote(1, 2));
    exchange.refresh("MSFT", &quote(1, 2));
    let mut client = logged_in(&mut exchange, "alice");
    exchange.say(&client, &item(5, "AAPL"));
    exchange.say(&client, &item(6, "MSFT"));
    exchange.read_all(&mut client);
    exchange.hub.set_access(Arc::new(ruled(vec![rule(&["*"], &["A*"], ALLOW)])));
    exchange.pass(10);
    for value in 10..20 {
        exchange.update("AAPL", &bid(value));
        exchange.update("MSFT", &bid(value));
    }
    assert_eq!(state(&mut exchange, &mut client, 6), OUT);
    let images = client.on(5).iter().filter(|received| received.class == MessageClass::REFRESH).count();
    let updates = client.on(5).iter().filter(|received| received.class == MessageClass::UPDATE).count();
    assert_eq!((images, updates), (1, 10));
    assert!(client.on(6).iter().all(|received| received.class != MessageClass::UPDATE));
    // And the other way round: what is allowed from now on can be asked for.
    exchange.hub.set_access(Arc::new(Access::default()));
    exchange.pass(10);
    exchange.say(&client, &item(7, "MSFT"));
    exchange.read_all(&mut client);
    assert_eq!(client.folded(7), Some(quote(19, 2)));
}

#[test]
fn private_streams_are_closed_by_the_rules_that_close_others() {
    let base = settings(ruled(vec![rule(&["*"], &["*"], ALLOW)]));
    let mut exchange = Exchange::new(Settings { services: vec![Service::new("IDN", 7)], ..base });
    exchange.up(7, true);
    let mut client = logged_in(&mut exchange, "alice");
    let private = flags::request::STREAMING | flags::request::PRIVATE_STREAM;
    let ask = |id| request(Domain::MARKET_PRICE, id, private, Key::item(7, b"VOD.L"));
    exchange.say(&client, &ask(5));
    assert!(matches!(exchange.demands()[..], [Demand::OpenPrivate { .. }]));
    // Rules that still allow it are no news to it.
    exchange.hub.set_access(Arc::new(ruled(vec![rule(&["*"], &["V*"], ALLOW)])));
    exchange.pass(10);
    assert_eq!((exchange.demands(), exchange.hub.private_streams()), (vec![], 1));
    exchange.hub.set_access(Arc::new(ruled(vec![rule(&["*"], &["A*"], ALLOW)])));
    exchange.pass(10);
    assert_eq!(state(&mut exchange, &mut client, 5), OUT);
    assert!(matches!(exchange.demands()[..], [Demand::ClosePrivate(..)]));
    exchange.say(&client, &ask(6));
    assert_eq!(state(&mut exchange, &mut client, 6), OUT);
    assert_eq!(exchange.demands(), []);
}

#[test]
fn a_user_who_is_taken_from_the_list_is_logged_out() {
    let mut exchange = Exchange::new(settings(with_passwords()));
    exchange.refresh("AAPL", &quote(1, 2));
    let mut clients = ["alice", "bob"].map(|user| {
        let client = exchange.connect(encrypted(1));
        exchange.say(&client, &login_request(user, Some(PASSWORD)));
        check_all(&mut exchange);
        exchange.say(&client, &item(5, "AAPL"));
        client
    });
    let only_bob = || Access { users: Users::new(vec![user("bob")]), ..with_passwords() };
    // One that is being checked meanwhile is as good as one that comes later.
    let mut late = exchange.connect(encrypted(1));
    exchange.say(&late, &login_request("alice", Some(PASSWORD)));
    exchange.hub.set_access(Arc::new(only_bob()));
    check_all(&mut exchange);
    exchange.pass(10);
    let [alice, bob] = &mut clients;
    assert_eq!(state(&mut exchange, alice, 1), OUT);
    assert_eq!(state(&mut exchange, &mut late, 1), BUSY);
    let over = over(&mut exchange);
    assert!(over.contains(&alice.session) && over.contains(&late.session) && over.len() == 2);
    exchange.update("AAPL", &bid(5));
    exchange.read_all(bob);
    assert_eq!(bob.folded(5), Some(quote(5, 2)));
    let said = exchange.notes().into_iter().find_map(|note| match note {
        HubEvent::Refused { user, why, .. } if why.contains("any more") => Some(user),
        _ => None,
    });
    assert_eq!(said.as_deref(), Some("alice"));
}

#[test]
fn a_paused_login_goes_on_whatever_is_to_be_shown() {
    for access in [with_passwords(), Access::default()] {
        let mut exchange = Exchange::new(settings(access));
        exchange.refresh("AAPL", &quote(1, 2));
        let mut client = exchange.connect(encrypted(1));
        exchange.say(&client, &login_request("alice", Some(PASSWORD)));
        check_all(&mut exchange);
        exchange.say(&client, &item(5, "AAPL"));
        let mut pause = LoginRequest::new(b"alice");
        pause.flags |= flags::request::PAUSE;
        exchange.say(&client, &message(|room| pause.encode(room)));
        exchange.update("AAPL", &bid(3));
        exchange.say(&client, &login_request("alice", Some(PASSWORD)));
        exchange.read_all(&mut client);
        assert_eq!(client.folded(5), Some(quote(3, 2)));
        let last = client.on(5).last().unwrap().state.map(|(_, data, _)| data);
        assert_eq!(last, Some(DataState::OK));
    }
}

mod any_order {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Step {
        Connect(u8),
        Login { client: usize, user: u8, is_right: bool },
        Ask { client: usize, name: u8 },
        Check,
        Late,
        Leave(usize),
        Reload(u8),
        Update(u8),
        Pass,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0..3_u8).prop_map(Step::Connect),
            (0..6_usize, 0..3_u8, any::<bool>()).prop_map(|(client, user, is_right)| Step::Login {
                client,
                user,
                is_right
            }),
            (0..6_usize, 0..3_u8).prop_map(|(client, name)| Step::Ask { client, name }),
            Just(Step::Check),
            Just(Step::Late),
            (0..6_usize).prop_map(Step::Leave),
            (0..4_u8).prop_map(Step::Reload),
            (0..3_u8).prop_map(Step::Update),
            Just(Step::Pass),
        ]
    }

    const USERS: [&str; 3] = ["alice", "bob", "eve"];
    const ITEMS: [&str; 3] = ["A", "B", "C"];

    /// By number: which items a user may see then.
    fn access(number: u8) -> Access {
        let rules = match number {
            0 => vec![rule(&["alice"], &["A"], ALLOW)],
            1 => vec![rule(&["*"], &["B"], Action::Deny), rule(&["*"], &[], ALLOW)],
            2 => vec![rule(&["bob"], &[], ALLOW)],
            _ => Vec::new(),
        };
        let users = if number == 2 { Users::new(vec![user("bob")]) } else { users() };
        Access { rules, users, ..with_passwords() }
    }

    fn may_see(number: u8, user: &str, name: &str) -> bool {
        match number {
            0 => user == "alice" && name == "A",
            1 => name != "B",
            2 => user == "bob",
            _ => true,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]
        #[test]
        fn nobody_gets_what_is_not_theirs(steps in vec(step(), 1..80)) {
            let mut exchange = Exchange::new(Settings { max_checks: 4, ..settings(access(1)) });
            ITEMS.iter().for_each(|name| exchange.refresh(name, &quote(0, 0)));
            let (mut set, mut value) = (1, 0);
            // Clients, as whom each showed the right password, and what it asked for.
            let mut clients: Vec<(Client, Option<&str>, BTreeMap<i32, &str>)> = Vec::new();
            let mut out: Vec<Check> = Vec::new();
            for step in steps {
                match step {
                    Step::Connect(peer) if clients.len() < 6 => {
                        clients.push((exchange.connect(encrypted(peer)), None, BTreeMap::new()));
                    }
                    Step::Login { client, user, is_right } => {
                        let Some((client, shown, _)) = clients.get_mut(client) else { continue };
                        let name = USERS[usize::from(user)];
                        let password = if is_right { PASSWORD } else { b"wrong" };
                        exchange.say(client, &login_request(name, Some(password)));
                        if is_right && shown.is_none() && users().find(name).is_some() {
                            *shown = Some(name);
                        }
                    }
                    Step::Ask { client, name } => {
                        let Some((client, _, asked)) = clients.get_mut(client) else { continue };
                        let stream = client.stream();
                        exchange.say(client, &item(stream, ITEMS[usize::from(name)]));
                        asked.insert(stream, ITEMS[usize::from(name)]);
                    }
                    Step::Check => {
                        let check = out.pop().or_else(|| exchange.hub.next_check());
                        if let Some(check) = check {
                            exchange.hub.checked(exchange.now, check.number, verdict(&check), &mut exchange.queues);
                        }
                    }
                    Step::Late => out.extend(exchange.hub.next_check()),
                    Step::Leave(client) if client < clients.len() => {
                        let (client, ..) = clients.remove(client);
                        exchange.leave(&client);
                    }
                    Step::Reload(number) => {
                        set = number;
                        exchange.hub.set_access(Arc::new(access(number)));
                        exchange.pass(10);
                        // What came before was right then.
                        clients.iter_mut().for_each(|(client, ..)| {
                            exchange.read_all(client);
                            client.received.clear();
                        });
                    }
                    Step::Update(name) => {
                        value += 1;
                        exchange.update(ITEMS[usize::from(name)], &bid(value));
                    }
                    Step::Pass => exchange.pass(10),
                    _ => {}
                }
                while let Some(over) = exchange.over() {
                    clients.retain(|(client, ..)| client.session != over);
                }
                for (client, shown, asked) in &mut clients {
                    exchange.read_all(client);
                    for received in client.received.drain(..) {
                        let is_data = matches!(received.class, MessageClass::REFRESH | MessageClass::UPDATE);
                        let Some(name) = asked.get(&received.stream).filter(|_| is_data) else { continue };
                        prop_assert!(shown.is_some_and(|user| may_see(set, user, name)), "{shown:?} {name} {set}");
                    }
                }
            }
        }
    }
}
