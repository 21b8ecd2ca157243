//! All models, and the faults that they find.

use std::thread;

use super::atomics::Fault::{self, Ahead, Lagging, Late, Weak};
use super::atomics::Site;
use super::explore::{Model, line};
use super::{broadcast, eviction, gated, joining, spsc, succession};

pub(super) const MODELS: [&Model; 21] = [
    &gated::END,
    &gated::BATCH,
    &gated::HIDDEN,
    &gated::ABORTED,
    &gated::LEAVE,
    &gated::DEATH,
    &gated::WRAP,
    &gated::TWO_READERS,
    &gated::NOTE,
    &joining::OLDEST,
    &joining::NEWEST,
    &broadcast::END,
    &broadcast::OVERTAKEN,
    &broadcast::OLDEST,
    &broadcast::NEWEST,
    &eviction::ORDERED,
    &eviction::ASKED,
    &succession::TAKE_OVER,
    &spsc::ONE_BY_ONE,
    &spsc::IN_BATCHES,
    &spsc::CLOSED,
];

const COMMIT: &str = "publisher/commit.rs";
const SUBSCRIBER: &str = "subscriber.rs";
const JOINING: &str = "subscriber/joining.rs";
const PRODUCER: &str = "spsc/producer.rs";
const CONSUMER: &str = "spsc/consumer.rs";

#[test]
fn every_promise_is_kept() {
    let models = MODELS.into_iter().chain([&gated::WRAP_ON_LINES]);
    thread::scope(|scope| models.for_each(|model| _ = scope.spawn(|| model.holds())));
}

fn weak(file: &str, text: &str) -> Fault {
    Weak(line(file, text))
}

fn late(store: Site, until: Site) -> Fault {
    Late { store, until: Some(until) }
}

/// Asserts that each model finds what is wrong, side by side.
fn find(faults: &[(&Model, &str, &[Fault])]) {
    thread::scope(|scope| {
        faults.iter().for_each(|(model, what, faults)| _ = scope.spawn(|| model.catches(what, faults)))
    });
}

#[test]
fn faults_of_gated_rings_are_found() {
    let header = line(COMMIT, ".store(self.header_word(first_len)");
    let terminator = line(COMMIT, "self.memory.terminator(last, last_size)");
    let batched = line("batch.rs", "self.publisher.memory.header(start).store(");
    let hidden = line(COMMIT, ".store(word, Ordering::Relaxed)");
    let shown = line(COMMIT, ".store(word, Ordering::Release)");
    let released = line(SUBSCRIBER, "progress.position.store(self.position");
    find(&[
        (&gated::WRAP, "a header without release", &[Weak(header)]),
        (
            &gated::WRAP,
            "a header read without acquire",
            &[weak(SUBSCRIBER, "let header = self.memory.header(start).load(")],
        ),
        (&gated::WRAP, "a terminator after the header", &[late(terminator, header)]),
        (&gated::WRAP, "a position released without release", &[Weak(released)]),
        (&gated::WRAP, "a position released too early", &[Ahead { store: released, by: 16 }]),
        (&gated::BATCH, "a batch whose first header comes first", &[late(batched, header)]),
        (&gated::HIDDEN, "a hidden header that is late", &[late(hidden, shown)]),
        (&gated::HIDDEN, "hidden frames shown without release", &[Weak(shown)]),
        (
            &gated::ABORTED,
            "bytes of an aborted claim taken for a cleared line",
            &[Late { store: terminator, until: None }],
        ),
        (&gated::LEAVE, "leaving without release", &[weak(SUBSCRIBER, "members.slots.fetch_and(")]),
        (&gated::END, "an end read without acquire", &[weak(SUBSCRIBER, "fn nothing( … status.state.load(")]),
    ]);
}

