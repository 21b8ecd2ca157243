//! A media driver in this process.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusteron_media_driver::bindings::aeron_threading_mode_enum::AERON_THREADING_MODE_SHARED;
use rusteron_media_driver::{AeronCError, AeronDriver, AeronDriverContext};
use rustix::net::{self, AddressFamily, SocketType, sockopt};

use super::connection::{DRIVER_TIMEOUT_MS, driver_lives, text};
use crate::Error;

/// How often a folder is tried whose driver may have died just now.
const RETRY_MS: u64 = 250;

/// The window of a receiver and the buffers of its sockets, where the system gives so much. Aeron's own are 128 KiB, which a sender of 170 MB/s
/// fills in 0.8 ms: it then waits until the receiver's driver and its reader have had a core.
const WINDOW_BYTES: usize = 2 << 20;

/// How many datagrams pass the kernel at once, in either direction; Aeron's own is 4. In six turns of each, a bridge at a million ticks/s on two cores had a
/// median of 0.51 ms with 16, of 0.59 ms with 4, and the same p99.9. With 64 it kept up less often: meanwhile the driver's one thread does nothing else.
const DATAGRAMS_AT_ONCE: u32 = 16;

/// Aeron's media driver, on one thread of this process. Ends when it is dropped, and removes its files.
///
/// Variables of the environment such as `AERON_SOCKET_SO_RCVBUF` have the effect that they have for `aeronmd`. Of the window of a receiver
/// and the buffers of sockets, each for which there is none is 2 MiB, or what the system allows (`net.core.rmem_max`, `net.core.wmem_max`). The driver refuses a
/// channel whose own `so-rcvbuf` is less than the window, unless it has a `rcv-wnd` too. Sixteen datagrams pass the kernel at once, if the environment says
/// nothing of that.
#[derive(Debug)]
pub struct EmbeddedAeronDriver {
    folder: PathBuf,
    /// Dropped first: the driver uses the context.
    _driver: AeronDriver,
    _context: AeronDriverContext,
}

impl EmbeddedAeronDriver {
    /// Starts a driver whose files are in `folder`; `None` for the usual folder. Call before the thread is pinned to a core: the driver's
    /// thread would be too. Waits for up to five seconds if another driver was in the folder until just now.
    ///
    /// # Errors
    /// Another driver lives in the folder; the folder has other files, which the driver would remove, or cannot be written.
    pub fn start(folder: Option<&Path>) -> Result<Self, Error> {
        let failed = |error: AeronCError| failed(folder, text(error.get_last_err_message()));
        let context = AeronDriverContext::new().map_err(failed)?;
        if let Some(folder) = folder {
            // A path without a zero byte: the system would not find another.
            let folder = CString::new(folder.as_os_str().as_bytes()).unwrap_or_default();
            context.set_dir(&folder).map_err(failed)?;
        }
        let place = CString::new(context.get_dir()).unwrap_or_default();
        // The driver empties its folder first.
        let mut files = std::fs::read_dir(context.get_dir()).into_iter().flatten();
        if !Path::new(context.get_dir()).join("cnc.dat").exists() && files.next().is_some() {
            return Err(self::failed(folder, "the folder has files that are not a driver's".to_owned()));
        }
        // The dead cannot be told from the living before the last heartbeat is old.
        let mut attempts = DRIVER_TIMEOUT_MS.div_ceil(RETRY_MS) + 2;
        while driver_lives(&place) {
            attempts = attempts
                .checked_sub(1)
                .ok_or_else(|| self::failed(folder, "another media driver lives there".to_owned()))?;
            std::thread::sleep(Duration::from_millis(RETRY_MS));
        }
        let start = || -> Result<AeronDriver, AeronCError> {
            context.set_dir_warn_if_exists(false)?;
            context.set_dir_delete_on_start(true)?;
            context.set_dir_delete_on_shutdown(true)?;
            context.set_threading_mode(AERON_THREADING_MODE_SHARED)?;
            widen(&context)?;
            batch(&context)?;
            let driver = AeronDriver::new(&context)?;
            driver.start(false)?;
            Ok(driver)
        };
        let driver = start().map_err(failed)?;
        Ok(Self { folder: PathBuf::from(context.get_dir()), _driver: driver, _context: context })
    }

    /// Returns the folder of the driver's files.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

fn is_free(variable: &str) -> bool {
    std::env::var_os(variable).is_none()
}

/// Sets how many datagrams pass the kernel at once, where the environment does not.
fn batch(context: &AeronDriverContext) -> Result<(), AeronCError> {
    if is_free("AERON_SENDER_IO_VECTOR_CAPACITY") {
        context.set_sender_io_vector_capacity(DATAGRAMS_AT_ONCE)?;
    }
    if is_free("AERON_RECEIVER_IO_VECTOR_CAPACITY") {
        context.set_receiver_io_vector_capacity(DATAGRAMS_AT_ONCE)?;
    }
    if is_free("AERON_NETWORK_PUBLICATION_MAX_MESSAGES_PER_SEND") {
        context.set_network_publication_max_messages_per_send(DATAGRAMS_AT_ONCE)?;
    }
    Ok(())
}

/// Sets the window and the buffers of sockets that the environment does not set.
fn widen(context: &AeronDriverContext) -> Result<(), AeronCError> {
    let (received, sent) = allowed().unwrap_or_default();
    if is_free("AERON_SOCKET_SO_SNDBUF") && sent > context.get_socket_so_sndbuf() {
        context.set_socket_so_sndbuf(sent)?;
    }
    if is_free("AERON_SOCKET_SO_RCVBUF") && received > context.get_socket_so_rcvbuf() {
        context.set_socket_so_rcvbuf(received)?;
    }
    // With a window that the socket cannot hold, the driver would not start.
    let window = received.min(context.get_socket_so_rcvbuf());
    if is_free("AERON_RCV_INITIAL_WINDOW_LENGTH") && window > context.get_rcv_initial_window_length() {
        context.set_rcv_initial_window_length(window)?;
    }
    Ok(())
}

/// Returns how many bytes of [`WINDOW_BYTES`] the system gives a socket to receive and to send.
fn allowed() -> rustix::io::Result<(usize, usize)> {
    let socket = net::socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    sockopt::set_socket_recv_buffer_size(&socket, WINDOW_BYTES)?;
    sockopt::set_socket_send_buffer_size(&socket, WINDOW_BYTES)?;
    // The kernel doubles what it is asked for, for its own use.
    Ok((
        (sockopt::socket_recv_buffer_size(&socket)? / 2).min(WINDOW_BYTES),
        (sockopt::socket_send_buffer_size(&socket)? / 2).min(WINDOW_BYTES),
    ))
}

fn failed(folder: Option<&Path>, cause: String) -> Error {
    let place = folder.map_or_else(|| "the usual folder".to_owned(), |folder| folder.display().to_string());
    Error::Aeron { what: format!("start a media driver in {place}"), cause }
}
