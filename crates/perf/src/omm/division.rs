//! How the items of a list are divided among threads.

/// Items over all threads, some of which every thread has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Division {
    /// Over all threads: those that every thread has count once for each.
    pub(super) all: usize,
    /// That every thread has.
    pub(super) common: usize,
    pub(super) threads: usize,
}

impl Division {
    /// How many items a thread has: equally many, and the first have what is left over.
    pub(super) fn of(self, thread: usize) -> usize {
        self.all / self.threads + usize::from(thread < self.all % self.threads)
    }

    /// Items of a thread that no other has.
    fn own(self, thread: usize) -> usize {
        self.of(thread).saturating_sub(self.common)
    }

    /// Items that are in the list: the common ones, then those of the threads one after the other.
    pub(super) fn listed(self) -> usize {
        self.common.min(self.all) + (0..self.threads).map(|thread| self.own(thread)).sum::<usize>()
    }

    /// The items of a thread in their order: those that are common to all, then its own. The list has as many as are
    /// [listed](Self::listed).
    pub(super) fn items<T>(self, list: &[T], thread: usize) -> impl Iterator<Item = &T> + Clone {
        let before: usize = (0..thread).map(|before| self.own(before)).sum();
        let first = self.common + before;
        let places = [0..self.common.min(self.of(thread)), first..first + self.own(thread)];
        let [common, own] = places.map(|places| list.get(places).unwrap_or_default());
        common.iter().chain(own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many items are in the list, and which each thread has.
    fn divided(all: usize, common: usize, threads: usize) -> (usize, Vec<Vec<usize>>) {
        let division = Division { all, common, threads };
        let list: Vec<usize> = (0..division.listed()).collect();
        let of = |thread| {
            let items: Vec<usize> = division.items(&list, thread).copied().collect();
            assert_eq!(items.len(), division.of(thread));
            items
        };
        (division.listed(), (0..threads).map(of).collect())
    }

    #[test]
    fn items_are_divided_as_the_public_tools_do() {
        assert_eq!(divided(7, 0, 1), (7, vec![(0..7).collect()]));
        assert_eq!(divided(7, 0, 3), (7, vec![vec![0, 1, 2], vec![3, 4], vec![5, 6]]));
        assert_eq!(divided(7, 2, 3), (3, vec![vec![0, 1, 2], vec![0, 1], vec![0, 1]]));
        assert_eq!(divided(10, 1, 3), (8, vec![vec![0, 1, 2, 3], vec![0, 4, 5], vec![0, 6, 7]]));
    }
}
