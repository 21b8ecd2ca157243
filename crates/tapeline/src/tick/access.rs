//! Who may in, and what they may do.

use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Deserialize;
use tapeline_console::failure::Hinted;
use tapeline_console::paths;
use tapeline_hub::access::{Pattern, Users};
use tapeline_tickerplant::{Rights, Schema};

use crate::plant::access::users;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawAccess {
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

/// Who may in, and what they may do.
#[derive(Debug)]
pub(crate) struct Access {
    /// The users that there are.
    pub(crate) users: Users,
    rules: Vec<Rule>,
}

/// What some users may do: all of them, where neither users nor groups are named.
#[derive(Debug)]
struct Rule {
    users: Vec<Pattern>,
    groups: Vec<String>,
    rights: Rights,
}

impl Access {
    /// Reads the file of users, which is `beside` the configuration.
    pub(crate) fn read(
        raw: &RawAccess,
        beside: impl FnOnce(&Path) -> PathBuf,
        tables: &[Schema],
    ) -> anyhow::Result<Self> {
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
        let rules = raw.rule.iter().map(|rule| Rule::new(rule, tables)).collect::<anyhow::Result<_>>()?;
        Ok(Self { users: Users::new(found), rules })
    }

    /// What a user may do who has shown his password: what the first rule says that is about him. Without any rule all may do all;
    /// with rules, who is named in none may not even in.
    pub(crate) fn rights(&self, user: &str, tables: usize) -> Option<Rights> {
        let user = self.users.find(user)?;
        if self.rules.is_empty() {
            return Some(Rights::all(tables));
        }
        let is_about = |rule: &&Rule| {
            rule.users.is_empty() && rule.groups.is_empty()
                || rule.users.iter().any(|pattern| pattern.matches(user.name.as_bytes()))
                || rule.groups.iter().any(|group| user.groups.iter().any(|its| **its == **group))
        };
        self.rules.iter().find(is_about).map(|rule| rule.rights.clone())
    }
}

impl Rule {
    fn new(raw: &RawRule, tables: &[Schema]) -> anyhow::Result<Self> {
        let some = |patterns: &[String]| {
            let patterns: Vec<_> = patterns.iter().map(|pattern| Pattern::new(pattern)).collect();
            if let Some(none) = patterns
                .iter()
                .find(|pattern| !tables.iter().any(|table| pattern.matches(table.name().as_bytes())))
            {
                let what = format!("[[access.rule]] names \"{}\", and there is no such table", none.as_str());
                return Err(Hinted::new(what, "* stands for any characters, ? for one").into());
            }
            let is_named =
                |table: &Schema| patterns.iter().any(|pattern| pattern.matches(table.name().as_bytes()));
            Ok::<_, anyhow::Error>(tables.iter().map(is_named).collect())
        };
        let rights =
            Rights { publish: some(&raw.publish)?, subscribe: some(&raw.subscribe)?, end_day: raw.end_day };
        let users = raw.users.iter().map(|pattern| Pattern::new(pattern)).collect();
        Ok(Self { users, groups: raw.groups.clone(), rights })
    }
}
