//! Warm standby: a consumer connects to several servers and assigns a role to each: active or standby. The active
//! server sends data. A standby server knows which items are open: it answers requests with images without data, and
//! sends no updates. When it becomes active, it sends images and continues with updates.
//!
//! Sources: EMA C++ Developers Guide 7, RDM Usage Guide 3.3.2 (generic messages of the login) and 4.3.4 (those of the directory);
//! names and numbers as in rsslRDM.h, and the messages as ETA Java 3.9.1 reads and writes them.

use super::elements::elements;
use crate::rwf::{
    Container, DataType, Domain, ElementList, GenericHeader, Key, Map, MapAction, MapEncoder, MapHead,
    MessageClass, MessageView,
};
use crate::{Malformed, Refused, Value};

/// Bit of `SupportStandbyMode`: the whole connection is active or on standby.
pub const BY_LOGIN: u64 = 1;
/// Bit of `SupportStandbyMode`: each service is active or on standby.
pub const BY_SERVICE: u64 = 2;

/// Name of the generic message on the login stream.
const OF_LOGIN: &[u8] = b"ConsumerConnectionStatus";
/// Name of the generic message on the directory stream.
const OF_SERVICES: &[u8] = b"ConsumerStatus";
/// Key of the only entry in the login message.
const INFO: &[u8] = b"WarmStandbyInfo";
/// Maximum number of services that are read from one message. A real standby has a handful.
const MOST_SERVICES: usize = 1024;

/// Role of a server for a consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ServerType {
    /// The server sends data. Default role of a server.
    Active,
    /// The server waits until it becomes active.
    Standby,
}

impl ServerType {
    fn of(mode: Option<u64>) -> Option<Self> {
        match mode? {
            0 => Some(Self::Active),
            1 => Some(Self::Standby),
            _ => None,
        }
    }

    const fn mode(self) -> u64 {
        match self {
            Self::Active => 0,
            Self::Standby => 1,
        }
    }
}

elements! {
    /// Elements of an entry in both messages.
    Mode {
        /// For a service: 0, not one of several sources that mirror each other. Readers of older ETA releases require
        /// it.
        mirroring "SourceMirroringMode": u64,
        /// 0 active, 1 standby.
        mode "WarmStandbyMode": u64,
    }
}

/// Role that a consumer assigns to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectionStatus {
    /// For all items of the connection. Sent on the login stream.
    Login(ServerType),
    /// For the items of these services, by service id; other services do not change. Sent on the directory stream.
    Services(Vec<(u16, ServerType)>),
}

impl ConnectionStatus {
    /// Reads a message; `None` if it is not about a standby. Of the services the first 1,024 are read. A deleted entry
    /// means that the server no longer belongs to a standby: it is active.
    ///
    /// # Errors
    ///
    /// Fails if the payload is malformed.
    pub fn read(message: &MessageView<'_>) -> Result<Option<Self>, Malformed> {
        if message.class() != MessageClass::GENERIC || message.container() != DataType::MAP {
            return Ok(None);
        }
        let name = message.key()?.and_then(|key| key.name);
        let (is_login, map) = match (message.domain(), name, message.open()?) {
            (Domain::LOGIN, Some(OF_LOGIN), Container::Map(map)) => (true, map),
            (Domain::SOURCE, Some(OF_SERVICES), Container::Map(map)) => (false, map),
            _ => return Ok(None),
        };
        if is_login { Self::read_login(&map) } else { Self::read_services(&map) }
    }

    fn read_login(map: &Map<'_>) -> Result<Option<Self>, Malformed> {
        let is_text = matches!(map.head().key_type, DataType::ASCII_STRING | DataType::BUFFER);
        for entry in map.iter() {
            let entry = entry?;
            if is_text && entry.key == INFO {
                return Ok(server_type(entry.action, entry.data, map)?.map(Self::Login));
            }
        }
        Ok(None)
    }

    fn read_services(map: &Map<'_>) -> Result<Option<Self>, Malformed> {
        let mut services = Vec::new();
        for entry in map.iter().take(MOST_SERVICES) {
            let entry = entry?;
            let Value::UInt(id) = entry.key_value(map.head().key_type)? else { continue };
            let told = server_type(entry.action, entry.data, map)?;
            services.extend(u16::try_from(id).ok().zip(told));
        }
        Ok(Some(Self::Services(services)))
    }

    /// Writes the message to the start of `out`; returns its length. `stream_id` is the login stream or the directory
    /// stream.
    ///
    /// # Errors
    ///
    /// [`Refused::Full`].
    pub fn encode(&self, stream_id: i32, out: &mut [u8]) -> Result<usize, Refused> {
        let (domain, name, key_type) = match self {
            Self::Login(_) => (Domain::LOGIN, OF_LOGIN, DataType::ASCII_STRING),
            Self::Services(_) => (Domain::SOURCE, OF_SERVICES, DataType::UINT),
        };
        let header = GenericHeader {
            key: Some(Key { name: Some(name), ..Key::default() }),
            ..GenericHeader::new(domain, stream_id, DataType::MAP)
        };
        let mirroring = matches!(self, Self::Services(_)).then_some(0);
        let entry = |server: ServerType| {
            let mode = Mode { mirroring, mode: Some(server.mode()) };
            move |room: &mut [u8]| mode.encode_in(room)
        };
        header.encode_with(out, |room| {
            let mut map = MapEncoder::new(room, &MapHead::new(key_type, DataType::ELEMENT_LIST))?;
            match self {
                Self::Login(server) => map.entry_in_place(MapAction::ADD, INFO, None, entry(*server))?,
                Self::Services(services) => {
                    for (id, server) in services {
                        map.keyed_in_place(MapAction::ADD, u64::from(*id), None, entry(*server))?;
                    }
                }
            }
            Ok(map.finish())
        })
    }
}

