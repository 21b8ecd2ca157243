//! A media driver in this process.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusteron_media_driver::bindings::aeron_threading_mode_enum::AERON_THREADING_MODE_SHARED;
use rusteron_media_driver::{AeronCError, AeronDriver, AeronDriverContext};

use super::connection::{DRIVER_TIMEOUT_MS, driver_lives, text};
use crate::Error;

/// How often a folder is tried whose driver may have died just now.
const RETRY_MS: u64 = 250;

/// Aeron's media driver, on one thread of this process. Ends when it is dropped, and removes its files.
///
/// Variables of the environment such as `AERON_SOCKET_SO_RCVBUF` have the effect that they have for `aeronmd`.
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

fn failed(folder: Option<&Path>, cause: String) -> Error {
    let place = folder.map_or_else(|| "the usual folder".to_owned(), |folder| folder.display().to_string());
    Error::Aeron { what: format!("start a media driver in {place}"), cause }
}
