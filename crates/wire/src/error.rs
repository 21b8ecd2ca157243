//! Errors of sockets, with their causes and advice for the user.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use rustix::io::Errno;

/// An invalid request, or a refusal by the machine.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The caller named an interface that this machine does not have.
    #[error("no network interface has the name or address \"{asked}\"; there are: {available}")]
    NoSuchInterface {
        /// The name or address asked for.
        asked: String,
        /// The interfaces of this machine, such as `lo 127.0.0.1, eth0 10.0.0.5`.
        available: String,
    },
    /// The interface exists but is down, so it cannot receive.
    #[error("network interface {name} is down")]
    InterfaceDown {
        /// The interface's name.
        name: String,
    },
    /// The interface exists but has no IPv4 address, and the operation needs one.
    #[error("network interface {name} has no IPv4 address, which {needed_for} needs")]
    NoInterfaceAddress {
        /// The interface's name.
        name: String,
        /// The operation that needs the address.
        needed_for: &'static str,
    },
    /// The caller asked for a single source on an address that is not a multicast group.
    #[error("a source can be given for a multicast group only, and {address} is not one")]
    SourceWithoutGroup {
        /// The address.
        address: String,
    },
    /// The machine refused to list its network interfaces.
    #[error("cannot list the network interfaces: {cause}")]
    Interfaces {
        /// The system's error.
        cause: io::Error,
    },
    /// The machine refused an operation on a socket.
    #[error("cannot {operation} {address}: {cause}")]
    Socket {
        /// The operation, as a verb with its preposition: `bind to`, `join`, `receive on`…
        operation: Operation,
        /// The address, with the interface if one was named.
        address: String,
        /// The system's error.
        cause: io::Error,
    },
    /// The machine refused a socket option.
    #[error("cannot set {option} to {value} for {address}: {cause}")]
    Option {
        /// The option's name, as in `socket(7)`, `ip(7)` and `udp(7)`.
        option: &'static str,
        /// The value asked for.
        value: String,
        /// The socket's address.
        address: String,
        /// The system's error.
        cause: io::Error,
    },
    /// The machine refused memory for a pool of datagrams.
    #[error("cannot get {bytes} bytes for a pool of datagrams: {cause}")]
    Memory {
        /// The size of the request in bytes.
        bytes: usize,
        /// The system's error.
        cause: io::Error,
    },
    /// The machine refused a resource needed to wait for many sockets at once.
    #[error("cannot {operation} the reactor: {cause}")]
    Reactor {
        /// The operation that failed.
        operation: &'static str,
        /// The system's error.
        cause: io::Error,
    },
    /// Invalid TLS settings.
    #[error("cannot use {what} for TLS: {cause}")]
    Tls {
        /// The invalid part.
        what: &'static str,
        /// The reason.
        cause: String,
    },
    /// TLS has ended a connection: one side refused the other, or the peer does not speak TLS.
    #[error("TLS with {peer}: {cause}")]
    TlsPeer {
        /// The peer's address.
        peer: SocketAddr,
        /// The reason.
        cause: String,
        /// Advice for the user, where there is any.
        hint: Option<&'static str>,
    },
    /// Aeron, or its driver, refused something.
    #[error("Aeron cannot {what}: {cause}")]
    Aeron {
        /// What it was to do.
        what: String,
        /// The reason that Aeron gives.
        cause: String,
    },
    /// A datagram longer than the path or the protocol allows.
    #[error("a datagram of {length} bytes is too long for {address}")]
    TooLong {
        /// Its length in bytes.
        length: usize,
        /// The destination.
        address: String,
    },
}

/// An operation on a socket; its text says what each is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    Open,
    Bind,
    Join,
    /// Sets the destination of datagrams.
    Connect,
    Dial,
    Listen,
    Accept,
    Receive,
    Send,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "open a socket for",
            Self::Bind => "bind to",
            Self::Join => "join",
            Self::Connect => "send to",
            Self::Dial => "connect to",
            Self::Listen => "listen at",
            Self::Accept => "accept a connection at",
            Self::Receive => "receive on",
            Self::Send => "send to",
        })
    }
}

