//! The texts of the statuses and refusals that clients get for items, in one place: programs show them to people.
//!
//! The texts about logins are in `access/gate.rs`, those with numbers where the numbers are.

pub(crate) const NO_SERVICE: &str = "There is no such service";
pub(crate) const NO_NAME: &str = "This request names no item";
pub(crate) const TOO_MANY_STREAMS: &str = "As many items are open as may be";
pub(crate) const SERVICE_DOWN: &str = "The service is down";
pub(crate) const NO_ITEM: &str = "There is no such item";
pub(crate) const NAME_NOT_TEXT: &str = "The name of this item is not text";
pub(crate) const TOO_MANY_ITEMS: &str = "There are too many items";
pub(crate) const OPEN_TOO_OFTEN: &str = "You have this item open on as many streams as may be";
pub(crate) const ITEM_SUSPECT: &str = "The data of this item is suspect";
pub(crate) const TOO_MANY_PRIVATE: &str = "There are too many private streams";
pub(crate) const IMAGE_TOO_LONG: &str = "This image is too long to be sent here";
pub(crate) const NO_IMAGE_YET: &str = "There is no image of this item yet";
pub(crate) const UPDATES_DROPPED: &str = "Updates were dropped: they were not taken in time";
pub(crate) const MISSED_ITEM: &str =
    "The hub has missed messages of this item, and the plant has no image of it";
pub(crate) const NO_ROOM_FOR_MESSAGE: &str = "There was no room for a message of this stream";
pub(crate) const RECEIPT_UNREADABLE: &str = "The source's receipt cannot be read";
pub(crate) const IMAGE_INCOMPLETE: &str = "This image is not complete";
pub(crate) const SOURCE_UNREADABLE: &str = "A message of this item's source cannot be read";
pub(crate) const NO_ROOM_FOR_IMAGE: &str = "There is no room for the image of this item";
pub(crate) const LATE: &str = "Nothing has come of this item in time";
pub(crate) const WAITED_TOO_LONG: &str =
    "Nothing has come of this item for as long as a request may wait; ask again to go on waiting";
pub(crate) const MISSED: &str = "The hub has missed some of the plant's messages";
pub(crate) const NOTHING_YET: &str = "Nothing has been published yet";
pub(crate) const PLANT_ABOVE_SILENT: &str = "stale: the plant above is not heard of";
pub(crate) const PROVIDER_GONE: &str = "The provider of this service is gone";
pub(crate) const NO_POSTS: &str = "This user may not post to this item";
pub(crate) const POST_OF_OTHER_ITEM: &str = "The message in the post is of another item than its stream";
pub(crate) const POSTS_REFUSED: &str = "Posts are not taken by this service";
pub(crate) const SOURCE_BUSY: &str = "Too many messages wait for the source of this service";
