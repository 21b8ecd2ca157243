//! Rssl Wire Format 14.x: messages, containers and primitive values as bytes.
//!
//! All numbers are big-endian. Readers take both forms of every length of variable size and believe no length
//! before it is compared with what is there; writers use the shortest form, except where room is reserved for
//! something that is still to be written in place (message keys, arrays), as the vendor's encoders do too.
//!
//! Reading is zero-copy: views borrow the caller's bytes. Offsets in [`Malformed`](crate::Malformed) count from
//! the start of the slice that was handed to the reader concerned.

mod array;
mod code;
mod field_list;
mod field_list_encoder;
pub mod flags;
mod header;
mod key;
mod map;
mod map_encoder;
mod message;
mod number;
mod qos;
mod real;
mod render;
mod rmtes;
mod state;
mod time;
mod value;
mod wire;

pub use array::{Array, ArrayEncoder, Items};
pub use code::{
    DataState, DataType, Domain, MapAction, MessageClass, NakCode, NameType, Rate, StateCode, StreamState,
    Timeliness, UpdateType,
};
pub use field_list::{Field, FieldList, Fields, Info, SetData};
pub use field_list_encoder::FieldListEncoder;
pub use flags::Flags;
pub use header::{
    AckHeader, CloseHeader, Conflation, GenericHeader, Header, PostHeader, PostUserInfo, Priority,
    RefreshHeader, RequestHeader, StatusHeader, UpdateHeader,
};
pub use key::{Attributes, Key};
pub use map::{Map, MapEntries, MapEntry, MapHead};
pub use map_encoder::MapEncoder;
pub use message::{MessageView, patch_stream_id, update_header};
pub use number::{decode_double, decode_enum, decode_float, decode_int, decode_uint};
pub use qos::Qos;
pub use real::{Hint, Real};
pub use render::{NamedValue, NamedValues, Rendered, RenderedMap};
pub use rmtes::{Rmtes, Text};
pub use state::State;
pub use time::{Date, DateTime, Time};
pub use value::Value;
pub use wire::{Cursor, Writer};
