//! The selections of fields that clients request, each stored once.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use tapeline_omm::rwf::{DataType, Header, MessageView};
use tapeline_omm::{Fid, FieldList, FieldListEncoder, Refused};
use tapeline_plant::Seq;

/// A selection of fields. [`ViewId::ALL`] is no selection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ViewId(u32);

impl ViewId {
    /// Every field.
    pub(crate) const ALL: Self = Self(0);
}

/// Maximum size of an update that a view is applied to, in bytes: a tick's body is shorter.
pub(crate) const LONGEST: usize = 64 << 10;
/// Maximum number of fields of a view; a request for more gets all fields.
pub(crate) const MOST_FIDS: usize = 1024;

#[derive(Debug)]
struct View {
    fids: Box<[Fid]>,
    users: u32,
    /// The tick of `message`.
    made_from: Seq,
    /// The view of that tick; empty if it has none of the fields.
    message: Vec<u8>,
}

#[derive(Debug, Default)]
pub(crate) struct Views {
    views: Vec<View>,
    free: Vec<u32>,
    by_fids: HashTable<u32>,
    hasher: RandomState,
    most: usize,
    room: Vec<u8>,
}

impl Views {
    /// Creates an empty set of at most `most` views.
    pub(crate) fn new(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    /// Returns the view of these fields, and adds a user to it; the view of all fields if there are too many views.
    pub(crate) fn take(&mut self, mut fids: Vec<Fid>) -> ViewId {
        fids.sort_unstable();
        fids.dedup();
        let hash = self.hasher.hash_one(&*fids);
        let views = &mut self.views;
        if let Some(place) = self.by_fids.find(hash, |place| *views[*place as usize].fids == *fids) {
            views[*place as usize].users += 1;
            return ViewId(*place + 1);
        }
        if self.by_fids.len() >= self.most {
            return ViewId::ALL;
        }
        let view = View { fids: fids.into(), users: 1, made_from: Seq(0), message: Vec::new() };
        let place = match self.free.pop() {
            Some(place) => {
                views[place as usize] = view;
                place
            }
            None => {
                views.push(view);
                (views.len() - 1) as u32
            }
        };
        let hasher = &self.hasher;
        self.by_fids.insert_unique(hash, place, |place| hasher.hash_one(&*views[*place as usize].fids));
        ViewId(place + 1)
    }

    /// Adds a user.
    pub(crate) fn share(&mut self, view: ViewId) {
        if let Some(entry) = view.0.checked_sub(1).and_then(|place| self.views.get_mut(place as usize)) {
            entry.users += 1;
        }
    }

    /// Removes a user.
    pub(crate) fn release(&mut self, view: ViewId) {
        let Some(place) = view.0.checked_sub(1) else { return };
        let Some(entry) = self.views.get_mut(place as usize) else { return };
        entry.users -= 1;
        if entry.users > 0 {
            return;
        }
        let hash = self.hasher.hash_one(&*entry.fids);
        (entry.fids, entry.message) = (Box::default(), Vec::new());
        if let Ok(found) = self.by_fids.find_entry(hash, |other| *other == place) {
            found.remove();
        }
        self.free.push(place);
    }

    /// Returns the fields of a view, sorted; `None` for all.
    pub(crate) fn fids(&self, view: ViewId) -> Option<&[Fid]> {
        self.views.get(view.0.checked_sub(1)? as usize).map(|view| &*view.fids)
    }

    /// Returns the view of the update of tick `seq`: encoded once for each view, for any number of clients. `None` if none of its fields changed. A
    /// message without a field list is returned whole.
    pub(crate) fn cut<'m>(&'m mut self, view: ViewId, seq: Seq, message: &'m [u8]) -> Option<&'m [u8]> {
        let place = match view.0.checked_sub(1) {
            Some(place) if is_field_list(message) => place,
            _ => return Some(message),
        };
        let Some(entry) = self.views.get_mut(place as usize) else { return Some(message) };
        if entry.made_from != seq {
            entry.made_from = seq;
            if self.room.is_empty() {
                self.room.resize(LONGEST, 0);
            }
            let len = chosen(message, &entry.fids, &mut self.room);
            entry.message.clear();
            entry.message.extend_from_slice(len.and_then(|len| self.room.get(..len)).unwrap_or_default());
        }
        Some(&*entry.message).filter(|message| !message.is_empty())
    }
}

/// Returns `true` if a message's payload is a field list.
fn is_field_list(message: &[u8]) -> bool {
    MessageView::parse(message).is_ok_and(|message| message.container() == DataType::FIELD_LIST)
}

/// Writes the message with these of its fields; returns its length, or `None` if it has none of them or cannot be read.
fn chosen(message: &[u8], fids: &[Fid], room: &mut [u8]) -> Option<usize> {
    let view = MessageView::parse(message).ok()?;
    let header @ Header::Update(_) = view.header().ok()? else { return None };
    let start = header.encode(room).ok()?;
    let (len, is_any) = choose(view.payload(), fids, room.get_mut(start..)?).ok()?;
    is_any.then_some(start + len)
}

/// Writes the fields of a list that are among `fids`, which are sorted; returns the length, and `true` if there are any.
pub(crate) fn choose(list: &[u8], fids: &[Fid], room: &mut [u8]) -> Result<(usize, bool), Refused> {
    let mut chosen = FieldListEncoder::new(room)?;
    // A damaged field ends the list: the plant's own are never damaged.
    for field in FieldList::parse(list).into_iter().flatten().map_while(Result::ok) {
        if fids.binary_search(&field.fid).is_ok() {
            chosen.raw(field.fid, field.data)?;
        }
    }
    let is_any = !chosen.is_empty();
    Ok((chosen.finish(), is_any))
}

#[cfg(test)]
mod tests {
    use tapeline_omm::rwf::{Domain, UpdateType, update_header};
    use tapeline_omm::{Real, fid};

