//! The states of the channels of the plant's feeds, as sent to clients: each channel is an item group of the directory.

use crate::status_texts::MISSED;
use tapeline_omm::State;
use tapeline_omm::domain::OwnedState;
use tapeline_omm::domain::directory::Group;
use tapeline_omm::rwf::{DataState, Header, MessageView, StateCode, StreamState};
use tapeline_plant::tick::{Flags, Tick};

/// Maximum number of channels: a plant has 64 feeds, and one more number for the consolidated best.
const MOST: usize = 256;

/// The last state of a channel.
#[derive(Debug, Clone, Default)]
struct Channel {
    /// `true` if the feed itself reports suspect data.
    is_suspect: bool,
    /// `true` if the hub has missed ticks since the channel's session began, or since the last resync: its images are incomplete, whatever the feed
    /// reports.
    is_short: bool,
    text: Box<[u8]>,
}

impl Channel {
    const fn is_in_doubt(&self) -> bool {
        self.is_suspect || self.is_short
    }

    fn state(&self) -> State<'_> {
        let text = if self.is_short { MISSED.as_bytes() } else { &self.text };
        let data = if self.is_in_doubt() { DataState::SUSPECT } else { DataState::OK };
        State { data, text, ..State::OPEN_OK }
    }
}

/// Returns the state of all items of a channel's group.
fn told(channel: u16, state: State<'_>) -> Group {
    Group { group: Some(group(channel).into()), status: Some(OwnedState::from(state)), ..Group::default() }
}

#[derive(Debug, Default)]
pub(crate) struct Feeds {
    /// By number; a channel without a reported state is good.
    channels: Vec<Option<Channel>>,
}

/// Returns the id of a channel's group. Not the number itself: ETA writes two zero bytes for no group, and so do JSON texts, which have no term for
/// a group.
pub(crate) const fn group(channel: u16) -> [u8; 2] {
    channel.wrapping_add(1).to_be_bytes()
}

impl Feeds {
    /// Handles a tick about a whole channel: returns the new state of its group if it changed. `may_begin`: the start of a session makes an
    /// incomplete channel complete.
    pub(crate) fn status(&mut self, tick: &Tick<'_>, may_begin: bool) -> Option<Group> {
        let message = MessageView::parse(tick.body).ok()?;
        let Ok(Header::Status(header)) = message.header() else { return None };
        let said = header.state?;
        let at = usize::from(tick.header.channel);
        if said.data == DataState::NO_CHANGE || at >= MOST {
            return None;
        }
        if self.channels.len() <= at {
            self.channels.resize(at + 1, None);
        }
        let place = self.channels.get_mut(at)?;
        // The channel's data may be suspect although the reported state is good: see `Flags::SUSPECT`.
        let before = place.as_ref();
        let begins = may_begin && tick.header.flags.contains(Flags::RESET);
        let is_short = before.is_some_and(|channel| channel.is_short) && !begins;
        let is_suspect = said.data == DataState::SUSPECT || tick.header.flags.contains(Flags::SUSPECT);
        let was_in_doubt = before.is_some_and(Channel::is_in_doubt);
        let channel = Channel { is_suspect, is_short, text: said.text.into() };
        let is_in_doubt = channel.is_in_doubt();
        *place = Some(channel);
        if !is_in_doubt && !was_in_doubt {
            return None;
        }
        let data = if is_in_doubt { DataState::SUSPECT } else { DataState::OK };
        Some(told(tick.header.channel, State { stream: StreamState::OPEN, data, ..said }))
    }

    /// Marks all channels as incomplete: the hub itself missed ticks.
    pub(crate) fn doubt_all(&mut self) -> Vec<Group> {
        let mut groups = Vec::new();
        for (place, number) in self.channels.iter_mut().zip(0..) {
            let channel = place.get_or_insert_default();
            channel.is_short = true;
            groups.push(told(number, State { code: StateCode::GAP_DETECTED, ..channel.state() }));
        }
        groups
    }

    /// Marks all channels as complete after a resync: each has the state of its feed again.
    pub(crate) fn make_whole(&mut self) -> Vec<Group> {
        let mut groups = Vec::new();
        for (place, number) in self.channels.iter_mut().zip(0..) {
            if let Some(channel) = place.as_mut().filter(|channel| channel.is_short) {
                channel.is_short = false;
                groups.push(told(number, channel.state()));
            }
        }
        groups
    }

    /// Returns the state of an image of this channel for a new request.
    pub(crate) fn state(&self, channel: u16) -> State<'_> {
        match self.channels.get(usize::from(channel)).and_then(Option::as_ref) {
            Some(channel) if channel.is_in_doubt() => channel.state(),
            _ => State::OPEN_OK,
        }
    }
}
