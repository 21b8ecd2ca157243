//! Aeron IPC through its C client: a publisher and a subscriber process, and the media driver as a third.
//!
//! Sound because every handle is kept for as long as the raw pointers in it are used, one thread uses each, and a claim is
//! written before it is committed. The smoke test sends through all of it.

#![allow(unsafe_code)]

use std::ffi::{CString, c_void};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rusteron_client::bindings::{
    aeron_buffer_claim_commit, aeron_buffer_claim_t, aeron_exclusive_publication_try_claim, aeron_header_t,
    aeron_subscription_poll,
};
use rusteron_client::{Aeron, AeronContext, AeronExclusivePublication, AeronSubscription, Handlers};
use rusteron_media_driver::{AeronDriver, AeronDriverContext};

use super::{Place, Scope, System};
use crate::measuring::{Receiver, Sender};
use crate::message::Message;
use crate::stage::{Role, Stage};

pub(crate) const SYSTEM: System = System {
    name: "aeron",
    title: "Aeron IPC, C client",
    peer: "aeron",
    place: Place::ProcessesAndDriver,
    scope: Scope::Queue,
    settings: "exclusive publication, `tryClaim`, written in place; terms of 64 MiB, not sparse, touched before; polled up \
               to 256 fragments a time; the driver in shared threading mode with its back-off idle strategy, on whichever of \
               the cores is free",
    run,
};

const CHANNEL: &std::ffi::CStr = c"aeron:ipc";
const STREAM: i32 = 1001;
const TERM_BYTES: usize = 64 << 20;
/// The longest message: by default 1,376 bytes.
const MTU_BYTES: usize = 8192;
const FRAGMENTS: usize = 256;
const PATIENCE: Duration = Duration::from_secs(10);

fn run(stage: &Stage) -> anyhow::Result<()> {
    let folder = PathBuf::from("/dev/shm").join(&stage.case.id);
    let folder = CString::new(folder.into_os_string().into_encoded_bytes())?;
    match stage.role {
        Role::Driver => {
            let context = AeronDriverContext::new()?;
            context.set_dir(&folder)?;
            context.set_dir_delete_on_start(true)?;
            context.set_dir_delete_on_shutdown(true)?;
            context.set_threading_mode(
                rusteron_media_driver::bindings::aeron_threading_mode_enum::AERON_THREADING_MODE_SHARED,
            )?;
            context.set_ipc_term_buffer_length(TERM_BYTES)?;
            context.set_ipc_mtu_length(MTU_BYTES)?;
            context.set_term_buffer_sparse_file(false)?;
            let driver = AeronDriver::new(&context)?;
            driver.start(false)?;
            stage.serve()
        }
        Role::Receiver => {
            let client = connect(&folder)?;
            let subscription =
                client.add_subscription(CHANNEL, STREAM, Handlers::NONE, Handlers::NONE, PATIENCE)?;
            stage.receive(Outlet { subscription, _client: client })
        }
        _ => {
            let client = connect(&folder)?;
            let publication = client.add_exclusive_publication(CHANNEL, STREAM, PATIENCE)?;
            // All zero is an empty claim in C.
            let claim = aeron_buffer_claim_t {
                frame_header: std::ptr::null_mut(),
                data: std::ptr::null_mut(),
                length: 0,
            };
            stage.send(Inlet { publication, claim, _client: client })
        }
    }
}

fn connect(folder: &CString) -> anyhow::Result<Aeron> {
    let context = AeronContext::new()?;
    context.set_dir(folder)?;
    context.set_pre_touch_mapped_memory(true)?;
    let client = Aeron::new(&context)?;
    client.start()?;
    Ok(client)
}

struct Inlet {
    publication: AeronExclusivePublication,
    claim: aeron_buffer_claim_t,
    _client: Aeron,
}

impl Sender for Inlet {
    fn connect(&mut self) -> anyhow::Result<()> {
        let start = Instant::now();
        while !self.publication.is_connected() {
            anyhow::ensure!(start.elapsed() < PATIENCE, "no subscriber connects");
            std::thread::yield_now();
        }
        Ok(())
    }

    #[inline]
    fn send(&mut self, message: &Message<'_>) -> bool {
        // SAFETY: publication and claim live; a position that is not negative says that the claim is made, of exactly
        // these bytes, and nobody reads it before it is committed.
        unsafe {
            let publication = self.publication.get_inner();
            if aeron_exclusive_publication_try_claim(publication, message.len(), &raw mut self.claim) < 0 {
                return false;
            }
            message.fill(std::slice::from_raw_parts_mut(self.claim.data, message.len()));
            aeron_buffer_claim_commit(&raw mut self.claim) == 0
        }
    }
}

struct Outlet {
    subscription: AeronSubscription,
    _client: Aeron,
}

impl Receiver for Outlet {
    #[inline]
    fn receive(&mut self, mut each: impl FnMut(&[u8])) -> u64 {
        unsafe extern "C-unwind" fn call<F: FnMut(&[u8])>(
            user: *mut c_void,
            bytes: *const u8,
            len: usize,
            _: *mut aeron_header_t,
        ) {
            // SAFETY: `user` is the closure below, borrowed for the call alone; the fragment lives while it is handled.
            unsafe { (*user.cast::<F>())(std::slice::from_raw_parts(bytes, len)) }
        }
        fn poll<F: FnMut(&[u8])>(subscription: &AeronSubscription, each: &mut F) -> i32 {
            // SAFETY: the subscription lives, and the closure through the call.
            unsafe {
                let each: *mut F = each;
                aeron_subscription_poll(subscription.get_inner(), Some(call::<F>), each.cast(), FRAGMENTS)
            }
        }
        u64::try_from(poll(&self.subscription, &mut each)).unwrap_or(0)
    }
}
