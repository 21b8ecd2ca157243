//! Configuration files.

use std::sync::Arc;

use tapeline_client::ema_config::{Config, Group, Host};
use tapeline_client::{Consumer, Error, Event, Login};
use tapeline_hub::Access;

use crate::market::{Market, PRICES, SERVICES, publish, wait_for_bid};

/// A consumer of EMA's, with a server and further settings in its channel.
fn file(server: &str, channel: &str) -> String {
    let (host, port) = server.rsplit_once(':').unwrap();
    format!(
        r#"<EmaConfig>
<ConsumerGroup><ConsumerList>
<Consumer><Name value="A"/><Channel value="Channel_1"/><ReconnectAttemptLimit value="2"/>
<ReconnectMinDelay value="1"/><ReconnectMaxDelay value="2"/></Consumer>
</ConsumerList></ConsumerGroup>
<ChannelGroup><ChannelList>
<Channel><Name value="Channel_1"/><Host value="{host}"/><Port value="{port}"/>
{channel}
</Channel>
</ChannelList></ChannelGroup>
</EmaConfig>"#
    )
}

/// A consumer as the file says, and the names of the settings without effect.
fn consumer(text: &str) -> Result<(Consumer, Vec<(String, usize)>), Error> {
    let chosen = Config::parse("EmaConfig.xml".to_owned(), text)?.choose(Group::Consumer, None)?;
    let settings = chosen.consumer();
    let endpoints = chosen.hosts.into_iter().map(Host::endpoint).collect::<Result<_, _>>()?;
    Ok((Consumer::new(endpoints, &Login::user("me"), settings)?, chosen.idle))
}

/// The pain: a setting is dropped without a word. A channel that is configured as encrypted connects unencrypted, once the program names a host
/// (Real-Time-SDK #321); a channel type of the manual is unknown to the library, and the default is used (#179); what is configured in a program
/// is not taken at all (#29).
///
/// The promise: each setting of a file is used, or named with its line. What is misspelt or unknown is an error, with its line and what there is. An
/// encrypted channel never says a word in plain text.
#[test]
fn what_is_configured_is_used_or_named() {
    let market = Market::open(|hub| hub.access.access = Arc::new(Access::default()));
    let mut publisher = market.publisher(SERVICES[0]);
    publish(&mut publisher, "A", 1);
    publisher.flush().unwrap();

    // Used: over each kind of channel.
    for channel in ["", "<ChannelType value=\"ChannelType::RSSL_WEBSOCKET\"/>"] {
        let (mut consumer, idle) = consumer(&file(&market.hub, channel)).unwrap();
        assert_eq!(idle, []);
        consumer.subscribe(PRICES, &["A"]).unwrap();
        wait_for_bid(&mut consumer, 1);
    }

    // Used: TLS, which this server does not speak, and the two attempts that the file allows.
    let (mut encrypted, idle) =
        consumer(&file(&market.hub, "<ChannelType value=\"ChannelType::RSSL_ENCRYPTED\"/>")).unwrap();
    assert_eq!(idle, []);
    let mut attempts = 0;
    let ended = loop {
        match encrypted.next() {
            Ok(Event::Disconnected { .. }) => attempts += 1,
            Ok(Event::State { .. }) => {}
            Ok(other) => panic!("{other:?}"),
            Err(error) => break error,
        }
    };
    assert!(matches!(ended, Error::Ended(_)) && attempts == 2, "{ended} after {attempts}");

    // Named: a setting that Tapeline does not need, and one that there is not.
    let (_, idle) = consumer(&file(&market.hub, "<DirectWrite value=\"1\"/>")).unwrap();
    assert_eq!(idle, [("DirectWrite".to_owned(), 8)]);
    for (channel, what) in [
        ("<TcpNodelya value=\"0\"/>", "Channel has no setting TcpNodelya, there is TcpNodelay"),
        (
            "<ChannelType value=\"ChannelType::WEBSOCKET\"/>",
            "ChannelType is 'ChannelType::WEBSOCKET'; expected one of RSSL_SOCKET, RSSL_HTTP, RSSL_ENCRYPTED, \
             RSSL_RELIABLE_MCAST, RSSL_WEBSOCKET",
        ),
    ] {
        let error = consumer(&file(&market.hub, channel)).unwrap_err();
        let hint = error.hint().map(|hint| format!(", {hint}")).unwrap_or_default();
        assert_eq!(format!("{error}{hint}"), format!("EmaConfig.xml:8: {what}"));
    }
}
