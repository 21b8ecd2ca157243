//! How the channels of the plant's feeds are, and what clients are told of it: each channel is an item group of the directory.

use tapeline_omm::State;
use tapeline_omm::domain::OwnedState;
use tapeline_omm::domain::directory::Group;
use tapeline_omm::rwf::{DataState, Header, MessageView, StateCode, StreamState};
use tapeline_plant::tick::{Flags, Tick};

/// The most channels: a plant has 64 feeds, and one more number for the best over them.
const MOST: usize = 256;

/// What was last said of a channel's data.
#[derive(Debug, Clone, Default)]
struct Channel {
    /// As the feed itself says.
    is_suspect: bool,
    /// The hub has missed ticks since its session began, or since it had all images anew: whatever the feed says, images here are
    /// not whole.
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

/// What is said of everything while the hub is short of ticks.
pub(crate) const MISSED: &str = "The hub has missed some of the plant's messages";

/// What all items of a channel's group become.
fn told(channel: u16, state: State<'_>) -> Group {
    Group { group: Some(group(channel).into()), status: Some(OwnedState::from(state)), ..Group::default() }
}

/// All channels.
#[derive(Debug, Default)]
pub(crate) struct Feeds {
    /// By number; those of which nothing was said are good.
    channels: Vec<Option<Channel>>,
}

/// The bytes of a channel's group. Not its number as it is: two zero bytes are how ETA writes that there is no group, which is what
/// texts of JSON come to, since they have no word for it.
pub(crate) const fn group(channel: u16) -> [u8; 2] {
    channel.wrapping_add(1).to_be_bytes()
}

impl Feeds {
    /// Takes a tick about a channel as a whole: what all items of its group become by that, if it changes anything. `may_begin`: a
    /// session that begins makes whole what was short.
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
        // What is known of it may be suspect though the state just told is good: see `Flags::SUSPECT`.
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

    /// Everything of a channel is in doubt: the hub itself missed something.
    pub(crate) fn doubt_all(&mut self) -> Vec<Group> {
        let mut groups = Vec::new();
        for (place, number) in self.channels.iter_mut().zip(0..) {
            let channel = place.get_or_insert_default();
            channel.is_short = true;
            groups.push(told(number, State { code: StateCode::GAP_DETECTED, ..channel.state() }));
        }
        groups
    }

    /// Whatever was missed is here: each channel is again as its feed says.
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

    /// The state of an image from this channel, for who asks now.
    pub(crate) fn state(&self, channel: u16) -> State<'_> {
        match self.channels.get(usize::from(channel)).and_then(Option::as_ref) {
            Some(channel) if channel.is_in_doubt() => channel.state(),
            _ => State::OPEN_OK,
        }
    }
}
