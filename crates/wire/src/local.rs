//! Streams between processes of one user of this machine, found by a name in the file system.

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::net::sockopt::socket_peercred;

/// Where others connect. The name goes with it.
#[derive(Debug)]
pub struct Listener {
    listener: UnixListener,
    path: PathBuf,
}

impl Listener {
    /// Listens at a name, in the place of whatever was left there: to be called by who alone may have it.
    ///
    /// # Errors
    /// The machine's: the folder, or what lies at the name, is another user's.
    pub fn bind(path: &Path) -> io::Result<Self> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(path)?;
        let bound = Self { listener, path: path.to_owned() };
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
        bound.listener.set_nonblocking(true)?;
        Ok(bound)
    }

    /// The next who has connected, if there is one; one of another user is turned away. What comes back never waits.
    ///
    /// # Errors
    /// The machine refuses, such as for too many open files. Those that wait go on waiting.
    pub fn accept(&self) -> io::Result<Option<UnixStream>> {
        loop {
            match self.listener.accept() {
                Ok((stream, _)) if is_of_this_user(&stream) && stream.set_nonblocking(true).is_ok() => {
                    return Ok(Some(stream));
                }
                Ok(_) => {}
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return Ok(None),
                    io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted => {}
                    _ => return Err(error),
                },
            }
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Connects to who listens at a name. What comes back never waits.
///
/// # Errors
/// [`io::ErrorKind::NotFound`] and [`io::ErrorKind::ConnectionRefused`] where nobody listens; who does is another user.
pub fn connect(path: &Path) -> io::Result<UnixStream> {
    let stream = UnixStream::connect(path)?;
    if !is_of_this_user(&stream) {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "another user listens there"));
    }
    stream.set_nonblocking(true)?;
    Ok(stream)
}

/// Whether the other end is a process of this user, or of root.
fn is_of_this_user(stream: &UnixStream) -> bool {
    let own = rustix::process::geteuid();
    socket_peercred(stream).is_ok_and(|peer| peer.uid == own || peer.uid.is_root())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn a_name_that_was_left_is_taken_over_and_goes_at_the_end() {
        let path = std::env::temp_dir().join(format!("tapeline-test-local-{}", std::process::id()));
        fs::write(&path, "left by somebody").unwrap();
        let listener = Listener::bind(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(listener.accept().unwrap().is_none(), "nobody is there");
        let mut client = connect(&path).unwrap();
        let mut server = listener.accept().unwrap().unwrap();
        let nothing = server.read(&mut [0; 8]).unwrap_err();
        assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
        client.write_all(b"tape").unwrap();
        let mut said = [0; 8];
        assert_eq!(server.read(&mut said).unwrap(), 4);
        drop(listener);
        assert_eq!(connect(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
