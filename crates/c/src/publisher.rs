//! The publisher to a hub, for C.

#![allow(unsafe_code)]

use std::ffi::c_char;
use std::ptr;
use std::slice;
use std::time::Duration;

use tapeline_client::Publisher;
use tapeline_omm::rwf::Value;
use tapeline_omm::{Dictionary, Fid};

use crate::failure::{self, Failure, given, guarded, null};
use crate::session::Session;
use crate::tapeline_code::{self, *};
use crate::{dictionary, tapeline_session_options, tapeline_text, tapeline_value, to_wire};

/// A publisher of the items of one service to a hub. It reconnects by itself, and keeps the last value of each field, so that
/// each connection begins with images.
#[derive(Debug)]
pub struct tapeline_publisher {
    publisher: Publisher,
    servers: String,
    /// The reason of the last disconnect, lent to C.
    reason: String,
}

/// A field to publish.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tapeline_field_value {
    /// The field's name, such as "BID"; NULL: `fid` says which field.
    pub name: *const c_char,
    /// The field's number; read only if `name` is NULL.
    pub fid: i16,
    /// The value. A number of any kind becomes the field's type, if it fits; a text may name a value of an enumeration.
    pub value: tapeline_value,
}

/// How long a publisher that is closed sends what was published.
const CLOSE_WAIT: Duration = Duration::from_secs(1);

/// Makes a publisher of a service, by number and name, to a hub. It connects in the background of the calls below. The
/// handle goes to `*publisher`, which is NULL after an error; free it with tapeline_publisher_close().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeline_publisher_open(
    options: *const tapeline_session_options,
    service_id: u16,
    service: *const c_char,
    publisher: *mut *mut tapeline_publisher,
) -> tapeline_code {
    guarded(|| {
        let handle = given(publisher, "where the publisher goes")?;
        // SAFETY: not NULL, so a place for a pointer; the others are what they are declared to be.
        let (session, service) = unsafe {
            handle.write(ptr::null_mut());
            (Session::read(options)?, failure::text(service, "the service's name")?)
        };
        let Session { endpoints, login, servers } = session;
        let opened = Publisher::new(endpoints, &login, service_id, service);
        let publisher = opened.map_err(|error| Failure::from(error).at(&servers))?;
        let opened = tapeline_publisher { publisher, servers, reason: String::new() };
        // SAFETY: as above.
        unsafe { handle.write(Box::into_raw(Box::new(opened))) };
        Ok(TAPELINE_OK)
    })
}

/// Publishes fields of an item: an image if the hub has none yet, else an update. All or none of the fields are published.
/// Without a connection the newest value of each field is kept for the next one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeline_publisher_publish(
    publisher: *mut tapeline_publisher,
    item: *const c_char,
    fields: *const tapeline_field_value,
    count: usize,
) -> tapeline_code {
    guarded(|| {
        // SAFETY: NULL, or a handle that this thread alone uses; `item` is NULL or a text.
        let (handle, item) = unsafe {
            let handle = publisher.as_mut().ok_or_else(|| null("the publisher"))?;
            (handle, failure::text(item, "the item's name")?)
        };
        let fields = match (fields.is_null(), count) {
            (_, 0) => &[],
            (true, _) => return Err(null("the list of fields")),
            // SAFETY: not NULL, so `count` fields.
            _ => unsafe { slice::from_raw_parts(fields, count) },
        };
        // SAFETY: the names and texts of the fields are what they are declared to be.
        let values = fields.iter().map(|field| unsafe { read(field) });
        let values = values.collect::<Result<Vec<_>, _>>().map_err(|failure| failure.at(item))?;
        let done = handle.publisher.publish(item, &values);
        done.map_err(|error| Failure::from(error).at(&handle.servers))?;
        Ok(TAPELINE_OK)
    })
}

