//! What a consumer sends: posts, generic messages, a renewed login.

use tapeline_omm::role::Sent;
use tapeline_omm::role::consumer::Target;
use tapeline_omm::rwf::{Domain, Flags, GenericHeader, Key, PostHeader, PostUserInfo, flags};

use super::{Consumer, Item};
use crate::Error;
use crate::login::Login;
use crate::payload::Payload;

/// The address of a poster: this host.
const LOCALHOST: u32 = 0x7F00_0001;

impl Consumer {
    /// Posts to an open item, on its stream. With a number, the provider is asked for an answer: [`Event::Ack`](super::Event::Ack).
    /// [`Payload::update`] is the usual payload.
    ///
    /// Returns [`Sent::NotOpen`] if the item has no image yet or the provider takes no posts, and [`Sent::Full`] if too many posts wait for an
    /// answer or the connection has no capacity: take events, then post again.
    ///
    /// # Errors
    /// The post does not fit in a message.
    pub fn post(&mut self, item: Item, number: Option<u32>, payload: &Payload) -> Result<Sent, Error> {
        let Some(handle) = self.inbox.handle(item) else { return Ok(Sent::NotOpen) };
        self.send_post(Target::Item(handle), post(number, payload), payload)
    }

    /// Posts to an item of a service without a stream of the item: the post goes on the stream of the login. Else as [`Self::post`];
    /// [`Sent::NotOpen`] also if there is no such service.
    ///
    /// # Errors
    /// The post does not fit in a message.
    pub fn post_off_stream(
        &mut self,
        service: &str,
        item: &str,
        number: Option<u32>,
        payload: &Payload,
    ) -> Result<Sent, Error> {
        let service = self.dialer.role().directory().named(service).map(|service| service.id);
        let Some(service) = service else { return Ok(Sent::NotOpen) };
        let key = Some(Key::item(service, item.as_bytes()));
        self.send_post(Target::Login, PostHeader { key, ..post(number, payload) }, payload)
    }

    fn send_post(
        &mut self,
        target: Target,
        header: PostHeader<'_>,
        payload: &Payload,
    ) -> Result<Sent, Error> {
        let sent = self.dialer.act(|consumer, out| consumer.post(out, target, &header, &payload.data))?;
        self.dialer.flush();
        Ok(sent)
    }

    /// Sends a generic message on the stream of an open item. Returns [`Sent::NotOpen`] if the item has no image yet, and [`Sent::Full`] if the
    /// connection has no capacity: take events, then send again.
    ///
    /// # Errors
    /// The message does not fit.
    pub fn generic(&mut self, item: Item, payload: &Payload) -> Result<Sent, Error> {
        let Some(handle) = self.inbox.handle(item) else { return Ok(Sent::NotOpen) };
        // The role sets the stream and the item's domain.
        let header = GenericHeader {
            flags: flags::generic::MESSAGE_COMPLETE,
            ..GenericHeader::new(Domain::MARKET_PRICE, 0, payload.container)
        };
        let target = Target::Item(handle);
        let sent = self.dialer.act(|consumer, out| consumer.generic(out, target, &header, &payload.data))?;
        self.dialer.flush();
        Ok(sent)
    }

    /// Renews the login, for example with a new token before the old one expires. The server answers with an
    /// [`Event::Login`](super::Event::Login). Items stay open. Later connections use the new login too.
    ///
    /// # Errors
    /// The login does not fit in a message: the old one stays.
    pub fn renew_login(&mut self, login: &Login) -> Result<(), Error> {
        let request = login.request();
        self.dialer.act(|consumer, out| consumer.renew_login(out, &request))?;
        self.dialer.flush();
        Ok(())
    }
}

/// Returns the header of a complete post.
fn post(number: Option<u32>, payload: &Payload) -> PostHeader<'static> {
    let user = PostUserInfo { address: LOCALHOST, user_id: std::process::id() };
    let ack = if number.is_some() { flags::post::ACK } else { Flags::NONE };
    PostHeader {
        flags: flags::post::POST_COMPLETE | ack,
        post_id: number,
        ..PostHeader::new(Domain::MARKET_PRICE, 0, user, payload.container)
    }
}
