//! The state of an item at its source, and the next demand for it.

use tapeline_omm::rwf::Priority;

/// An item of a provider's service, as known to its source.
#[derive(Debug, Default)]
pub(crate) struct Upstream {
    /// The priorities of its streams.
    pub(crate) wishes: Wishes,
    /// The priority of the request to the source, while it is open.
    told: Option<Priority>,
    /// The source has closed its stream: the request is no longer valid.
    pub(crate) is_over: bool,
    /// A new image is needed, although none is cached.
    wants_refresh: bool,
    /// Other hubs may have it open at the source, so that its request brings no image.
    is_shared: bool,
    /// The source has answered since the request.
    is_answered: bool,
    /// The only client of the item lags: the source should pause.
    pub(crate) is_held: bool,
    /// The source was asked to pause.
    told_held: bool,
    /// The source was paused, and no image has come since its resumption: the item's image is out of date.
    pub(crate) is_old: bool,
    /// The item is in the queue of demands.
    pub(crate) is_queued: bool,
}

/// A demand for a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Telling {
    Open(Priority),
    Priority(Priority),
    Refresh,
    Pause,
    Resume,
    Close,
}

impl Upstream {
    /// Creates the state of an item that was not requested. With `is_shared` other hubs may have it open at the source.
    pub(crate) fn new(is_shared: bool) -> Self {
        Self { is_shared, ..Self::default() }
    }

    /// Records that a new image is needed, unless the request for the item brings one.
    pub(crate) const fn ask_again(&mut self) {
        self.wants_refresh |= self.is_answered || self.is_shared;
    }

    /// Returns `true` if the item is open at the source.
    pub(crate) const fn is_told(&self) -> bool {
        self.told.is_some() && !self.is_over
    }

    /// Records a complete image.
    pub(crate) const fn has_come(&mut self) {
        self.is_answered = true;
        self.is_old &= self.told_held;
    }

    /// Returns `true` if no demand is queued, and none has to be withdrawn.
    pub(crate) fn is_settled(&self) -> bool {
        self.told.is_none() && !self.is_queued
    }

    /// Returns `true` if the source needs a demand.
    pub(crate) fn has_news(&self) -> bool {
        let is_held_otherwise = self.told.is_some() && self.is_held != self.told_held;
        self.is_over || self.wants_refresh || is_held_otherwise || self.told != self.wishes.all()
    }

    /// Returns the next demand: the changes of several clients meanwhile are combined into one, or cancel out. Call it until it returns `None`.
    pub(crate) fn next(&mut self) -> Option<Telling> {
        let wanted = self.wishes.all();
        if self.told.is_some() && (self.is_over || wanted.is_none()) {
            (self.told, self.is_over, self.wants_refresh, self.is_answered) = (None, false, false, false);
            (self.is_held, self.told_held, self.is_old) = (false, false, false);
            return Some(Telling::Close);
        }
        self.is_over = false;
        let Some(wanted) = wanted else {
            self.wants_refresh = false;
            return None;
        };
        match self.told.replace(wanted) {
            None => {
                self.wants_refresh &= self.is_shared;
                Some(Telling::Open(wanted))
            }
            Some(told) if told != wanted => Some(Telling::Priority(wanted)),
            Some(_) if self.is_held != self.told_held => {
                self.told_held = self.is_held;
                self.is_old |= self.is_held;
                Some(if self.is_held { Telling::Pause } else { Telling::Resume })
            }
            Some(_) => std::mem::take(&mut self.wants_refresh).then_some(Telling::Refresh),
        }
    }
}

/// The priorities of all streams on an item: the highest class, and the sum of the counts in it (RSSL: a source aggregates those
/// of its consumers). Adding and removing cost the number of classes in use, nearly always one.
#[derive(Debug, Default)]
pub(crate) struct Wishes {
    /// Sorted by class.
    classes: Vec<Class>,
}

#[derive(Debug)]
struct Class {
    class: u8,
    streams: u32,
    sum: u64,
}

