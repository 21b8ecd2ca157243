//! The source directory (domain 4): the services, what they offer, and their state.

use super::elements::{OwnedState, elements, text};
use crate::rwf::{
    Container, DataType, Domain, ElementList, FilterAction, FilterEntry, FilterList, FilterListEncoder,
    FilterListHead, Flags, Key, Map, MapAction, MapEncoder, MapHead, RefreshHeader, UpdateHeader, UpdateType,
    flags,
};
use crate::{Malformed, Qos, Refused, State, Value};

/// Filters of a directory: their ids, and their bits in the filter of a key.
pub mod filter {
    /// Id of [`Info`](super::Info).
    pub const INFO_ID: u8 = 1;
    /// Id of [`ServiceState`](super::ServiceState).
    pub const STATE_ID: u8 = 2;
    /// Id of [`Group`](super::Group).
    pub const GROUP_ID: u8 = 3;
    /// Id of [`Load`](super::Load).
    pub const LOAD_ID: u8 = 4;
    /// Id of broadcast data.
    pub const DATA_ID: u8 = 5;
    /// Id of [`Link`](super::Link)s.
    pub const LINK_ID: u8 = 6;

    /// Information about the service.
    pub const INFO: u32 = 0x01;
    /// State of the service.
    pub const STATE: u32 = 0x02;
    /// Changes of item groups.
    pub const GROUP: u32 = 0x04;
    /// Load of the service.
    pub const LOAD: u32 = 0x08;
    /// Data for all consumers.
    pub const DATA: u32 = 0x10;
    /// Sources of the service's data.
    pub const LINK: u32 = 0x20;
    /// All filters: a consumer of the vendor's library requests these.
    pub const ALL: u32 = 0x3F;
}

/// Maximum number of services of a directory that are stored; `MOST_LINKS` is the same for the links of a service.
const MOST_SERVICES: usize = 1024;
/// Maximum number of parts of one service in one message. A real service has one part of each kind, and a few groups.
const MOST_PARTS: usize = 255;
const MOST_LINKS: usize = 256;

elements! {
    /// Information about a service.
    Info {
        /// Name; clients request the service by this name.
        name "Name": String,
        /// Operator of the service.
        vendor "Vendor": String,
        /// 1 if the service is the source itself; default 0.
        is_source "IsSource": u64,
        /// Domains that can be requested.
        capabilities "Capabilities": Vec<Domain>,
        /// Dictionaries that can be downloaded from the service.
        dictionaries_provided "DictionariesProvided": Vec<String>,
        /// Dictionaries that the service's data needs.
        dictionaries_used "DictionariesUsed": Vec<String>,
        /// Qualities of service; default: real time, tick by tick.
        qos "QoS": Vec<Qos>,
        /// 1 if a range of qualities can be requested; default 0.
        supports_qos_range "SupportsQoSRange": u64,
        /// Name of the item that lists the items.
        item_list "ItemList": String,
        /// 1 if snapshots do not count as open items; default 1.
        supports_out_of_band_snapshots "SupportsOutOfBandSnapshots": u64,
        /// 1 if the service accepts messages about its consumers' status; default 1.
        accepting_consumer_status "AcceptingConsumerStatus": u64,
    }

    /// State of a service.
    ServiceState {
        /// 1 up, 0 down.
        service_state "ServiceState": u64,
        /// 1 if items can be requested; default 1.
        accepting_requests "AcceptingRequests": u64,
        /// New state of all items of the service.
        status "Status": OwnedState,
    }

    /// A change of all items of a group.
    Group {
        /// Group id; at most 255 bytes are stored.
        group "Group": Box<[u8]>,
        /// Group to which the items belong from now on.
        merged_to_group "MergedToGroup": Box<[u8]>,
        /// New state of the group's items.
        status "Status": OwnedState,
    }

    /// Load of a service.
    Load {
        /// Maximum number of open items.
        open_limit "OpenLimit": u64,
        /// Maximum number of unanswered requests; 0 stops requests.
        open_window "OpenWindow": u64,
        /// Load factor; lower is better.
        load_factor "LoadFactor": u64,
    }

    /// State of a source of a service's data.
    LinkState {
        /// 1 interactive, 2 broadcast; default 1.
        link_type "Type": u64,
        /// 1 up, 0 down.
        link_state "LinkState": u64,
        /// 0 none, 1 OK, 2 recovery started, 3 recovery completed; default 0.
        link_code "LinkCode": u64,
        /// Human-readable reason.
        text "Text": String,
    }
}

