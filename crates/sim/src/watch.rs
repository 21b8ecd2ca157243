//! One open item of a client: checks the received messages against the plant's ticks.

use tapeline_omm::FieldList;
use tapeline_omm::role::consumer::Handle;
use tapeline_omm::rwf::{DataState, DataType, Header, Map, MessageClass, MessageView, StreamState, flags};
use tapeline_plant::tick::Kind;

use crate::image::Image;
use crate::invariants::{Invariant, Wrong, broken};
use crate::plan::{SERVICE_NAME, of_label};
use crate::record::{Record, Said, VIEWS, is_in};

/// A possible position of a stream: its view, and the last of the item's ticks that it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    view: usize,
    at: usize,
}

#[derive(Debug)]
pub(crate) struct Watch {
    pub(crate) name: String,
    pub(crate) handle: Handle,
    pub(crate) is_streaming: bool,
    pub(crate) is_paused: bool,
    /// Messages arrived as text: in text, a map with deletions only does not state the type of its entries.
    pub(crate) is_text: bool,
    /// The view requested last.
    pub(crate) view: usize,
    /// Views that an answer may still have: the last requested one, and earlier ones.
    views: Vec<usize>,
    /// Possible positions; empty without an image. More than one if ticks change nothing.
    places: Vec<Place>,
    /// No image may be older than this tick of the item.
    floor: usize,
    /// Another image may arrive at any time, after a request or a loss.
    may_jump: bool,
    was_reissued: bool,
    /// It was once requested with a view.
    pub(crate) had_view: bool,
    image: Image,
    /// More parts of the current image follow.
    is_in_parts: bool,
    data: DataState,
}

impl Watch {
    /// A watch on an item of which the hub has read `floor` ticks.
    pub(crate) fn new(name: &str, handle: Handle, is_streaming: bool, view: usize, floor: usize) -> Self {
        Self {
            name: name.to_owned(),
            handle,
            is_streaming,
            is_paused: false,
            is_text: false,
            view,
            views: vec![view],
            places: Vec::new(),
            floor,
            may_jump: true,
            was_reissued: false,
            had_view: view > 0,
            image: Image::default(),
            is_in_parts: false,
            data: DataState::SUSPECT,
        }
    }

    pub(crate) fn reissued(&mut self, view: usize) {
        (self.may_jump, self.was_reissued) = (true, true);
        self.had_view |= view > 0;
        if view != self.view {
            self.view = view;
            self.views.push(view);
        }
    }

    /// Whether the item belongs to the feeds' service.
    fn is_of_feeds(&self) -> bool {
        of_label(&self.name).0 == SERVICE_NAME
    }

    /// Takes the loss of its connection: the next one begins with an image, no older than `floor`.
    pub(crate) fn lost(&mut self, floor: usize) {
        self.places.clear();
        self.floor = floor;
        self.is_in_parts = false;
        self.may_jump = true;
        self.data = DataState::SUSPECT;
        self.views = vec![self.view];
    }

    pub(crate) fn state(&mut self, stream: StreamState, data: DataState) {
        if data != DataState::NO_CHANGE {
            self.data = data;
        }
        // The consumer may request it again without notifying the application.
        self.may_jump |= data == DataState::SUSPECT || stream != StreamState::OPEN;
    }

    /// Checks a message on its stream. `jumps`: images may arrive unasked in place of updates.
    ///
    /// # Errors
    /// The message is not an expected one.
    pub(crate) fn message(&mut self, bytes: &[u8], record: &mut Record, jumps: bool) -> Result<(), Wrong> {
        let unread = |fault: tapeline_omm::Malformed| (Invariant::NextTick, fault.to_string());
        let message = MessageView::parse(bytes).map_err(unread)?;
        match message.class() {
            MessageClass::REFRESH => {
                let Header::Refresh(header) = message.header().map_err(unread)? else { return Ok(()) };
                self.data = header.state.data;
                if self.places.is_empty() && !self.is_in_parts {
                    self.image.clear();
                }
                self.image.fold(&message).map_err(|what| (Invariant::Image, what))?;
                self.is_in_parts = !message.flags().has(flags::refresh::REFRESH_COMPLETE);
                if self.is_in_parts {
                    return Ok(());
                }
                self.whole(&message, record, jumps)?;
                self.check_state(record)
            }
            MessageClass::UPDATE => {
                if self.is_in_parts {
                    broken!(NextTick, "{}: an update between the parts of an image", self.name);
                }
                self.update(&message, record)?;
                self.image.fold(&message).map_err(|what| (Invariant::NextTick, what))
            }
            MessageClass::STATUS => {
                if let Some(state) = message.header().map_err(unread)?.state() {
                    self.state(state.stream, state.data);
                }
                Ok(())
            }
            // A client's generic message, echoed to all: it must belong to this item.
            MessageClass::GENERIC if *message.payload() == *of_label(&self.name).1.as_bytes() => Ok(()),
            class => broken!(NextTick, "{}: a {class} of nobody's", self.name),
        }
    }

