//! boost::lockfree::spsc_queue in shared memory: the queue that Olive's reference uses. The C++ half is `boost.cpp`.
//!
//! Sound because the C++ half keeps to the shapes declared here (both sides name them alike), one process pushes and one
//! consumes, and every pointer handed over outlives its call. The smoke test sends through all of it.

#![allow(unsafe_code)]

use std::ffi::{CString, c_char, c_int, c_void};

use anyhow::Context;

use super::{Place, Scope, System};
use crate::measuring::{Receiver, Sender};
use crate::message::{Inspector, Message, Tally};
use crate::stage::{Role, Stage};

const fn system(name: &'static str, title: &'static str, settings: &'static str) -> System {
    System { name, title, peer: "boost", place: Place::Processes, scope: Scope::Queue, settings, run }
}

pub(crate) const SINGLE: System = system(
    "boost",
    "boost spsc_queue, pop",
    "in shared memory, slots of the message's size and capacity (1 MiB) known at compile time, `push` and `pop`, loops in \
     C++ at -O3",
);
pub(crate) const BATCH: System = system(
    "boost-batch",
    "boost spsc_queue, consume_all",
    "the same with `consume_all`: indices once for all that is there",
);

#[repr(C)]
struct Draft {
    first: u64,
    stamp: u64,
    last: u64,
    body: *const u8,
}

type Unusual = extern "C" fn(&mut Tally, u64, u64, u64);
type Each = unsafe extern "C" fn(*mut c_void, *const u8, usize);

#[repr(C)]
struct Functions {
    open: unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void,
    push: unsafe extern "C" fn(*mut c_void, *const Draft) -> c_int,
    push_many: unsafe extern "C" fn(*mut c_void, u64, u64, *const u8, c_int) -> u64,
    consume: unsafe extern "C" fn(*mut c_void, c_int, *mut c_void, Each) -> u64,
    drain: unsafe extern "C" fn(*mut c_void, c_int, *mut Tally, Unusual) -> u64,
}

unsafe extern "C" {
    safe fn boost_queue(len: usize) -> Option<&'static Functions>;
}

fn run(stage: &Stage) -> anyhow::Result<()> {
    let bytes = stage.case.metric.bytes();
    let functions = boost_queue(bytes).with_context(|| format!("no queue for {bytes} bytes is built in"))?;
    let name = CString::new(format!("/{}", stage.case.id))?;
    let is_sender = stage.role == Role::Sender;
    // SAFETY: a string that ends with zero, and what it names has one sender and one receiver.
    let queue = unsafe { (functions.open)(name.as_ptr(), is_sender.into()) };
    anyhow::ensure!(!queue.is_null(), "cannot open {name:?}: {}", std::io::Error::last_os_error());
    let end = End { functions, queue, batch: (stage.case.system == BATCH.name).into() };
    if is_sender { stage.send(end) } else { stage.receive(end) }
}

/// One end of the queue.
struct End {
    functions: &'static Functions,
    queue: *mut c_void,
    /// Whether all that is there is taken at once.
    batch: c_int,
}

impl Sender for End {
    #[inline]
    fn send(&mut self, message: &Message<'_>) -> bool {
        let Message { first, stamp, last, body } = *message;
        let draft = Draft { first, stamp, last, body: body.as_ptr() };
        // SAFETY: the queue is mapped, and the body as long as the functions were chosen for.
        unsafe { (self.functions.push)(self.queue, &raw const draft) != 0 }
    }

    #[inline]
    fn send_many(&mut self, first: u64, count: u64, body: &[u8], read_clock: bool) -> u64 {
        // SAFETY: as in `send`.
        unsafe { (self.functions.push_many)(self.queue, first, count, body.as_ptr(), read_clock.into()) }
    }
}

impl Receiver for End {
    #[inline]
    fn receive(&mut self, mut each: impl FnMut(&[u8])) -> u64 {
        unsafe extern "C" fn call<F: FnMut(&[u8])>(user: *mut c_void, bytes: *const u8, len: usize) {
            // SAFETY: `user` is the closure below, borrowed for the call alone; the bytes are a slot of the queue that is
            // not given back before this returns.
            unsafe { (*user.cast::<F>())(std::slice::from_raw_parts(bytes, len)) }
        }
        fn caller<F: FnMut(&[u8])>(_: &F) -> Each {
            call::<F>
        }
        let function = caller(&each);
        // SAFETY: the queue is mapped; the closure lives through the call.
        unsafe { (self.functions.consume)(self.queue, self.batch, (&raw mut each).cast(), function) }
    }

    #[inline]
    fn drain(&mut self, inspector: &mut Inspector) -> u64 {
        extern "C" fn unusual(tally: &mut Tally, first: u64, stamp: u64, last: u64) {
            tally.unusual(first, stamp, last);
        }
        // SAFETY: the queue is mapped; the tally lives through the call and has the same shape in C++.
        unsafe { (self.functions.drain)(self.queue, self.batch, &raw mut inspector.tally, unusual) }
    }
}
