//! The record of everything that the plant has published, for comparison: every tick of every item, and the item
//! after each tick.
//!
//! The record is the oracle for the messages that clients may receive.

use std::collections::BTreeMap;

use tapeline_omm::Fid;
use tapeline_omm::rwf::{DataState, DataType, Header, MessageView, UpdateType, flags};
use tapeline_plant::ItemId;
use tapeline_plant::tick::{Flags, Kind, Tick};

use crate::image::{Image, clears};
use crate::plan::{FEEDS, SERVICE, called, label};

/// The views that clients request; 0 is all fields.
pub(crate) const VIEWS: [&[Fid]; 4] = {
    use tapeline_omm::fid::{ACVOL_1, ASK, ASKSIZE, BID, BIDSIZE, QUOTIM_NS, TRD_STATUS, TRDPRC_1};
    [&[], &[BID, ASK], &[TRDPRC_1, ACVOL_1, TRD_STATUS], &[BIDSIZE, ASKSIZE, QUOTIM_NS, BID]]
};

/// Whether a view contains a field.
pub(crate) fn is_in(view: usize, fid: Fid) -> bool {
    view == 0 || VIEWS[view].contains(&fid)
}

#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) seq: u64,
    pub(crate) kind: Kind,
    pub(crate) update_type: Option<UpdateType>,
    pub(crate) container: DataType,
    pub(crate) payload: Box<[u8]>,
    /// An image that replaces the whole previous image.
    clears: bool,
    /// More parts of this image follow.
    pub(crate) is_part: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Item {
    pub(crate) channel: u16,
    pub(crate) said: Vec<Said>,
    pub(crate) image: Image,
    /// By view: hashes of the image after each tick. The hashes of a view are calculated on first use.
    hashes: [Vec<u64>; VIEWS.len()],
    /// By view: the image after the last calculated hash.
    folded: [Image; VIEWS.len()],
}

/// Everything that one plant has published, up to the read position of its hub.
#[derive(Debug, Default)]
pub(crate) struct Record {
    pub(crate) items: BTreeMap<String, Item>,
    /// Items by number, as a reader knows them. An entry is valid until the item's last tick.
    numbers: BTreeMap<u32, String>,
    /// Number of ended items, whose numbers are free for others.
    pub(crate) ended: u64,
    /// By channel: the ticks from which its data is suspect, or no longer suspect.
    suspect: [Vec<(u64, bool)>; FEEDS],
    /// By channel: ticks were lost since its session began.
    short: [bool; FEEDS],
    /// Total number of lost ticks.
    pub(crate) lost: usize,
    /// By channel: whether the last status said suspect.
    told: [bool; FEEDS],
    /// By channel: the hub has missed ticks that are in images and has not received these images yet, so all its
    /// output is suspect. Does not apply to a channel that the hub did not know before: for that channel it is a
    /// late joiner.
    in_doubt: [bool; FEEDS],
    /// The last tick before the most recent such state.
    doubted: Option<u64>,
    /// The first tick after the most recently lost ones, if any.
    pub(crate) missed: Option<u64>,
    /// Sequence of the last tick.
    pub(crate) seq: u64,
    /// Number of this plant's ticks up to that one.
    pub(crate) count: usize,
}

impl Record {
    /// The record of a plant that continues after tick `seq`.
    pub(crate) fn behind(seq: u64) -> Self {
        Self { seq, ..Self::default() }
    }

    /// Adds a tick of the plant. `lost` is the total number of ticks that the reader has lost.
    ///
    /// # Errors
    /// The tick is invalid; the text is the reason.
    pub(crate) fn add(&mut self, tick: &Tick<'_>, lost: usize) -> Result<(), String> {
        let header = &tick.header;
        if lost > self.lost {
            self.miss((lost - self.lost) as u64);
        }
        if header.seq.0 != self.seq + 1 {
            return Err(format!("tick {} comes after tick {}", header.seq.0, self.seq));
        }
        self.seq = header.seq.0;
        let message = MessageView::parse(tick.body).map_err(|fault| fault.to_string())?;
        if header.item == ItemId(0) {
            // The status of a provider's service is an update of the directory.
            if header.kind == Kind::Status && header.service == SERVICE {
                self.status(tick, &message)?;
            }
            return Ok(());
        }
        let name = label(header.service, tick.name);
        let known = self.numbers.entry(header.item.0).or_insert_with(|| name.clone());
        if *known != name {
            return Err(format!("tick {} of {name} has the number of {known}", header.seq.0));
        }
        if header.flags.contains(Flags::LAST) {
            self.numbers.remove(&header.item.0);
            self.ended += 1;
        }
        let item = self.items.entry(called(header.service, message.domain(), tick.name)).or_default();
        if header.kind == Kind::Status {
            return Ok(());
        }
        item.channel = header.channel;
        item.image.fold(&message)?;
        item.said.push(Said {
            seq: header.seq.0,
            kind: header.kind,
            update_type: message.update_type(),
            container: message.container(),
            payload: message.payload().into(),
            clears: clears(&message),
            is_part: header.kind == Kind::Refresh && !message.flags().has(flags::refresh::REFRESH_COMPLETE),
        });
        Ok(())
    }

