//! Binding threads to cores.

use std::sync::OnceLock;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::Error;

/// Returns the cores that this process may use, ascending, as of the first call of this function or [`pin`]. The list
/// stays complete after a thread, or the thread that started it, is pinned.
#[must_use]
pub fn cores() -> Vec<usize> {
    allowed().to_vec()
}

fn allowed() -> &'static [usize] {
    static ALLOWED: OnceLock<Vec<usize>> = OnceLock::new();
    ALLOWED.get_or_init(|| match sched_getaffinity(None) {
        Ok(set) => (0..CpuSet::MAX_CPU).filter(|&core| set.is_set(core)).collect(),
        // The machine has more cores than the fixed-size set can represent, or the kernel forbids the query.
        Err(_) => (0..std::thread::available_parallelism().map_or(1, usize::from)).collect(),
    })
}

/// Binds the calling thread to one core. Threads that it starts afterwards inherit the binding, so start them first.
///
/// # Errors
/// [`Error::NoSuchCore`] when the core is not one of [`cores`]; [`Error::Pin`] when the kernel refuses.
pub fn pin(core: usize) -> Result<(), Error> {
    if !allowed().contains(&core) {
        return Err(Error::NoSuchCore { core, available: cores() });
    }
    let mut set = CpuSet::new();
    set.set(core);
    sched_setaffinity(None, &set).map_err(|errno| Error::Pin { core, source: errno.into() })
}

/// Lets the calling thread run on every core of the process. A new thread inherits the cores of the thread that starts
/// it.
///
/// # Errors
/// [`Error::Unpin`] when the kernel refuses.
pub fn unpin() -> Result<(), Error> {
    let mut set = CpuSet::new();
    // The set has a fixed size.
    allowed().iter().filter(|&&core| core < CpuSet::MAX_CPU).for_each(|&core| set.set(core));
    sched_setaffinity(None, &set).map_err(|errno| Error::Unpin { source: errno.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_to_each_core_and_refuses_others() {
        let all = cores();
        assert!(!all.is_empty());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for &core in &all {
                    pin(core).unwrap();
                    let set = sched_getaffinity(None).unwrap();
                    assert!(set.is_set(core) && set.count() == 1);
                    assert_eq!(cores(), all, "pinning must not shrink the list");
                }
            });
        });
        for absent in [all.last().unwrap() + 1, usize::MAX] {
            let error = pin(absent).unwrap_err();
            assert!(matches!(&error, Error::NoSuchCore { core, .. } if *core == absent), "{error}");
            assert!(error.to_string().contains(&all[0].to_string()), "{error}");
        }
    }
}
