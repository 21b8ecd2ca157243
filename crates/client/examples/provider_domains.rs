//! Serves a book by price, a symbol list and generic messages, and asks for a new token every second; the other end of the consumer examples:
//! `cargo run --example provider_domains -- 127.0.0.1:14002`

#![allow(clippy::print_stdout, reason = "a program")]

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tapeline_client::{LoginAnswer, Payload, Provider, ProviderEvent};
use tapeline_omm::rwf::{Domain, MapAction, MessageView};
use tapeline_omm::{Fid, Real, Value, fid};

/// A domain of our own: numbers from 128 on are free.
const OWN: Domain = Domain(200);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:14002".to_owned());
    let mut provider = Provider::listen(address.parse()?, "DIRECT_FEED")?;
    for domain in [Domain::MARKET_BY_PRICE, Domain::SYMBOL_LIST, OWN] {
        provider.serve(domain);
    }
    provider.accept_posts();
    provider.check_logins(|request| match request.attributes.authentication_token {
        Some(b"WRONG") => LoginAnswer::Refuse("the token is not known".to_owned()),
        Some(_) => LoginAnswer::AcceptUntil(now() + 1),
        None => LoginAnswer::Accept,
    });
    println!("listening at {}", provider.address());
    loop {
        match provider.poll(Duration::from_secs(1))? {
            Some(ProviderEvent::Opened { domain: Domain::MARKET_BY_PRICE, item, .. }) => {
                let bid = level(3991, 10);
                let image = Payload::map(&[
                    (MapAction::ADD, "39.91B", &bid),
                    (MapAction::ADD, "39.94A", &level(3994, 5)),
                ])?;
                provider.refresh(Domain::MARKET_BY_PRICE, &item, &image)?;
                let update = Payload::map(&[(MapAction::DELETE, "39.94A", &[])])?;
                let image = Payload::map(&[(MapAction::ADD, "39.91B", &bid)])?;
                provider.update(Domain::MARKET_BY_PRICE, &item, &update, &image)?;
            }
            Some(ProviderEvent::Opened { domain: Domain::SYMBOL_LIST, item, .. }) => {
                let names = Payload::symbols(&[(MapAction::ADD, "IBM.N"), (MapAction::ADD, "TRI.N")])?;
                provider.refresh(Domain::SYMBOL_LIST, &item, &names)?;
            }
            Some(ProviderEvent::Opened { domain: OWN, item, .. }) => {
                provider.refresh(OWN, &item, &Payload::none())?;
            }
            Some(ProviderEvent::Opened { item, .. }) => {
                let prices = [
                    (fid::BID, Real::decimal(3991, 2).into()),
                    (fid::ASK, Real::decimal(3994, 2).into()),
                    (fid::BIDSIZE, Real::integer(10).into()),
                ];
                provider.publish(&item, &prices)?;
            }
            Some(ProviderEvent::Generic { stream, .. }) => {
                let _ = provider.generic(stream, &Payload::elements(&[("answer", Value::Int(42))])?)?;
            }
            Some(ProviderEvent::Posted { connection, item, message, receipt, .. }) => {
                println!("post for {item}: {} bytes", MessageView::parse(&message)?.payload().len());
                if let Some(receipt) = receipt {
                    let refusal = if item == "CLOSED.N" { Some("the item is closed") } else { None };
                    let _ = provider.acknowledge(connection, receipt, refusal);
                }
            }
            Some(other) => println!("{other:?}"),
            None => {}
        }
    }
}

/// Returns the fields of a level: price and size.
fn level(price: i64, size: i64) -> [(Fid, Value<'static>); 2] {
    [(fid::ORDER_PRC, Real::decimal(price, 2).into()), (fid::ACC_SIZE, Real::integer(size).into())]
}

/// Returns the seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