    /// Takes the loss of ticks: every item may have changed.
    fn miss(&mut self, ticks: u64) {
        let first = self.seq + 1;
        self.lost += ticks as usize;
        self.seq += ticks;
        self.missed = Some(self.seq + 1);
        // Items may have ended meanwhile, so their numbers are no longer known.
        self.numbers.clear();
        self.short = [true; FEEDS];
        self.suspect.iter_mut().for_each(|said| said.push((first, true)));
    }

    /// Takes the status of a whole channel.
    fn status(&mut self, tick: &Tick<'_>, message: &MessageView<'_>) -> Result<(), String> {
        let Header::Status(header) = message.header().map_err(|fault| fault.to_string())? else {
            return Err("a status tick holds no status".to_owned());
        };
        let channel = usize::from(tick.header.channel);
        if header.state.is_none_or(|state| state.data == DataState::NO_CHANGE) {
            return Ok(());
        }
        // A new session replaces all data of the last one.
        self.short[channel] &= !tick.header.flags.contains(Flags::RESET);
        let is_suspect = self.short[channel] || tick.header.flags.contains(Flags::SUSPECT);
        self.told[channel] = is_suspect;
        if !self.in_doubt[channel] {
            self.suspect[channel].push((tick.header.seq.0, is_suspect));
        }
        Ok(())
    }

    /// From the next tick on, the hub depends on images.
    pub(crate) fn begin_doubt(&mut self) {
        self.doubted = Some(self.seq);
        for (said, in_doubt) in self.suspect.iter_mut().zip(&mut self.in_doubt) {
            if !said.is_empty() && !std::mem::replace(in_doubt, true) {
                said.push((self.seq, true));
            }
        }
    }

    /// The hub has received the images.
    pub(crate) fn end_doubt(&mut self) {
        for ((said, told), in_doubt) in self.suspect.iter_mut().zip(self.told).zip(&mut self.in_doubt) {
            if std::mem::take(in_doubt) {
                said.push((self.seq, told));
            }
        }
    }

    /// Whether, at tick `seq` or later, the hub has missed ticks that are in images.
    pub(crate) fn has_doubted_since(&self, seq: u64) -> bool {
        self.doubted.is_some_and(|doubted| doubted >= seq)
    }

    /// Whether a channel's session was read from its start: nothing was lost, or a new one has begun since.
    pub(crate) fn is_whole(&self, channel: u16) -> bool {
        self.missed.is_none() || self.short.get(usize::from(channel)) == Some(&false)
    }

    /// The number of an item's ticks.
    pub(crate) fn said(&self, name: &str) -> usize {
        self.items.get(name).map_or(0, |item| item.said.len())
    }

    /// Whether a channel's data is suspect now.
    pub(crate) fn is_suspect(&self, channel: u16) -> bool {
        self.suspect.get(usize::from(channel)).and_then(|said| said.last()).is_some_and(|(_, is)| *is)
    }

    /// Whether a channel's data was, at some moment from tick `from` to tick `to`, in this state.
    pub(crate) fn was(&self, channel: u16, suspect: bool, from: u64, to: u64) -> bool {
        let Some(said) = self.suspect.get(usize::from(channel)) else { return !suspect };
        let before = said.iter().take_while(|(seq, _)| *seq < from).last().is_some_and(|(_, is)| *is);
        before == suspect || said.iter().any(|(seq, is)| (from..=to).contains(seq) && *is == suspect)
    }
}

impl Item {
    /// Whether a whole image has come from tick `seq` on.
    pub(crate) fn has_image_since(&self, seq: u64) -> bool {
        let since = self.said.iter().rev().take_while(|said| said.seq >= seq);
        since.into_iter().any(|said| said.kind == Kind::Refresh && !said.is_part)
    }

    /// The hash of the image after tick `at` in a view. Views select fields; entries are always whole.
    pub(crate) fn hash(&mut self, view: usize, at: usize) -> u64 {
        let Self { said, hashes, folded, .. } = self;
        let view = if said.first().is_some_and(|said| said.container == DataType::MAP) { 0 } else { view };
        let (hashes, folded) = (&mut hashes[view], &mut folded[view]);
        while hashes.len() <= at {
            let tick = &said[hashes.len()];
            if tick.clears {
                folded.clear();
            }
            folded.fold_data(tick.container, &tick.payload, view).expect("it could be folded before");
            hashes.push(folded.hash);
        }
        hashes[at]
    }
}
