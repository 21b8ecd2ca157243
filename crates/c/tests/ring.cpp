// The C++ wrapper: handles that free themselves, exceptions, outcomes.

#include <cstring>
#include <iostream>

#include <tapeline.hpp>

static void expect(bool so, int line) {
    if (!so) throw std::runtime_error("line " + std::to_string(line) + ": not so");
}
#define EXPECT(condition) expect(condition, __LINE__)

template <typename Call> static tapeline_code thrown(Call call) {
    try {
        call();
    } catch (const tapeline::error &error) {
        EXPECT(std::strlen(error.what()) > 0);
        return error.code();
    }
    return TAPELINE_OK;
}

static void gated(const std::string &name) {
    tapeline::ring::options options;
    options.capacity = 4096;
    options.max_frame = 100;
    tapeline::ring::publisher publisher(name, options);
    EXPECT(thrown([&] { tapeline::ring::publisher second(name, options); }) == TAPELINE_ERROR_PUBLISHER_ALIVE);
    EXPECT(thrown([&] { static_cast<void>(publisher.claim(101)); }) == TAPELINE_TOO_LONG);
    tapeline::ring::subscriber subscriber(name);
    tapeline::ring::frame frame;

    {
        auto aborted = publisher.claim(4);
        EXPECT(static_cast<bool>(aborted));
    }
    EXPECT(subscriber.next(frame) == tapeline::ring::poll::empty);
    auto claim = publisher.claim(10);
    auto moved = std::move(claim);
    EXPECT(!claim && moved.size() == 10);
    std::memcpy(moved.data(), "0123456789", 10);
    EXPECT(moved.commit_prefix(3) == 0);
    EXPECT(thrown([&] { publisher.claim(4).commit_prefix(5); }) == TAPELINE_TOO_LONG);
    {
        auto batch = publisher.claim_batch();
        std::memcpy(batch.claim(1), "x", 1);
    }
    EXPECT(publisher.publish("text"));
    auto sink = std::move(subscriber);
    EXPECT(sink.next(frame) == tapeline::ring::poll::frame && frame.text() == "012");
    EXPECT(sink.next(frame) == tapeline::ring::poll::frame && frame.text() == "text" && frame.epoch() == 1);
    EXPECT(sink.next(frame) == tapeline::ring::poll::empty);
    EXPECT(!sink.wait(tapeline::ring::wait::park, std::chrono::microseconds(1)));

    publisher.set_note({1, 2, 3, 4, 5, 6, 7, 8});
    std::array<std::uint64_t, 8> note = {};
    EXPECT(sink.note(note) && note[7] == 8);
    EXPECT(publisher.look().frames == 2 && sink.look().publisher_alive == 1);
    while (publisher.publish("full at last")) {
    }
    EXPECT(!publisher.claim(1) && publisher.claim_batch().claim(1) == nullptr);
    auto other = std::move(publisher);
    other.close();
    while (sink.next(frame) == tapeline::ring::poll::frame) EXPECT(frame.text() == "full at last");
    EXPECT(sink.next(frame) == tapeline::ring::poll::ended);
    EXPECT(thrown([&] { tapeline::ring::subscriber none(name); }) == TAPELINE_ERROR_NOT_FOUND);
}

static void broadcast(const std::string &name) {
    tapeline::ring::options options;
    options.capacity = 4096;
    options.policy = tapeline::ring::policy::broadcast;
    options.framing = tapeline::ring::framing::lines;
    tapeline::ring::publisher publisher(name, options);
    EXPECT(thrown([&] { tapeline::ring::subscriber gated(name); }) == TAPELINE_ERROR_OTHER_POLICY);
    auto subscriber = tapeline::ring::subscriber::join_broadcast(name, tapeline::ring::start::oldest);
    for (int i = 0; i < 1000; i++) EXPECT(publisher.publish("tick"));
    tapeline::ring::frame frame;
    EXPECT(subscriber.next(frame) == tapeline::ring::poll::lost);
    auto read = subscriber.lost();
    while (subscriber.next(frame) == tapeline::ring::poll::frame) ++read;
    EXPECT(read == 1000 && !subscriber.is_evicted());
}

int main(int, char **arguments) try {
    gated(arguments[1]);
    broadcast(arguments[1]);
    std::cout << "ok\n";
    return 0;
} catch (const std::exception &failure) {
    std::cerr << failure.what() << "\n";
    return 1;
}