#[test]
fn faults_of_gates_and_orders_are_found() {
    let milestone = line("lines.rs", "self.position.store(position, Ordering::Release)");
    let body = line("models/memory.rs", "self.body_word(position, at).store(");
    let fence = line("gate.rs", "fence(Ordering::SeqCst); // F1");
    let joining_fence = line(JOINING, "fn enter( … fence(");
    let counted_at = line("lines.rs", "count.position.store(position, Ordering::Relaxed)");
    let counted = line("lines.rs", "count.frames.store(frames, Ordering::Relaxed)");
    let counts_fence = line("lines.rs", "count.position.store(position … fence(");
    let heeded = line(SUBSCRIBER, "self.order().word.load(Ordering::Relaxed) != self.heeded");
    find(&[
        (&joining::NEWEST, "a gate without its fence", &[Weak(fence)]),
        (&joining::OLDEST, "a gate without its fence", &[Weak(fence)]),
        (&joining::NEWEST, "a joiner without its fence", &[Weak(joining_fence)]),
        (&joining::OLDEST, "a joiner without its fence", &[Weak(joining_fence)]),
        (
            &joining::NEWEST,
            "a joiner that does not look again",
            &[Lagging(line(JOINING, "cursor.position.load("))],
        ),
        (
            &joining::OLDEST,
            "a joiner that does not look again",
            &[Lagging(line(JOINING, "gate.position.load("))],
        ),
        (&broadcast::OVERTAKEN, "a gate after the bytes", &[late(milestone, body)]),
        (&broadcast::OVERTAKEN, "a gate without its fence", &[Weak(fence)]),
        (
            &broadcast::OVERTAKEN,
            "a copy without a fence behind it",
            &[weak(SUBSCRIBER, "fn is_passed( … fence(")],
        ),
        (&broadcast::OLDEST, "a count before its place", &[late(counted_at, counted)]),
        // Two fences lie between an order and the bytes that are overwritten: the gate's, and the one that keeps the
        // counts of a milestone in order. Either is enough.
        (
            &eviction::ORDERED,
            "bytes without a fence between the order and them",
            &[Weak(fence), Weak(counts_fence)],
        ),
        (&eviction::ASKED, "an order looked at before the header", &[Lagging(heeded)]),
        (
            &eviction::ORDERED,
            "an answer without a fence before it",
            &[weak(SUBSCRIBER, "pub fn is_evicted( … fence(")],
        ),
        (
            &eviction::ORDERED,
            "an order looked at before the copy",
            &[Lagging(line(SUBSCRIBER, "pub fn is_evicted( … .load("))],
        ),
    ]);
}

#[test]
fn faults_of_queues_are_found() {
    let written = line(PRODUCER, "self.written.store(*self.next");
    let given_back = line(CONSUMER, "shared.read.0.store(self.next, ");
    find(&[
        (&spsc::ONE_BY_ONE, "records published without release", &[Weak(written)]),
        (&spsc::IN_BATCHES, "records published without release", &[Weak(written)]),
        (
            &spsc::ONE_BY_ONE,
            "records read without acquire",
            &[weak(CONSUMER, "let written = self.shared.written.0.load(")],
        ),
        (&spsc::ONE_BY_ONE, "slots given back without release", &[Weak(given_back)]),
        (
            &spsc::ONE_BY_ONE,
            "slots claimed without acquire",
            &[weak(PRODUCER, "let read = self.shared.read.0.load(")],
        ),
        (&spsc::ONE_BY_ONE, "records published too early", &[Ahead { store: written, by: 1 }]),
        (&spsc::IN_BATCHES, "slots given back too early", &[Ahead { store: given_back, by: 1 }]),
        (
            &spsc::ONE_BY_ONE,
            "an end that overtakes the records",
            &[weak(PRODUCER, "self.shared.written.0.store(self.next | GONE")],
        ),
        (
            &spsc::CLOSED,
            "a consumer that goes without a word of what it did",
            &[weak(CONSUMER, "self.shared.read.0.store(self.done.next | GONE")],
        ),
        (
            &spsc::CLOSED,
            "a producer that sees that the consumer is gone, and not what it did",
            &[weak(PRODUCER, "self.shared.read.0.load(Ordering::Acquire) & GONE")],
        ),
    ]);
}
