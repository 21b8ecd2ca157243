//! Access rules, in worlds that have them: a part of the items is denied to each client, a different part after a
//! reload.

use std::sync::Arc;

use tapeline_hub::Access;
use tapeline_hub::access::{Action, Pattern, Rule};

use crate::plan::{domain_of, of_label};
use crate::trace::fnv;

/// The number of the rules in force, or `None`.
pub(crate) type Rules = Option<u64>;

/// The login name of a client.
pub(crate) fn user(client: usize) -> String {
    format!("u{client}")
}

/// Whether an item is denied to a client. Items that publishers invent and withdraw never are.
pub(crate) fn is_denied(client: usize, item: &str, rules: Rules) -> bool {
    let is_there_for_good = !of_label(item).1.starts_with('X');
    is_there_for_good
        && rules
            .is_some_and(|rules| (fnv(format!("{client} {item} {rules}").as_bytes()) >> 20).is_multiple_of(5))
}

/// The same rules in the hub's form.
pub(crate) fn access(clients: usize, items: &[String], rules: Rules) -> Arc<Access> {
    if rules.is_none() {
        return Arc::default();
    }
    let anybody = Rule {
        users: Vec::new(),
        groups: Vec::new(),
        services: Vec::new(),
        items: Vec::new(),
        domains: Vec::new(),
        codes: Vec::new(),
        action: Action::Allow { post: true },
    };
    let mut all = Vec::new();
    for client in 0..clients {
        for item in items.iter().filter(|item| is_denied(client, item, rules)) {
            let (service, name) = of_label(item);
            all.push(Rule {
                users: vec![Pattern::new(&user(client))],
                services: vec![Pattern::new(service)],
                items: vec![Pattern::new(name)],
                domains: vec![domain_of(item)],
                action: Action::Deny,
                ..anybody.clone()
            });
        }
    }
    all.push(anybody);
    Arc::new(Access { rules: all, ..Access::default() })
}
