//! Access rules: the first rule that matches decides.

use tapeline_omm::rwf::Domain;

use super::Pattern;

/// The decision of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Permits the user to open the items.
    Allow {
        /// `true` to permit posts as well.
        post: bool,
    },
    /// Denies the items.
    Deny,
}

/// A permission code in a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Code {
    /// A number: from the configuration, or from permission data that is a list of numbers as text, such as `12,340`.
    Number(u64),
    /// Permission data that is exactly these bytes.
    Bytes(Box<[u8]>),
}

/// One rule. An empty list matches everything; a list matches if one of its entries does. The rule matches if all its lists match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Users, in addition to the members of `groups`. Matches all users only if both lists are empty.
    pub users: Vec<Pattern>,
    /// Groups of users.
    pub groups: Vec<Box<str>>,
    /// Services.
    pub services: Vec<Pattern>,
    /// Items.
    pub items: Vec<Pattern>,
    /// Domains.
    pub domains: Vec<Domain>,
    /// Permission codes. An allow rule matches if all codes of the item are in the list, a deny rule if one is. Neither matches an item without
    /// codes.
    pub codes: Vec<Code>,
    /// The decision if the rule matches.
    pub action: Action,
}

/// Permission codes for items of feeds, which have no permission data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coded {
    /// Services; empty means all.
    pub services: Vec<Pattern>,
    /// Items; empty means all.
    pub items: Vec<Pattern>,
    /// The codes of these items.
    pub codes: Vec<u64>,
}

/// The permission codes of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Codes<'a> {
    /// Unknown until the first image.
    NotYet,
    /// Codes from the configuration.
    Listed(&'a [u64]),
    /// Permission data from the source, possibly empty.
    Data(&'a [u8]),
}

/// A request for an item.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) service: &'a str,
    pub(crate) domain: Domain,
    pub(crate) name: &'a [u8],
    pub(crate) codes: Codes<'a>,
}

/// The decision on a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    Decided(Action),
    /// Depends on the item's codes, which are not known yet.
    Depends,
}

/// The decision without rules.
pub(crate) const OPEN: Action = Action::Allow { post: true };

impl Rule {
    /// Returns `true` if the rule applies to a user in these groups.
    pub(crate) fn is_about(&self, user: &str, groups: &[Box<str>]) -> bool {
        self.users.is_empty() && self.groups.is_empty()
            || any(&self.users, user.as_bytes())
            || self.groups.iter().any(|group| groups.contains(group))
    }

    /// Returns `true` if the rule matches in everything but the codes.
    fn fits(&self, wanted: &Wanted<'_>) -> bool {
        (self.domains.is_empty() || self.domains.contains(&wanted.domain))
            && all_or_any(&self.services, wanted.service.as_bytes())
            && all_or_any(&self.items, wanted.name)
    }

    /// Returns `true` if the rule matches the codes; `None` while they are unknown.
    fn fits_codes(&self, codes: Codes<'_>) -> Option<bool> {
        if self.codes.is_empty() {
            return Some(true);
        }
        let is_named = |number: &u64| self.codes.contains(&Code::Number(*number));
        let among = |numbers: &[u64]| match self.action {
            Action::Allow { .. } => numbers.iter().all(is_named),
            Action::Deny => numbers.iter().any(is_named),
        };
        match codes {
            Codes::NotYet => None,
            Codes::Listed([]) | Codes::Data([]) => Some(false),
            Codes::Listed(listed) => Some(among(listed)),
            Codes::Data(data) => {
                let is_it = |code: &Code| matches!(code, Code::Bytes(bytes) if **bytes == *data);
                Some(self.codes.iter().any(is_it) || numbers(data).is_some_and(|numbers| among(&numbers)))
            }
        }
    }
}

/// Returns the decision of the first matching rule; without a match access is denied.
pub(crate) fn decide<'r>(rules: impl IntoIterator<Item = &'r Rule>, wanted: &Wanted<'_>) -> Decision {
    // The decision of possibly matching rules, while they all agree.
    let mut doubtful: Option<Action> = None;
    let mut sure = Action::Deny;
    for rule in rules {
        if !rule.fits(wanted) {
            continue;
        }
        match rule.fits_codes(wanted.codes) {
            Some(false) => {}
            Some(true) => {
                sure = rule.action;
                break;
            }
            None if doubtful.is_none_or(|before| before == rule.action) => doubtful = Some(rule.action),
            None => return Decision::Depends,
        }
    }
    if doubtful.is_none_or(|doubtful| doubtful == sure) { Decision::Decided(sure) } else { Decision::Depends }
}

/// Returns the numbers of permission data that is a list of numbers; `None` for anything else.
fn numbers(data: &[u8]) -> Option<Vec<u64>> {
    let text = str::from_utf8(data).ok()?;
    let is_separator = |c: char| c == ',' || c == ';' || c == '|' || c == ' ';
    let words = text.split(is_separator).filter(|word| !word.is_empty());
    let is_plain = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    let numbers = words.map(|word| word.parse().ok().filter(|_| is_plain(word))).collect::<Option<Vec<_>>>();
    numbers.filter(|numbers| !numbers.is_empty())
}

