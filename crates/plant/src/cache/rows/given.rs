//! Maps, vectors and series as images, in one part or several.

use tapeline_omm::rwf::{
    MapAction, MapEncoder, MapEntry, MapHead, SeriesEncoder, SeriesHead, VectorAction, VectorEncoder,
    VectorEntry, VectorHead,
};

use super::super::fold;
use super::super::limits::NotApplied;
use super::{Entries, Kind, Row};
use crate::cache::image::View;

impl Entries {
    /// Appends all rows as one container, for an entry of another.
    pub(in super::super) fn put(&self, most: usize, out: &mut Vec<u8>) -> Result<(), NotApplied> {
        let rows = self.rows.iter().map(|row| row.bytes.len() + 16).sum::<usize>();
        let room = rows + self.summary.as_ref().map_or(0, Vec::len) + 32;
        fold::write(room, most, out, |room| {
            let (len, next) = self.write(0, &View::All, room)?;
            if next == self.len() { Ok(len) } else { Err(tapeline_omm::Refused::Full) }
        })
    }

    /// Writes the rows from `from` on, as many as fit; returns the length, and the next row. Only the first part contains the summary and the
    /// number of all rows.
    ///
    /// # Errors
    /// [`Full`](tapeline_omm::Refused::Full) if not one row fits.
    pub(in super::super) fn write(
        &self,
        from: usize,
        view: &View<'_>,
        room: &mut [u8],
    ) -> Result<(usize, usize), tapeline_omm::Refused> {
        let is_first = from == 0;
        let permission_data = self.rows.iter().any(|row| row.has_permission);
        let summary = if is_first { self.summary_in(view)? } else { None };
        let summary = summary.as_deref();
        // A hint ends at a u30; there are fewer rows.
        let count_hint = is_first.then_some(self.len() as u32);
        match self.kind {
            Kind::Map { key_type, key_fid } => {
                let head = MapHead {
                    key_fid,
                    summary,
                    count_hint,
                    permission_data,
                    ..MapHead::new(key_type, self.container)
                };
                let mut map = MapEncoder::new(room, &head)?;
                let next = self.each(from, |_, row| {
                    if *view != View::All {
                        return map.entry_in_place(MapAction::ADD, row.key(), row.permission(), |room| {
                            view.write(self.container, row.data(), room)
                        });
                    }
                    map.entry(&MapEntry {
                        action: MapAction::ADD,
                        permission_data: row.permission(),
                        key: row.key(),
                        data: row.data(),
                    })
                })?;
                Ok((map.finish(), next))
            }
            Kind::Vector { sorting } => {
                let head = VectorHead {
                    summary,
                    count_hint,
                    permission_data,
                    sorting,
                    ..VectorHead::new(self.container)
                };
                let mut vector = VectorEncoder::new(room, &head)?;
                let next = self.each(from, |index, row| {
                    // A cleared entry exists, so it is part of the image.
                    let action = if row.is_blank { VectorAction::CLEAR } else { VectorAction::SET };
                    if *view != View::All {
                        return vector.entry_in_place(action, index, row.permission(), |room| {
                            view.write(self.container, row.data(), room)
                        });
                    }
                    vector.entry(&VectorEntry {
                        action,
                        index,
                        permission_data: row.permission(),
                        data: row.data(),
                    })
                })?;
                Ok((vector.finish(), next))
            }
            Kind::Series => {
                let head = SeriesHead { summary, count_hint, ..SeriesHead::new(self.container) };
                let mut series = SeriesEncoder::new(room, &head)?;
                let next = self.each(from, |_, row| {
                    if *view != View::All {
                        return series.entry_in_place(|room| view.write(self.container, row.data(), room));
                    }
                    series.entry(row.data())
                })?;
                Ok((series.finish(), next))
            }
        }
    }

    /// Returns the view of the summary, if there is a summary.
    fn summary_in(&self, view: &View<'_>) -> Result<Option<Vec<u8>>, tapeline_omm::Refused> {
        let Some(all) = self.summary.as_deref() else { return Ok(None) };
        let mut summary = vec![0; all.len() + 16];
        let len = view.write(self.container, all, &mut summary)?;
        summary.truncate(len);
        Ok(Some(summary))
    }

    /// Returns the number of rows.
    pub(in super::super) const fn len(&self) -> usize {
        self.rows.len() - self.free.len()
    }

    /// Writes rows, each with its index if it has one, until one does not fit; returns the next row.
    fn each(
        &self,
        from: usize,
        mut write: impl FnMut(u32, &Row) -> Result<(), tapeline_omm::Refused>,
    ) -> Result<usize, tapeline_omm::Refused> {
        let mut write = |number, index, row: &Row| match write(index, row) {
            Ok(()) => Ok(true),
            Err(tapeline_omm::Refused::Full) if number > from => Ok(false),
            Err(why) => Err(why),
        };
        if let Kind::Vector { .. } = self.kind {
            for (number, (index, place)) in (from..).zip(self.order.from(from)) {
                if let Some(row) = self.rows.get(place)
                    && !write(number, index, row)?
                {
                    return Ok(number);
                }
            }
        } else {
            for (number, row) in self.rows.iter().enumerate().skip(from) {
                if !write(number, 0, row)? {
                    return Ok(number);
                }
            }
        }
        Ok(self.len())
    }
}
