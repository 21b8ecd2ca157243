//! Captured conversations of the vendor's consumer: the provider's side is fed, and what the consumer sends must mean what
//! the vendor's sent. What its application did is read from what it sent of its own accord.

use std::collections::{HashMap, VecDeque};

use tapeline_omm::domain::{LoginRequest, RequestPayload};
use tapeline_omm::role::consumer::{ConsumerSettings, Handle, ItemRequest, Reissue, ServiceName, Target};
use tapeline_omm::rwf::{Domain, Header, MessageClass, MessageView, flags};

use super::captured::{self, Captured};
use super::desk::{Desk, outline};

/// What was compared in a conversation.
#[derive(Debug, Default)]
struct Compared {
    fed: usize,
    sent: usize,
    of_itself: usize,
}

struct Replay {
    desk: Desk,
    /// Items by name, as the application holds them.
    items: HashMap<Vec<u8>, Handle>,
    streams: HashMap<i32, Handle>,
    sent: VecDeque<Box<[u8]>>,
    compared: Compared,
}

impl Replay {
    fn collect(&mut self) {
        while let Some(message) = self.desk.out.pop() {
            self.sent.push_back(message);
        }
    }

    /// Does what an application did that sent `message`: something that a consumer does not send of itself.
    fn act(&mut self, message: &MessageView<'_>) {
        let id = message.stream_id();
        let target = match self.streams.get(&id) {
            Some(item) => Target::Item(*item),
            None => Target::Login,
        };
        let desk = &mut self.desk;
        match message.header().unwrap() {
            Header::Request(request) => {
                let name = request.key.name.unwrap().to_vec();
                let payload = RequestPayload::read(message).unwrap();
                if let Some(item) = self.streams.get(&id) {
                    let is_paused = request.flags.has(flags::request::PAUSE);
                    let wants_image = !is_paused && !request.flags.has(flags::request::NO_REFRESH);
                    let reissue = Reissue { is_paused: Some(is_paused), wants_image, ..Reissue::default() };
                    assert!(desk.consumer.reissue(*item, &reissue));
                } else {
                    let item = desk
                        .consumer
                        .open(&ItemRequest {
                            domain: request.domain,
                            qos: request.qos,
                            priority: request
                                .priority
                                .unwrap_or(tapeline_omm::rwf::Priority { class: 1, count: 1 }),
                            view: payload.view,
                            is_streaming: request.flags.has(flags::request::STREAMING),
                            is_private: request.flags.has(flags::request::PRIVATE_STREAM),
                            ..ItemRequest::new(ServiceName::Id(request.key.service_id.unwrap()), &name)
                        })
                        .unwrap();
                    self.items.insert(name, item);
                }
            }
            Header::Close(_) if id == 1 => desk.consumer.log_out(&mut desk.out, &mut desk.told),
            Header::Close(_) => assert!(desk.consumer.close(self.streams[&id])),
            Header::Post(post) => {
                let sent = desk.consumer.post(&mut desk.out, target, &post, message.payload());
                assert!(sent.unwrap().is_queued());
            }
            Header::Generic(generic) => {
                let sent = desk.consumer.generic(&mut desk.out, target, &generic, message.payload());
                assert!(sent.unwrap().is_queued());
            }
            other => panic!("a consumer does not send {other:?}"),
        }
        desk.tick();
    }

    fn expect(&mut self, place: &str, bytes: &[u8]) {
        let expected = MessageView::parse(bytes).unwrap();
        self.collect();
        let name = expected.key().unwrap().and_then(|key| key.name).unwrap_or_default().to_vec();
        let is_known = self.items.contains_key(&name) && !self.streams.contains_key(&expected.stream_id());
        if self.sent.is_empty() && is_known && expected.class() == MessageClass::REQUEST {
            // An item that is to be asked for again: so it is, in its own time.
            for _ in 0..3 {
                if self.sent.is_empty() {
                    self.desk.wait();
                    self.collect();
                }
            }
        }
        if self.sent.is_empty() {
            self.act(&expected);
            self.collect();
        } else {
            self.compared.of_itself += 1;
        }
        let sent = self
            .sent
            .pop_front()
            .unwrap_or_else(|| panic!("{place}: nothing was sent, expected {}", outline(bytes)));
        assert_eq!(outline(&sent), outline(bytes), "{place}");
        if expected.class() == MessageClass::REQUEST
            && let Some(item) = self.items.get(&name)
        {
            self.streams.insert(expected.stream_id(), *item);
        }
        self.compared.sent += 1;
    }
}

fn replay(name: &str, messages: &[Captured]) -> Compared {
    // The login of the first connection says who logs in.
    let Some(login) = messages.iter().find(|message| message.is_clients) else { return Compared::default() };
    let view = MessageView::parse(&login.bytes).unwrap();
    let Header::Request(request) = view.header().unwrap() else {
        panic!("{name}: the first message is no request")
    };
    let login = LoginRequest::read(&request).unwrap();
    let downloads_dictionary = messages.iter().any(|message| {
        message.is_clients
            && MessageView::parse(&message.bytes).is_ok_and(|message| message.domain() == Domain::DICTIONARY)
    });
    let mut replay = Replay {
        desk: Desk::new(ConsumerSettings { downloads_dictionary, ..ConsumerSettings::default() }, &login),
        items: HashMap::new(),
        streams: HashMap::new(),
        sent: VecDeque::new(),
        compared: Compared::default(),
    };
    let mut connection = 0;
    for message in messages {
        let place = format!("{name}, record {}", message.record);
        if message.connection != connection {
            if connection != 0 {
                replay.desk.lose_connection();
                replay.sent.clear();
            }
            connection = message.connection;
            replay.desk.connect();
        }
        if message.is_clients {
            replay.expect(&place, &message.bytes);
        } else {
            replay.desk.feed(&message.bytes);
            replay.compared.fed += 1;
        }
    }
    replay.collect();
    assert!(replay.sent.is_empty(), "{name}: sent beside what was expected: {}", outline(&replay.sent[0]));
    if downloads_dictionary {
        assert!(replay.desk.told.has_dictionary, "{name}");
    }
    replay.compared
}

#[test]
fn captured_conversations_are_carried_on_as_the_vendors_consumer_did() {
    let (mut conversations, mut all) = (0, Compared::default());
    for (name, messages) in captured::conversations(&["rssl-", "server-", "ws-rwf-"]) {
        let compared = replay(&name, &messages);
        println!("{name}: {compared:?}");
        conversations += usize::from(compared.sent > 0);
        all.fed += compared.fed;
        all.sent += compared.sent;
        all.of_itself += compared.of_itself;
    }
    // Fed, compared, and of these sent without the application's doing: logins, directories, dictionaries, recoveries,
    // answers.
    if conversations > 0 {
        assert_eq!((conversations, all.fed, all.sent, all.of_itself), (43, 738, 219, 110));
    }
}
