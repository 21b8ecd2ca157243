//! Logs in with an authentication token, and renews the login when the server says so:
//! `cargo run --example consumer_token -- localhost:14002 DIRECT_FEED IBM.N TOKEN`

#![allow(clippy::print_stdout, reason = "a program")]

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tapeline_client::{Consumer, Event, Login};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [server, service, item, token] = arguments.as_slice() else {
        return Err("expected SERVER SERVICE ITEM TOKEN".into());
    };
    let login = Login::token(token).with_application_id(256);
    let mut consumer = Consumer::connect(server, &login)?;
    consumer.subscribe(service, &[item])?;
    let mut renew_at = None;
    loop {
        match consumer.poll(Duration::from_secs(1))? {
            Some(Event::Login(message)) => {
                if let Some(state) = message.state() {
                    println!("login {state}");
                }
                renew_at = message.renew_at();
            }
            Some(Event::Message(message)) => println!("{message}"),
            _ => {}
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        if renew_at.is_some_and(|time| time <= now) {
            renew_at = None;
            // A real program gets a new token first.
            consumer.renew_login(&login)?;
        }
    }
}