impl ServiceState {
    /// Up and accepting requests, without a new state for the items.
    pub const UP: Self = Self { service_state: Some(1), accepting_requests: Some(1), status: None };

    /// Returns `true` if the service is up.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.service_state == Some(1)
    }

    /// Returns `true` if items can be requested.
    #[must_use]
    pub fn accepts_requests(&self) -> bool {
        self.is_up() && self.accepting_requests.unwrap_or(1) != 0
    }
}

/// Link of a service, with its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Action on the link.
    pub action: MapAction,
    /// Name of the link.
    pub name: String,
    /// State of the link.
    pub state: LinkState,
}

/// One part of the data about a service.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServicePart {
    /// Information about the service.
    Info(Info),
    /// State of the service.
    State(ServiceState),
    /// A change of one item group.
    Group(Group),
    /// Load of the service.
    Load(Load),
    /// Sources of the service's data.
    Links(Vec<Link>),
    /// The part with this filter id was cleared.
    Cleared(u8),
}

impl ServicePart {
    /// Returns the id of the part's filter.
    #[must_use]
    pub const fn id(&self) -> u8 {
        match self {
            Self::Info(_) => filter::INFO_ID,
            Self::State(_) => filter::STATE_ID,
            Self::Group(_) => filter::GROUP_ID,
            Self::Load(_) => filter::LOAD_ID,
            Self::Links(_) => filter::LINK_ID,
            Self::Cleared(id) => *id,
        }
    }

    /// Returns `true` if the filter of a key requests the part.
    #[must_use]
    pub const fn is_in(&self, filter: u32) -> bool {
        matches!(self.id(), 1..=32) && filter & (1 << (self.id() - 1)) != 0
    }

    /// Reads a part; `None` for an unknown filter.
    fn read(action: FilterAction, id: u8, data: &Container<'_>) -> Result<Option<Self>, Malformed> {
        if action == FilterAction::CLEAR {
            return Ok(Some(Self::Cleared(id)));
        }
        let part = match (id, data) {
            (filter::INFO_ID, Container::ElementList(list)) => Info::read_elements(list).map(Self::Info)?,
            (filter::STATE_ID, Container::ElementList(list)) => {
                ServiceState::read_elements(list).map(Self::State)?
            }
            (filter::GROUP_ID, Container::ElementList(list)) => {
                Group::read_elements(list).map(Self::Group)?
            }
            (filter::LOAD_ID, Container::ElementList(list)) => Load::read_elements(list).map(Self::Load)?,
            (filter::LINK_ID, Container::Map(map)) => read_links(map).map(Self::Links)?,
            _ => return Ok(None),
        };
        Ok(Some(part))
    }

    fn write(&self, action: FilterAction, filters: &mut FilterListEncoder<'_>) -> Result<(), Refused> {
        let id = self.id();
        match self {
            Self::Info(info) => filters.entry_in_place(action, id, |room| info.encode_in(room)),
            Self::State(state) => filters.entry_in_place(action, id, |room| state.encode_in(room)),
            Self::Group(group) => filters.entry_in_place(action, id, |room| group.encode_in(room)),
            Self::Load(load) => filters.entry_in_place(action, id, |room| load.encode_in(room)),
            Self::Links(links) => {
                let container = Some(DataType::MAP);
                let entry = FilterEntry { container, ..FilterEntry::new(action, id, &[]) };
                filters.any_in_place(&entry, |room| {
                    let head = MapHead::new(DataType::ASCII_STRING, DataType::ELEMENT_LIST);
                    let mut map = MapEncoder::new(room, &head)?;
                    for link in links {
                        let (action, name) = (link.action, link.name.as_bytes());
                        map.entry_in_place(action, name, None, |room| link.state.encode_in(room))?;
                    }
                    Ok(map.finish())
                })
            }
            Self::Cleared(_) => filters.entry_in_place(FilterAction::CLEAR, id, |_| Ok(0)),
        }
    }
}

