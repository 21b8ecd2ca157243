//! A publisher with its open claim or batch, for both policies.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::ptr::NonNull;

use tapeline_ring::{Batch, Claim, Discipline, PublisherOf};

use crate::failure::{Failure, out_of_order};
use crate::tapeline_code::{self, *};

/// A publisher whose claim outlives the call that made it.
#[derive(Debug)]
pub(crate) struct End<D: Discipline + 'static> {
    open: Open<D>,
    /// In a box of its own. While `open` is not `Nothing`, only `open` may use it.
    publisher: NonNull<PublisherOf<D>>,
}

/// The open claim or batch. It borrows the publisher, which outlives it: `close` drops this first.
#[derive(Debug)]
enum Open<D: Discipline + 'static> {
    Nothing,
    Claim(Claim<'static, D>),
    Batch(Batch<'static, D>),
}

const CLAIM_OPEN: &str = "a claim or a batch is open; hint: commit or abort it first";
const NOTHING_OPEN: &str = "nothing is claimed; hint: claim before you commit";

impl<D: Discipline + 'static> End<D> {
    pub(crate) fn new(publisher: PublisherOf<D>) -> Self {
        Self { open: Open::Nothing, publisher: NonNull::from(Box::leak(Box::new(publisher))) }
    }

    /// The publisher, if nothing that is open borrows it.
    #[inline]
    fn idle(&mut self) -> Option<&mut PublisherOf<D>> {
        match self.open {
            // SAFETY: made from a box, nobody else borrows it, and it is lent for as long as this end is.
            Open::Nothing => Some(unsafe { self.publisher.as_mut() }),
            _ => None,
        }
    }

    /// The publisher for a claim or batch that goes to `open`.
    #[inline]
    fn idle_for_good(&mut self) -> Option<&'static mut PublisherOf<D>> {
        match self.open {
            // SAFETY: as above; the value that borrows it goes to `open` alone, which `idle` checks and `close`
            // drops first.
            Open::Nothing => Some(unsafe { self.publisher.as_mut() }),
            _ => None,
        }
    }

    #[inline]
    pub(crate) fn claim(&mut self, len: usize) -> Result<*mut c_void, tapeline_code> {
        let Some(publisher) = self.idle_for_good() else { return Err(out_of_order(CLAIM_OPEN)) };
        let mut claim = publisher.claim(len)?;
        let bytes = claim.as_mut_ptr().cast();
        self.open = Open::Claim(claim);
        Ok(bytes)
    }

    #[inline]
    pub(crate) fn batch_claim(&mut self, len: usize) -> Result<*mut c_void, tapeline_code> {
        if let Some(publisher) = self.idle_for_good() {
            self.open = Open::Batch(publisher.claim_batch());
        }
        let Open::Batch(batch) = &mut self.open else { return Err(out_of_order(CLAIM_OPEN)) };
        let refused = match batch.claim(len) {
            Ok(claim) => return Ok(claim.as_mut_ptr().cast()),
            Err(refused) => refused,
        };
        if batch.frames() == 0 {
            self.open = Open::Nothing;
        }
        Err(refused.into())
    }

    /// Returns the position of the (first) frame.
    #[inline]
    pub(crate) fn commit(&mut self) -> Result<u64, tapeline_code> {
        match std::mem::replace(&mut self.open, Open::Nothing) {
            Open::Claim(claim) => Ok(claim.commit().0),
            Open::Batch(batch) => Ok(batch.commit().0),
            Open::Nothing => Err(out_of_order(NOTHING_OPEN)),
        }
    }

    pub(crate) fn commit_prefix(&mut self, len: usize) -> Result<u64, tapeline_code> {
        match std::mem::replace(&mut self.open, Open::Nothing) {
            Open::Claim(claim) => Ok(claim.commit_prefix(len)?.0),
            open @ Open::Batch(_) => {
                self.open = open;
                Err(out_of_order("a batch has no prefix; hint: commit or abort it"))
            }
            Open::Nothing => Err(out_of_order(NOTHING_OPEN)),
        }
    }

    pub(crate) fn abort(&mut self) -> tapeline_code {
        match std::mem::replace(&mut self.open, Open::Nothing) {
            Open::Nothing => out_of_order(NOTHING_OPEN),
            _ => TAPELINE_OK,
        }
    }

    #[inline]
    pub(crate) fn publish(&mut self, message: &[u8]) -> Result<u64, tapeline_code> {
        let Some(publisher) = self.idle() else { return Err(out_of_order(CLAIM_OPEN)) };
        Ok(publisher.publish(message)?.0)
    }

    /// For calls that are not made for every message, and not while a claim or a batch is open.
    pub(crate) fn with_idle<R>(&mut self, what: impl FnOnce(&mut PublisherOf<D>) -> R) -> Result<R, Failure> {
        let publisher = self.idle().ok_or_else(|| Failure::new(TAPELINE_ERROR_ORDER, CLAIM_OPEN))?;
        Ok(what(publisher))
    }

    pub(crate) fn close(mut self) -> Result<(), tapeline_ring::Error> {
        self.open = Open::Nothing;
        // SAFETY: made from a box, `self` ends here, and the value that borrowed it is gone.
        unsafe { *Box::from_raw(self.publisher.as_ptr()) }.close()
    }
}
