//! The division of an item list among threads.

/// Items of all threads; every thread has the common ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct Division {
    /// Total over all threads: common items count once for each thread.
    pub(super) all: usize,
    /// Items that every thread has.
    pub(super) common: usize,
    pub(super) threads: usize,
}

impl Division {
    /// Number of items of a thread: equal shares, with the remainder among the first threads.
    pub(super) fn of(self, thread: usize) -> usize {
        self.all / self.threads + usize::from(thread < self.all % self.threads)
    }

    /// Number of items that only this thread has.
    fn own(self, thread: usize) -> usize {
        self.of(thread).saturating_sub(self.common)
    }

    /// Number of list items in use: the common ones, then each thread's own in thread order.
    pub(super) fn listed(self) -> usize {
        self.common.min(self.all) + (0..self.threads).map(|thread| self.own(thread)).sum::<usize>()
    }

    /// The items of a thread: the common ones, then its own. The list has at least [`listed`](Self::listed) items.
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

    /// The number of listed items, and the items of each thread.
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
