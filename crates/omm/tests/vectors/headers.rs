//! A message's header against what the reference decoder says of it.

use serde_json::Value as Json;
use tapeline_omm::rwf::{Header, Key, MessageView, flags as class_flags};
use tapeline_omm::{Qos, State};

use super::unhex;

pub(crate) fn check(name: &str, message: &MessageView<'_>, decoded: &Json) {
    let payload = decoded["payloadBytes"].as_u64().unwrap_or(0);
    assert_eq!(message.payload().len() as u64, payload, "{name}");
    check_all_but_payload(name, message, decoded);
}

pub(crate) fn check_all_but_payload(name: &str, message: &MessageView<'_>, decoded: &Json) {
    assert_eq!(u64::from(message.class().0), decoded["msgClassValue"], "{name}");
    assert_eq!(message.class().name().unwrap(), decoded["msgClass"], "{name}");
    assert_eq!(u64::from(message.domain().0), decoded["domainType"], "{name}");
    assert_eq!(i64::from(message.stream_id()), decoded["streamId"], "{name}");
    assert_eq!(message.container().name().unwrap(), decoded["containerType"], "{name}");
    check_flags(name, message, decoded);
    let header = message.header().unwrap();
    assert_eq!(header.class(), message.class());
    check_key(name, message.key().unwrap(), &decoded["key"]);
    let number = |member: &str| decoded[member].as_u64();
    let bytes = |member: &str| decoded[member].as_str().map(unhex);
    assert_eq!(header.sequence().map(u64::from), number("seqNum"), "{name}");
    assert_eq!(header.part().map(u64::from), number("partNum"), "{name}");
    assert_eq!(header.permission_data().map(<[u8]>::to_vec), bytes("permDataHex"), "{name}");
    assert_eq!(header.extended_header().map(<[u8]>::to_vec), bytes("extendedHeaderHex"), "{name}");
    assert_eq!(header.group_id().map(<[u8]>::to_vec), bytes("groupIdHex"), "{name}");
    check_qos(name, header.qos(), &decoded["qos"]);
    check_state(name, header.state(), &decoded["state"]);
    let user = header.post_user_info().map(|user| (u64::from(user.address), u64::from(user.user_id)));
    let expected = &decoded["postUserInfo"];
    assert_eq!(user, expected["userAddr"].as_u64().zip(expected["userId"].as_u64()), "{name}");
    check_own(name, &header, decoded);
}

/// Members that only one class has.
fn check_own(name: &str, header: &Header<'_>, decoded: &Json) {
    let number = |member: &str| decoded[member].as_u64();
    match header {
        Header::Request(request) => {
            check_qos(name, request.worst_qos, &decoded["worstQos"]);
            let priority = request.priority.map(|p| (u64::from(p.class), u64::from(p.count)));
            let expected = &decoded["priority"];
            assert_eq!(priority, expected["class"].as_u64().zip(expected["count"].as_u64()), "{name}");
        }
        Header::Update(update) => {
            assert_eq!(Some(u64::from(update.update_type.0)), number("updateType"), "{name}");
            let conflation = update.conflation.map(|c| (u64::from(c.count), u64::from(c.time_ms)));
            let expected = &decoded["conflation"];
            assert_eq!(conflation, expected["count"].as_u64().zip(expected["time"].as_u64()), "{name}");
        }
        Header::Ack(ack) => {
            assert_eq!(Some(u64::from(ack.ack_id)), number("ackId"), "{name}");
            assert_eq!(ack.nak_code.map(|code| u64::from(code.0)), number("nakCode"), "{name}");
            let text = ack.text.map(|text| str::from_utf8(text).unwrap());
            assert_eq!(text, decoded["text"].as_str(), "{name}");
        }
        Header::Generic(generic) => {
            assert_eq!(generic.secondary_sequence.map(u64::from), number("secondarySeqNum"), "{name}");
        }
        Header::Post(post) => {
            assert_eq!(post.post_id.map(u64::from), number("postId"), "{name}");
            assert_eq!(post.post_user_rights.map(u64::from), number("postUserRights"), "{name}");
        }
        _ => {}
    }
}

fn check_flags(name: &str, message: &MessageView<'_>, decoded: &Json) {
    let names = class_flags::names(message.class());
    let found: Vec<_> =
        names.iter().filter(|(_, flag)| message.flags().has(*flag)).map(|(name, _)| *name).collect();
    assert_eq!(serde_json::json!(found), decoded["flags"], "{name}");
    assert_eq!(u64::from(message.flags().0), decoded["flagsValue"], "{name}");
}

fn check_key(name: &str, key: Option<Key<'_>>, expected: &Json) {
    let Some(key) = key else {
        assert!(expected.is_null(), "{name}: a key is missing");
        return;
    };
    assert_eq!(key.service_id.map(u64::from), expected["serviceId"].as_u64(), "{name}");
    assert_eq!(key.name.map(characters).as_deref(), expected["name"].as_str(), "{name}");
    assert_eq!(key.name_type.map(|code| u64::from(code.0)), expected["nameType"].as_u64(), "{name}");
    assert_eq!(key.filter.map(u64::from), expected["filter"].as_u64(), "{name}");
    assert_eq!(key.identifier.map(i64::from), expected["identifier"].as_i64(), "{name}");
    let container = key.attributes.map(|attributes| attributes.container.name().unwrap());
    assert_eq!(container, expected["attribContainerType"].as_str(), "{name}");
}

pub(crate) fn check_qos(name: &str, qos: Option<Qos>, expected: &Json) {
    let Some(qos) = qos else {
        assert!(expected.is_null(), "{name}: a QoS is missing");
        return;
    };
    let found = serde_json::json!({
        "timeliness": qos.timeliness.0,
        "rate": qos.rate.0,
        "dynamic": qos.dynamic,
        "timeInfo": qos.time_info,
        "rateInfo": qos.rate_info,
    });
    assert_eq!(found, *expected, "{name}");
}

pub(crate) fn check_state(name: &str, state: Option<State<'_>>, expected: &Json) {
    let Some(state) = state else {
        assert!(expected.is_null(), "{name}: a state is missing");
        return;
    };
    let found = serde_json::json!({
        "stream": state.stream.to_string(),
        "streamValue": state.stream.0,
        "data": state.data.to_string(),
        "dataValue": state.data.0,
        "code": state.code.to_string(),
        "codeValue": state.code.0,
        "text": characters(state.text),
    });
    assert_eq!(found, *expected, "{name}");
}

/// The reference shows a byte for a character.
fn characters(text: &[u8]) -> String {
    text.iter().copied().map(char::from).collect()
}
