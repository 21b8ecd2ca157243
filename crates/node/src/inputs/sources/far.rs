//! The demands of plants below on this plant's sources, on the plant's own thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::TrySendError;

use tapeline_plant::demand::{Answer, DemanderId, FarDemand, FarPolicy, SharedDemands, SharedLimits};
use tapeline_plant::sources::Sources;
use tapeline_wire::rssl::Waker;
use tapeline_wire::tcp::Wakeup;

use super::{Demanding, RunningSources};
use crate::Config;
use crate::events::Events;
use crate::queue::{Bytes, Entry, Exit, queue};

/// An answer for a hub of a plant below.
#[derive(Debug)]
pub(crate) struct FarAnswer {
    pub(crate) hub: DemanderId,
    pub(crate) answer: Answer,
}

impl Bytes for FarAnswer {
    fn bytes(&self) -> usize {
        size_of::<DemanderId>() + self.answer.bytes()
    }
}

/// The end that the bridge has of the queues between it and the sources.
#[derive(Debug)]
pub(crate) struct FarLink {
    pub(crate) demands: Entry<FarDemand>,
    pub(crate) answers: Exit<FarAnswer>,
    /// Wakes the plant's thread after a demand.
    pub(crate) waker: Arc<Waker>,
    /// Wakes the bridge's thread after an answer.
    pub(crate) wakeup: Wakeup,
    pub(crate) figures: Arc<FarFigures>,
}

/// The bridge's way to the sources, with the numbers and names of their services.
pub(crate) type FarSources = (FarLink, Vec<(u16, String)>);

/// Opens the sources. With a bridge that takes demands they serve the hubs of plants below too.
pub(crate) fn open(
    config: &mut Config,
    events: &Events,
) -> crate::Result<(Option<RunningSources>, Option<Demanding>, Option<FarSources>)> {
    let Some(mut of_sources) = config.sources.take() else { return Ok((None, None, None)) };
    let settings = &mut of_sources.settings;
    let bridge = config.bridge.as_ref().filter(|bridge| bridge.demands != FarPolicy::Refuse);
    let limits = bridge.map(|bridge| SharedLimits {
        far: bridge.demands,
        items: bridge.max_demanded,
        posts: settings.max_posts,
        private: settings.max_private,
    });
    settings.is_shared = limits.is_some();
    let services = settings.services.iter().map(|service| (service.id, service.name.clone())).collect();
    if let Some(hub) = config.hub.as_mut().filter(|_| limits.is_some()) {
        hub.settings.services.iter_mut().for_each(|service| service.is_shared = true);
    }
    let (mut sources, demanding) = RunningSources::open(of_sources, events)?;
    let far = limits.map(|limits| sources.serve_far(limits)).transpose()?;
    Ok((Some(sources), Some(demanding), far.map(|far| (far, services))))
}

/// Figures of the demands of plants below.
#[derive(Debug, Default)]
pub(crate) struct FarFigures {
    /// Items that are open for them.
    pub(crate) items: AtomicU64,
    /// Demands beyond a limit.
    pub(crate) refused: AtomicU64,
}

/// The demands of all hubs, and the queues of those of plants below.
#[derive(Debug)]
pub(super) struct FarDemands {
    pub(super) shared: SharedDemands,
    demands: Exit<FarDemand>,
    answers: Entry<FarAnswer>,
    /// An answer for which a queue had no capacity.
    held: Option<FarAnswer>,
    wakeup: Wakeup,
    figures: Arc<FarFigures>,
}

impl FarDemands {
    /// Creates the queues, each for at most `most` entries of `most_bytes` bytes. Returns the bridge's end with it.
    pub(super) fn new(
        limits: SharedLimits,
        waker: Arc<Waker>,
        most: usize,
        most_bytes: usize,
    ) -> crate::Result<(Self, FarLink)> {
        let (to_plant, demands) = queue(most, most_bytes);
        let (answers, from_plant) = queue(most, most_bytes);
        let (wakeup, figures) = (Wakeup::new()?, Arc::<FarFigures>::default());
        let link = FarLink {
            demands: to_plant,
            answers: from_plant,
            waker,
            wakeup: wakeup.clone(),
            figures: Arc::clone(&figures),
        };
        let shared = SharedDemands::new(limits);
        Ok((Self { shared, demands, answers, held: None, wakeup, figures }, link))
    }

    /// Takes up to `most` demands of plants below. Returns whether there were any.
    pub(super) fn take(&mut self, most: usize) -> bool {
        let Self { shared, demands, .. } = self;
        demands.try_iter().take(most).fold(false, |_, demand| {
            shared.far(demand);
            true
        })
    }

    /// Passes answers on to the hubs that they are for, as far as the queues have capacity. Returns whether there were any.
    pub(super) fn send_answers(&mut self, sources: &mut Sources, own: &Entry<Answer>) -> bool {
        let Self { shared, answers, held, wakeup, .. } = self;
        let mut next = || loop {
            if let Some((hub, answer)) = shared.next_answer() {
                return Some(FarAnswer { hub, answer });
            }
            shared.answer(sources.next_answer()?);
        };
        let (mut has_sent, mut is_far) = (false, false);
        while let Some(FarAnswer { hub, answer }) = held.take().or_else(&mut next) {
            let full = if hub == DemanderId::OWN {
                match own.try_send(answer) {
                    Err(TrySendError::Full(answer)) => Some(FarAnswer { hub, answer }),
                    // That hub has ended.
                    Ok(()) | Err(TrySendError::Disconnected(_)) => None,
                }
            } else {
                is_far = true;
                match answers.try_send(FarAnswer { hub, answer }) {
                    Err(TrySendError::Full(answer)) => Some(answer),
                    Ok(()) | Err(TrySendError::Disconnected(_)) => None,
                }
            };
            if full.is_some() {
                *held = full;
                break;
            }
            has_sent = true;
        }
        if is_far {
            wakeup.wake();
        }
        has_sent
    }

    /// Writes the figures.
    pub(super) fn count(&self) {
        self.figures.items.store(self.shared.far_items() as u64, Ordering::Relaxed);
        self.figures.refused.store(self.shared.refused(), Ordering::Relaxed);
    }
}
