//! How the channels of the plant's feeds are, and what clients are told of it: each channel is an item group of the directory.

use tapeline_omm::State;
use tapeline_omm::domain::OwnedState;
use tapeline_omm::domain::directory::Group;
use tapeline_omm::rwf::{DataState, Header, MessageView, StateCode, StreamState};
use tapeline_plant::tick::{Flags, Tick};

/// The most channels: a plant has 64 feeds, and one more number for the best over them.
const MOST: usize = 256;

/// What was last said of a channel's data.
#[derive(Debug, Clone)]
struct Channel {
    is_suspect: bool,
    /// The hub has missed ticks since its session began: whatever the feed says, images here are not whole.
    is_short: bool,
    text: Box<[u8]>,
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
    /// Takes a tick about a channel as a whole: what all items of its group become by that, if it changes anything.
    pub(crate) fn status(&mut self, tick: &Tick<'_>) -> Option<Group> {
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
        let is_short =
            before.is_some_and(|channel| channel.is_short) && !tick.header.flags.contains(Flags::RESET);
        let is_suspect =
            is_short || said.data == DataState::SUSPECT || tick.header.flags.contains(Flags::SUSPECT);
        let was_suspect = before.is_some_and(|channel| channel.is_suspect);
        *place = Some(Channel { is_suspect, is_short, text: said.text.into() });
        if !is_suspect && !was_suspect {
            return None;
        }
        let data = if is_suspect { DataState::SUSPECT } else { DataState::OK };
        let state = State { stream: StreamState::OPEN, data, ..said };
        Some(Group {
            group: Some(group(tick.header.channel).into()),
            status: Some(OwnedState::from(state)),
            ..Group::default()
        })
    }

    /// Everything of a channel is in doubt: the hub itself missed something.
    pub(crate) fn doubt_all(&mut self, text: &str) -> Vec<Group> {
        let mut groups = Vec::new();
        for (place, number) in self.channels.iter_mut().zip(0..) {
            *place = Some(Channel { is_suspect: true, is_short: true, text: text.as_bytes().into() });
            let state = State {
                stream: StreamState::OPEN,
                data: DataState::SUSPECT,
                code: StateCode::GAP_DETECTED,
                text: text.as_bytes(),
            };
            groups.push(Group {
                group: Some(group(number).into()),
                status: Some(OwnedState::from(state)),
                ..Group::default()
            });
        }
        groups
    }

    /// The state of an image from this channel, for who asks now.
    pub(crate) fn state(&self, channel: u16) -> State<'_> {
        match self.channels.get(usize::from(channel)).and_then(Option::as_ref) {
            Some(Channel { is_suspect: true, text, .. }) => {
                State { data: DataState::SUSPECT, text, ..State::OPEN_OK }
            }
            _ => State::OPEN_OK,
        }
    }
}
