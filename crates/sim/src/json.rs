//! Conversion between messages and simplified JSON texts: the layer between a role and a connection with
//! `tr_json2`.

use tapeline_omm::Dictionary;
use tapeline_omm::json::{Converter, MessageKind, Pack, Packed, ServiceNames};
use tapeline_omm::rwf::MessageView;

use crate::network::Side;
use crate::plan::{PROVIDED, SERVICE, SERVICE_NAME, provided_id};

/// The services from the plant's directory, known to both ends.
#[derive(Debug)]
struct Names;

impl ServiceNames for Names {
    fn id(&self, name: &str) -> Option<u16> {
        ids().find(|id| self.name(*id) == Some(name))
    }

    fn name(&self, id: u16) -> Option<&str> {
        let provided = PROVIDED.into_iter().zip(0..).find(|(_, service)| provided_id(*service) == id);
        if id == SERVICE { Some(SERVICE_NAME) } else { provided.map(|(name, _)| name) }
    }
}

fn ids() -> impl Iterator<Item = u16> {
    (0..PROVIDED.len()).map(provided_id).chain([SERVICE])
}

fn converter() -> Converter<'static> {
    Converter::new(Dictionary::builtin(), &Names)
}

/// The text of a message; a server's text is an array.
///
/// # Errors
/// The message cannot be converted.
pub(crate) fn text(message: &[u8], by: Side) -> Result<Vec<u8>, String> {
    let message = MessageView::parse(message).map_err(|fault| fault.to_string())?;
    let mut text = Vec::new();
    let written = match by {
        Side::Client => converter().write(&message, &mut text),
        Side::Server => {
            let mut pack = Pack::new(&mut text);
            let written = pack.message(&converter(), &message);
            pack.finish();
            written
        }
    };
    match written {
        Ok(0) => Ok(text),
        Ok(left_out) => Err(format!("the dictionary lacks {left_out} of its fields")),
        Err(why) => Err(why.to_string()),
    }
}

/// The messages of a text.
///
/// # Errors
/// The text cannot be read.
pub(crate) fn messages(text: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    let text = str::from_utf8(text).map_err(|fault| fault.to_string())?;
    let (mut room, mut messages) = (Vec::new(), Vec::new());
    for incoming in Packed::parse(text).map_err(|fault| fault.to_string())? {
        match incoming.kind() {
            MessageKind::Message => {
                let message = converter().read(&incoming, &mut room).map_err(|fault| fault.to_string())?;
                messages.push(message.to_vec());
            }
            // Only pings inside an array arrive here; the session handles single ones.
            MessageKind::Ping | MessageKind::Pong => {}
            MessageKind::Error => return Err(incoming.error_text().unwrap_or_default().into_owned()),
        }
    }
    Ok(messages)
}
