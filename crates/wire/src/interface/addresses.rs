//! Walks the list of `getifaddrs(3)`. This is the only `unsafe` of [`crate::interface`].
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::net::Ipv4Addr;
use std::ptr;

use rustix::io::Errno;
use rustix::net::netdevice;

use super::Interface;

/// The list; dropping it frees it.
struct List(*mut libc::ifaddrs);

impl Drop for List {
    fn drop(&mut self) {
        // SAFETY: the pointer came from a successful `getifaddrs`, is freed only here, and `entries` returns
        // nothing that outlives `self`. Test: `interface::tests::loopback_is_found_by_address_and_by_name`
        // under a leak checker.
        unsafe { libc::freeifaddrs(self.0) }
    }
}

/// One entry, copied out of the system's list.
struct Entry {
    name: String,
    flags: u32,
    address: Option<Ipv4Addr>,
}

impl List {
    fn new() -> Result<Self, Errno> {
        let mut first = ptr::null_mut();
        // SAFETY: `first` is a valid place for the one pointer that the call writes. Test: every test of
        // `interface::tests` starts here.
        if unsafe { libc::getifaddrs(&raw mut first) } == 0 {
            Ok(Self(first))
        } else {
            Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::NOMEM))
        }
    }

    fn entries(&self) -> Vec<Entry> {
        let mut entries = Vec::new();
        let mut next = self.0;
        while !next.is_null() {
            // SAFETY: every non-null pointer in the chain is a live `ifaddrs` until `freeifaddrs`, which
            // needs `&mut self`; `ifa_name` is a C string. `ifa_addr` may be null and may be of any family,
            // so the family decides whether the rest is a `sockaddr_in`. It is read unaligned, because only
            // the family is guaranteed to be aligned. Test: `loopback_is_found_by_address_and_by_name` reads
            // a known name and a known address.
            let (entry, following) = unsafe {
                let raw = &*next;
                let is_ipv4 =
                    !raw.ifa_addr.is_null() && i32::from((*raw.ifa_addr).sa_family) == libc::AF_INET;
                let address = is_ipv4.then(|| {
                    let inet = ptr::read_unaligned(raw.ifa_addr.cast::<libc::sockaddr_in>());
                    Ipv4Addr::from(u32::from_be(inet.sin_addr.s_addr))
                });
                let name = CStr::from_ptr(raw.ifa_name).to_string_lossy().into_owned();
                (Entry { name, flags: raw.ifa_flags, address }, raw.ifa_next)
            };
            entries.push(entry);
            next = following;
        }
        entries
    }
}

/// Returns every interface: once for each IPv4 address, and once if it has none.
pub(super) fn list() -> Result<Vec<Interface>, Errno> {
    let entries = List::new()?.entries();
    // An index can be read only through a socket, of any family.
    let socket = rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, None)?;
    let mut found: Vec<Interface> = Vec::new();
    for with_address in [true, false] {
        for entry in entries.iter().filter(|e| e.address.is_some() == with_address) {
            // The system labels a further address of `eth0` as `eth0:1`; the interface is `eth0`.
            let name = entry.name.split(':').next().unwrap_or(&entry.name);
            if !with_address && found.iter().any(|i| i.name == name) {
                continue;
            }
            // The interface can disappear between the two calls; it is then not listed.
            let Ok(index) = netdevice::name_to_index(&socket, name) else { continue };
            found.push(Interface {
                name: name.to_owned(),
                index,
                address: entry.address,
                up: entry.flags & libc::IFF_UP as u32 != 0,
            });
        }
    }
    found.sort_by_key(|i| i.index);
    Ok(found)
}
