//! Streams between processes of one user on this machine, with a name in the file system or in the abstract namespace.
//!
//! A name that begins with `@` is in the abstract namespace (`unix(7)`), in the notation of `ss`, socat and systemd.
//! Such a name has no file and disappears with its process; its address is a zero byte followed by the rest of the
//! name, without padding. kdb+ 3.5 and later listens in this namespace on Linux (code.kx.com, "Listening port"), and
//! its clients look there. No permissions protect an abstract name: the only protection is the check of the user at the
//! other end, on both sides.

use std::fs;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::net::sockopt::socket_peercred;

use crate::impls::has_descriptor;

/// A listening socket. Dropping it removes its name.
#[derive(Debug)]
pub struct LocalListener {
    listener: UnixListener,
    /// The file of the socket; none in the abstract namespace.
    file: Option<PathBuf>,
}

/// Returns `true` if a name is in the abstract namespace.
pub fn is_abstract(name: &Path) -> bool {
    name.as_os_str().as_bytes().starts_with(b"@")
}

fn address(name: &Path) -> io::Result<SocketAddr> {
    match name.as_os_str().as_bytes().strip_prefix(b"@") {
        Some(b"") => Err(io::Error::new(io::ErrorKind::InvalidInput, "a name is expected after the @")),
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(name),
    }
}

impl LocalListener {
    /// Listens at a name and replaces any file left there. Only processes of this user, and of root, can
    /// connect.
    ///
    /// # Errors
    /// The folder or the file at the name belongs to another user; the abstract name is in use (an abstract
    /// name leaves nothing behind); the machine refuses.
    pub fn bind(name: &Path) -> io::Result<Self> {
        let file = (!is_abstract(name)).then(|| name.to_owned());
        match file.as_ref().map(fs::remove_file) {
            Some(Err(error)) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind_addr(&address(name)?)?;
        let bound = Self { listener, file };
        if let Some(file) = &bound.file {
            fs::set_permissions(file, fs::Permissions::from_mode(0o600))?;
        }
        bound.listener.set_nonblocking(true)?;
        Ok(bound)
    }

    /// Returns the next connection, if there is one, and rejects one of another user. The stream never blocks.
    ///
    /// # Errors
    /// The machine refuses, such as for too many open files. Waiting connections stay in the backlog.
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

has_descriptor!(LocalListener, listener);

impl Drop for LocalListener {
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            let _ = fs::remove_file(file);
        }
    }
}

/// Connects to the process that listens at a name. The stream never blocks.
///
/// # Errors
/// [`io::ErrorKind::NotFound`] and [`io::ErrorKind::ConnectionRefused`] if no process listens;
/// [`io::ErrorKind::PermissionDenied`] if a process of another user listens.
pub fn connect(name: &Path) -> io::Result<UnixStream> {
    let stream = UnixStream::connect_addr(&address(name)?)?;
    if !is_of_this_user(&stream) {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "another user listens there"));
    }
    stream.set_nonblocking(true)?;
    Ok(stream)
}

/// Returns `true` if the other end is a process of this user, or of root.
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
        let listener = LocalListener::bind(&path).unwrap();
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

    /// The address is a zero byte followed by the name, without padding, so that other programs find it.
    #[test]
    fn an_abstract_name_lies_nowhere_and_goes_at_the_end() {
        let name = std::env::temp_dir().join(format!("tapeline-test-abstract-{}", std::process::id()));
        let at = PathBuf::from(format!("@{}", name.display()));
        let listener = LocalListener::bind(&at).unwrap();
        assert!(!name.exists() && !at.exists());
        let address = SocketAddr::from_abstract_name(name.as_os_str().as_bytes()).unwrap();
        let mut other = UnixStream::connect_addr(&address).unwrap();
        let _ours = connect(&at).unwrap();
        other.write_all(b"tape").unwrap();
        let mut server = listener.accept().unwrap().unwrap();
        let mut said = [0; 8];
        assert_eq!(server.read(&mut said).unwrap(), 4);
        assert!(listener.accept().unwrap().is_some());
        assert_eq!(
            LocalListener::bind(&at).unwrap_err().kind(),
            io::ErrorKind::AddrInUse,
            "nobody takes it away"
        );
        drop(listener);
        assert_eq!(connect(&at).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        assert_eq!(connect(Path::new("@")).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
