//! A line that loses datagrams.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::bail;

/// Forwards datagrams to an address, but for one of each `of`; the first `begun` are counted as if they had come.
pub(crate) struct Lossy {
    pub(crate) address: SocketAddrV4,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Lossy {
    pub(crate) fn begin(to: SocketAddrV4, of: u64, begun: u64) -> anyhow::Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.set_read_timeout(Some(Duration::from_millis(20)))?;
        let SocketAddr::V4(address) = socket.local_addr()? else { bail!("no address of IPv4") };
        let stop = Arc::<AtomicBool>::default();
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut room = vec![0; 65_536];
            let mut count = begun;
            while !stopped.load(Ordering::Relaxed) {
                let Ok(length) = socket.recv(&mut room) else { continue };
                count += 1;
                if !count.is_multiple_of(of) {
                    let _ = socket.send_to(&room[..length], to);
                }
            }
        });
        Ok(Self { address, stop, thread: Some(thread) })
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