impl Wishes {
    pub(crate) fn add(&mut self, priority: Priority) {
        let found = self.classes.binary_search_by_key(&priority.class, |class| class.class);
        let place = found.unwrap_or_else(|place| {
            self.classes.insert(place, Class { class: priority.class, streams: 0, sum: 0 });
            place
        });
        if let Some(class) = self.classes.get_mut(place) {
            class.streams += 1;
            class.sum += u64::from(priority.count);
        }
    }

    /// Removes a priority that was added.
    pub(crate) fn remove(&mut self, priority: Priority) {
        let Ok(place) = self.classes.binary_search_by_key(&priority.class, |class| class.class) else {
            return;
        };
        let Some(class) = self.classes.get_mut(place) else { return };
        class.streams -= 1;
        class.sum -= u64::from(priority.count);
        if class.streams == 0 {
            self.classes.remove(place);
        }
    }

    /// Returns the aggregate; `None` without streams.
    pub(crate) fn all(&self) -> Option<Priority> {
        let highest = self.classes.last()?;
        Some(Priority { class: highest.class, count: u16::try_from(highest.sum).unwrap_or(u16::MAX) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn priority(class: u8, count: u16) -> Priority {
        Priority { class, count }
    }

    #[test]
    fn priorities_add_up_in_the_highest_class() {
        let mut wishes = Wishes::default();
        assert_eq!(wishes.all(), None);
        wishes.add(priority(1, 2));
        wishes.add(priority(1, 3));
        assert_eq!(wishes.all(), Some(priority(1, 5)));
        wishes.add(priority(4, 1));
        assert_eq!(wishes.all(), Some(priority(4, 1)));
        wishes.remove(priority(4, 1));
        wishes.remove(priority(1, 2));
        assert_eq!(wishes.all(), Some(priority(1, 3)));
        wishes.add(priority(1, u16::MAX));
        assert_eq!(wishes.all(), Some(priority(1, u16::MAX)));
    }

    #[test]
    fn what_came_and_went_unsaid_is_not_said() {
        let mut upstream = Upstream::default();
        upstream.wishes.add(priority(1, 1));
        upstream.wishes.remove(priority(1, 1));
        assert_eq!(upstream.next(), None);
        upstream.wishes.add(priority(1, 1));
        assert_eq!(upstream.next(), Some(Telling::Open(priority(1, 1))));
        upstream.wants_refresh = true;
        upstream.wishes.add(priority(1, 1));
        assert_eq!(upstream.next(), Some(Telling::Priority(priority(1, 2))));
        assert_eq!((upstream.next(), upstream.next()), (Some(Telling::Refresh), None));
        upstream.is_held = true;
        assert_eq!((upstream.next(), upstream.next()), (Some(Telling::Pause), None));
        // A pause and a resumption before the demand cancel out.
        upstream.is_held = false;
        assert!(upstream.has_news());
        upstream.is_held = true;
        assert!(!upstream.has_news());
        upstream.is_held = false;
        upstream.has_come();
        assert!(upstream.is_old, "of before it goes on");
        assert_eq!((upstream.next(), upstream.next()), (Some(Telling::Resume), None));
        upstream.has_come();
        assert!(!upstream.is_old);
        // Closed by the source while a client has requested it again.
        upstream.is_over = true;
        assert_eq!(upstream.next(), Some(Telling::Close));
        assert_eq!(upstream.next(), Some(Telling::Open(priority(1, 2))));
        upstream.wishes.remove(priority(1, 1));
        upstream.wishes.remove(priority(1, 1));
        assert_eq!((upstream.next(), upstream.next()), (Some(Telling::Close), None));
        assert!(upstream.is_settled());
    }

    #[test]
    fn an_image_is_requested_apart_if_others_may_have_the_item_open() {
        let mut upstream = Upstream { is_shared: true, wants_refresh: true, ..Upstream::default() };
        upstream.wishes.add(priority(1, 1));
        assert_eq!(upstream.next(), Some(Telling::Open(priority(1, 1))));
        assert_eq!((upstream.next(), upstream.next()), (Some(Telling::Refresh), None));
    }
}
