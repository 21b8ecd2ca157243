//! `[hub.access]`: users, their permissions, and the audit log.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use anyhow::Context;
use data_encoding::HEXLOWER_PERMISSIVE;
use serde::Deserialize;
use tapeline_console::failure::{self, Hinted};
use tapeline_console::paths;
use tapeline_console::stop::Again;
use tapeline_hub::Access;
use tapeline_hub::access::{Action, Code, Coded, LoginPolicy, Pattern, Rule, Users};
use tapeline_node::access::users;
use tapeline_node::access::{AccessConfig, AuditTo, Reload};
use tapeline_omm::rwf::Domain;
use toml::Spanned;

use super::{RawConfig, Source};

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

/// A configuration file whose users and rules are reloaded at SIGHUP.
#[derive(Debug)]
struct FromFile {
    path: PathBuf,
    again: OnceLock<Again>,
}

impl Reload for FromFile {
    fn begin(&self) -> io::Result<()> {
        let _ = self.again.set(Again::on_signal()?);
        Ok(())
    }

    fn is_requested(&self) -> bool {
        self.again.get().is_some_and(Again::is_requested)
    }

    fn read(&self) -> Option<AccessConfig> {
        match read_access(&self.path) {
            Ok(config) => {
                let (users, rules) = (config.access.users.len(), config.access.rules.len());
                anstream::eprintln!("note: {} read again: {users} users, {rules} rules", self.path.display());
                Some(config)
            }
            Err(faults) => {
                for fault in &faults {
                    anstream::eprintln!("{}", failure::text(fault));
                }
                anstream::eprintln!("note: users and rules stay as they were");
                None
            }
        }
    }
}

/// Reads only the access settings of a configuration file.
///
/// # Errors
/// All faults, each with file, line, column and hint.
pub(crate) fn read_access(path: &Path) -> Result<AccessConfig, Vec<anyhow::Error>> {
    let text = std::fs::read_to_string(path)
        .with_context(|| {
            Hinted::new(format!("cannot read {}", paths::shown(&path)), "everything stays as it was")
        })
        .map_err(|error| vec![error])?;
    let source = Source::of(path, &text);
    let raw: RawConfig = toml::from_str(&text).map_err(|error| vec![source.not_toml(&error)])?;
    let raw = raw.hub.as_ref().and_then(super::hub::RawHub::access);
    if raw.is_none() {
        let what = "the table [hub.access] is gone: without it every user could see everything";
        return Err(vec![source.wrong(text.len()..text.len(), what, "removing it requires a restart")]);
    }
    let mut faults = Vec::new();
    let config = source.access(raw, &mut faults);
    if faults.is_empty() { Ok(config) } else { Err(faults) }
}

