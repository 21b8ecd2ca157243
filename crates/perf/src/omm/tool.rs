//! The tools.

use super::tally::Counts;

/// A tool, by its command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Tool {
    #[default]
    Consumer,
    Provider,
    NiProvider,
    Transport,
}

impl Tool {
    pub(super) const ALL: [Self; 4] = [Self::Consumer, Self::Provider, Self::NiProvider, Self::Transport];

    /// The word behind `tapeline omm`.
    pub(super) const fn command(self) -> &'static str {
        match self {
            Self::Consumer => "consumer",
            Self::Provider => "provider",
            Self::NiProvider => "ni-provider",
            Self::Transport => "transport",
        }
    }

    /// The kind of its runs.
    pub(super) fn kind(self) -> String {
        format!("omm-{}", self.command())
    }

    /// Whether the tool times received updates; a provider times generic messages only.
    pub(super) fn times_updates(self) -> bool {
        matches!(self, Self::Consumer | Self::Transport)
    }

    /// Messages of the throughput and the timeline: what a provider sends at a rate; the transport's both directions.
    pub(super) fn carried(self, counts: &Counts) -> u64 {
        match self {
            Self::Consumer => counts.updates,
            Self::Transport => counts.messages_sent + counts.updates,
            Self::Provider | Self::NiProvider => counts.updates + counts.generics_sent,
        }
    }
}