fn read_links(map: &Map<'_>) -> Result<Vec<Link>, Malformed> {
    let mut links = Vec::new();
    for entry in map.iter().take(MOST_LINKS) {
        let entry = entry?;
        let state = if entry.action == MapAction::DELETE {
            LinkState::default()
        } else {
            LinkState::read_elements(&ElementList::parse(entry.data)?)?
        };
        links.push(Link { action: entry.action, name: text(entry.key), state });
    }
    Ok(links)
}

/// Content of a message about one service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceEntry {
    /// ADD for a new service, UPDATE for a change, DELETE for a removal.
    pub action: MapAction,
    /// Service id.
    pub id: u16,
    /// Parts of the service with their actions: SET replaces a part, UPDATE changes the elements that it contains.
    pub parts: Vec<(FilterAction, ServicePart)>,
}

/// Returns the parts of one kind.
macro_rules! parts {
    ($entry:ident, $kind:ident) => {
        $entry.parts.iter().filter_map(|(_, part)| match part {
            ServicePart::$kind(part) => Some(part),
            _ => None,
        })
    };
}

impl ServiceEntry {
    /// Returns an entry for a new service.
    #[must_use]
    pub fn new(id: u16, info: Info, state: ServiceState) -> Self {
        let parts = [ServicePart::Info(info), ServicePart::State(state)];
        Self { action: MapAction::ADD, id, parts: parts.map(|part| (FilterAction::SET, part)).into() }
    }

    /// Returns an entry for a change of one part of a service.
    #[must_use]
    pub fn change(id: u16, part: ServicePart) -> Self {
        Self { action: MapAction::UPDATE, id, parts: vec![(FilterAction::UPDATE, part)] }
    }

    /// Returns an entry for the removal of a service.
    #[must_use]
    pub const fn delete(id: u16) -> Self {
        Self { action: MapAction::DELETE, id, parts: Vec::new() }
    }

    /// Returns the information about the service.
    #[must_use]
    pub fn info(&self) -> Option<&Info> {
        parts!(self, Info).next()
    }

    /// Returns the state of the service.
    #[must_use]
    pub fn state(&self) -> Option<&ServiceState> {
        parts!(self, State).next()
    }

    /// Returns the load of the service.
    #[must_use]
    pub fn load(&self) -> Option<&Load> {
        parts!(self, Load).next()
    }

    /// Returns the name of the service.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.info()?.name.as_deref()
    }

    /// Returns the changes of item groups.
    pub fn groups(&self) -> impl Iterator<Item = &Group> {
        parts!(self, Group)
    }

    /// Applies `entry`. Groups are changes and are not stored.
    fn apply(&mut self, entry: &Self) {
        for (action, new) in &entry.parts {
            let place = self.parts.iter().position(|(_, part)| part.id() == new.id());
            match (new, place) {
                (ServicePart::Group(_), _) | (ServicePart::Cleared(_), None) => {}
                (ServicePart::Cleared(_), Some(place)) => _ = self.parts.remove(place),
                (new, None) => self.parts.push((FilterAction::SET, new.clone())),
                (new, Some(place)) => {
                    match (&mut self.parts[place].1, new, *action == FilterAction::UPDATE) {
                        (ServicePart::Info(old), ServicePart::Info(new), true) => old.merge(new),
                        (ServicePart::State(old), ServicePart::State(new), true) => old.merge(new),
                        (ServicePart::Load(old), ServicePart::Load(new), true) => old.merge(new),
                        (ServicePart::Links(old), ServicePart::Links(new), true) => merge_links(old, new),
                        (old, new, _) => old.clone_from(new),
                    }
                }
            }
        }
    }
}

fn merge_links(old: &mut Vec<Link>, new: &[Link]) {
    for link in new {
        let place = old.iter().position(|old| old.name == link.name);
        match (place, link.action) {
            (Some(place), MapAction::DELETE) => _ = old.remove(place),
            (Some(place), _) => old[place].state.merge(&link.state),
            (None, action) if action != MapAction::DELETE && old.len() < MOST_LINKS => old.push(link.clone()),
            (None, _) => {}
        }
    }
}