    /// Checks that an image equals the item after a tick that the hub has read.
    fn whole(&mut self, message: &MessageView<'_>, record: &mut Record, jumps: bool) -> Result<(), Wrong> {
        let name = self.name.clone();
        let stands_at =
            self.places.first().zip(record.items.get(&name)).map(|(place, item)| item.said[place.at].seq);
        // A JSON client receives states item by item, and never one that has already passed.
        let is_untold = self.is_text && stands_at.is_some_and(|seq| record.has_doubted_since(seq));
        let Some(item) = record.items.get_mut(&name) else {
            broken!(Image, "an image of {name}, which the plant never named");
        };
        let now = self.image.hash;
        let from = self.places.iter().map(|place| place.at).min().unwrap_or(self.floor.saturating_sub(1));
        let mut places = Vec::new();
        // Requested by the application, or by the consumer for a new user of an open stream.
        let is_answer = message.flags().has(flags::refresh::SOLICITED);
        // A hub that has missed ticks sends this image in their place, marked as suspect.
        let says_so = self.data == DataState::SUSPECT || is_untold;
        if !self.may_jump && !jumps && !is_answer && !says_so {
            // As the plant published it, in sequence.
            for place in &self.places {
                if let Some(at) = next_image(&item.said, *place)
                    && item.hash(place.view, at) == now
                {
                    places.push(Place { view: place.view, at });
                }
            }
        } else {
            for view in 0..VIEWS.len() {
                for at in from..item.said.len() {
                    if self.views.contains(&view) && !item.said[at].is_part && item.hash(view, at) == now {
                        places.push(Place { view, at });
                    }
                }
            }
        }
        if places.is_empty() {
            broken!(
                Image,
                "{name}: an image (view {:?}) that it never was from its tick {from} to {}, standing at {:?}: {:?}",
                self.views,
                item.said.len(),
                self.places,
                message.header()
            );
        }
        // Requests are answered in order; a view may have been requested more than once.
        let first = self.views.iter().position(|view| places.iter().any(|place| place.view == *view));
        self.views.drain(..first.unwrap_or_default());
        self.places = places;
        self.may_jump = self.was_reissued || self.data == DataState::SUSPECT;
        Ok(())
    }

    /// Checks that an update is the next tick of the item that is visible in its view.
    fn update(&mut self, message: &MessageView<'_>, record: &Record) -> Result<(), Wrong> {
        let said = record.items.get(&self.name).map_or(&[][..], |item| &item.said);
        let mut places = Vec::new();
        for place in &self.places {
            if let Some((at, said)) = next_shown(said, *place)
                && is_update_of(message, said, place.view, self.is_text)
            {
                places.push(Place { at, view: place.view });
            }
        }
        if places.is_empty() {
            broken!(
                NextTick,
                "{}: an update that is not the next tick behind {:?} of {}: {message:?}",
                self.name,
                self.places,
                said.len()
            );
        }
        self.places = places;
        Ok(())
    }

    /// Checks that the state of an image is one that its channel had while the item had this image.
    fn check_state(&self, record: &Record) -> Result<(), Wrong> {
        let Some(item) = record.items.get(&self.name).filter(|_| self.is_of_feeds()) else { return Ok(()) };
        let is_suspect = self.data == DataState::SUSPECT;
        let was_so = self.places.iter().any(|place| {
            let from = item.said[place.at].seq;
            let to = item.said.get(place.at + 1).map_or(record.seq, |next| next.seq - 1);
            record.was(item.channel, is_suspect, from, to)
        });
        if !was_so {
            broken!(State, "{}: an image that is {}, when its channel was not", self.name, self.data);
        }
        Ok(())
    }

