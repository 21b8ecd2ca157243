//! Directory and items that an NI provider publishes.

use std::sync::Arc;

use super::{Acceptor, AcceptorEvent, Call};
use crate::domain::directory;
use crate::role::peer::is_final;
use crate::rwf::{Domain, Header, MessageView, StateCode, StreamState, flags};

/// A published item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PublishedItem<'a> {
    /// Stream id, negative.
    pub stream_id: i32,
    /// Domain of the item.
    pub domain: Domain,
    /// Service id: one of [`Acceptor::directory`], unless the provider is at fault.
    pub service_id: Option<u16>,
    /// Name of the item.
    pub name: &'a [u8],
}

/// Stored form of an item.
#[derive(Debug, Clone)]
pub(super) struct Published {
    domain: Domain,
    service_id: Option<u16>,
    /// Shared, so that it stays valid while the application uses it.
    name: Arc<[u8]>,
}

impl Published {
    pub(super) fn view(&self, stream_id: i32) -> PublishedItem<'_> {
        PublishedItem { stream_id, domain: self.domain, service_id: self.service_id, name: &self.name }
    }
}

impl Acceptor {
    /// Processes a directory refresh or update.
    pub(super) fn source(&mut self, message: &MessageView<'_>, header: &Header<'_>, call: &mut Call<'_>) {
        if let Header::Refresh(refresh) = header {
            // A refresh replaces the whole directory; so do several parts together.
            let is_first = !self.is_directory_open || refresh.flags.has(flags::refresh::CLEAR_CACHE);
            self.is_directory_open = !refresh.flags.has(flags::refresh::REFRESH_COMPLETE);
            if is_first && self.directory.services().len() > 0 {
                self.directory.clear();
                call.event(self, AcceptorEvent::DirectoryCleared);
            }
        }
        let services = match directory::services(message.payload()) {
            Ok(services) => services,
            Err(fault) => return self.malformed(fault, call),
        };
        for service in services {
            match service {
                Ok(service) => {
                    self.directory.apply(&service);
                    call.event(self, AcceptorEvent::Service(&service));
                }
                Err(fault) => return self.malformed(fault, call),
            }
        }
    }

    /// Processes a message of an item.
    pub(super) fn published(&mut self, message: &MessageView<'_>, header: &Header<'_>, call: &mut Call<'_>) {
        let id = message.stream_id();
        if id >= 0 {
            // Ids from 0 up belong to requests, and nothing was requested.
            self.peer.counters.ignored += 1;
            return;
        }
        let key = header.key().and_then(|key| Some((key.service_id, key.name?)));
        let is_of = |item: &Published| {
            key.is_none_or(|(service_id, name)| {
                *item.name == *name && item.service_id == service_id && item.domain == message.domain()
            })
        };
        let known = self.items.get(&id);
        let item = match (known.filter(|item| is_of(item)), key) {
            (Some(known), _) => known.clone(),
            (None, Some((service_id, name))) => {
                if let Some(other) = self.items.remove(&id) {
                    call.event(self, AcceptorEvent::Withdrawn { item: other.view(id) });
                }
                if self.items.len() >= self.settings.most_items as usize {
                    let (closed, code) = (StreamState::CLOSED, StateCode::TOO_MANY_ITEMS);
                    let at = (message.domain(), id);
                    return self.peer.refuse(call.out, at, closed, code, "Too many items are published");
                }
                let item = Published { domain: message.domain(), service_id, name: name.into() };
                self.items.insert(id, item.clone());
                item
            }
            (None, None) => {
                self.peer.counters.ignored += 1;
                return;
            }
        };
        let (view, message) = (item.view(id), *message);
        let is_over = match *header {
            Header::Refresh(header) => {
                call.event(self, AcceptorEvent::Image { item: view, header, message });
                is_final(&header.state)
            }
            Header::Update(header) => {
                call.event(self, AcceptorEvent::Update { item: view, header, message });
                false
            }
            Header::Status(header) => {
                call.event(self, AcceptorEvent::Status { item: view, header, message });
                header.state.is_some_and(|state| is_final(&state))
            }
            _ => false,
        };
        if is_over {
            self.items.remove(&id);
        }
    }
}
