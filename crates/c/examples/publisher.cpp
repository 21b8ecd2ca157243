// Publishes prices of an item to a hub:
//
//     c++ -std=c++17 -O2 publisher.cpp -o publisher $(pkg-config --cflags --libs tapeline)
//     ./publisher HUB SERVICE ITEM UPDATES
//
// HUB is a host and port, such as localhost:14003.

#include <chrono>
#include <iostream>
#include <string>
#include <tapeline.hpp>

int main(int count, char **arguments) try {
    if (count != 5) {
        std::cerr << "usage: publisher HUB SERVICE ITEM UPDATES\n";
        return 2;
    }
    tapeline::publisher publisher({arguments[1], "example"}, 1, arguments[2]);
    const long updates = std::stol(arguments[4]);
    // The first is the image.
    for (long i = 0; i <= updates; i++) {
        publisher.publish(arguments[3], {{"BID", static_cast<double>(3991 + i) / 100},
                                         {"ASK", static_cast<double>(4000 + i) / 100},
                                         {"BIDSIZE", i}});
        while (!publisher.flush(std::chrono::seconds(1)))
            std::cerr << "waiting for the hub: " << publisher.disconnected() << "\n";
    }
    std::cout << "published " << updates << "\n";
    return 0;
} catch (const std::exception &failure) {
    std::cerr << "error: " << failure.what() << "\n";
    return 1;
}