/// Returns the services of a directory message, one after the other. Iteration ends after a fault.
///
/// # Errors
///
/// Fails if the head is truncated.
pub fn services(payload: &[u8]) -> Result<impl Iterator<Item = Result<ServiceEntry, Malformed>>, Malformed> {
    let map = Map::parse(payload)?;
    let key_type = map.head().key_type;
    let mut entries = map.into_iter();
    let mut is_over = false;
    Ok(std::iter::from_fn(move || {
        if is_over {
            return None;
        }
        let read = entries.next()?.and_then(|entry| {
            // Service ids have 16 bits.
            let id = match entry.key_value(key_type)? {
                Value::UInt(id) => u16::try_from(id).ok(),
                Value::Int(id) => u16::try_from(id).ok(),
                _ => None,
            };
            let id = id.ok_or(Malformed::new(0, "service id"))?;
            let mut service = ServiceEntry { action: entry.action, id, parts: Vec::new() };
            if entry.action != MapAction::DELETE && !entry.data.is_empty() {
                let filters = FilterList::parse(entry.data)?;
                for filter in filters.iter().take(MOST_PARTS) {
                    let filter = filter?;
                    let part = ServicePart::read(filter.action, filter.id, &filter.open(filters.head())?)?;
                    service.parts.extend(part.map(|part| (filter.action, part)));
                }
            }
            Ok(service)
        });
        is_over = read.is_err();
        Some(read)
    }))
}

/// Writes the payload of a directory to the start of `out`: of each service, the parts that `filter` requests. Returns
/// its length.
///
/// # Errors
///
/// [`Refused::Full`]; [`Refused::TooLong`] for a service of more than 65,535 bytes.
pub fn encode_services<'s>(
    services: impl IntoIterator<Item = &'s ServiceEntry>,
    filter: u32,
    out: &mut [u8],
) -> Result<usize, Refused> {
    let mut map = MapEncoder::new(out, &MapHead::new(DataType::UINT, DataType::FILTER_LIST))?;
    for service in services {
        map.keyed_in_place(service.action, u64::from(service.id), None, |room| {
            let mut filters = FilterListEncoder::new(room, &FilterListHead::new(DataType::ELEMENT_LIST))?;
            for (action, part) in service.parts.iter().filter(|(_, part)| part.is_in(filter)) {
                part.write(*action, &mut filters)?;
            }
            Ok(filters.finish())
        })?;
    }
    Ok(map.finish())
}

/// Writes a directory refresh to the start of `out`; returns its length. `flags`: SOLICITED, REFRESH_COMPLETE,
/// CLEAR_CACHE of [`flags::refresh`]. Fails as [`encode_services`].
pub fn encode_refresh<'s>(
    stream_id: i32,
    flags: Flags,
    filter: u32,
    services: impl IntoIterator<Item = &'s ServiceEntry>,
    out: &mut [u8],
) -> Result<usize, Refused> {
    let header = RefreshHeader {
        flags,
        key: Some(Key { filter: Some(filter), ..Key::default() }),
        ..RefreshHeader::new(Domain::SOURCE, stream_id, State::OPEN_OK, DataType::MAP)
    };
    header.encode_with(out, |room| encode_services(services, filter, room))
}

/// Writes a directory update to the start of `out`; returns its length. Fails as [`encode_services`].
pub fn encode_update<'s>(
    stream_id: i32,
    filter: u32,
    services: impl IntoIterator<Item = &'s ServiceEntry>,
    out: &mut [u8],
) -> Result<usize, Refused> {
    let header = UpdateHeader::new(Domain::SOURCE, stream_id, UpdateType::UNSPECIFIED, DataType::MAP);
    header.encode_with(out, |room| encode_services(services, filter, room))
}

/// Flags of the refresh that answers a request.
pub const SOLICITED: Flags = flags::refresh::SOLICITED
    .with(flags::refresh::REFRESH_COMPLETE, true)
    .with(flags::refresh::CLEAR_CACHE, true);

/// All services, with refreshes and updates applied.
///
/// At most 1,024 services are stored, in one message or in several; further services are ignored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Directory {
    services: Vec<ServiceEntry>,
}

impl Directory {
    /// Creates an empty directory.
    #[must_use]
    pub const fn new() -> Self {
        Self { services: Vec::new() }
    }

    /// Returns the services in order of arrival.
    pub fn services(&self) -> impl ExactSizeIterator<Item = &ServiceEntry> {
        self.services.iter()
    }

