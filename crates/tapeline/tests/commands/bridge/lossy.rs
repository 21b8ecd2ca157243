//! A line that loses datagrams.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Forwards datagrams to an address and drops every nth of them.
pub(super) struct Lossy {
    address: SocketAddrV4,
    lost: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Lossy {
    pub(super) fn new(to: SocketAddrV4, nth: u64) -> Self {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let SocketAddr::V4(address) = socket.local_addr().unwrap() else { unreachable!() };
        let (lost, stop) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let (counter, stopped) = (Arc::clone(&lost), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            let mut room = vec![0; 65_536];
            let mut count = 0;
            while !stopped.load(Ordering::Relaxed) {
                // Nothing came in time, or nobody listened.
                let Ok(length) = socket.recv(&mut room) else { continue };
                count += 1;
                if count % nth == 0 {
                    counter.fetch_add(1, Ordering::Relaxed);
                } else {
                    // Nobody may listen yet.
                    let _ = socket.send_to(&room[..length], to);
                }
            }
        });
        Self { address, lost, stop, thread: Some(thread) }
    }

    pub(super) const fn address(&self) -> SocketAddrV4 {
        self.address
    }

    pub(super) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

impl Drop for Lossy {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
