//! The machine's network interfaces, by name or by IPv4 address.

mod addresses;

use std::fmt;
use std::net::Ipv4Addr;

use crate::Error;

/// One IPv4 address of a network interface, or an interface without one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The interface's name, such as `eth0`.
    pub name: String,
    /// The kernel's index of the interface; never 0.
    pub index: u32,
    /// The address; an interface with several addresses is listed once for each.
    pub address: Option<Ipv4Addr>,
    /// `true` if the interface is up; an interface that is down receives nothing.
    pub up: bool,
}

impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if let Some(address) = self.address {
            write!(f, " {address}")?;
        }
        if !self.up {
            f.write_str(" (down)")?;
        }
        Ok(())
    }
}

/// Returns every interface of this machine, in the kernel's order, once for each IPv4 address.
///
/// # Errors
/// [`Error::Interfaces`] when the system refuses the list.
pub fn list() -> Result<Vec<Interface>, Error> {
    addresses::list().map_err(|errno| Error::Interfaces { cause: errno.into() })
}

/// Returns the interface with this name (`eth0`) or this IPv4 address (`10.0.0.5`).
///
/// The `MULTICAST` flag is not required, because multicast over `127.0.0.1` works although `lo` does not have that
/// flag.
///
/// # Errors
/// [`Error::NoSuchInterface`], which lists what there is, and [`Error::InterfaceDown`].
pub fn find(name_or_address: &str) -> Result<Interface, Error> {
    let all = list()?;
    let address = name_or_address.parse::<Ipv4Addr>().ok();
    let is_it =
        |i: &&Interface| if address.is_some() { i.address == address } else { i.name == name_or_address };
    match all.iter().find(is_it) {
        Some(found) if !found.up => Err(Error::InterfaceDown { name: found.name.clone() }),
        Some(found) => Ok(found.clone()),
        None => Err(Error::NoSuchInterface {
            asked: name_or_address.to_owned(),
            available: all.iter().map(Interface::to_string).collect::<Vec<_>>().join(", "),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_found_by_address_and_by_name() {
        let by_address = find("127.0.0.1").unwrap();
        assert!(by_address.up && by_address.index > 0);
        assert_eq!(find(&by_address.name).unwrap(), by_address);
    }

    #[test]
    fn an_unknown_name_or_address_is_answered_with_what_there_is() {
        for asked in ["no-such-nic", "203.0.113.77", ""] {
            let error = find(asked).unwrap_err();
            let expected = format!("no network interface has the name or address \"{asked}\"; there are: ");
            let said = error.to_string();
            assert!(said.starts_with(&expected) && said.contains("lo 127.0.0.1"), "{said}");
            assert!(error.hint().unwrap().contains("ip address"));
        }
    }
}
