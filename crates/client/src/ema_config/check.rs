//! Settings that are unknown, out of their range, or contradict each other.

use super::schema::{GLOBAL, GLOBAL_SETTINGS, GROUPS, Group, Kind, Setting};
use super::tree::{Fault, Node, bare, names};
use crate::nearest;

/// Returns the first fault of a file.
pub(super) fn check(root: &Node) -> Result<(), Fault> {
    for block in &root.children {
        if block.name == GLOBAL {
            check_block(root, block, GLOBAL_SETTINGS)?;
            continue;
        }
        let Some(group) = GROUPS.into_iter().find(|group| group.group() == block.name) else {
            let names = GROUPS.map(Group::group);
            return Err(unknown(root, block, &names.each_ref().map(String::as_str)));
        };
        check_group(root, group, block)?;
    }
    for group in GROUPS {
        check_names(root, group)?;
    }
    Ok(())
}

fn check_group(root: &Node, group: Group, block: &Node) -> Result<(), Fault> {
    let (list, default) = (group.list(), group.default());
    for child in &block.children {
        if child.name == default {
            check_value(root, child, Kind::Of(group))?;
        } else if child.name == list {
            for entry in &child.children {
                if entry.name != group.name() {
                    return Err(unknown(child, entry, &[group.name()]));
                }
                check_block(root, entry, group.settings())?;
                check_entry(group, entry)?;
            }
        } else {
            return Err(unknown(block, child, &[&list, &default]));
        }
    }
    Ok(())
}

/// Checks that every entry has a name. Of equal names, which LSEG's own example has, the first counts.
fn check_names(root: &Node, group: Group) -> Result<(), Fault> {
    let Some(entry) = group.entries(root).find(|entry| entry.text("Name").is_none()) else { return Ok(()) };
    Err(Fault::new(entry.line, format!("a {} has no name", group.name()), "give it a Name"))
}

fn check_block(root: &Node, block: &Node, settings: &[Setting]) -> Result<(), Fault> {
    for (at, child) in block.children.iter().enumerate() {
        let Some(setting) = settings.iter().find(|setting| setting.name == child.name) else {
            let names: Vec<&str> = settings.iter().map(|setting| setting.name).collect();
            return Err(unknown(block, child, &names));
        };
        let before = block.children[..at].iter().find(|other| other.name == child.name);
        if let Some(other) = before.filter(|_| !setting.many) {
            let hint = format!("the other is in line {}", other.line);
            return Err(Fault::new(child.line, format!("{} is given twice", child.name), hint));
        }
        check_value(root, child, setting.kind)?;
    }
    Ok(())
}

fn check_value(root: &Node, node: &Node, kind: Kind) -> Result<(), Fault> {
    if let Kind::Block(settings) = kind {
        if node.value.is_some() {
            let what = format!("{} has settings of its own, and no value", node.name);
            return Err(Fault::new(node.line, what, ""));
        }
        return check_block(root, node, settings);
    }
    if let Some(child) = node.children.first() {
        return Err(Fault::new(child.line, format!("{} has a value, and no settings", node.name), ""));
    }
    let Some(value) = &node.value else {
        let hint = format!("write <{} value=\"…\"/>", node.name);
        return Err(Fault::new(node.line, format!("{} has no value", node.name), hint));
    };
    let wrong = |expected: String| {
        let what = format!("{} is '{}'; expected {expected}", node.name, value.escape_debug());
        Err(Fault::new(node.line, what, ""))
    };
    match kind {
        Kind::Flag if value == "0" || value == "1" => Ok(()),
        Kind::Flag => wrong("0 or 1".to_owned()),
        Kind::Number(least, most) => match value.parse::<u64>() {
            Ok(number) if (least..=most).contains(&number) => Ok(()),
            _ => wrong(format!("a number from {least} to {most}")),
        },
        Kind::Limit if value.parse::<i64>().is_ok() => Ok(()),
        Kind::Limit => wrong("a number, or -1 for none".to_owned()),
        Kind::NumberOr(_) if value.parse::<u64>().is_ok() => Ok(()),
        Kind::Code(codes) | Kind::NumberOr(codes) => {
            if codes.iter().any(|code| code.eq_ignore_ascii_case(bare(value))) {
                return Ok(());
            }
            wrong(format!("one of {}", codes.join(", ")))
        }
        Kind::Of(group) => check_reference(root, node, group, value),
        Kind::SomeOf(group) => {
            names(Some(value)).try_for_each(|name| check_reference(root, node, group, name))
        }
        Kind::Text | Kind::Block(_) => Ok(()),
    }
}

/// Checks that a referenced entry exists. Loggers are exempt: EMA creates those that the file does not describe.
fn check_reference(root: &Node, node: &Node, group: Group, name: &str) -> Result<(), Fault> {
    if name.is_empty() || group == Group::Logger || group.entry(root, name).is_some() {
        return Ok(());
    }
    let names: Vec<&str> = group.entries(root).filter_map(|entry| entry.text("Name")).collect();
    let hint = nearest(name, &names).map(|near| format!("there is {near}")).unwrap_or_default();
    Err(Fault::new(node.line, format!("there is no {} called {name}", group.name()), hint))
}

/// Checks that the settings of an entry do not contradict each other.
fn check_entry(group: Group, entry: &Node) -> Result<(), Fault> {
    if let (Some(set), Some(_)) = (entry.child("ChannelSet"), entry.child("Channel")) {
        let what = "ChannelSet and Channel are both given; expected one";
        return Err(Fault::new(set.line, what, "a ChannelSet of one is a Channel"));
    }
    for (least, most) in
        [("ReconnectMinDelay", "ReconnectMaxDelay"), ("ConnectionMinPingTimeout", "ConnectionPingTimeout")]
    {
        if let (Some(low), Some(high)) = (entry.number(least), entry.number(most))
            && low > high
            && let Some(node) = entry.child(least)
        {
            let what = format!("{least} is {low}, but {most} is less: {high}");
            return Err(Fault::new(node.line, what, ""));
        }
    }
    let channel_type = entry.code("ChannelType").unwrap_or("RSSL_SOCKET");
    if group == Group::Channel
        && channel_type != "RSSL_ENCRYPTED"
        && let Some(node) = entry.child("EncryptedProtocolType")
    {
        let what = format!("EncryptedProtocolType is given for a channel of type {channel_type}");
        return Err(Fault::new(node.line, what, "it belongs to ChannelType::RSSL_ENCRYPTED"));
    }
    Ok(())
}

fn unknown(parent: &Node, child: &Node, known: &[&str]) -> Fault {
    let hint = match nearest(&child.name, known) {
        Some(near) => format!("there is {near}"),
        None if known.len() <= 8 => format!("there are {}", known.join(", ")),
        None => String::new(),
    };
    Fault::new(child.line, format!("{} has no setting {}", parent.name, child.name), hint)
}
