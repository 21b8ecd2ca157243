//! Rssl Wire Format 14.x: messages, containers and primitive values as bytes.
//!
//! All numbers are big-endian. Readers accept both forms of every length of variable size, and trust no length before
//! it is compared with the available bytes. Writers use the shortest form, except where a length is reserved for
//! content that is still to be written in place (message keys, arrays), as in the vendor's encoders.
//!
//! Reading is zero-copy: views borrow the caller's bytes. Offsets in [`Malformed`](crate::Malformed) count from the
//! start of the slice that the reader was given.
//!
//! A message is a header of its class ([`RequestHeader`] … [`PostHeader`], plain structs), followed by a payload.
//! Encoders nest: each encoder passes its free space to a closure, into which the inner encoder writes. A message of
//! any depth is therefore written in one pass. For example, a directory with one service:
//!
//! ```
//! use tapeline_omm::rwf::{
//!     DataType, Domain, ElementList, ElementListEncoder, FilterAction, FilterList, FilterListEncoder,
//!     FilterListHead, Header, Key, Map, MapAction, MapEncoder, MapHead, MessageView, RefreshHeader, flags,
//! };
//! use tapeline_omm::{State, Value};
//!
//! let refresh = RefreshHeader {
//!     flags: flags::refresh::SOLICITED | flags::refresh::REFRESH_COMPLETE,
//!     key: Some(Key { filter: Some(0x03), ..Key::default() }),
//!     ..RefreshHeader::new(Domain::SOURCE, 2, State::OPEN_OK, DataType::MAP)
//! };
//! let mut out = [0; 512];
//! let len = refresh.encode_with(&mut out, |room| {
//!     let mut services = MapEncoder::new(room, &MapHead::new(DataType::UINT, DataType::FILTER_LIST))?;
//!     services.keyed_in_place(MapAction::ADD, 1_u64, None, |room| {
//!         let mut filters = FilterListEncoder::new(room, &FilterListHead::new(DataType::ELEMENT_LIST))?;
//!         filters.entry_in_place(FilterAction::SET, 1, |room| {
//!             let mut info = ElementListEncoder::new(room)?;
//!             info.ascii("Name", "TAPELINE")?;
//!             info.array("Capabilities", DataType::UINT, 0, |domains| domains.value(&Value::UInt(6)))?;
//!             Ok(info.finish())
//!         })?;
//!         Ok(filters.finish())
//!     })?;
//!     Ok(services.finish())
//! })?;
//!
//! let message = MessageView::parse(&out[..len])?;
//! let Header::Refresh(header) = message.header()? else { panic!("a refresh was written") };
//! assert_eq!(header.key.and_then(|key| key.filter), Some(3));
//! for service in Map::parse(message.payload())? {
//!     let service = service?;
//!     assert_eq!(service.key_value(DataType::UINT)?, Value::UInt(1));
//!     for filter in FilterList::parse(service.data)? {
//!         let info = ElementList::parse(filter?.data)?;
//!         assert_eq!(info.find("Name")?.map(|name| name.data), Some(&b"TAPELINE"[..]));
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod array;
mod code;
mod container;
mod element_list;
mod element_list_encoder;
mod entries;
mod entries_encoder;
mod field_list;
mod field_list_encoder;
mod filter_list;
mod fixed;
pub mod flags;
mod header;
mod key;
mod map;
mod map_encoder;
mod message;
mod number;
mod outline;
mod qos;
mod real;
mod render;
mod rmtes;
mod series;
mod set_data;
mod sets;
mod state;
mod time;
mod value;
mod vector;
mod wire;

pub use array::{Array, ArrayEncoder, Items};
pub use code::{
    DataState, DataType, Domain, FilterAction, MapAction, MessageClass, NakCode, NameType, Rate, StateCode,
    StreamState, Timeliness, UpdateType, VectorAction,
};
pub use container::{Container, DEPTH_LIMIT};
pub use element_list::{Element, ElementList, Elements};
pub use element_list_encoder::{ElementListEncoder, encode_element_set};
pub use entries::{Entries, EntryIter, Head};
pub use field_list::{Field, FieldList, Fields, Info, SetData, TypedFields};
pub use field_list_encoder::{FieldListEncoder, encode_field_set};
pub use filter_list::{FilterEntries, FilterEntry, FilterList, FilterListEncoder, FilterListHead};
pub use flags::Flags;
pub use header::{
    AckHeader, CloseHeader, Conflation, GenericHeader, Header, PostHeader, PostUserInfo, Priority,
    RefreshHeader, RequestHeader, StatusHeader, UpdateHeader,
};
pub use key::{Attributes, Key, KeyElements};
pub use map::{Map, MapEntries, MapEntry, MapHead};
pub use map_encoder::MapEncoder;
pub use message::{MessageView, patch_stream_id, update_header};
pub use number::{decode_double, decode_enum, decode_float, decode_int, decode_uint};
pub(crate) use number::{enum_ahead, uint_ahead};
pub use outline::Outline;
pub use qos::Qos;
pub use real::{Hint, Real};
pub use render::{NamedValue, NamedValues, Rendered, RenderedMap};
pub(crate) use rmtes::encode as encode_rmtes;
pub use rmtes::{Rmtes, RmtesCache, Text};
pub use series::{Series, SeriesEncoder, SeriesEntries, SeriesHead};
pub use set_data::{SetDataEncoder, SetDefinitionsEncoder};
pub use sets::{SetDefinition, SetDefinitions, SetEntries, SetEntry, SetName};
pub use state::State;
pub use time::{Date, DateTime, Time};
pub use value::Value;
pub use vector::{Vector, VectorEncoder, VectorEntries, VectorEntry, VectorHead};
pub use wire::{Cursor, Writer};