impl Source<'_> {
    /// Checks the access settings. Errors go to `faults`; the result is then unusable.
    pub(super) fn access(&self, raw: Option<&RawAccess>, faults: &mut Vec<anyhow::Error>) -> AccessConfig {
        let Some(raw) = raw else { return AccessConfig::default() };
        let login = self.one_of(
            "login",
            raw.login.as_ref(),
            &[
                ("open", LoginPolicy::Open),
                ("password", LoginPolicy::Password),
                ("token", LoginPolicy::Token),
            ],
            "\"open\" checks nothing; \"password\" and \"token\" go with users = \"FILE\"",
        );
        let login = login.unwrap_or_else(|fault| {
            faults.push(fault);
            LoginPolicy::Open
        });
        let users = raw.users.as_ref().map(|file| self.users(file, login, faults));
        if users.is_none() && login != LoginPolicy::Open {
            let span = raw.login.as_ref().map_or(0..0, Spanned::span);
            let hint = "users = \"users.txt\", which `tapeline plant passwd NAME --users users.txt` makes";
            faults.push(self.wrong(span, "nobody could log in: no users are given", hint));
        }
        if raw.rule.len() + raw.code.len() > MOST_RULES {
            let what = format!(
                "{} rules and codes; at most {MOST_RULES} are expected",
                raw.rule.len() + raw.code.len()
            );
            faults.push(self.wrong(0..0, what, "one rule can name many items"));
        }
        let mut codes = Vec::new();
        for coded in &raw.code {
            if coded.codes.get_ref().is_empty() {
                faults.push(self.wrong(
                    coded.codes.span(),
                    "an empty list of codes",
                    "such as codes = [12, 340]",
                ));
            }
            codes.push(Coded {
                services: self.patterns(&coded.services, faults),
                items: self.patterns(&coded.items, faults),
                codes: coded.codes.get_ref().clone(),
            });
        }
        let rules = raw.rule.iter().map(|rule| self.rule(rule, faults)).collect();
        let mut most = |key, given: &Option<Spanned<usize>>| {
            let given = given.as_ref()?;
            if *given.get_ref() == 0 {
                faults.push(self.wrong(
                    given.span(),
                    format!("{key} is 0; 1 or more are expected"),
                    "the limit of each user",
                ));
            }
            Some(*given.get_ref())
        };
        let (max_connections, max_streams) =
            (most("max_connections", &raw.max_connections), most("max_items", &raw.max_items));
        AccessConfig {
            access: Arc::new(Access {
                login,
                plain_secrets: raw.allow_plain_passwords,
                users: users.unwrap_or_default(),
                rules,
                codes,
                max_connections,
                max_streams,
            }),
            audit: match raw.audit.as_ref().map(|audit| audit.get_ref().as_str()) {
                None => AuditTo::Talk,
                Some("-") => AuditTo::Stderr,
                Some(path) => AuditTo::File(self.beside(Path::new(path))),
            },
            reload: Some(Arc::new(FromFile { path: self.path.clone(), again: OnceLock::new() })),
            users: raw.users.as_ref().map(|file| self.beside(file.get_ref())),
        }
    }

    fn users(&self, file: &Spanned<PathBuf>, login: LoginPolicy, faults: &mut Vec<anyhow::Error>) -> Users {
        let path = self.beside(file.get_ref());
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(cause) => {
                let hint = "`tapeline plant passwd NAME --users FILE` makes one";
                faults.push(self.wrong(
                    file.span(),
                    format!("cannot read {}: {cause}", paths::shown(&path)),
                    hint,
                ));
                return Users::default();
            }
        };
        let (found, wrong) = users::parse(&text);
        let is_sound = wrong.is_empty();
        faults.extend(wrong.into_iter().map(|fault| {
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
            faults.push(self.wrong(file.span(), what, hint));
        }
        Users::new(found)
    }

    fn rule(&self, raw: &RawRule, faults: &mut Vec<anyhow::Error>) -> Rule {
        let allows = self.one_of(
            "action",
            raw.action.as_ref(),
            &[("allow", true), ("deny", false)],
            "the first matching rule decides",
        );
        let allows = allows.unwrap_or_else(|fault| {
            faults.push(fault);
            false
        });
        if let Some(post) = raw.post.as_ref().filter(|post| *post.get_ref() && !allows) {
            let hint = "a user who may not see an item may not post to it either";
            faults.push(self.wrong(post.span(), "post = true in a rule that denies", hint));
        }
        let post = raw.post.as_ref().is_some_and(|post| *post.get_ref());
        Rule {
            users: self.patterns(&raw.users, faults),
            groups: self.words(&raw.groups, faults).map(|group| group.get_ref().as_str().into()).collect(),
            services: self.patterns(&raw.services, faults),
            items: self.patterns(&raw.items, faults),
            domains: {
                let words: Vec<_> = self.words(&raw.domains, faults).collect();
                let domains = words.into_iter().map(|word| self.domain(word));
                keep(domains, faults)
            },
            codes: match &raw.codes {
                None => Vec::new(),
                Some(codes) if codes.get_ref().is_empty() => {
                    faults.push(self.wrong(
                        codes.span(),
                        "an empty list of codes",
                        "leave the key out to mean all",
                    ));
                    Vec::new()
                }
                Some(codes) => keep(codes.get_ref().iter().map(|code| self.code(code)), faults),
            },
            action: if allows { Action::Allow { post } } else { Action::Deny },
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
            self.wrong(
                code.span(),
                what,
                "a number, or all of an item's permission data, such as \"0x03002c\"",
            )
        })
    }

    fn patterns(&self, list: &List, faults: &mut Vec<anyhow::Error>) -> Vec<Pattern> {
        self.words(list, faults).map(|word| Pattern::new(word.get_ref())).collect()
    }

    /// The words of a list; `None` if the key is left out. An empty list is an error: it would mean all, which
    /// nobody expects.
    fn words<'l>(
        &self,
        list: &'l List,
        faults: &mut Vec<anyhow::Error>,
    ) -> impl Iterator<Item = &'l Spanned<String>> + use<'l> {
        if let Some(list) = list {
            if list.get_ref().is_empty() {
                faults.push(self.wrong(list.span(), "an empty list", LIST_HINT));
            }
            for word in list.get_ref().iter().filter(|word| word.get_ref().is_empty()) {
                faults.push(self.wrong(word.span(), "an empty word in a list", LIST_HINT));
            }
        }
        list.iter().flat_map(Spanned::get_ref)
    }
}

/// Returns the valid values; errors go to the faults.
fn keep<T>(all: impl Iterator<Item = anyhow::Result<T>>, faults: &mut Vec<anyhow::Error>) -> Vec<T> {
    all.filter_map(|one| one.map_err(|fault| faults.push(fault)).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(access: &str) -> Result<AccessConfig, Vec<String>> {
        let text = format!("[plant]\nring = \"r\"\n[hub]\n[hub.access]\n{access}");
        let source = Source::of(Path::new("plant.toml"), &text);
        let raw: RawConfig =
            toml::from_str(&text).map_err(|error| vec![source.not_toml(&error).to_string()])?;
        let mut faults = Vec::new();
        let config = source.access(raw.hub.as_ref().and_then(super::super::hub::RawHub::access), &mut faults);
        let said: Vec<String> = faults.iter().map(ToString::to_string).collect();
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
