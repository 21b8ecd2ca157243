//! The file of users: one line `NAME HASH [KEY=VALUE …]` for each.

use std::collections::BTreeMap;

use tapeline_hub::access::User;

use super::secrets::{TOKEN_PREFIX, is_password_hash, token_hash};

/// The longest name that a login can carry, in bytes.
const LONGEST_NAME: usize = 255;
/// Maximum number of users in one file: each takes about a hundred bytes.
const MOST: usize = 100_000;

/// A fault in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Line of the fault, counted from 1.
    pub line: usize,
    /// First byte of the fault in its line, counted from 1.
    pub column: usize,
    /// What is wrong, and what was expected.
    pub what: String,
    /// Advice to the author of the file.
    pub hint: &'static str,
}

/// A part of a line, and its column.
type Word<'a> = (usize, &'a str);

/// The words of a line, separated by white space.
fn words(line: &str) -> impl Iterator<Item = Word<'_>> {
    let at = move |word: &str| word.as_ptr().addr() - line.as_ptr().addr() + 1;
    line.split_whitespace().map(move |word| (at(word), word))
}

/// Whether a line is empty or a comment.
pub fn is_empty(line: &str) -> bool {
    let line = line.trim_start();
    line.is_empty() || line.starts_with('#')
}

/// Returns the users of a file, and all its faults.
pub fn parse(text: &str) -> (Vec<User>, Vec<Fault>) {
    let mut users: BTreeMap<&str, User> = BTreeMap::new();
    let mut faults = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        if is_empty(line) {
            continue;
        }
        let fault = |(column, what, hint)| Fault { line: number, column, what, hint };
        let mut words = words(line);
        let Some(name) = words.next() else { continue };
        if let Err(found) = is_name(name.1) {
            faults.push(fault((name.0, found, NAME_HINT)));
            continue;
        }
        if users.len() >= MOST && !users.contains_key(name.1) {
            faults.push(fault((1, format!("more than {MOST} users"), "this is the limit of a hub")));
            break;
        }
        let user = users.entry(name.1).or_insert_with(|| User::new(name.1));
        faults.extend(secret(user, words.next(), name).err().map(fault));
        for word in words {
            faults.extend(option(user, word).err().map(fault));
        }
    }
    (users.into_values().collect(), faults)
}

