//! The subscriptions.
//!
//! A subscription is the prefix of a topic. The subscriptions of all subscribers are in one table. A topic is
//! looked up once for each length that any subscription has, however many subscribers there are, and only if
//! something has changed since.

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::SubscriberFault;

/// Maximum length of a subscription in bytes: twice the longest name of an item, with its service.
pub(super) const LONGEST: usize = 512;

/// The subscribers of a topic at some time. The publishing code stores it so that the topic is not looked up
/// each time.
#[derive(Debug, Default, Clone)]
pub struct Route {
    generation: u64,
    pub(super) subscribers: Vec<u32>,
}

#[derive(Debug)]
pub(super) struct Topics {
    /// Counts changes, from 1.
    generation: u64,
    /// The subscribers of each prefix, by number.
    by_prefix: HashMap<Box<[u8]>, Vec<u32>, RandomState>,
    /// The number of prefixes of each length.
    lengths: Vec<u32>,
    /// For each subscriber, by number: its prefixes, and how often it subscribed to each.
    held: Vec<HashMap<Box<[u8]>, u32, RandomState>>,
    total: usize,
    most: usize,
    most_each: usize,
}

impl Topics {
    /// Permits `most` different subscriptions of all subscribers together, and `most_each` of each.
    pub(super) fn new(most: usize, most_each: usize) -> Self {
        Self {
            generation: 1,
            by_prefix: HashMap::with_hasher(RandomState::default()),
            lengths: vec![0; LONGEST + 1],
            held: Vec::new(),
            total: 0,
            most,
            most_each,
        }
    }

    /// Returns the number of subscriptions; a prefix of two subscribers counts twice.
    pub(super) fn len(&self) -> usize {
        self.total
    }

    /// Adds a subscription to a prefix. The caller never passes a prefix longer than [`LONGEST`].
    pub(super) fn subscribe(&mut self, subscriber: u32, prefix: &[u8]) -> Result<(), SubscriberFault> {
        let at = subscriber as usize;
        if self.held.len() <= at {
            self.held.resize_with(at + 1, HashMap::default);
        }
        let held = &mut self.held[at];
        if let Some(times) = held.get_mut(prefix) {
            *times = times.saturating_add(1);
            return Ok(());
        }
        if self.total >= self.most || held.len() >= self.most_each {
            return Err(SubscriberFault::TooManySubscriptions);
        }
        held.insert(prefix.into(), 1);
        let holders = self.by_prefix.entry_ref(prefix).or_default();
        if holders.is_empty()
            && let Some(count) = self.lengths.get_mut(prefix.len())
        {
            *count += 1;
        }
        holders.push(subscriber);
        self.total += 1;
        self.generation += 1;
        Ok(())
    }

    /// Cancels one subscription to a prefix.
    pub(super) fn cancel(&mut self, subscriber: u32, prefix: &[u8]) {
        let Some(held) = self.held.get_mut(subscriber as usize) else { return };
        let Some(times) = held.get_mut(prefix) else { return };
        *times -= 1;
        if *times == 0 {
            held.remove(prefix);
            self.drop(subscriber, prefix);
        }
    }

    pub(super) fn forget(&mut self, subscriber: u32) {
        let held = self.held.get_mut(subscriber as usize).map(std::mem::take).unwrap_or_default();
        for prefix in held.keys() {
            self.drop(subscriber, prefix);
        }
        // Its number may be reused before the next lookup.
        self.generation += 1;
    }

    fn drop(&mut self, subscriber: u32, prefix: &[u8]) {
        let Some(holders) = self.by_prefix.get_mut(prefix) else { return };
        holders.retain(|holder| *holder != subscriber);
        self.total -= 1;
        self.generation += 1;
        if holders.is_empty() {
            self.by_prefix.remove(prefix);
            if let Some(count) = self.lengths.get_mut(prefix.len()) {
                *count -= 1;
            }
        }
    }

    /// Returns `true` if any subscriber wants a topic, and updates `route`. Without changes it costs two
    /// comparisons.
    #[inline]
    pub(super) fn find(&self, route: &mut Route, topic: &[u8]) -> bool {
        if route.generation != self.generation {
            self.look_up(route, topic);
        }
        !route.subscribers.is_empty()
    }

    #[cold]
    fn look_up(&self, route: &mut Route, topic: &[u8]) {
        route.generation = self.generation;
        route.subscribers.clear();
        for (length, count) in self.lengths.iter().enumerate().take(topic.len() + 1) {
            if *count > 0
                && let Some(holders) = self.by_prefix.get(&topic[..length])
            {
                route.subscribers.extend_from_slice(holders);
            }
        }
        // A subscriber of several prefixes of the topic gets the message once.
        route.subscribers.sort_unstable();
        route.subscribers.dedup();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(topics: &Topics, route: &mut Route, topic: &str) -> Vec<u32> {
        topics.find(route, topic.as_bytes());
        route.subscribers.clone()
    }

    #[test]
    fn a_topic_goes_to_whoever_has_subscribed_to_a_beginning_of_it_once() {
        let (mut topics, mut route) = (Topics::new(100, 100), Route::default());
        assert!(!topics.find(&mut route, b"T/AAPL"));
        topics.subscribe(3, b"").unwrap();
        topics.subscribe(1, b"T/A").unwrap();
        topics.subscribe(1, b"T/AAPL").unwrap();
        topics.subscribe(2, b"T/MSFT").unwrap();
        assert_eq!(who(&topics, &mut route, "T/AAPL"), [1, 3]);
        assert_eq!(who(&topics, &mut Route::default(), "T/MSFT"), [2, 3]);
        assert_eq!(who(&topics, &mut Route::default(), "T/"), [3]);
        topics.cancel(3, b"");
        topics.cancel(1, b"T/A");
        assert_eq!(who(&topics, &mut route, "T/AAPL"), [1]);
        topics.forget(1);
        assert_eq!((who(&topics, &mut route, "T/AAPL"), topics.len()), (vec![], 1));
    }

    #[test]
    fn what_is_subscribed_to_twice_is_cancelled_twice_and_there_is_a_limit() {
        let (mut topics, mut route) = (Topics::new(3, 2), Route::default());
        topics.subscribe(1, b"A").unwrap();
        topics.subscribe(1, b"A").unwrap();
        topics.cancel(1, b"A");
        assert_eq!(who(&topics, &mut route, "A"), [1]);
        topics.cancel(1, b"A");
        topics.cancel(1, b"A");
        assert_eq!(who(&topics, &mut route, "A"), []);
        topics.subscribe(1, b"A").unwrap();
        topics.subscribe(1, b"B").unwrap();
        assert_eq!(topics.subscribe(1, b"C"), Err(SubscriberFault::TooManySubscriptions));
        topics.subscribe(2, b"C").unwrap();
        assert_eq!(topics.subscribe(2, b"D"), Err(SubscriberFault::TooManySubscriptions));
    }
}
