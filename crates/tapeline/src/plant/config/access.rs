//! `[hub.access]`: users, their permissions, and the audit log.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use data_encoding::HEXLOWER_PERMISSIVE;
use serde::Deserialize;
use tapeline_console::{Hinted, paths};
use tapeline_hub::Access;
use tapeline_hub::access::{Action, Code, Coded, LoginPolicy, Pattern, Rule, Users};
use tapeline_node::access::users;
use tapeline_node::access::{AccessConfig, AuditTo};
use tapeline_omm::rwf::Domain;
use toml::Spanned;

use super::Source;
use super::source::span;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawAccess {
    login: Option<Spanned<String>>,
    users: Option<Spanned<PathBuf>>,
    #[serde(default)]
    allow_plain_passwords: bool,
    audit: Option<Spanned<String>>,
    max_connections: Option<Spanned<usize>>,
    max_items: Option<Spanned<usize>>,
    #[serde(default)]
    code: Vec<RawCoded>,
    #[serde(default)]
    rule: Vec<RawRule>,
}

type List = Option<Spanned<Vec<Spanned<String>>>>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCoded {
    services: List,
    items: List,
    codes: Spanned<Vec<u64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRule {
    users: List,
    groups: List,
    services: List,
    items: List,
    domains: List,
    codes: Option<Spanned<Vec<Spanned<RawCode>>>>,
    action: Option<Spanned<String>>,
    post: Option<Spanned<bool>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RawCode {
    Number(u64),
    Text(String),
}

/// Maximum number of rules, and of tables of codes: each is checked for each request.
const MOST_RULES: usize = 10_000;

const LIST_HINT: &str = "leave the key out to mean all; * stands for any characters, ? for one";

impl Source<'_> {
    /// Checks the access settings. Errors go to the faults; the result is then unusable.
    pub(super) fn access(&self, raw: Option<&RawAccess>) -> AccessConfig {
        let Some(raw) = raw else { return AccessConfig::default() };
        let login = self.word(
            "login",
            &raw.login,
            [("open", LoginPolicy::Open), ("password", LoginPolicy::Password), ("token", LoginPolicy::Token)],
            "\"open\" checks nothing; \"password\" and \"token\" go with users = \"FILE\"",
        );
        let users = raw.users.as_ref().map(|file| self.users(file, login));
        if users.is_none() && login != LoginPolicy::Open {
            let hint = "users = \"users.txt\", which `tapeline plant passwd NAME --users users.txt` makes";
            self.fault(span(&raw.login), "nobody could log in: no users are given", hint);
        }
        let count = raw.rule.len() + raw.code.len();
        if count > MOST_RULES {
            let what = format!("{count} rules and codes; at most {MOST_RULES} are expected");
            self.fault(0..0, what, "one rule can name many items");
        }
        let mut codes = Vec::new();
        for coded in &raw.code {
            if coded.codes.get_ref().is_empty() {
                self.fault(coded.codes.span(), "an empty list of codes", "such as codes = [12, 340]");
            }
            codes.push(Coded {
                services: self.patterns(&coded.services),
                items: self.patterns(&coded.items),
                codes: coded.codes.get_ref().clone(),
            });
        }
        let rules = raw.rule.iter().map(|rule| self.rule(rule)).collect();
        let most = |key, given: &Option<Spanned<usize>>| {
            let given = given.as_ref()?;
            if *given.get_ref() == 0 {
                self.fault(
                    given.span(),
                    format!("{key} is 0; 1 or more are expected"),
                    "the limit of each user",
                );
            }
            Some(*given.get_ref())
        };
        AccessConfig {
            access: Arc::new(Access {
                login,
                plain_secrets: raw.allow_plain_passwords,
                users: users.unwrap_or_default(),
                rules,
                codes,
                max_connections: most("max_connections", &raw.max_connections),
                max_streams: most("max_items", &raw.max_items),
            }),
            audit: match raw.audit.as_ref().map(|audit| audit.get_ref().as_str()) {
                None => AuditTo::Talk,
                Some("-") => AuditTo::Stderr,
                Some(path) => AuditTo::File(self.beside(Path::new(path))),
            },
            // Set by a process that reloads its configuration.
            reload: None,
            users: raw.users.as_ref().map(|file| self.beside(file.get_ref())),
        }
    }

    fn users(&self, file: &Spanned<PathBuf>, login: LoginPolicy) -> Users {
        let path = self.beside(file.get_ref());
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(cause) => {
                let what = format!("cannot read {}: {cause}", paths::shown(&path));
                self.fault(file.span(), what, "`tapeline plant passwd NAME --users FILE` makes one");
                return Users::default();
            }
        };
        let (found, wrong) = users::parse(&text);
        let is_sound = wrong.is_empty();
        self.faults.borrow_mut().extend(wrong.into_iter().map(|fault| {
            let at = format!("{}:{}:{}: {}", paths::shown(&path), fault.line, fault.column, fault.what);
            anyhow::Error::from(Hinted::new(at, fault.hint))
        }));
        let (has, what) = match login {
            LoginPolicy::Open => (true, ""),
            LoginPolicy::Password => (found.iter().any(|user| !user.password_hash.is_empty()), "password"),
            LoginPolicy::Token => (found.iter().any(|user| !user.tokens.is_empty()), "token"),
        };
        if is_sound && !has {
            let what = format!("nobody could log in: no user in {} has a {what}", paths::shown(&path));
            let hint = "`tapeline plant passwd` gives passwords, `tapeline plant token` tokens";
            self.fault(file.span(), what, hint);
        }
        Users::new(found)
    }

    fn rule(&self, raw: &RawRule) -> Rule {
        let hint = "the first matching rule decides";
        let allows = self.one_of("action", &raw.action, [("allow", true), ("deny", false)], hint);
        let allows = self.or(allows, false);
        let post = raw.post.as_ref().filter(|post| *post.get_ref());
        if let Some(post) = post.filter(|_| !allows) {
            let hint = "a user who may not see an item may not post to it either";
            self.fault(post.span(), "post = true in a rule that denies", hint);
        }
        Rule {
            users: self.patterns(&raw.users),
            groups: self.words(&raw.groups).map(|group| group.get_ref().as_str().into()).collect(),
            services: self.patterns(&raw.services),
            items: self.patterns(&raw.items),
            domains: self.words(&raw.domains).filter_map(|word| self.sound(self.domain(word))).collect(),
            codes: match &raw.codes {
                None => Vec::new(),
                Some(codes) => {
                    if codes.get_ref().is_empty() {
                        self.fault(codes.span(), "an empty list of codes", "leave the key out to mean all");
                    }
                    codes.get_ref().iter().filter_map(|code| self.sound(self.code(code))).collect()
                }
            },
            action: if allows { Action::Allow { post: post.is_some() } } else { Action::Deny },
        }
    }

    fn domain(&self, word: &Spanned<String>) -> anyhow::Result<Domain> {
        let text = word.get_ref();
        let named = (1..=u8::MAX).map(Domain).find(|domain| domain.name() == Some(text));
        named.or_else(|| text.parse().ok().map(Domain)).ok_or_else(|| {
            let what = format!("\"{text}\" is no domain");
            self.wrong(word.span(), what, "such as \"MarketPrice\", \"MarketByOrder\", or a number up to 255")
        })
    }

    fn code(&self, code: &Spanned<RawCode>) -> anyhow::Result<Code> {
        let text = match code.get_ref() {
            RawCode::Number(number) => return Ok(Code::Number(*number)),
            RawCode::Text(text) => text,
        };
        let bytes =
            text.strip_prefix("0x").and_then(|digits| HEXLOWER_PERMISSIVE.decode(digits.as_bytes()).ok());
        bytes.filter(|bytes| !bytes.is_empty()).map(|bytes| Code::Bytes(bytes.into())).ok_or_else(|| {
            let what = format!("\"{text}\" is not a permission code");
            let hint = "a number, or all of an item's permission data, such as \"0x03002c\"";
            self.wrong(code.span(), what, hint)
        })
    }

    fn patterns(&self, list: &List) -> Vec<Pattern> {
        self.words(list).map(|word| Pattern::new(word.get_ref())).collect()
    }

    /// The words of a list; none if the key is left out. An empty list is a fault: it would mean all, which nobody
    /// expects.
    fn words<'l>(&self, list: &'l List) -> impl Iterator<Item = &'l Spanned<String>> + use<'l> {
        if let Some(list) = list {
            if list.get_ref().is_empty() {
                self.fault(list.span(), "an empty list", LIST_HINT);
            }
            for word in list.get_ref().iter().filter(|word| word.get_ref().is_empty()) {
                self.fault(word.span(), "an empty word in a list", LIST_HINT);
            }
        }
        list.iter().flat_map(Spanned::get_ref)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plant::config::RawConfig;

    fn checked(access: &str) -> Result<AccessConfig, Vec<String>> {
        let text = format!("[plant]\nring = \"r\"\n[hub]\n[hub.access]\n{access}");
        let source = Source::of(Path::new("plant.toml"), &text);
        let raw: RawConfig =
            toml::from_str(&text).map_err(|error| vec![source.not_toml(&error).to_string()])?;
        let config = source.access(raw.hub.as_ref().and_then(|hub| hub.access.as_ref()));
        let said: Vec<String> = source.faults.borrow().iter().map(ToString::to_string).collect();
        if said.is_empty() { Ok(config) } else { Err(said) }
    }

    #[test]
    fn rules_codes_and_limits_are_what_they_say() {
        let config = checked(
            "max_items = 10\naudit = \"a.jsonl\"\n[[hub.access.code]]\nitems = [\"*.NBBO\"]\ncodes = [7]\n\
             [[hub.access.rule]]\ngroups = [\"desk\"]\ncodes = [7, \"0x03aB\"]\ndomains = [\"MarketPrice\", \"7\"]\n\
             post = true\n[[hub.access.rule]]\naction = \"deny\"\n",
        )
        .unwrap();
        let access = config.access;
        assert_eq!((access.login, access.max_streams, access.rules.len()), (LoginPolicy::Open, Some(10), 2));
        assert_eq!(access.rules[0].codes, [Code::Number(7), Code::Bytes([3, 0xAB].into())]);
        assert_eq!(access.rules[0].domains, [Domain::MARKET_PRICE, Domain::MARKET_BY_ORDER]);
        assert_eq!(
            (access.rules[0].action, access.rules[1].action),
            (Action::Allow { post: true }, Action::Deny)
        );
        assert_eq!(access.codes[0].codes, [7]);
        assert_eq!(config.audit, AuditTo::File(paths::absolute("a.jsonl")));
        assert_eq!(checked("audit = \"-\"").unwrap().audit, AuditTo::Stderr);
    }

    #[test]
    fn the_sample_has_every_key_as_it_can_be_written() {
        let (_, sample) = crate::plant::config::SAMPLE.split_once("# [hub.access]\n").unwrap();
        let is_toml = |line: &&str| line.starts_with("[[") || line.contains(" = ") && !line.contains(". ");
        let is_next = |line: &str| line.starts_with("# [") && !line.starts_with("# [[hub.access.");
        let lines = sample.lines().take_while(|line| !is_next(line));
        let text: Vec<&str> = lines.filter_map(|line| line.strip_prefix("# ")).filter(is_toml).collect();
        let said = checked(&text.join("\n")).unwrap_err();
        assert!(said.len() == 1 && said[0].contains("cannot read users.txt"), "{said:?}");
        let keys = text.iter().filter_map(|line| line.split_once(" = ")).map(|(key, _)| key);
        assert_eq!(keys.count(), 6 + 3 + 8, "{text:?}");
    }

    #[test]
    fn all_that_is_wrong_is_said_where_it_is() {
        let said = checked(
            "login = \"secret\"\nusers = \"no-such-file\"\nmax_connections = 0\n[[hub.access.rule]]\nusers = []\n\
             items = [\"\"]\ndomains = [\"MarketPrise\"]\ncodes = [\"12\"]\naction = \"deny\"\npost = true\n",
        )
        .unwrap_err();
        for (at, expected) in [
            "plant.toml:5:9: login is \"secret\"; \"open\", \"password\" or \"token\" is expected",
            "plant.toml:6:9: cannot read no-such-file",
            "plant.toml:14:8: post = true in a rule that denies",
            "plant.toml:9:9: an empty list",
            "plant.toml:10:10: an empty word",
            "plant.toml:11:12: \"MarketPrise\" is no domain",
            "plant.toml:12:10: \"12\" is not a permission code",
            "plant.toml:7:19: max_connections is 0",
        ]
        .into_iter()
        .enumerate()
        {
            assert!(said[at].starts_with(expected), "{expected}: {said:#?}");
        }
        assert_eq!(said.len(), 8);
        let alone = checked("login = \"token\"").unwrap_err();
        assert_eq!(alone, ["plant.toml:5:9: nobody could log in: no users are given"]);
        let unknown = checked("[[hub.access.rule]]\nuser = [\"a\"]").unwrap_err();
        assert!(unknown[0].starts_with("plant.toml:6:1: unknown key `user`"), "{unknown:?}");
    }
}