    use super::*;

    fn update() -> Vec<u8> {
        let mut bytes = vec![0; 256];
        let quote = UpdateType::QUOTE;
        let start = update_header(&mut bytes, Domain::MARKET_PRICE, 0, quote, DataType::FIELD_LIST).unwrap();
        let mut list = FieldListEncoder::new(&mut bytes[start..]).unwrap();
        list.real(fid::BID, Real::decimal(3991, 2)).unwrap();
        list.real(fid::ASK, Real::decimal(3992, 2)).unwrap();
        let len = start + list.finish();
        bytes.truncate(len);
        bytes
    }

    fn fids(message: &[u8]) -> Vec<Fid> {
        let message = MessageView::parse(message).unwrap();
        FieldList::parse(message.payload()).unwrap().iter().map(|field| field.unwrap().fid).collect()
    }

    #[test]
    fn a_view_has_its_fields_and_no_others() {
        let mut views = Views::new(10);
        let (update, ask) = (update(), views.take(vec![fid::ASK, fid::TRDPRC_1]));
        assert_eq!(fids(views.cut(ask, Seq(1), &update).unwrap()), [fid::ASK]);
        let trade = views.take(vec![fid::TRDPRC_1]);
        assert_eq!(views.cut(trade, Seq(1), &update), None);
        assert_eq!(views.cut(ViewId::ALL, Seq(1), &update), Some(&*update));
    }

    #[test]
    fn what_is_asked_for_twice_is_kept_once_and_ends_with_its_last_user() {
        let mut views = Views::new(1);
        let first = views.take(vec![fid::ASK, fid::BID, fid::ASK]);
        assert_eq!(views.take(vec![fid::BID, fid::ASK]), first);
        // One view more than the maximum is no view.
        assert_eq!(views.take(vec![fid::BID]), ViewId::ALL);
        views.release(first);
        assert_eq!(views.fids(first), Some(&[fid::BID, fid::ASK][..]));
        views.release(first);
        let other = views.take(vec![fid::BID]);
        assert_eq!(views.fids(other), Some(&[fid::BID][..]));
    }
}
