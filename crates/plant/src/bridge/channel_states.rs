//! What the plant above has said of its channels, for a plant below that no longer hears it.

use std::fmt::Arguments;

use tapeline_omm::rwf::{DataState, Domain, Header as MessageHeader, MessageView};

use crate::publish::Publish;
use crate::tick::{Flags, Header, Kind, Tick};
use crate::{ItemId, Refused, Seq, Sequencer, State, Time, body};

/// Channels beyond this number are not told apart: a plant has 64 feeds, a few services, and some numbers more.
const MOST: usize = 256;

/// The channels of the plant above, each with the last status that said its state.
///
/// While the plant above is silent, the plant below says of each channel that it is stale; afterwards, what the plant above said last. Both are
/// ticks outside the sequence ([`Seq`] 0).
#[derive(Debug, Default)]
pub struct ChannelStates {
    /// By number.
    known: Vec<Option<Known>>,
}

#[derive(Debug)]
struct Known {
    service: u16,
    state: State,
    flags: Flags,
    /// The last status of the channel that says a state, as a frame; empty if there was none.
    said: Vec<u8>,
}

impl ChannelStates {
    /// Takes a tick of the plant above.
    #[inline]
    pub fn take(&mut self, tick: &Tick<'_>) {
        let at = usize::from(tick.header.channel);
        let is_status = tick.header.kind == Kind::Status && tick.header.item == ItemId(0);
        if is_status || (at < MOST && self.known.get(at).is_none_or(Option::is_none)) {
            self.note(tick, at, is_status);
        }
    }

    #[cold]
    fn note(&mut self, tick: &Tick<'_>, at: usize, is_status: bool) {
        let Ok(message) = MessageView::parse(tick.body) else { return };
        if at >= MOST || message.domain() == Domain::SOURCE {
            return;
        }
        if self.known.len() <= at {
            self.known.resize_with(at + 1, || None);
        }
        let Header { service, state, flags, .. } = tick.header;
        let known = self.known[at].get_or_insert_with(|| Known { service, state, flags, said: Vec::new() });
        let Ok(MessageHeader::Status(header)) = message.header() else { return };
        let says = header.state.is_some_and(|state| state.data != DataState::NO_CHANGE);
        if is_status && says {
            (known.state, known.flags) = (state, flags);
            known.said.clear();
            tick.write(&mut known.said);
        }
    }

    /// Publishes that every channel is stale, because the plant above is silent.
    ///
    /// # Errors
    /// A tick could not be published.
    pub fn tell_stale<P: Publish>(&self, time: &impl Time, to: &mut Sequencer<P>) -> Result<(), Refused> {
        let text = format_args!("stale: the plant above is not heard of");
        self.tell(State::Stale, DataState::SUSPECT, text, time, to)
    }

    /// Publishes of every channel what the plant above said last.
    ///
    /// # Errors
    /// A tick could not be published.
    pub fn tell_again<P: Publish>(&self, time: &impl Time, to: &mut Sequencer<P>) -> Result<(), Refused> {
        for (known, number) in self.known.iter().zip(0_u16..) {
            let Some(known) = known else { continue };
            let Ok(tick) = Tick::parse(&known.said) else {
                let text = format_args!("live: the plant above is heard of");
                Self::say((known, number), State::Live, DataState::OK, text, time, to)?;
                continue;
            };
            let header =
                Header { seq: Seq(0), flags: outside(known.flags), sequenced: time.now(), ..tick.header };
            to.outside(&Tick { header, ..tick })?;
        }
        Ok(())
    }

    fn tell<P: Publish>(
        &self,
        state: State,
        data: DataState,
        text: Arguments<'_>,
        time: &impl Time,
        to: &mut Sequencer<P>,
    ) -> Result<(), Refused> {
        let known = self.known.iter().zip(0_u16..);
        let mut known = known.filter_map(|(known, number)| Some((known.as_ref()?, number)));
        known.try_for_each(|known| Self::say(known, state, data, text, time, to))
    }

    fn say<P: Publish>(
        (known, channel): (&Known, u16),
        state: State,
        data: DataState,
        text: Arguments<'_>,
        time: &impl Time,
        to: &mut Sequencer<P>,
    ) -> Result<(), Refused> {
        let mut room = [0; 256];
        let len = body::of_bridge(&mut room, data, text).unwrap_or(0);
        let now = time.now();
        let suspect = if data == DataState::SUSPECT { Flags::SUSPECT } else { Flags(0) };
        let header = Header {
            event: now,
            wire: now,
            decoded: now,
            sequenced: now,
            service: known.service,
            channel,
            kind: Kind::Status,
            flags: Flags::STATE | suspect,
            state,
            ..Header::default()
        };
        to.outside(&Tick { header, name: "", body: &room[..len], source: &[] })
    }
}

/// The flags of a status that is said again: it is about the state alone, not about an event that was told in sequence.
const fn outside(flags: Flags) -> Flags {
    Flags(flags.0 & Flags::SUSPECT.0 | Flags::STATE.0)
}
