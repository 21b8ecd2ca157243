// How consumers and publishers connect and log in.

#ifndef TAPELINE_SESSION_HPP
#define TAPELINE_SESSION_HPP

#include <cstdint>
#include <string>

#include "error.hpp"

namespace tapeline {

struct session {
    // Host and port, such as "localhost:14002"; several with commas between: the first that accepts is used.
    std::string servers;
    std::string user = "tapeline";
    // "": none.
    std::string password = {};
    // An address, and a network or host.
    std::string position = "127.0.0.1/net";
    // TLS, and check the server's certificate.
    bool tls = false;
    // A file or folder of certificates to trust, as PEM; "": the system's. Needs `tls`.
    std::string trusted_certificates = {};
    // Simplified JSON over a WebSocket, instead of RWF.
    bool json = false;
    std::uint16_t application_id = 256;
};

namespace detail {

// The options for C, which point into `of`.
inline tapeline_session_options options(const session &of) noexcept {
    tapeline_session_options raw = {};
    raw.size = sizeof raw;
    raw.servers = of.servers.c_str();
    raw.user = of.user.c_str();
    raw.password = of.password.empty() ? nullptr : of.password.c_str();
    raw.position = of.position.c_str();
    raw.trusted_certificates = of.trusted_certificates.empty() ? nullptr : of.trusted_certificates.c_str();
    raw.tls = of.tls;
    raw.json = of.json;
    raw.application_id = of.application_id;
    return raw;
}

} // namespace detail

} // namespace tapeline

#endif // TAPELINE_SESSION_HPP
