// Reads the ticks of a plant, from its ring or from its journal:
//
//     c++ -std=c++17 -O2 ticks.cpp -o ticks $(pkg-config --cflags --libs tapeline)
//     ./ticks ring NAME            until the plant ends
//     ./ticks journal FOLDER FROM  from this sequence to the end
//
// Prints each tick, and how many there were.

#include <cstdint>
#include <iostream>
#include <stdexcept>
#include <string>

#include "print.hpp"

static std::uint64_t ticks, missing, expected;

static void print(const tapeline::tick &tick) {
    const auto kind = tick.kind();
    std::cout << tick.sequence()
              << (kind == tapeline::tick_kind::image ? " image " : kind == tapeline::tick_kind::status ? " status " : " update ")
              << tick.item() << tick.message() << "\n";
    if (expected != 0 && tick.sequence() > expected) missing += tick.sequence() - expected;
    expected = tick.sequence() + 1;
    ++ticks;
}

static void of_ring(const std::string &name) {
    tapeline::ring::subscriber subscriber(name, tapeline::ring::start::oldest, "an example in C++");
    tapeline::ring::frame frame;
    for (;;) {
        switch (subscriber.wait_next(frame)) {
        case tapeline::ring::poll::frame: print(tapeline::tick(frame.data(), frame.size())); break;
        case tapeline::ring::poll::empty: break;
        case tapeline::ring::poll::ended: return;
        default: throw std::runtime_error("this reader was evicted, or the ring is damaged");
        }
    }
}

int main(int count, char **arguments) try {
    const std::string from = count > 1 ? arguments[1] : "";
    if (from == "ring" && count == 3) {
        of_ring(arguments[2]);
    } else if (from == "journal" && count == 4) {
        tapeline::journal journal(arguments[2]);
        journal.seek(std::stoull(arguments[3]));
        journal.each(print);
    } else {
        std::cerr << "usage: ticks ring NAME | ticks journal FOLDER FROM\n";
        return 2;
    }
    std::cout << "read " << ticks << ", missing " << missing << "\n";
    return 0;
} catch (const std::exception &failure) {
    std::cerr << "error: " << failure.what() << "\n";
    return 1;
}
