//! ZeroMQ: XPUB to SUB over ipc between two processes, through libzmq's C API. The library is linked dynamically and belongs
//! to the system that this is measured on.
//!
//! Sound because each socket is used by one thread, and a message from its initialisation to its close alone.

#![allow(unsafe_code)]

use std::ffi::{CString, c_char, c_int, c_void};
use std::mem::MaybeUninit;

use anyhow::Context;

use super::{Place, Scope, System};
use crate::measuring::{Receiver, Sender};
use crate::message::Message;
use crate::stage::{Role, Stage};

/// Messages that may wait on each side.
const HIGH_WATER_MARK: c_int = 100_000;
/// Messages that one look may give.
const BATCH: u64 = 256;
/// For the subscription to arrive.
const PATIENCE_MS: c_int = 10_000;

pub(crate) const SYSTEM: System = System {
    name: "zeromq",
    title: "ZeroMQ, ipc",
    peer: "zeromq",
    place: Place::Processes,
    scope: Scope::Queue,
    settings: "libzmq, XPUB that refuses instead of dropping, SUB; high-water marks of 100,000 messages; one I/O thread in \
               each process, on whichever of the cores is free",
    run,
};

// zmq.h, version 4: names without their prefix.
const SUB: c_int = 2;
const XPUB: c_int = 9;
const SUBSCRIBE: c_int = 6;
const LINGER: c_int = 17;
const SNDHWM: c_int = 23;
const RCVHWM: c_int = 24;
const RCVTIMEO: c_int = 27;
const XPUB_NODROP: c_int = 69;
const DONTWAIT: c_int = 1;

/// `zmq_msg_t`.
#[repr(C, align(8))]
struct Content([u8; 64]);

unsafe extern "C" {
    fn zmq_ctx_new() -> *mut c_void;
    fn zmq_socket(context: *mut c_void, kind: c_int) -> *mut c_void;
    fn zmq_setsockopt(socket: *mut c_void, option: c_int, value: *const c_void, len: usize) -> c_int;
    fn zmq_bind(socket: *mut c_void, address: *const c_char) -> c_int;
    fn zmq_connect(socket: *mut c_void, address: *const c_char) -> c_int;
    fn zmq_recv(socket: *mut c_void, to: *mut c_void, len: usize, flags: c_int) -> c_int;
    fn zmq_msg_init(message: *mut Content) -> c_int;
    fn zmq_msg_init_size(message: *mut Content, len: usize) -> c_int;
    fn zmq_msg_data(message: *mut Content) -> *mut u8;
    fn zmq_msg_size(message: *const Content) -> usize;
    fn zmq_msg_send(message: *mut Content, socket: *mut c_void, flags: c_int) -> c_int;
    fn zmq_msg_recv(message: *mut Content, socket: *mut c_void, flags: c_int) -> c_int;
    fn zmq_msg_close(message: *mut Content) -> c_int;
}

fn run(stage: &Stage) -> anyhow::Result<()> {
    let path = std::env::temp_dir().join(format!("{}.ipc", stage.case.id));
    let address = CString::new(format!("ipc://{}", path.display()))?;
    if stage.role == Role::Receiver {
        let socket = Socket::new(SUB, &[(RCVHWM, HIGH_WATER_MARK), (LINGER, 0)])?;
        // SAFETY: the socket is open; an empty prefix takes everything, and the address ends with zero.
        let connected = unsafe {
            zmq_setsockopt(socket.0, SUBSCRIBE, std::ptr::null(), 0) == 0
                && zmq_connect(socket.0, address.as_ptr()) == 0
        };
        anyhow::ensure!(connected, "cannot connect to {address:?}: {}", std::io::Error::last_os_error());
        return stage.receive(socket);
    }
    let options = [(SNDHWM, HIGH_WATER_MARK), (XPUB_NODROP, 1), (LINGER, 0), (RCVTIMEO, PATIENCE_MS)];
    let socket = Socket::new(XPUB, &options)?;
    // SAFETY: the socket is open, and the address ends with zero.
    let bound = unsafe { zmq_bind(socket.0, address.as_ptr()) == 0 };
    anyhow::ensure!(bound, "cannot bind {address:?}: {}", std::io::Error::last_os_error());
    let sent = stage.send(socket);
    std::fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    sent
}

/// A socket in a context of its own. Neither is closed: the process ends with them.
struct Socket(*mut c_void);

impl Socket {
    fn new(kind: c_int, options: &[(c_int, c_int)]) -> anyhow::Result<Self> {
        // SAFETY: a null pointer is checked for; each option is of type int.
        unsafe {
            let context = zmq_ctx_new();
            anyhow::ensure!(!context.is_null(), "no ZeroMQ context");
            let socket = zmq_socket(context, kind);
            anyhow::ensure!(!socket.is_null(), "no ZeroMQ socket");
            for (option, value) in options {
                let set = zmq_setsockopt(socket, *option, (&raw const *value).cast(), size_of::<c_int>());
                anyhow::ensure!(set == 0, "ZeroMQ refuses option {option}");
            }
            Ok(Self(socket))
        }
    }
}

impl Sender for Socket {
    fn connect(&mut self) -> anyhow::Result<()> {
        let mut subscription = [0; 8];
        // SAFETY: the socket is open and the place as long as said.
        let heard = unsafe { zmq_recv(self.0, subscription.as_mut_ptr().cast(), subscription.len(), 0) };
        anyhow::ensure!(heard > 0, "no subscription comes");
        Ok(())
    }

    #[inline]
    fn send(&mut self, message: &Message<'_>) -> bool {
        let mut content = MaybeUninit::<Content>::uninit();
        // SAFETY: initialised with the message's length, written, and handed over; taken back when that is refused.
        unsafe {
            let content = content.as_mut_ptr();
            if zmq_msg_init_size(content, message.len()) != 0 {
                return false;
            }
            message.fill(std::slice::from_raw_parts_mut(zmq_msg_data(content), message.len()));
            let sent = zmq_msg_send(content, self.0, DONTWAIT) >= 0;
            if !sent {
                zmq_msg_close(content);
            }
            sent
        }
    }
}

impl Receiver for Socket {
    #[inline]
    fn receive(&mut self, mut each: impl FnMut(&[u8])) -> u64 {
        let mut content = MaybeUninit::<Content>::uninit();
        // SAFETY: initialised, filled by the library, read, and closed.
        unsafe {
            let content = content.as_mut_ptr();
            zmq_msg_init(content);
            let mut count = 0;
            while count < BATCH && zmq_msg_recv(content, self.0, DONTWAIT) >= 0 {
                each(std::slice::from_raw_parts(zmq_msg_data(content), zmq_msg_size(content)));
                count += 1;
            }
            zmq_msg_close(content);
            count
        }
    }
}