/// A fault: column, text, hint.
type Complaint = (usize, String, &'static str);

fn secret(user: &mut User, word: Option<Word<'_>>, name: Word<'_>) -> Result<(), Complaint> {
    let Some((column, text)) = word else {
        let what = format!("{} has no hash", name.1);
        return Err((name.0 + name.1.len(), what, HASH_HINT));
    };
    if let Some(hash) = token_hash(text) {
        user.tokens.push(hash);
        return Ok(());
    }
    // The text may be a plain password: it is not repeated in the message.
    if text.starts_with(TOKEN_PREFIX) {
        let what = format!("{TOKEN_PREFIX} and 64 hexadecimal digits are expected");
        return Err((column, what, HASH_HINT));
    }
    is_password_hash(text).map_err(|what| (column, what, HASH_HINT))?;
    if !user.password_hash.is_empty() {
        return Err((
            column,
            format!("{} has a password already", name.1),
            "a user has one password and any number of tokens",
        ));
    }
    user.password_hash = text.into();
    Ok(())
}

fn option(user: &mut User, (column, word): Word<'_>) -> Result<(), Complaint> {
    let (key, value) = word.split_once('=').unwrap_or((word, ""));
    let number = || match value.parse::<usize>() {
        Ok(number) if number > 0 => Ok(Some(number)),
        _ => Err((column, format!("{key} is \"{value}\"; a number from 1 is expected"), OPTION_HINT)),
    };
    match key {
        "groups" => {
            for group in value.split(',') {
                is_name(group).map_err(|what| (column, format!("groups: {what}"), OPTION_HINT))?;
                if !user.groups.iter().any(|known| **known == *group) {
                    user.groups.push(group.into());
                }
            }
        }
        "max_connections" => user.max_connections = number()?,
        "max_items" => user.max_streams = number()?,
        _ => {
            let known = ["groups", "max_connections", "max_items"];
            let near = tapeline_client::nearest(key, &known).map(|near| format!("; did you mean {near}?"));
            let what = format!("unknown key \"{}\"{}", key.escape_debug(), near.unwrap_or_default());
            return Err((column, what, OPTION_HINT));
        }
    }
    Ok(())
}

/// Checks the name of a user or a group; the error is the reason.
pub fn is_name(text: &str) -> Result<(), String> {
    if text.is_empty() || text.len() > LONGEST_NAME {
        return Err(format!("a name has {} bytes; 1 to {LONGEST_NAME} are expected", text.len()));
    }
    let bad = |c: char| c.is_control() || c.is_whitespace() || c == '#' || c == ',' || c == '=';
    match text.chars().find(|c| bad(*c)) {
        None => Ok(()),
        Some(c) => Err(format!("a name may not contain {c:?}")),
    }
}

const NAME_HINT: &str = "a line is NAME HASH [KEY=VALUE ...]; # begins a comment";
const HASH_HINT: &str =
    "`tapeline plant passwd NAME --users FILE` and `tapeline plant token NAME --users FILE` write such lines";
const OPTION_HINT: &str = "such as groups=desk,web max_connections=2 max_items=1000";

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHQ$RdescudvJCsgt3ub+b/dWRWJTmaaJObG";

    #[test]
    fn passwords_tokens_and_options_of_a_user_are_gathered() {
        let token = format!("sha256:{}", "ab".repeat(32));
        let text = format!(
            "# users\n\nalice {HASH} groups=desk,web max_items=10\nbob\t{token}\n  alice {token} groups=web,night\n\
             alice sha256:{}\r\n",
            "cd".repeat(32)
        );
        let (users, faults) = parse(&text);
        assert_eq!(faults, []);
        let [alice, bob] = users.as_slice() else { panic!("{users:?}") };
        assert_eq!((&*alice.name, &*alice.password_hash, alice.tokens.len()), ("alice", HASH, 2));
        assert_eq!(alice.groups, [Box::from("desk"), "web".into(), "night".into()]);
        assert_eq!((alice.max_streams, alice.max_connections), (Some(10), None));
        assert_eq!((&*bob.name, bob.tokens.as_slice()), ("bob", &[[0xAB; 32]][..]));
    }

    #[test]
    fn all_that_is_wrong_is_said_with_its_place_and_no_secret() {
        let text = format!(
            "alice {HASH}\nalice {HASH}\nbob\ncarl hunter2\ndave sha256:12\n  eve {HASH} group=x max_items=0\n\
             a=b {HASH}\nfay {HASH} groups=a,,b\n"
        );
        let (users, faults) = parse(&text);
        let said: Vec<_> = faults.iter().map(|f| (f.line, f.column, f.what.as_str())).collect();
        for (at, (line, column, what)) in [
            (2, 7, "alice has a password already"),
            (3, 4, "bob has no hash"),
            (4, 6, "not a hash in PHC format"),
            (5, 6, "64 hexadecimal digits"),
            (6, 3 + 4 + HASH.len() + 1, "did you mean groups?"),
            (6, 3 + 4 + HASH.len() + 9, "max_items is \"0\""),
            (7, 1, "a name may not contain '='"),
            (8, 5 + HASH.len() + 1, "groups: a name has 0 bytes"),
        ]
        .into_iter()
        .enumerate()
        {
            assert_eq!((said[at].0, said[at].1), (line, column), "{said:?}");
            assert!(said[at].2.contains(what), "{said:?}");
        }
        assert_eq!(said.len(), 8);
        assert!(!format!("{faults:?}").contains("hunter2"));
        assert_eq!(users.len(), 6);
    }
}
