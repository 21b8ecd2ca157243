// Prints the images and updates of items of a service:
//
//     c++ -std=c++17 -O2 consumer.cpp -o consumer $(pkg-config --cflags --libs tapeline)
//     ./consumer SERVER SERVICE MESSAGES ITEM...
//
// SERVER is a host and port, such as localhost:14002. Ends after so many messages; 0: never. In the environment, TAPELINE_USER and
// TAPELINE_PASSWORD are the login, TAPELINE_CA a file of certificates to trust (then with TLS), and TAPELINE_JSON=1 is for JSON.

#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "print.hpp"

int main(int count, char **arguments) try {
    if (count < 5) {
        std::cerr << "usage: consumer SERVER SERVICE MESSAGES ITEM...\n";
        return 2;
    }
    tapeline::session session{arguments[1]};
    if (const char *user = std::getenv("TAPELINE_USER")) session.user = user;
    if (const char *password = std::getenv("TAPELINE_PASSWORD")) session.password = password;
    if (const char *certificates = std::getenv("TAPELINE_CA")) session.trusted_certificates = certificates;
    session.tls = !session.trusted_certificates.empty();
    session.json = std::getenv("TAPELINE_JSON") != nullptr;
    tapeline::consumer consumer(session);
    consumer.subscribe(arguments[2], std::vector<std::string>(arguments + 4, arguments + count));
    const auto wanted = std::stoul(arguments[3]);
    unsigned long messages = 0;
    consumer.run([&](const tapeline::event &event) {
        switch (event.kind()) {
        case tapeline::event_kind::image:
        case tapeline::event_kind::update:
            std::cout << (event.is_image() ? "image " : "update ") << event.item() << event.message() << std::endl;
            break;
        case tapeline::event_kind::status:
        case tapeline::event_kind::state: {
            const bool is_closed = event.raw().has_state && event.raw().stream_state != 1;
            std::cout << "status " << event.item() << (is_closed ? " closed: " : " state: ") << event.text() << std::endl;
            break;
        }
        case tapeline::event_kind::connected: std::cerr << "connected: " << event.server() << "\n"; return true;
        case tapeline::event_kind::disconnected:
        case tapeline::event_kind::note: std::cerr << "note: " << event.server() << " " << event.text() << "\n"; return true;
        default: return true;
        }
        return ++messages != wanted;
    });
    return 0;
} catch (const std::exception &failure) {
    std::cerr << "error: " << failure.what() << "\n";
    return 1;
}
