//! Sources that speak OMM: what becomes of what they say, with the other ends' roles at the other ends.

mod failing;
mod hostile;
mod merged;
mod posting;
mod published;
mod requested;
mod world;
