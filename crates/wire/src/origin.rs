//! Decides which web pages a server may answer.
//!
//! A browser sends the requests of any page, from inside its user's network: a foreign page could reach
//! servers on the user's own machine and network. The browser therefore states which page makes the request
//! (`Origin`, RFC 6454; RFC 6455, section 10.2), and the host name that it used (`Host`). A comparison of the
//! two is not enough: the name of a foreign page can resolve to the server's address after the page was
//! loaded (DNS rebinding). Hence the rule: if the browser used an address, `localhost` or this machine's own
//! name, the page must come from the same host; any other host name must be known to the server.

/// Returns `true` for a host that nobody else can redirect: an address, `localhost`, or this machine's own
/// name.
pub(crate) fn is_own_host(host: &str) -> bool {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    bare.parse::<std::net::IpAddr>().is_ok()
        || bare.eq_ignore_ascii_case("localhost")
        || rustix::system::uname().nodename().to_str().is_ok_and(|name| bare.eq_ignore_ascii_case(name))
}

/// Returns the host of `host:port`, `[::1]:port`, or either without its port.
pub(crate) fn host_of(authority: &str) -> &str {
    match authority.rfind(':') {
        // A colon within brackets is part of the address.
        Some(colon) if !authority[colon..].contains(']') => &authority[..colon],
        _ => authority,
    }
}

/// Returns `true` if a page of this origin may talk to a server that it reached as `host` (both as in the
/// headers) and that permits pages of the origins `listed`.
#[cfg(feature = "rssl")]
pub(crate) fn may_connect(origin: &str, host: Option<&str>, listed: &[String]) -> bool {
    if listed.iter().any(|listed| listed == "*" || listed.eq_ignore_ascii_case(origin)) {
        return true;
    }
    // "null" is a page without a host: a file, or a sandboxed page.
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
            // A foreign page, and one whose name was redirected here after it was loaded.
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
