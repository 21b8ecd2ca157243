//! Messages to the service manager that started this process, in the notification protocol of systemd
//! (`sd_notify(3)`): one datagram of `NAME=VALUE` lines for each message.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The socket of a service manager.
#[derive(Debug)]
pub struct ServiceManager {
    socket: UnixDatagram,
    address: SocketAddr,
}

impl ServiceManager {
    /// Opens a socket for messages to the address that the service manager has put into `NOTIFY_SOCKET`: an absolute
    /// path, or a name in the abstract namespace after `@`.
    ///
    /// # Errors
    /// The address is of another kind, or the machine allows no more sockets.
    pub fn open(address: &OsStr) -> io::Result<Self> {
        let address = match address.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
            [b'/', ..] => SocketAddr::from_pathname(address)?,
            _ => {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "neither a path nor a name after @"));
            }
        };
        let socket = UnixDatagram::unbound()?;
        // The sender is a plant's own thread: it must not wait for the service manager.
        socket.set_nonblocking(true)?;
        Ok(Self { socket, address })
    }

    /// Sends one message of `NAME=VALUE` lines. Costs one system call and never blocks.
    ///
    /// # Errors
    /// The service manager does not read (`WouldBlock`) or has gone.
    pub fn tell(&self, message: &str) -> io::Result<()> {
        self.socket.send_to_addr(message.as_bytes(), &self.address).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(manager: &ServiceManager, listener: &UnixDatagram) -> String {
        manager.tell("READY=1\nSTATUS=one feed").unwrap();
        let mut bytes = [0; 64];
        let length = listener.recv(&mut bytes).unwrap();
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    }

    #[test]
    fn a_path_and_an_abstract_name_get_the_same_message() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let listener = UnixDatagram::bind(&path).unwrap();
        let manager = ServiceManager::open(path.as_os_str()).unwrap();
        assert_eq!(received(&manager, &listener), "READY=1\nSTATUS=one feed");

        let name = format!("tapeline-notify-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let listener = UnixDatagram::bind_addr(&address).unwrap();
        let manager = ServiceManager::open(OsStr::new(&format!("@{name}"))).unwrap();
        assert_eq!(received(&manager, &listener), "READY=1\nSTATUS=one feed");
    }

    #[test]
    fn a_manager_that_does_not_read_never_blocks_the_sender() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let listener = UnixDatagram::bind(&path).unwrap();
        let manager = ServiceManager::open(path.as_os_str()).unwrap();
        let failed = (0..100_000).find_map(|_| manager.tell("WATCHDOG=1").err());
        assert_eq!(failed.unwrap().kind(), io::ErrorKind::WouldBlock);
        drop(listener);
        assert_eq!(manager.tell("WATCHDOG=1").unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        assert!(ServiceManager::open(OsStr::new("vsock:2:1234")).is_err());
    }
}
