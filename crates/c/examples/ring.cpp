// The ring from C++: a publisher and a subscriber whose messages `tapeline ring sub` and `tapeline ring pub` understand.
//
//     c++ -std=c++17 -O2 ring.cpp -o ring $(pkg-config --cflags --libs tapeline)
//
//     ./ring pub NAME MESSAGES SUBSCRIBERS     waits for SUBSCRIBERS subscribers, publishes in batches, closes
//     ./ring sub NAME                          reads until the publisher closes, checks that nothing is missing

#include <cstring>
#include <iostream>
#include <string>

#include <tapeline.hpp>

// A message starts with a word: 12 bits of mark, 4 bits for the kind of content, 48 bits of sequence.
constexpr std::uint64_t mark = 0x7a9;
constexpr std::size_t message_bytes = 32, messages_in_batch = 16;

static void publish(const std::string &name, std::uint64_t messages, std::uint32_t subscribers) {
    tapeline::ring::publisher publisher(name);
    auto state = publisher.look();
    while (state.subscribers < subscribers) state = publisher.look();

    std::uint64_t sequence = state.frames;
    const std::uint64_t end = sequence + messages;
    while (sequence < end) {
        auto batch = publisher.claim_batch();
        for (std::size_t i = 0; i < messages_in_batch && sequence < end; ++i) {
            void *place = batch.claim(message_bytes);
            if (!place) break; // Full: commit the claimed frames, publish the rest next time.
            const std::uint64_t words[message_bytes / 8] = {mark << 52 | sequence};
            std::memcpy(place, words, sizeof words);
            ++sequence;
        }
        batch.commit();
    }
    publisher.close();
    std::cout << "published " << messages << "\n";
}

static bool subscribe(const std::string &name) {
    tapeline::ring::subscriber subscriber(name, tapeline::ring::start::oldest, "an example in C++");
    std::uint64_t frames = 0, missing = 0, expected = 0;
    tapeline::ring::frame frame;
    while (subscriber.wait_next(frame) == tapeline::ring::poll::frame) {
        std::uint64_t word = 0;
        if (frame.size() >= sizeof word) std::memcpy(&word, frame.data(), sizeof word);
        if (word >> 52 != mark) throw std::runtime_error("a frame is no message of `ring pub`");
        const std::uint64_t sequence = word & ((std::uint64_t{1} << 48) - 1);
        if (frames > 0 && sequence != expected) ++missing;
        expected = sequence + 1;
        ++frames;
    }
    std::cout << "read " << frames << ", missing " << missing << "\n";
    return missing == 0;
}

int main(int count, char **arguments) try {
    const std::string role = count > 1 ? arguments[1] : "";
    if (role == "pub" && count == 5) {
        publish(arguments[2], std::stoull(arguments[3]), static_cast<std::uint32_t>(std::stoul(arguments[4])));
        return 0;
    }
    if (role == "sub" && count == 3) return subscribe(arguments[2]) ? 0 : 1;
    std::cerr << "usage: ring pub NAME MESSAGES SUBSCRIBERS | ring sub NAME\n";
    return 2;
} catch (const std::exception &failure) {
    std::cerr << failure.what() << "\n";
    return 1;
}
