//! Which web pages a server in reach of a browser answers.
//!
//! A browser carries out what any page asks of it, from where its user sits: a page of somebody else's could talk to servers
//! on the user's own machine and network. So a browser says which page is asking (`Origin`, RFC 6454; RFC 6455, section
//! 10.2), and under which name it was told to look (`Host`). A server that compares the two is still deceived by a page
//! whose own name leads to the server's address after it was loaded (DNS rebinding). Hence the rule: where browsers come
//! by an address, by `localhost` or by this machine's own name, the page has to come from the same host; any other name
//! has to be known to the server.

/// Whether this is a host that nobody else can give a meaning to: an address, `localhost`, this machine's own name.
pub(crate) fn is_own_host(host: &str) -> bool {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    bare.parse::<std::net::IpAddr>().is_ok()
        || bare.eq_ignore_ascii_case("localhost")
        || rustix::system::uname().nodename().to_str().is_ok_and(|name| bare.eq_ignore_ascii_case(name))
}

/// The host of `host:port`, `[::1]:port`, or either without its port.
pub(crate) fn host_of(authority: &str) -> &str {
    match authority.rfind(':') {
        // A colon within brackets is the address's own.
        Some(colon) if !authority[colon..].contains(']') => &authority[..colon],
        _ => authority,
    }
}

/// Whether a page of this origin may talk to a server that it reached as `host` (both as the headers have them) and that
/// lets in pages of the origins `listed`.
#[cfg(feature = "rssl")]
pub(crate) fn may_connect(origin: &str, host: Option<&str>, listed: &[String]) -> bool {
    if listed.iter().any(|listed| listed == "*" || listed.eq_ignore_ascii_case(origin)) {
        return true;
    }
    // "null" is a page of no host: a file, or one in a sandbox.
    let (Some((_, authority)), Some(host)) = (origin.split_once("://"), host) else { return false };
    let (from, to) = (host_of(authority), host_of(host));
    from.eq_ignore_ascii_case(to) && is_own_host(to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_other_hosts_are_turned_away() {
        let listed = ["https://desk.example:8443".to_owned()];
        for (origin, host, may) in [
            ("http://127.0.0.1:9100", "127.0.0.1:14002", true),
            ("http://localhost:9100", "LOCALHOST:14002", true),
            ("http://[::1]:9100", "[::1]:14002", true),
            ("http://[::1]", "[::1]", true),
            ("https://desk.example:8443", "10.0.0.7:14002", true),
            // Somebody else's page, and one whose name was led here after it was loaded.
            ("https://evil.example", "127.0.0.1:14002", false),
            ("http://evil.example:14002", "evil.example:14002", false),
            ("http://desk.example", "10.0.0.7:14002", false),
            ("http://10.0.0.8", "10.0.0.7:14002", false),
            ("http://localhost", "127.0.0.1:14002", false),
            ("null", "127.0.0.1:14002", false),
            ("", "127.0.0.1", false),
        ] {
            assert_eq!(may_connect(origin, Some(host), &listed), may, "{origin} at {host}");
        }
        assert!(!may_connect("http://127.0.0.1", None, &listed));
        assert!(may_connect("null", None, &["*".to_owned()]));
    }

    #[test]
    fn this_machines_own_name_is_its_own() {
        let name = rustix::system::uname().nodename().to_str().unwrap().to_owned();
        assert!(may_connect(&format!("http://{name}:1"), Some(&format!("{name}:2")), &[]));
    }
}
