//! Models of the ring: the real publisher and subscriber on loom's atomics, in every order that matters.
//!
//! Only under `--cfg loom` (`make loom`). The other files of this folder replace the crate's foundations: atomics
//! on which faults can be planted, a segment and its locks in this process, a clock that advances at every look.
//! The models themselves start from a state that ordinary calls have reached (a ring that is nearly full, in its
//! second lap), run a handful of operations in two or three threads, and then check what each thread has seen.

pub(crate) mod atomics;
pub(crate) mod clock;
pub(crate) mod kernel;

#[cfg(test)]
mod broadcast;
#[cfg(test)]
mod checks;
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
