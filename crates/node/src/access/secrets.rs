//! Passwords and tokens: computes and verifies their stored hashes.

use std::fmt::Write;

use argon2::password_hash::{PasswordHash, SaltString};
use argon2::{Algorithm, Argon2, Params, PasswordHasher, PasswordVerifier, Version};
use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use rustix::rand::{GetRandomFlags, getrandom};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tapeline_hub::Verdict;
use tapeline_hub::access::{Proof, TokenHash};

use crate::Error;
use crate::error::Context;

/// Bytes of a salt, as recommended by RFC 9106 (section 3.1).
const SALT: usize = 16;
/// Bytes of a token: 256 bits cannot be guessed.
const TOKEN: usize = 32;
/// Maximum memory of a check, in KiB, its maximum rounds, and its maximum lanes: a hash may come from another
/// program, and must not delay other checks for ever. The memory is that of RFC 9106's second choice (section
/// 4).
pub const MOST_MEMORY_KIB: u32 = 64 << 10;
const MOST_ROUNDS: u32 = 16;
const MOST_LANES: u32 = 8;

/// Returns the hash of a password in PHC format: Argon2id with the crate's default costs, OWASP's second
/// choice: 19 MiB, two rounds.
pub fn hash_of_password(password: &[u8]) -> crate::Result<String> {
    let salt = SaltString::encode_b64(&random::<SALT>()?).map_err(|error| Error::new(error.to_string()))?;
    let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, Params::default());
    let hash = argon2.hash_password(password, &salt).map_err(|error| Error::new(error.to_string()))?;
    Ok(hash.to_string())
}

/// Returns a new token as text.
pub fn new_token() -> crate::Result<String> {
    Ok(BASE64URL_NOPAD.encode(&random::<TOKEN>()?))
}

/// Returns the stored hash of a token, as text.
pub fn hash_of_token(token: &[u8]) -> String {
    let mut text = TOKEN_PREFIX.to_owned();
    let _ = write!(text, "{}", HEXLOWER.encode_display(&Sha256::digest(token)));
    text
}

/// Prefix of a token's hash in a file.
pub const TOKEN_PREFIX: &str = "sha256:";

/// Parses a token's hash from a file.
pub fn token_hash(text: &str) -> Option<TokenHash> {
    let digits = text.strip_prefix(TOKEN_PREFIX)?;
    HEXLOWER.decode(digits.to_ascii_lowercase().as_bytes()).ok()?.try_into().ok()
}

/// Checks whether this is a hash that a password can be verified against; the error is the reason.
pub fn is_password_hash(text: &str) -> Result<(), String> {
    let hash =
        PasswordHash::new(text).map_err(|error| format!("this is not a hash in PHC format: {error}"))?;
    if hash.algorithm != Algorithm::Argon2id.ident() {
        return Err(format!("this is a hash of {}; argon2id is expected", hash.algorithm));
    }
    if hash.hash.is_none() || hash.salt.is_none() {
        return Err("this hash lacks its salt, or its last part".to_owned());
    }
    let params = Params::try_from(&hash)
        .map_err(|error| format!("the cost parameters of this hash are wrong: {error}"))?;
    if params.m_cost() > MOST_MEMORY_KIB || params.t_cost() > MOST_ROUNDS || params.p_cost() > MOST_LANES {
        return Err(format!(
            "a check of this hash costs too much: at most m={MOST_MEMORY_KIB}, t={MOST_ROUNDS} and p={MOST_LANES} are expected"
        ));
    }
    Ok(())
}

/// Verifies a proof: takes tens of milliseconds for a password.
pub fn verify(proof: &Proof) -> Verdict {
    match proof {
        Proof::Password { password, hash } => {
            let is_right = PasswordHash::new(hash)
                .is_ok_and(|hash| Argon2::default().verify_password(password.bytes(), &hash).is_ok());
            if is_right { Verdict::Right(0) } else { Verdict::Wrong }
        }
        Proof::Token { token, hashes } => {
            let shown: TokenHash = Sha256::digest(token.bytes()).into();
            // All hashes are compared, whichever matches.
            let mut found = Verdict::Wrong;
            for (place, hash) in hashes.iter().enumerate() {
                if bool::from(hash.ct_eq(&shown)) {
                    found = Verdict::Right(place);
                }
            }
            found
        }
        // A proof of a later version of the hub.
        _ => Verdict::Wrong,
    }
}

fn random<const N: usize>() -> crate::Result<[u8; N]> {
    let mut bytes = [0; N];
    let mut filled = 0;
    while filled < N {
        filled += getrandom(&mut bytes[filled..], GetRandomFlags::empty())
            .context("the machine has no random numbers")?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use tapeline_hub::access::Secret;

    use super::*;

    fn password(password: &[u8], hash: &str) -> Verdict {
        verify(&Proof::Password { password: Secret::new(password), hash: hash.into() })
    }

    #[test]
    fn a_password_is_right_for_its_own_hash_alone() {
        let (one, other) = (hash_of_password(b"one").unwrap(), hash_of_password(b"one").unwrap());
        assert_ne!(one, other, "each has a salt of its own");
        assert_eq!(is_password_hash(&one), Ok(()));
        assert_eq!([password(b"one", &one), password(b"one", &other)], [Verdict::Right(0); 2]);
        assert_eq!([password(b"two", &one), password(b"", &one), password(b"one", "")], [Verdict::Wrong; 3]);
        // From the reference implementation (phc-winner-argon2, src/test.c).
        let reference =
            "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc";
        assert_eq!(is_password_hash(reference), Ok(()));
        assert_eq!(
            [password(b"password", reference), password(b"passwort", reference)],
            [Verdict::Right(0), Verdict::Wrong]
        );
    }

    #[test]
    fn a_token_is_found_by_its_hash() {
        let token = new_token().unwrap();
        assert_eq!((token.len(), token == new_token().unwrap()), (43, false));
        let hashes = [hash_of_token(b"other"), hash_of_token(token.as_bytes())];
        let hashes: Vec<TokenHash> = hashes.iter().map(|hash| token_hash(hash).unwrap()).collect();
        let shown =
            |token: &[u8]| verify(&Proof::Token { token: Secret::new(token), hashes: hashes.clone().into() });
        assert_eq!(
            [shown(token.as_bytes()), shown(b"other"), shown(b"")],
            [Verdict::Right(1), Verdict::Right(0), Verdict::Wrong]
        );
        // `printf abc | sha256sum`
        let abc = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hash_of_token(b"abc"), abc);
        assert_eq!(token_hash(&abc.to_uppercase().replace("SHA256", "sha256")), token_hash(abc));
        assert_eq!((token_hash("sha256:12"), token_hash("ba78")), (None, None));
    }

    #[test]
    fn other_hashes_and_those_that_cost_too_much_are_refused() {
        for (hash, says) in [
            ("secret", "not a hash in PHC format"),
            ("$2b$12$abcdefghijklmnopqrstuv", "not a hash in PHC format"),
            (
                "$argon2i$v=19$m=19456,t=2,p=1$c29tZXNhbHQ$RdescudvJCsgt3ub+b/dWRWJTmaaJObG",
                "argon2id is expected",
            ),
            ("$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHQ", "lacks"),
            (
                "$argon2id$v=19$m=4194304,t=2,p=1$c29tZXNhbHQ$RdescudvJCsgt3ub+b/dWRWJTmaaJObG",
                "costs too much",
            ),
        ] {
            let said = is_password_hash(hash).unwrap_err();
            assert!(said.contains(says), "{hash}: {said}");
        }
    }
}
