//! Models of the ring: the real publisher and subscriber on loom's atomics, in every order that matters.
//!
//! Only under `--cfg loom` (`make loom`). The files beside this one put other things in the place of what the crate rests
//! on: atomics on which faults can be planted, a segment and its locks in this process, a clock that takes a step at every
//! look. The models themselves start from a state that has been reached by ordinary calls (a ring that is nearly full, in
//! its second lap), let two or three threads do a handful of operations, and then look at what each has seen.

pub(crate) mod atomics;
pub(crate) mod clock;
pub(crate) mod kernel;

#[cfg(test)]
mod broadcast;
#[cfg(test)]
mod eviction;
#[cfg(test)]
mod explore;
#[cfg(test)]
mod gated;
#[cfg(test)]
mod joining;
#[cfg(test)]
mod scene;
#[cfg(test)]
mod spsc;
#[cfg(test)]
mod succession;
#[cfg(test)]
mod sweep;
