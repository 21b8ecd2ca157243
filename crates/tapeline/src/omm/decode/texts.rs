//! Converts JSON texts to messages.

use std::cell::RefCell;

use tapeline_omm::Dictionary;
use tapeline_omm::json::{Converter, MessageKind, Packed, ServiceNames};

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said {
    Message(Vec<u8>),
    Ping,
    Pong,
    /// An `Error`: the sender of the text could not read a message.
    Complaint(String),
    /// The text cannot be read, with the reason.
    Fault(String),
}

/// Service names in texts: RWF has numbers, which only a directory maps to names.
#[derive(Debug, Default)]
pub(super) struct Names(RefCell<Vec<String>>);

/// Maximum number of names over all texts.
const MOST_NAMES: usize = 1_000;

impl ServiceNames for Names {
    fn id(&self, name: &str) -> Option<u16> {
        let mut names = self.0.borrow_mut();
        let place = names.iter().position(|known| known == name).or_else(|| {
            names.push(name.to_owned());
            (names.len() <= MOST_NAMES).then(|| names.len() - 1)
        });
        // Numbers from the top end: services are usually numbered from the bottom.
        place.map(|place| u16::MAX - place as u16)
    }

    fn name(&self, _id: u16) -> Option<&str> {
        None
    }
}

impl Names {
    /// Every name, with its substitute number.
    pub(super) fn all(&self) -> Vec<(u16, String)> {
        (0..=u16::MAX).rev().zip(self.0.borrow().iter().take(MOST_NAMES).cloned()).collect()
    }
}

/// The messages of a text, or one fault if it is no valid text.
pub(super) fn messages(text: &str, dictionary: &Dictionary, names: &Names) -> Vec<Said> {
    let converter = Converter::new(dictionary, names);
    let mut room = Vec::new();
    match Packed::parse(text) {
        Ok(packed) => packed
            .map(|incoming| match incoming.kind() {
                MessageKind::Ping => Said::Ping,
                MessageKind::Pong => Said::Pong,
                MessageKind::Error => Said::Complaint(incoming.error_text().unwrap_or_default().into_owned()),
                MessageKind::Message => match converter.read(&incoming, &mut room) {
                    Ok(message) => Said::Message(message.to_vec()),
                    Err(fault) => Said::Fault(fault.to_string()),
                },
            })
            .collect(),
        Err(fault) => vec![Said::Fault(fault.to_string())],
    }
}

#[cfg(test)]
mod tests {
    use tapeline_omm::rwf::MessageView;

    use super::*;

    #[test]
    fn services_are_told_apart_by_their_names() {
        let (names, dictionary) = (Names::default(), Dictionary::builtin());
        let text = r#"[{"ID":5,"Key":{"Name":"A","Service":"ONE"}},{"ID":6,"Key":{"Name":"A","Service":"TWO"}},
            {"ID":7,"Key":{"Name":"A","Service":"ONE"}},{"Type":"Ping"},{"ID":8}]"#;
        let said = messages(text, dictionary, &names);
        let services: Vec<_> = said
            .iter()
            .filter_map(|said| {
                let Said::Message(bytes) = said else { return None };
                MessageView::parse(bytes).unwrap().key().unwrap()?.service_id
            })
            .collect();
        assert_eq!(services, [65_535, 65_534, 65_535]);
        assert_eq!(names.all(), [(65_535, "ONE".to_owned()), (65_534, "TWO".to_owned())]);
        assert_eq!(said[3], Said::Ping);
        assert!(matches!(&said[4], Said::Fault(why) if why.contains("'Key'")), "{said:?}");
    }
}
