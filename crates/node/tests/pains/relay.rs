//! A network between a client and a server that can be cut.

use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// Passes on what both ends of one connection at a time say.
pub(crate) struct Relay {
    /// Where clients connect.
    pub(crate) address: String,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    /// Both ends of the open connection.
    open: Mutex<Vec<TcpStream>>,
    is_over: AtomicBool,
}

impl Relay {
    /// Passes each connection on to this server.
    pub(crate) fn to(server: &str) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (server, shared) = (server.to_owned(), Arc::new(Shared::default()));
        let of_thread = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            for client in listener.incoming() {
                let (client, server) = (client.unwrap(), TcpStream::connect(&server).unwrap());
                if of_thread.is_over.load(Ordering::SeqCst) {
                    return;
                }
                let both = || [&client, &server].map(|stream| stream.try_clone().unwrap());
                *of_thread.open.lock().unwrap() = both().into();
                let [mut from, mut to] = both();
                let upwards = thread::spawn(move || pass(&mut from, &mut to));
                let [mut to, mut from] = both();
                pass(&mut from, &mut to);
                upwards.join().unwrap();
                of_thread.open.lock().unwrap().clear();
            }
        });
        Self { address, shared, thread: Some(thread) }
    }

    /// Cuts the open connection, if there is one.
    pub(crate) fn cut(&self) {
        for stream in self.shared.open.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        self.cut();
        // If the relay waits for a connection, this is the one.
        let _ = TcpStream::connect(&self.address);
        self.thread.take().map(JoinHandle::join);
    }
}

/// Passes on bytes until one end is closed, and closes the other.
fn pass(from: &mut TcpStream, to: &mut TcpStream) {
    let _ = std::io::copy(from, to);
    for stream in [from, to] {
        let _ = stream.shutdown(Shutdown::Both);
    }
}
