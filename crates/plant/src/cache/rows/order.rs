//! The order of a vector's entries: the index and the place of each.
//!
//! An insertion moves the indexes of all entries above it. In one array the cost is proportional to the number of entries, and quadratic for a
//! message of many insertions: tens of seconds for a hostile one. So the order is divided into pieces of some hundred entries, and the indexes of a
//! piece are relative to its own base: an insertion moves only a part of one piece, and the bases of the pieces after it.

/// Maximum number of entries of a piece: about the same cost within a piece as for the number of pieces of a vector of 65,536 entries.
const MOST: usize = 512;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    piece: usize,
    at: usize,
}

/// Indexes, ascending.
#[derive(Debug, Default)]
pub(super) struct Order {
    pieces: Vec<Piece>,
    /// Bytes of the pieces' own memory.
    held: usize,
}

/// A piece is never empty.
#[derive(Debug)]
struct Piece {
    base: u32,
    entries: Vec<Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Index relative to the base. Sums wrap: a base may be below zero.
    beyond: u32,
    place: u32,
}

impl Piece {
    fn first(&self) -> u32 {
        self.entries.first().map_or(0, |entry| self.index(entry))
    }

    const fn index(&self, entry: &Entry) -> u32 {
        self.base.wrapping_add(entry.beyond)
    }

    fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
    }
}

impl Order {
    pub(super) fn bytes(&self) -> usize {
        self.pieces.capacity() * size_of::<Piece>() + self.held
    }

    /// Returns the position of an index, or the position for its insertion.
    pub(super) fn find(&self, index: u32) -> Result<Position, Position> {
        let piece = self.pieces.partition_point(|piece| piece.first() <= index).saturating_sub(1);
        let Some(found) = self.pieces.get(piece) else { return Err(Position { piece: 0, at: 0 }) };
        let position = |at| Position { piece, at };
        let at = found.entries.binary_search_by_key(&index, |entry| found.index(entry));
        at.map(position).map_err(position)
    }

    pub(super) fn place(&self, Position { piece, at }: Position) -> Option<usize> {
        Some(self.pieces.get(piece)?.entries.get(at)?.place as usize)
    }

    /// Returns the largest index.
    pub(super) fn last(&self) -> Option<u32> {
        let piece = self.pieces.last()?;
        piece.entries.last().map(|entry| piece.index(entry))
    }

    /// Returns `true` if no entry is at or after a position.
    pub(super) fn is_end(&self, position: Position) -> bool {
        self.place(position).is_none() && position.piece + 1 >= self.pieces.len()
    }

    /// Inserts an index at a position from [`find`](Self::find), with the entry's `place`.
    pub(super) fn insert(&mut self, position: Position, index: u32, place: u32) {
        let count = self.pieces.len();
        let is_end = self.is_end(position);
        match self.pieces.get_mut(position.piece) {
            // A vector that only grows at its end is not divided in half each time.
            Some(piece) if !(is_end && piece.entries.len() >= MOST) => {
                let before = piece.bytes();
                let beyond = index.wrapping_sub(piece.base);
                let at = position.at.min(piece.entries.len());
                piece.entries.insert(at, Entry { beyond, place });
                let behind = (piece.entries.len() > MOST)
                    .then(|| Piece { base: piece.base, entries: piece.entries.split_off(MOST / 2) });
                self.held = self.held - before + piece.bytes();
                if let Some(behind) = behind {
                    self.held += behind.bytes();
                    self.pieces.insert(position.piece + 1, behind);
                }
            }
            _ => {
                let piece = Piece { base: index, entries: vec![Entry { beyond: 0, place }] };
                self.held += piece.bytes();
                self.pieces.insert(count, piece);
            }
        }
    }

    /// Removes an entry; the indexes of the others stay.
    pub(super) fn remove(&mut self, position: Position) {
        let Some(piece) = self.pieces.get_mut(position.piece) else { return };
        if position.at < piece.entries.len() {
            piece.entries.remove(position.at);
        }
        if piece.entries.is_empty() {
            self.held -= piece.bytes();
            self.pieces.remove(position.piece);
        }
    }

    /// Moves the indexes from a position on.
    pub(super) fn shift(&mut self, from: Position, by: i32) {
        let mut pieces = self.pieces.get_mut(from.piece..).unwrap_or_default().iter_mut();
        let Some(first) = pieces.next() else { return };
        for entry in first.entries.get_mut(from.at..).unwrap_or_default() {
            entry.beyond = entry.beyond.wrapping_add_signed(by);
        }
        for piece in pieces {
            piece.base = piece.base.wrapping_add_signed(by);
        }
    }

    /// Returns indexes and places, starting with the entry of this number.
    pub(super) fn from(&self, number: usize) -> impl Iterator<Item = (u32, usize)> {
        let mut left = number;
        let skipped = self.pieces.iter().take_while(|piece| {
            let is_before = piece.entries.len() <= left;
            left -= if is_before { piece.entries.len() } else { 0 };
            is_before
        });
        let skipped = skipped.count();
        self.pieces
            .get(skipped..)
            .unwrap_or_default()
            .iter()
            .flat_map(|piece| piece.entries.iter().map(|entry| (piece.index(entry), entry.place as usize)))
            .skip(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_sorted_list_whatever_is_done_to_it() {
        let mut order = Order::default();
        let mut list: Vec<(u32, usize)> = Vec::new();
        let mut state = 7_u64;
        let mut random = move |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        for step in 0..20_000 {
            let index = match random(4) {
                0 => 0,
                1 => list.last().map_or(0, |last| last.0 + 1),
                _ => random(3_000) as u32,
            };
            let at = list.partition_point(|entry| entry.0 < index);
            let is_there = list.get(at).is_some_and(|entry| entry.0 == index);
            let found = order.find(index);
            assert_eq!(found.is_ok(), is_there, "step {step}, index {index}");
            let position = found.unwrap_or_else(|position| position);
            assert_eq!(order.is_end(position), at == list.len());
            // More insertions than removals at first.
            if random(5) < if step < 12_000 { 3 } else { 1 } {
                order.shift(position, 1);
                list[at..].iter_mut().for_each(|entry| entry.0 += 1);
                order.insert(position, index, step);
                list.insert(at, (index, step as usize));
            } else if is_there {
                assert_eq!(order.place(position), Some(list[at].1));
                order.remove(position);
                list.remove(at);
                let position = order.find(index).unwrap_or_else(|position| position);
                order.shift(position, -1);
                list[at..].iter_mut().for_each(|entry| entry.0 -= 1);
            }
            assert_eq!(order.last(), list.last().map(|entry| entry.0));
            if step % 500 == 0 {
                let from = random(list.len() + 1);
                assert!(order.from(from).eq(list[from..].iter().copied()), "step {step}");
                let entries: usize = order.pieces.iter().map(Piece::bytes).sum();
                assert_eq!(order.held, entries);
                assert!(order.pieces.iter().all(|piece| (1..=MOST).contains(&piece.entries.len())));
            }
        }
        assert!(list.len() > MOST, "it had pieces");
    }
}