impl Error {
    /// Returns advice for the user, where there is any.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoSuchInterface { .. } => Some("`ip address` lists names and addresses".to_owned()),
            Self::InterfaceDown { name } => Some(format!("bring it up with `ip link set {name} up`")),
            Self::NoInterfaceAddress { name, .. } => Some(format!(
                "give it one with `ip address add ADDRESS/BITS dev {name}`, or name another interface"
            )),
            Self::SourceWithoutGroup { .. } => {
                Some("groups lie between 224.0.0.0 and 239.255.255.255".to_owned())
            }
            Self::TooLong { .. } => {
                Some("UDP over IPv4 carries 65507 bytes; exchanges keep to about 1400".to_owned())
            }
            Self::Memory { .. } => Some("ask for fewer slots, of about 2 KiB each".to_owned()),
            Self::Socket { operation, cause, .. } => hint_for(*operation, cause).map(str::to_owned),
            Self::TlsPeer { hint, .. } => hint.map(str::to_owned),
            Self::Aeron { .. } => Some(
                "one driver at a time lives in a folder; `ls /dev/shm` shows those of this machine"
                    .to_owned(),
            ),
            Self::Option { .. } | Self::Interfaces { .. } | Self::Reactor { .. } | Self::Tls { .. } => None,
        }
    }

    pub(crate) fn socket(
        operation: Operation,
        address: impl fmt::Display,
        cause: impl Into<io::Error>,
    ) -> Self {
        Self::Socket { operation, address: address.to_string(), cause: cause.into() }
    }

    /// The error of a refused option, as an argument of `map_err`.
    pub(crate) fn option(
        option: &'static str,
        value: impl fmt::Display,
        address: impl fmt::Display,
    ) -> impl FnOnce(Errno) -> Self {
        move |errno| Self::Option {
            option,
            value: value.to_string(),
            address: address.to_string(),
            cause: errno.into(),
        }
    }

    /// The error of a refused operation on a reactor, as an argument of `map_err`.
    pub(crate) fn reactor(operation: &'static str) -> impl Fn(io::Error) -> Self {
        move |cause| Self::Reactor { operation, cause }
    }
}

fn hint_for(operation: Operation, cause: &io::Error) -> Option<&'static str> {
    let errno = Errno::from_io_error(cause)?;
    match (operation, errno) {
        (Operation::Bind, Errno::ADDRINUSE) => {
            Some("another process has this port; `ss -tulpn` shows which, and port 0 takes a free one")
        }
        (Operation::Bind, Errno::ADDRNOTAVAIL) => {
            Some("a unicast address must be one of this machine's own; `ip address` lists them")
        }
        (Operation::Bind, Errno::ACCESS) => Some("ports below 1024 are for privileged processes"),
        (Operation::Join, Errno::NODEV | Errno::ADDRNOTAVAIL) => {
            Some("no route leads to the group: name the interface on which it arrives")
        }
        (Operation::Join, Errno::NOBUFS) => Some(
            "the socket has joined as many groups as it may; `sysctl net.ipv4.igmp_max_memberships` raises the limit",
        ),
        (Operation::Connect | Operation::Send, Errno::NETUNREACH | Errno::HOSTUNREACH | Errno::NETDOWN) => {
            Some("no route leads there: name the interface to send on, or see `ip route`")
        }
        (Operation::Connect, Errno::INVAL) => {
            Some("the interface cannot reach that address; 127.0.0.1 reaches this machine only")
        }
        (Operation::Connect | Operation::Send, Errno::ACCESS | Errno::PERM) => {
            Some("it is a broadcast address, or a firewall rule blocks it")
        }
        (Operation::Dial, Errno::CONNREFUSED) => Some("nothing listens there; `ss -ltn` shows what does"),
        (Operation::Dial, Errno::NETUNREACH | Errno::HOSTUNREACH | Errno::NETDOWN) => {
            Some("no route leads there, or nobody answers: see `ip route`")
        }
        (Operation::Open | Operation::Accept, Errno::MFILE | Errno::NFILE) => {
            Some("too many open files; `ulimit -n` raises the limit")
        }
        _ => None,
    }
}