    /// Returns the service with this id.
    #[must_use]
    pub fn service(&self, id: u16) -> Option<&ServiceEntry> {
        self.services.iter().find(|service| service.id == id)
    }

    /// Returns the service with this name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&ServiceEntry> {
        self.services.iter().find(|service| service.name() == Some(name))
    }

    /// Removes all services, as a refresh with CLEAR_CACHE requires.
    pub fn clear(&mut self) {
        self.services.clear();
    }

    /// Applies an entry of a message. Returns `true` if a service appeared or disappeared.
    pub fn apply(&mut self, entry: &ServiceEntry) -> bool {
        let place = self.services.iter().position(|service| service.id == entry.id);
        match (place, entry.action) {
            (Some(place), MapAction::DELETE) => _ = self.services.remove(place),
            (Some(place), _) => {
                self.services[place].apply(entry);
                return false;
            }
            (None, action) if action != MapAction::DELETE && self.services.len() < MOST_SERVICES => {
                let mut service = ServiceEntry { action: MapAction::ADD, id: entry.id, parts: Vec::new() };
                service.apply(entry);
                self.services.push(service);
            }
            (None, _) => return false,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service() -> ServiceEntry {
        let info = Info {
            name: Some("TAPELINE".into()),
            capabilities: Some(vec![Domain::DICTIONARY, Domain::MARKET_PRICE]),
            dictionaries_provided: Some(vec!["RWFFld".into(), "RWFEnum".into()]),
            qos: Some(vec![Qos::REALTIME_TICK]),
            ..Info::default()
        };
        ServiceEntry::new(7, info, ServiceState::UP)
    }

    fn read(payload: &[u8]) -> Vec<ServiceEntry> {
        services(payload).unwrap().collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn what_is_written_is_read() {
        let mut all = service();
        let state = OwnedState::from(State { text: b"gone", ..State::OPEN_OK });
        let group = Group { group: Some([1, 2].into()), status: Some(state), ..Group::default() };
        let state = LinkState { link_state: Some(1), ..LinkState::default() };
        all.parts.extend([
            (FilterAction::SET, ServicePart::Group(group)),
            (FilterAction::SET, ServicePart::Load(Load { open_window: Some(5), ..Load::default() })),
            (
                FilterAction::SET,
                ServicePart::Links(vec![Link { action: MapAction::ADD, name: "line".into(), state }]),
            ),
            (FilterAction::CLEAR, ServicePart::Cleared(filter::DATA_ID)),
        ]);
        let entries = [all, ServiceEntry::delete(9)];
        let mut out = [0; 1024];
        let len = encode_services(&entries, filter::ALL, &mut out).unwrap();
        assert_eq!(read(&out[..len]), entries);
        let len = encode_services(&entries, filter::STATE | filter::LOAD, &mut out).unwrap();
        let ids: Vec<_> = read(&out[..len])[0].parts.iter().map(|(_, part)| part.id()).collect();
        assert_eq!(ids, [filter::STATE_ID, filter::LOAD_ID]);
        for cut in 0..len {
            if let Ok(entries) = services(&out[..cut]) {
                assert_eq!(entries.filter(Result::is_err).count(), 1, "cut at {cut}");
            }
        }
    }

    #[test]
    fn changes_leave_what_they_do_not_name() {
        let mut directory = Directory::new();
        assert!(directory.apply(&service()));
        let down = ServiceState { service_state: Some(0), ..ServiceState::default() };
        assert!(!directory.apply(&ServiceEntry::change(7, ServicePart::State(down))));
        let state = directory.named("TAPELINE").unwrap().state().unwrap();
        assert_eq!((state.is_up(), state.accepting_requests), (false, Some(1)));
        let mut entry = ServiceEntry::change(7, ServicePart::Cleared(filter::INFO_ID));
        entry.parts.push((FilterAction::SET, ServicePart::State(ServiceState::UP)));
        directory.apply(&entry);
        assert!(directory.service(7).unwrap().info().is_none());
        assert!(directory.service(7).unwrap().state().unwrap().accepts_requests());
        assert!(directory.apply(&ServiceEntry::delete(7)));
        assert_eq!(directory.services().len(), 0);
    }
}
