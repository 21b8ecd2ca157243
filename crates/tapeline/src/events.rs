//! Prints the events that parts of a plant report, on standard error.

use tapeline_node::Events;

/// Prints each event, with its time where it has one, and its advice on a line of its own.
pub(crate) fn printed() -> Events {
    Events::new(|event| anstream::eprintln!("{event}"))
}
