//! Invalid TLS, or a certificate of another authority.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

use crate::hub_faults::count;
use crate::hub_faults::market::Market;
use crate::hub_faults::stage::Place;

/// Writes an authority and a certificate for `localhost`.
fn certificates(folder: &Path) {
    for authority in ["ca", "other"] {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        std::fs::write(folder.join(format!("{authority}.pem")), params.self_signed(&key).unwrap().pem())
            .unwrap();
        if authority == "ca" {
            let issuer = Issuer::new(params, key);
            let key = KeyPair::generate().unwrap();
            let server = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
            let signed = server.signed_by(&key, &issuer).unwrap().pem();
            std::fs::write(folder.join("server.pem"), signed).unwrap();
            std::fs::write(folder.join("server.key"), key.serialize_pem()).unwrap();
        }
    }
}

#[test]
fn who_does_not_trust_the_certificate_or_speaks_plainly_is_shut_out() {
    let place = Place::new(1);
    let folder = place.folder.path().to_owned();
    certificates(&folder);
    let file = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (ca, other) = (file("ca.pem"), file("other.pem"));
    let hub = "cert = \"server.pem\"\nkey = \"server.key\"";
    let market = Market::open_at(place, hub, &["--tls", "--ca", &ca]);
    let (report, _) = crate::hub_faults::day(market, |market| {
        let mut wary = market.consumer(&["--tls", "--ca", &other]);
        market.plant.tells(&["never opened", "TLS: received fatal alert"]);
        assert_eq!(wary.child.wait().unwrap().code(), Some(1));
        // RSSL's opening, and an HTTP request.
        for opening in [&b"\x00\x40\x00\x00\x00\x00\x17"[..], b"GET /WebSocket HTTP/1.1\r\n\r\n"] {
            let mut plain = TcpStream::connect(market.address()).unwrap();
            let from = plain.local_addr().unwrap().to_string();
            plain.write_all(opening).unwrap();
            let _ = plain.read_to_end(&mut Vec::new());
            market.plant.tells(&["never opened", "TLS", &from]);
        }
    });
    assert_eq!((count(&report, "sessions"), count(&report, "never_opened")), (1, 3), "{report}");
}