/// Reads an entry; `None` if it is not about a standby: it may be about mirrored sources.
fn server_type(action: MapAction, data: &[u8], map: &Map<'_>) -> Result<Option<ServerType>, Malformed> {
    if action == MapAction::DELETE {
        return Ok(Some(ServerType::Active));
    }
    if map.head().container != DataType::ELEMENT_LIST || data.is_empty() {
        return Ok(None);
    }
    Ok(ServerType::of(Mode::read_elements(&ElementList::parse(data)?)?.mode))
}

#[cfg(test)]
mod tests {
    use super::super::elements::encode_list;
    use super::*;

    fn encoded(status: &ConnectionStatus, stream: i32) -> Vec<u8> {
        let mut bytes = vec![0; 256];
        let len = status.encode(stream, &mut bytes).unwrap();
        bytes.truncate(len);
        bytes
    }

    fn read(bytes: &[u8]) -> Result<Option<ConnectionStatus>, Malformed> {
        ConnectionStatus::read(&MessageView::parse(bytes).unwrap())
    }

    #[test]
    fn what_is_written_is_read() {
        for status in [
            ConnectionStatus::Login(ServerType::Active),
            ConnectionStatus::Login(ServerType::Standby),
            ConnectionStatus::Services(vec![(1, ServerType::Standby), (65_535, ServerType::Active)]),
            ConnectionStatus::Services(Vec::new()),
        ] {
            let bytes = encoded(&status, 1);
            assert_eq!(read(&bytes), Ok(Some(status)));
            for cut in 0..bytes.len() {
                // A truncated message must not panic.
                let _ = MessageView::parse(&bytes[..cut]).map(|message| ConnectionStatus::read(&message));
            }
        }
    }

    /// Messages as ETA Java 3.9.1 encodes them.
    #[test]
    fn messages_of_the_vendors_library() {
        let bytes = |hex: &str| -> Vec<u8> {
            (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
        };
        for (mode, server) in [("00", ServerType::Active), ("01", ServerType::Standby)] {
            let golden = "00240701000000010409801a0218436f6e73756d6572436f6e6e656374696f6e5374617475730011050001020f5761\
                          726d5374616e646279496e666ffe00160800010f5761726d5374616e6462794d6f64650401";
            let golden = bytes(&format!("{golden}{mode}"));
            let status = ConnectionStatus::Login(server);
            assert_eq!(read(&golden), Ok(Some(status.clone())));
            assert_eq!(encoded(&status, 1), golden);
        }
        let golden = bytes(
            "001a07040000000204098010020e436f6e73756d65725374617475730004050002020101fe002d08000213536f757263654d6972\
             726f72696e674d6f64650401000f5761726d5374616e6462794d6f64650401010202012cfe002d08000213536f757263654d6972\
             726f72696e674d6f64650401000f5761726d5374616e6462794d6f6465040100",
        );
        let services = vec![(1, ServerType::Standby), (300, ServerType::Active)];
        let status = ConnectionStatus::Services(services);
        assert_eq!(read(&golden), Ok(Some(status.clone())));
        assert_eq!(encoded(&status, 2), golden);
    }

    /// Writes a message with this name, whose map `write` writes.
    fn message(
        domain: Domain,
        name: &[u8],
        write: impl FnOnce(&mut [u8]) -> Result<usize, Refused>,
    ) -> Vec<u8> {
        let key = Some(Key { name: Some(name), ..Key::default() });
        let header = GenericHeader { key, ..GenericHeader::new(domain, 1, DataType::MAP) };
        let mut bytes = vec![0; 256];
        let len = header.encode_with(&mut bytes, write).unwrap();
        bytes.truncate(len);
        bytes
    }

    #[test]
    fn what_says_nothing_of_a_standby_is_nothing() {
        for (domain, name, is_known) in [
            (Domain::LOGIN, OF_LOGIN, true),
            (Domain::LOGIN, OF_SERVICES, false),
            (Domain::SOURCE, OF_LOGIN, false),
            (Domain::MARKET_PRICE, OF_LOGIN, false),
        ] {
            let write = |mode: u64| {
                move |room: &mut [u8]| {
                    let head = MapHead::new(DataType::ASCII_STRING, DataType::ELEMENT_LIST);
                    let mut map = MapEncoder::new(room, &head)?;
                    map.entry_in_place(MapAction::ADD, INFO, None, |room| {
                        encode_list(room, |list| list.uint("WarmStandbyMode", mode))
                    })?;
                    Ok(map.finish())
                }
            };
            let status = is_known.then_some(ConnectionStatus::Login(ServerType::Standby));
            assert_eq!(read(&message(domain, name, write(1))), Ok(status));
            // An invalid mode.
            assert_eq!(read(&message(domain, name, write(2))), Ok(None));
        }
    }

    #[test]
    fn who_takes_it_back_has_no_standby() {
        let bytes = message(Domain::SOURCE, OF_SERVICES, |room| {
            let mut map = MapEncoder::new(room, &MapHead::new(DataType::UINT, DataType::ELEMENT_LIST))?;
            map.delete(&[7])?;
            Ok(map.finish())
        });
        assert_eq!(read(&bytes), Ok(Some(ConnectionStatus::Services(vec![(7, ServerType::Active)]))));
    }
}
