//! The items of a connection, and the messages published for them.

use tapeline_console::log;
use tapeline_omm::Refused;
use tapeline_omm::domain::post;
use tapeline_omm::role::consumer::Handle;
use tapeline_omm::role::ni_provider::{NiProvider, NiProviderApplication, NiProviderEvent, Publish};
use tapeline_omm::role::{Outbox, Sent};
use tapeline_omm::rwf::{Container, Domain, Header};

use super::super::bursts::{Bursts, Progress};
use super::super::consumer::decoding::Decoder;
use super::super::link::Link;
use super::super::publishing::{Publishing, after, update_type};
use super::super::slices::Slices;
use super::super::stamp;

#[derive(Clone, Copy, Debug)]
pub(super) struct PublishedItem {
    pub(super) handle: Handle,
    pub(super) domain: Domain,
    pub(super) is_book: bool,
    /// Index of its next update.
    pub(super) update: u32,
}

/// Maximum messages before received messages are processed.
const TURN: u32 = 16_384;

/// The application of the role.
pub(super) struct Publisher {
    pub(super) link: Link,
    /// Decodes the hub's messages, if decoding is measured.
    decoder: Option<Decoder>,
    /// The items of this connection, in the order in which their images are sent.
    pub(super) items: Vec<PublishedItem>,
    /// Number of items that have their image.
    pub(super) images: usize,
    /// Index of the next item to update.
    next: usize,
    /// Whether a message that could not be encoded was reported.
    has_refused: bool,
    /// Number of slices that had begun at the last counted back pressure.
    held_in: u64,
    /// A connection is wanted, after so many failed attempts since the last success.
    pub(super) wants_connection: Option<u32>,
    pub(super) wants_disconnection: bool,
    pub(super) is_ready: bool,
    pub(super) refusal: Option<String>,
}

impl Publisher {
    pub(super) fn new(link: Link, decoder: Option<Decoder>) -> Self {
        Self {
            link,
            decoder,
            items: Vec::new(),
            images: 0,
            next: 0,
            has_refused: false,
            held_in: 0,
            wants_connection: None,
            wants_disconnection: false,
            is_ready: false,
            refusal: None,
        }
    }

    /// Whether all items have their image.
    pub(super) fn has_all(&self) -> bool {
        self.images == self.items.len()
    }

    /// Sends a burst of images; an image that exceeds the limits of a message is an error.
    pub(super) fn send_images(
        &mut self,
        publishing: &Publishing,
        provider: &mut NiProvider,
        out: &mut dyn Outbox,
    ) -> Result<Progress, Refused> {
        for _ in 0..publishing.args.refresh_burst_size {
            let Some(item) = self.items.get(self.images) else { return Ok(Progress::Done) };
            let payload = &publishing.contents(item.is_book).messages.refresh;
            let image = Publish::Refresh(publishing.image_header(item.domain, payload));
            if provider.publish(out, item.handle, &image, payload.encoded())? == Sent::Full {
                return Ok(Progress::Held);
            }
            self.images += 1;
            self.link.tally.counts.images += 1;
        }
        Ok(if self.has_all() { Progress::Done } else { Progress::More })
    }

    /// Sends the due updates, for the items that have their image in turn.
    pub(super) fn send_updates(
        &mut self,
        publishing: &Publishing,
        bursts: &mut Bursts,
        slices: &Slices,
        begun: u64,
        provider: &NiProvider,
        out: &mut dyn Outbox,
    ) -> Progress {
        if self.images == 0 {
            bursts.skip(begun);
        }
        let tally = &mut *self.link.tally;
        for _ in 0..TURN {
            let Some(due) = bursts.next(slices, begun) else { return Progress::Done };
            if self.next >= self.images {
                self.next = 0;
            }
            let Some(item) = self.items.get_mut(self.next) else { return Progress::Done };
            let contents = publishing.contents(item.is_book);
            let Some((payload, _)) = contents.update(item.update) else { return Progress::Done };
            let stamp = publishing.stamp(stamp::UPDATE, due);
            let what = (update_type(payload), payload.container());
            let sent = provider.write_update(out, item.handle, what, &mut |room| {
                publishing.encode(payload, stamp, room, tally)
            });
            if sent == Ok(Sent::Full) {
                if self.held_in != begun {
                    self.held_in = begun;
                    tally.counts.held_back += 1;
                }
                return Progress::Held;
            }
            match sent {
                Ok(sent) if sent.is_queued() => {
                    tally.counts.updates += 1;
                    tally.counts.stamped_updates += u64::from(stamp.is_some());
                }
                Ok(_) => {}
                Err(refused) if !std::mem::replace(&mut self.has_refused, true) => {
                    log::note(format_args!("an update cannot be written: {refused}"));
                }
                Err(_) => {}
            }
            item.update = after(item.update, contents.messages.updates.len());
            self.next += 1;
            bursts.sent();
        }
        Progress::More
    }
}

impl NiProviderApplication for Publisher {
    fn event(&mut self, provider: &mut NiProvider, out: &mut dyn Outbox, event: NiProviderEvent<'_>) {
        match event {
            NiProviderEvent::Connect { attempt } => self.wants_connection = Some(attempt),
            NiProviderEvent::Disconnect => self.wants_disconnection = true,
            NiProviderEvent::TimedOut => log::note("the hub does not answer the login"),
            NiProviderEvent::Ended { state } => self.refusal = Some(state.to_string()),
            NiProviderEvent::Ready => self.is_ready = true,
            NiProviderEvent::Message { message, .. } => {
                if let Ok(Header::Post(header)) = message.header() {
                    self.link.tally.counts.posts += 1;
                    if let Some(decoder) = &mut self.decoder {
                        let (container, payload) = match message.open() {
                            Ok(Container::Message(inner)) => (inner.container(), inner.payload()),
                            _ => (message.container(), message.payload()),
                        };
                        decoder.read_and_count(container, payload, true, &mut self.link.tally);
                    }
                    if post::wants_ack(&header) {
                        // A hub that does not read receives no acknowledgement.
                        let _ = provider.ack(out, &post::ack(&header, None));
                    }
                }
            }
            NiProviderEvent::Malformed(fault) => {
                // Once: the statistics have the count.
                if self.link.tally.counts.malformed == 0 {
                    log::note(format_args!("a message of the hub's cannot be read: {fault}"));
                }
                self.link.tally.counts.malformed += 1;
            }
            // Images are sent slice by slice, without requests.
            _ => {}
        }
    }
}
