//! Two messages that mean the same.

use tapeline_omm::Dictionary;
use tapeline_omm::rwf::{Domain, Flags, Header, Key, MessageView, flags};

/// Panics where they do not mean the same. What is free (texts of directories and dictionaries, whether those say which
/// filter and key they are of) is passed over, as are keys in refreshes and updates that only ours has.
pub(crate) fn same(place: &str, ours: &[u8], recorded: &[u8], dictionary: &Dictionary) {
    let [ours, recorded] = [ours, recorded].map(|bytes| MessageView::parse(bytes).unwrap());
    let [our_header, recorded_header] = [&ours, &recorded].map(|message| message.header().unwrap());
    assert_eq!(bare(our_header), bare(recorded_header), "{place}");
    if let Some(key) = recorded_header.key() {
        let ours = our_header.key().unwrap_or_else(|| panic!("{place}: there is no key"));
        let domain = our_header.domain();
        assert_eq!(key_members(ours, domain), key_members(key, domain), "{place}");
        let attributes =
            [ours, key].map(|key| key.attributes.map(|a| a.open().unwrap().outline(dictionary).to_string()));
        assert_eq!(attributes[0], attributes[1], "{place}");
    }
    let [ours, recorded] =
        [ours, recorded].map(|message| message.open().unwrap().outline(dictionary).to_string());
    assert_eq!(ours, recorded, "{place}");
}

/// All of a key but its attributes.
fn key_members<'a>(key: &Key<'a>, domain: Domain) -> Key<'a> {
    let filter = key.filter.filter(|_| domain != Domain::SOURCE);
    // A name type that is not there is that of a user's name, or a RIC: both are 1.
    Key {
        attributes: None,
        filter,
        name_type: Some(key.name_type.unwrap_or_default()).filter(|t| t.0 > 1),
        ..*key
    }
}

/// A header without what is compared otherwise, or is free.
fn bare(header: Header<'_>) -> Header<'_> {
    let is_admin = [Domain::SOURCE, Domain::DICTIONARY].contains(&header.domain());
    match header {
        Header::Refresh(mut header) => {
            header.key = None;
            header.flags = without(header.flags, flags::refresh::HAS_MSG_KEY);
            if is_admin {
                header.state.text = b"";
                header.flags = without(header.flags, flags::refresh::CLEAR_CACHE);
            }
            header.into()
        }
        Header::Status(mut header) => {
            header.key = None;
            // Said by the role itself.
            let is_own =
                |text: &[u8]| text.starts_with(b"Rejected") || text.ends_with(b"interactive provider");
            if let Some(state) = header.state.as_mut().filter(|state| is_own(state.text)) {
                state.text = b"";
            }
            header.into()
        }
        Header::Request(mut header) => {
            header.key = Key::default();
            header.into()
        }
        other => other,
    }
}

fn without(flags: Flags, flag: Flags) -> Flags {
    Flags(flags.0 & !flag.0)
}
