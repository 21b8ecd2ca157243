//! Reading the processor's time-stamp counter, the cheapest clock there is.
//!
//! The counter is used where the processor reports one rate in every power state ("invariant", CPUID leaf
//! 0x8000_0007, EDX bit 8; "Invariant TSC" in the Intel SDM, volume 3B, and AMD APM, volume 3). Everywhere else a
//! tick is a nanosecond of `CLOCK_MONOTONIC`, behind the same functions. `TAPELINE_CLOCK=system` forces that too,
//! for a host whose counters are known to disagree.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU8, Ordering};

use crate::clock::monotonic_ns;

/// One reading of the tick counter. Only differences are meaningful, and only [`Clock`](crate::Clock) converts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Ticks(pub u64);

/// The source of ticks in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TickSource {
    /// The processor's time-stamp counter.
    Counter = 1,
    /// `CLOCK_MONOTONIC`, one tick a nanosecond.
    System = 2,
}

/// 0 until the first reading, then a [`TickSource`]. Relaxed everywhere: every thread that finds 0 makes the same
/// choice.
static SOURCE: AtomicU8 = AtomicU8::new(0);

const COUNTER: u8 = TickSource::Counter as u8;

/// Reads the counter, possibly before earlier instructions have finished. Use it to stamp what is about to be sent.
/// Costs a flag test and one `rdtsc` (bench `clock`).
#[inline]
#[must_use]
pub fn ticks() -> Ticks {
    if SOURCE.load(Ordering::Relaxed) == COUNTER { Ticks(instructions::counter()) } else { otherwise() }
}

/// Reads the counter after all earlier instructions, loads in particular, are done. Use it to stamp what was just
/// received: there [`ticks`] could be read before the load that ended the wait and give impossibly short times.
#[inline]
#[must_use]
pub fn ticks_ordered() -> Ticks {
    if SOURCE.load(Ordering::Relaxed) == COUNTER {
        Ticks(instructions::counter_ordered())
    } else {
        otherwise()
    }
}

/// Returns the source of ticks in this process, fixed at the first call of any function here.
#[must_use]
pub fn tick_source() -> TickSource {
    match SOURCE.load(Ordering::Relaxed) {
        0 => decide(),
        COUNTER => TickSource::Counter,
        _ => TickSource::System,
    }
}

/// The first reading, and every reading if the counter is not trusted.
#[cold]
fn otherwise() -> Ticks {
    match tick_source() {
        TickSource::Counter => Ticks(instructions::counter_ordered()),
        TickSource::System => Ticks(monotonic_ns()),
    }
}

fn decide() -> TickSource {
    let asked_for_system = std::env::var_os("TAPELINE_CLOCK").is_some_and(|value| value == "system");
    let source = if !asked_for_system && invariant() && instructions::has_rdtscp() {
        TickSource::Counter
    } else {
        TickSource::System
    };
    SOURCE.store(source as u8, Ordering::Relaxed);
    source
}

/// Stops using the counter in this process, because it was seen to count incorrectly.
pub(crate) fn distrust() {
    SOURCE.store(TickSource::System as u8, Ordering::Relaxed);
}

pub(crate) use instructions::{hypervisor, invariant};

#[cfg(target_arch = "x86_64")]
mod instructions {
    // CPUID became a safe function after the oldest supported compiler.
    #![allow(unused_unsafe)]

    use std::arch::x86_64::{__cpuid, __rdtscp, _rdtsc};

    const HIGHEST_EXTENDED: u32 = 0x8000_0000;
    const EXTENDED_FEATURES: u32 = 0x8000_0001;
    const POWER: u32 = 0x8000_0007;
    const HYPERVISOR: u32 = 0x4000_0000;

    #[inline]
    pub(super) fn counter() -> u64 {
        // SAFETY: `rdtsc` exists on every x86_64 and touches no memory. A kernel that forbids it (prctl PR_SET_TSC) kills
        // the process with a signal and does nothing unsound. Test: `time_goes_on`.
        unsafe { _rdtsc() }
    }

    #[inline]
    pub(super) fn counter_ordered() -> u64 {
        let mut processor = 0;
        // SAFETY: `decide` chose the counter only where CPUID lists `rdtscp`; the pointer is to a live local, and the
        // only memory written. Test: `time_goes_on`.
        unsafe { __rdtscp(&raw mut processor) }
    }

    /// [eax, ebx, ecx, edx] of a leaf; zeros where the processor has no such leaf.
    fn leaf(number: u32) -> [u32; 4] {
        // SAFETY: CPUID exists on every x86_64 and touches no memory; a leaf that is too high returns other data,
        // hence the check. Test: `the_processor_answers`.
        let [highest, answer] = unsafe { [__cpuid(number & HIGHEST_EXTENDED), __cpuid(number)] };
        if number <= highest.eax { [answer.eax, answer.ebx, answer.ecx, answer.edx] } else { [0; 4] }
    }

    /// Whether the counter runs at one rate in all power states.
    pub(crate) fn invariant() -> bool {
        leaf(POWER)[3] & (1 << 8) != 0
    }

    pub(super) fn has_rdtscp() -> bool {
        leaf(EXTENDED_FEATURES)[3] & (1 << 27) != 0
    }

    /// The hypervisor's own name for itself (`KVMKVMKVM`), or `None` on bare metal.
    pub(crate) fn hypervisor() -> Option<String> {
        if leaf(1)[2] & (1 << 31) == 0 {
            return None;
        }
        // SAFETY: as in `leaf`; these leaves are above the highest basic one, so the check there does not apply,
        // and the bit above reports that they are answered.
        let answer = unsafe { __cpuid(HYPERVISOR) };
        let name: Vec<u8> =
            [answer.ebx, answer.ecx, answer.edx].iter().flat_map(|w| w.to_le_bytes()).collect();
        let name = String::from_utf8_lossy(&name);
        let name = name.trim_matches(|c: char| !c.is_ascii_graphic());
        Some(if name.is_empty() { "unnamed".to_owned() } else { name.to_owned() })
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn the_processor_answers() {
            // Every x86_64 has a first leaf with a family and the SSE2 bit.
            assert_ne!(leaf(1)[3] & (1 << 26), 0);
            assert_eq!(leaf(0x8fff_ffff), [0; 4]);
            if let Some(name) = hypervisor() {
                assert!(
                    !name.is_empty() && name.chars().all(|c| c.is_ascii_graphic() || c == ' '),
                    "{name:?}"
                );
            }
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod instructions {
    pub(super) fn counter() -> u64 {
        crate::clock::monotonic_ns()
    }

    pub(super) fn counter_ordered() -> u64 {
        crate::clock::monotonic_ns()
    }

    pub(crate) fn invariant() -> bool {
        false
    }

    pub(super) fn has_rdtscp() -> bool {
        false
    }

    pub(crate) fn hypervisor() -> Option<String> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_on() {
        let mut last = ticks_ordered();
        for _ in 0..10_000 {
            let next = ticks_ordered();
            assert!(next >= last, "{next:?} after {last:?}");
            last = next;
        }
        let start = ticks();
        while ticks().0 == start.0 {}
        assert!(ticks_ordered().0 > start.0);
    }
}