    /// Checks that it equals the plant's item.
    ///
    /// # Errors
    /// It differs; the text says how.
    pub(crate) fn check_current(&self, record: &mut Record) -> Result<(), Wrong> {
        let wrong = |what: String| Err((Invariant::Liveness, format!("{}: {what}", self.name)));
        let missed = record.missed;
        let Some(item) = record.items.get_mut(&self.name) else {
            // Its image may have been lost, and no other is sent.
            return if missed.is_some() { Ok(()) } else { wrong("the plant does not have it".to_owned()) };
        };
        if self.places.is_empty() {
            // The message that a service is up may also have been lost.
            let is_lost = missed.is_some_and(|missed| !self.is_of_feeds() || !item.has_image_since(missed));
            return if is_lost { Ok(()) } else { wrong("it has no image".to_owned()) };
        }
        let (view, last) = (self.view, item.said.len() - 1);
        if self.image.hash != item.hash(view, last) {
            return wrong(format!("it is not what the plant has, at {:?} of {last}", self.places));
        }
        let (channel, is_suspect) = (item.channel, self.data == DataState::SUSPECT);
        if !self.is_of_feeds() {
            // Every source is connected.
            let is_stale = missed.is_some_and(|missed| !item.has_image_since(missed));
            let what = format!("its data is {}, and stale is {is_stale}", self.data);
            let is_so = is_suspect == is_stale || is_suspect && missed.is_some();
            return if is_so { Ok(()) } else { wrong(what) };
        }
        if is_suspect != record.is_suspect(channel) {
            return wrong(format!("its data is {}, and its channel's is not", self.data));
        }
        Ok(())
    }
}

/// The next tick after a position that is visible in its view.
fn next_shown(said: &[Said], place: Place) -> Option<(usize, &Said)> {
    said.iter().enumerate().skip(place.at + 1).find(|(_, said)| is_shown(said, place.view))
}

/// The last part of the image after a position, if the next visible tick is an image.
fn next_image(said: &[Said], place: Place) -> Option<usize> {
    let (first, _) = next_shown(said, place)?;
    let mut parts = said.iter().enumerate().skip(first).take_while(|(_, said)| said.kind == Kind::Refresh);
    parts.find(|(_, said)| !said.is_part).map(|(at, _)| at)
}

/// Whether a tick is visible in a view.
fn is_shown(said: &Said, view: usize) -> bool {
    if view == 0 || said.kind == Kind::Refresh || said.container != DataType::FIELD_LIST {
        return true;
    }
    let list = FieldList::parse(&said.payload).into_iter().flatten();
    list.flatten().any(|field| is_in(view, field.fid))
}

/// Whether two maps have the same effect.
fn are_same_maps(one: &[u8], other: &[u8]) -> bool {
    let (Ok(one), Ok(other)) = (Map::parse(one), Map::parse(other)) else { return false };
    let head = |map: &Map<'_>| (map.head().key_type, map.head().key_fid);
    let summary = |map: &Map<'_>| map.head().summary.map(<[u8]>::to_vec);
    head(&one) == head(&other) && summary(&one) == summary(&other) && one.into_iter().eq(other)
}

/// Whether an update is this tick, or the part of it in a view.
fn is_update_of(message: &MessageView<'_>, said: &Said, view: usize, is_text: bool) -> bool {
    if said.kind != Kind::Update
        || message.update_type() != said.update_type
        || message.container() != said.container
    {
        return false;
    }
    if said.container == DataType::MAP && is_text {
        return are_same_maps(message.payload(), &said.payload);
    }
    if view == 0 || said.container != DataType::FIELD_LIST {
        return *message.payload() == *said.payload;
    }
    let (Ok(got), Ok(all)) = (FieldList::parse(message.payload()), FieldList::parse(&said.payload)) else {
        return false;
    };
    let wanted = all.into_iter().flatten().filter(|field| is_in(view, field.fid));
    let wanted: Vec<_> = wanted.map(|field| (field.fid, field.data)).collect();
    let got: Vec<_> = got.into_iter().flatten().map(|field| (field.fid, field.data)).collect();
    got == wanted
}