pub(crate) fn any(patterns: &[Pattern], name: &[u8]) -> bool {
    patterns.iter().any(|pattern| pattern.matches(name))
}

pub(crate) fn all_or_any(patterns: &[Pattern], name: &[u8]) -> bool {
    patterns.is_empty() || any(patterns, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALLOW: Action = Action::Allow { post: false };

    fn rule(items: &[&str], codes: &[u64], action: Action) -> Rule {
        Rule {
            users: Vec::new(),
            groups: Vec::new(),
            services: Vec::new(),
            items: items.iter().map(|item| Pattern::new(item)).collect(),
            domains: Vec::new(),
            codes: codes.iter().copied().map(Code::Number).collect(),
            action,
        }
    }

    fn said(rules: &[Rule], name: &str, codes: Codes<'_>) -> Decision {
        let name = name.as_bytes();
        decide(rules, &Wanted { service: "S", domain: Domain::MARKET_PRICE, name, codes })
    }

    #[test]
    fn the_first_that_fits_decides_and_without_one_nothing_is_allowed() {
        let rules = [rule(&["AAPL"], &[], Action::Deny), rule(&["A*"], &[], ALLOW)];
        let is = |name| said(&rules, name, Codes::NotYet);
        assert_eq!(is("AAPL"), Decision::Decided(Action::Deny));
        assert_eq!(is("AMZN"), Decision::Decided(ALLOW));
        assert_eq!(is("MSFT"), Decision::Decided(Action::Deny));
        assert_eq!(said(&[], "MSFT", Codes::NotYet), Decision::Decided(Action::Deny));
    }

    #[test]
    fn codes_that_are_not_known_matter_only_where_they_decide() {
        let allow = [rule(&[], &[7, 8], ALLOW)];
        assert_eq!(said(&allow, "A", Codes::NotYet), Decision::Depends);
        let both = [rule(&[], &[7], ALLOW), rule(&[], &[8], Action::Deny), rule(&[], &[], ALLOW)];
        assert_eq!(said(&both, "A", Codes::NotYet), Decision::Depends);
        let either = [rule(&[], &[7], ALLOW), rule(&[], &[], ALLOW)];
        assert_eq!(said(&either, "A", Codes::NotYet), Decision::Decided(ALLOW));
        let denied = [rule(&["B"], &[7], ALLOW), rule(&[], &[9], Action::Deny)];
        assert_eq!(said(&denied, "A", Codes::NotYet), Decision::Decided(Action::Deny));
    }

    #[test]
    fn all_codes_must_be_allowed_and_one_is_enough_to_deny() {
        let rules = [rule(&[], &[9], Action::Deny), rule(&[], &[7, 8, 9], ALLOW)];
        for (codes, allowed) in [
            (&[7][..], true),
            (&[7, 8], true),
            (&[7, 10], false),
            (&[7, 9], false),
            (&[10], false),
            // A rule with codes does not match an item without codes.
            (&[], false),
        ] {
            let text = codes.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
            let expected = Decision::Decided(if allowed { ALLOW } else { Action::Deny });
            assert_eq!(said(&rules, "A", Codes::Listed(codes)), expected, "{codes:?}");
            assert_eq!(said(&rules, "A", Codes::Data(text.as_bytes())), expected, "{text:?}");
        }
    }

    #[test]
    fn permission_data_is_a_list_of_numbers_or_bytes() {
        assert_eq!(numbers(b"1,22;3| 4"), Some(vec![1, 22, 3, 4]));
        for other in [&b""[..], b",", b"1,x", b"+1", b"\x031", b"99999999999999999999", b"\xFF"] {
            assert_eq!(numbers(other), None, "{other:?}");
        }
        let mut rules = [rule(&[], &[], ALLOW)];
        rules[0].codes = vec![Code::Bytes((*b"\x03\x00\x2C").into())];
        assert_eq!(said(&rules, "A", Codes::Data(b"\x03\x00\x2C")), Decision::Decided(ALLOW));
        for other in [&b"\x03\x00"[..], b"\x03\x00\x2C\x00", b""] {
            assert_eq!(said(&rules, "A", Codes::Data(other)), Decision::Decided(Action::Deny));
        }
    }

    #[test]
    fn users_and_groups_are_whom_a_rule_is_about() {
        let mut rule = rule(&[], &[], ALLOW);
        assert!(rule.is_about("anybody", &[]));
        rule.groups = vec!["desk".into()];
        assert!(!rule.is_about("desk", &[]) && rule.is_about("bob", &["desk".into()]));
        rule.users = vec![Pattern::new("al*")];
        assert!(rule.is_about("alice", &[]) && rule.is_about("bob", &["desk".into()]));
        assert!(!rule.is_about("bob", &["web".into()]));
    }
}
