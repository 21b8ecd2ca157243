//! What the plant has said, kept for comparison: every tick of every item, and what the item was after each.
//!
//! This is the oracle of what clients may be sent.

use std::collections::BTreeMap;

use tapeline_omm::Fid;
use tapeline_omm::rwf::{DataState, DataType, Header, MessageView, UpdateType, flags};
use tapeline_plant::ItemId;
use tapeline_plant::tick::{Flags, Kind, Tick};

use crate::image::{Image, clears};
use crate::plan::{FEEDS, SERVICE, called, label};

/// The views that clients ask for; 0 is all fields.
pub(crate) const VIEWS: [&[Fid]; 4] = {
    use tapeline_omm::fid::{ACVOL_1, ASK, ASKSIZE, BID, BIDSIZE, QUOTIM_NS, TRD_STATUS, TRDPRC_1};
    [&[], &[BID, ASK], &[TRDPRC_1, ACVOL_1, TRD_STATUS], &[BIDSIZE, ASKSIZE, QUOTIM_NS, BID]]
};

/// Whether a view has a field.
pub(crate) fn is_in(view: usize, fid: Fid) -> bool {
    view == 0 || VIEWS[view].contains(&fid)
}

/// A tick of an item.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) seq: u64,
    pub(crate) kind: Kind,
    pub(crate) update_type: Option<UpdateType>,
    pub(crate) container: DataType,
    pub(crate) payload: Box<[u8]>,
    /// An image that takes the place of all that was known.
    clears: bool,
    /// Of an image more is to come.
    pub(crate) is_part: bool,
}

/// An item.
#[derive(Debug, Default)]
pub(crate) struct Item {
    pub(crate) channel: u16,
    pub(crate) said: Vec<Said>,
    /// What it is now.
    pub(crate) image: Image,
    /// By view: what it was after each tick, as a hash. Those of a view are made when it is first asked for.
    hashes: [Vec<u64>; VIEWS.len()],
    /// By view: what it was after the last of its hashes.
    folded: [Image; VIEWS.len()],
}

/// All that one plant has said, as far as its hub has read.
#[derive(Debug, Default)]
pub(crate) struct Record {
    items: BTreeMap<String, Item>,
    /// Items by their numbers, as a reader knows them: each until its last tick.
    numbers: BTreeMap<u32, String>,
    ended: u64,
    /// By channel: from which tick on its data is suspect, or is not.
    suspect: [Vec<(u64, bool)>; FEEDS],
    /// By channel: ticks were lost since its session began.
    short: [bool; FEEDS],
    /// How many were, in all.
    lost: usize,
    /// By channel: what was said last.
    told: [bool; FEEDS],
    /// By channel: the hub has missed ticks that are in images, and does not have these yet: all that it gives out is suspect. Not of
    /// a channel that it did not know before: for that one it comes late.
    in_doubt: [bool; FEEDS],
    /// The last tick before that was so last.
    doubted: Option<u64>,
    /// The first tick behind those that were lost last, if any were.
    missed: Option<u64>,
    /// The last tick.
    pub(crate) seq: u64,
    /// Ticks of this plant up to that one.
    pub(crate) count: usize,
}

impl Record {
    /// Of a plant that goes on behind that tick.
    pub(crate) fn behind(seq: u64) -> Self {
        Self { seq, ..Self::default() }
    }

    /// The plant says something more, behind so many ticks in all that its reader has lost.
    ///
    /// # Errors
    /// What is wrong with it.
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
            // What is said of a provider's service is an update of the directory.
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

    /// So many ticks are lost: everything may be other than it is known.
    fn miss(&mut self, ticks: u64) {
        let first = self.seq + 1;
        self.lost += ticks as usize;
        self.seq += ticks;
        self.missed = Some(self.seq + 1);
        // What had a number may have ended meanwhile.
        self.numbers.clear();
        self.short = [true; FEEDS];
        self.suspect.iter_mut().for_each(|said| said.push((first, true)));
    }

    /// A word about a channel as a whole.
    fn status(&mut self, tick: &Tick<'_>, message: &MessageView<'_>) -> Result<(), String> {
        let Header::Status(header) = message.header().map_err(|fault| fault.to_string())? else {
            return Err("a status tick holds no status".to_owned());
        };
        let channel = usize::from(tick.header.channel);
        if header.state.is_none_or(|state| state.data == DataState::NO_CHANGE) {
            return Ok(());
        }
        // A session that begins leaves nothing of the last one.
        self.short[channel] &= !tick.header.flags.contains(Flags::RESET);
        let is_suspect = self.short[channel] || tick.header.flags.contains(Flags::SUSPECT);
        self.told[channel] = is_suspect;
        if !self.in_doubt[channel] {
            self.suspect[channel].push((tick.header.seq.0, is_suspect));
        }
        Ok(())
    }

    /// From the next tick on the hub knows what comes next from images only.
    pub(crate) fn begin_doubt(&mut self) {
        self.doubted = Some(self.seq);
        for (said, in_doubt) in self.suspect.iter_mut().zip(&mut self.in_doubt) {
            if !said.is_empty() && !std::mem::replace(in_doubt, true) {
                said.push((self.seq, true));
            }
        }
    }

    /// It has them.
    pub(crate) fn end_doubt(&mut self) {
        for ((said, told), in_doubt) in self.suspect.iter_mut().zip(self.told).zip(&mut self.in_doubt) {
            if std::mem::take(in_doubt) {
                said.push((self.seq, told));
            }
        }
    }

    /// The first tick behind those that were lost last, if any were.
    pub(crate) const fn missed(&self) -> Option<u64> {
        self.missed
    }

    /// Whether the hub has missed ticks that are in images behind that tick.
    pub(crate) fn has_doubted_since(&self, seq: u64) -> bool {
        self.doubted.is_some_and(|doubted| doubted >= seq)
    }

    /// Whether a channel's session has been read from its beginning: nothing was lost, or a session has begun since.
    pub(crate) fn is_whole(&self, channel: u16) -> bool {
        self.missed.is_none() || self.short.get(usize::from(channel)) == Some(&false)
    }

    /// How many were lost in all.
    pub(crate) const fn lost(&self) -> usize {
        self.lost
    }

    /// Items whose numbers are others' now.
    pub(crate) const fn ended(&self) -> u64 {
        self.ended
    }

    pub(crate) fn item(&self, name: &str) -> Option<&Item> {
        self.items.get(name)
    }

    pub(crate) fn item_mut(&mut self, name: &str) -> Option<&mut Item> {
        self.items.get_mut(name)
    }

    /// How many ticks of an item there are.
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

    /// What it was after tick `at`, in a view, as a hash. A view chooses fields: entries are whole in each.
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
            hashes.push(folded.hash());
        }
        hashes[at]
    }
}
