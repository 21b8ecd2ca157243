//! Users and their rights.

use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Deserialize;
use tapeline_console::{Hinted, paths};
use tapeline_hub::access::{Pattern, Users};
use tapeline_node::access::users;
use tapeline_node::tick::config::{Access, Rule};
use tapeline_tickerplant::{Rights, Schema};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawTickAccess {
    /// The file of users and their passwords.
    users: PathBuf,
    #[serde(default)]
    rule: Vec<RawRule>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRule {
    #[serde(default)]
    users: Vec<String>,
    #[serde(default)]
    groups: Vec<String>,
    #[serde(default)]
    publish: Vec<String>,
    #[serde(default)]
    subscribe: Vec<String>,
    #[serde(default)]
    end_day: bool,
}

/// Reads the users file; a relative path starts at the configuration's folder.
pub(crate) fn read(
    raw: &RawTickAccess,
    beside: impl FnOnce(&Path) -> PathBuf,
    tables: &[Schema],
) -> anyhow::Result<Access> {
    let path = beside(&raw.users);
    let text = std::fs::read_to_string(&path).with_context(|| {
        let hint = "`tapeline plant passwd NAME --users FILE` makes one";
        Hinted::new(format!("cannot read the users of [access], {}", paths::shown(&path)), hint)
    })?;
    let (found, wrong) = users::parse(&text);
    if let Some(fault) = wrong.first() {
        let at = format!("{}:{}:{}: {}", paths::shown(&path), fault.line, fault.column, fault.what);
        return Err(Hinted::new(at, fault.hint).into());
    }
    if !found.iter().any(|user| !user.password_hash.is_empty()) {
        let what = format!("nobody could log in: no user in {} has a password", paths::shown(&path));
        return Err(Hinted::new(what, "`tapeline plant passwd NAME --users FILE` gives one").into());
    }
    let rules = raw.rule.iter().map(|rule| self::rule(rule, tables)).collect::<anyhow::Result<_>>()?;
    Ok(Access { users: Users::new(found), rules })
}

/// Checks a rule against the tables.
fn rule(raw: &RawRule, tables: &[Schema]) -> anyhow::Result<Rule> {
    let some = |patterns: &[String]| {
        let patterns: Vec<_> = patterns.iter().map(|pattern| Pattern::new(pattern)).collect();
        if let Some(none) = patterns
            .iter()
            .find(|pattern| !tables.iter().any(|table| pattern.matches(table.name().as_bytes())))
        {
            let what = format!("[[access.rule]] names \"{}\", but there is no such table", none.as_str());
            return Err(Hinted::new(what, "* stands for any characters, ? for one").into());
        }
        let is_named =
            |table: &Schema| patterns.iter().any(|pattern| pattern.matches(table.name().as_bytes()));
        Ok::<_, anyhow::Error>(tables.iter().map(is_named).collect())
    };
    let rights =
        Rights { publish: some(&raw.publish)?, subscribe: some(&raw.subscribe)?, end_day: raw.end_day };
    let users = raw.users.iter().map(|pattern| Pattern::new(pattern)).collect();
    Ok(Rule { users, groups: raw.groups.clone(), rights })
}