/// # Safety
/// The name is NULL or a text, and a text or bytes in the value are there, for `'a`.
unsafe fn read<'a>(field: &tapeline_field_value) -> Result<(Fid, Value<'a>), Failure> {
    let dictionary = Dictionary::builtin();
    let definition = if field.name.is_null() {
        dictionary.field(Fid(field.fid)).ok_or_else(|| {
            let text =
                format!("there is no field {} in the dictionary; hint: name it, such as BID", field.fid);
            Failure::new(TAPELINE_ERROR_FIELD, text)
        })?
    } else {
        // SAFETY: not NULL, so a text by the caller's promise.
        let name = unsafe { failure::text(field.name, "the field's name") }?;
        dictionary.field_named(name).ok_or_else(|| dictionary::unknown(dictionary, name))?
    };
    // SAFETY: the caller's promise.
    Ok((definition.fid, unsafe { to_wire::convert(definition, &field.value) }?))
}

/// Waits until the hub's connection has taken everything that was published: TAPELINE_OK, or TAPELINE_TIMED_OUT after
/// `timeout_ns`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeline_publisher_flush(
    publisher: *mut tapeline_publisher,
    timeout_ns: u64,
) -> tapeline_code {
    guarded(|| {
        // SAFETY: NULL, or a handle that this thread alone uses.
        let handle = unsafe { publisher.as_mut() }.ok_or_else(|| null("the publisher"))?;
        let flushed = handle.publisher.flush_for(Duration::from_nanos(timeout_ns));
        let is_flushed = flushed.map_err(|error| Failure::from(error).at(&handle.servers))?;
        Ok(if is_flushed { TAPELINE_OK } else { TAPELINE_TIMED_OUT })
    })
}

/// Does what is due, such as heartbeats, and waits for at most `timeout_ns` until the hub sends something. Call it, or
/// tapeline_publisher_publish(), once in some seconds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeline_publisher_turn(
    publisher: *mut tapeline_publisher,
    timeout_ns: u64,
) -> tapeline_code {
    guarded(|| {
        // SAFETY: NULL, or a handle that this thread alone uses.
        let handle = unsafe { publisher.as_mut() }.ok_or_else(|| null("the publisher"))?;
        let done = handle.publisher.turn(Duration::from_nanos(timeout_ns));
        done.map_err(|error| Failure::from(error).at(&handle.servers))?;
        Ok(TAPELINE_OK)
    })
}

/// Returns TAPELINE_OK if the hub has accepted the login; else TAPELINE_EMPTY, with the reason of the last disconnect in
/// `*reason` ("" if there was none). The text is valid until the next such call. `reason` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeline_publisher_is_ready(
    publisher: *mut tapeline_publisher,
    reason: *mut tapeline_text,
) -> tapeline_code {
    guarded(|| {
        // SAFETY: NULL, or a handle that this thread alone uses.
        let handle = unsafe { publisher.as_mut() }.ok_or_else(|| null("the publisher"))?;
        if let Some(new) = handle.publisher.disconnected() {
            handle.reason = new;
        }
        if !reason.is_null() {
            // SAFETY: not NULL, so a place for a text.
            unsafe { reason.write(tapeline_text::lend(handle.reason.as_bytes())) };
        }
        Ok(if handle.publisher.is_ready() { TAPELINE_OK } else { TAPELINE_EMPTY })
    })
}

/// Sends what was published, for at most a second; logs out, closes the connection and frees the publisher. An error names
/// the items whose newest values the hub did not take: flush before with a longer timeout. What was published stays at the
/// hub. NULL does nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeline_publisher_close(publisher: *mut tapeline_publisher) -> tapeline_code {
    if publisher.is_null() {
        return TAPELINE_OK;
    }
    guarded(|| {
        // SAFETY: made by `tapeline_publisher_open` from a box, and not freed before.
        let handle = unsafe { *Box::from_raw(publisher) };
        let tapeline_publisher { publisher, servers, .. } = handle;
        publisher.close(CLOSE_WAIT).map_err(|error| Failure::from(error).at(&servers))?;
        Ok(TAPELINE_OK)
    })
}
