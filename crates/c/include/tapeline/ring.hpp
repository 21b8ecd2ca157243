// Rings for C++17: handles that free themselves, errors as exceptions, outcomes as values. A thin wrapper of tapeline.h,
// which documents more; it adds no cost per message to the C call.
//
//     tapeline::ring::publisher publisher("quotes");
//     if (auto claim = publisher.claim(32)) {          // empty: the ring is full
//         std::memcpy(claim.data(), &quote, 32);
//         claim.commit();                              // not committed: aborted at the end of the block
//     }
//
//     tapeline::ring::subscriber subscriber("quotes");
//     tapeline::ring::frame frame;
//     while (subscriber.wait_next(frame) == tapeline::ring::poll::frame) use(frame.data(), frame.size());
//
// As in C, a handle may move from thread to thread, and only one thread may use it at a time.

#ifndef TAPELINE_RING_HPP
#define TAPELINE_RING_HPP

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "error.hpp"

namespace tapeline::ring {

enum class policy : std::uint32_t { gated = TAPELINE_GATED, broadcast = TAPELINE_BROADCAST };
enum class framing : std::uint32_t { packed = TAPELINE_PACKED, lines = TAPELINE_LINES };

// Options of a new ring; zero is each field's default.
struct options {
    std::size_t capacity = 0;
    std::size_t max_frame = 0;
    std::uint32_t mode = 0;
    std::optional<std::uint32_t> group = {};
    ring::policy policy = policy::gated;
    ring::framing framing = framing::packed;
    std::chrono::nanoseconds stall_limit = {};
    bool keep = false;
    bool wake_on_flush = false;
    bool huge_pages = false;
};

// A claimed frame, or none: `if (claim)`. It must not outlive its publisher. While it is open, make no other
// call with the publisher.
class claim {
public:
    claim(claim &&other) noexcept
        : publisher_(std::exchange(other.publisher_, nullptr)), data_(other.data_), size_(other.size_) {}
    claim &operator=(claim &&) = delete;
    ~claim() {
        if (publisher_) static_cast<void>(tapeline_ring_publisher_abort(publisher_));
    }

    // False: the ring was full.
    explicit operator bool() const noexcept { return publisher_ != nullptr; }
    // The frame's bytes, to be written in place.
    void *data() const noexcept { return data_; }
    std::size_t size() const noexcept { return size_; }

    // Makes the frame visible; returns its position.
    std::uint64_t commit() {
        std::uint64_t position = 0;
        detail::checked(tapeline_ring_publisher_commit(std::exchange(publisher_, nullptr), &position));
        return position;
    }
    // Makes the frame visible with only its first `size` bytes.
    std::uint64_t commit_prefix(std::size_t size) {
        std::uint64_t position = 0;
        auto code = tapeline_ring_publisher_commit_prefix(std::exchange(publisher_, nullptr), size, &position);
        if (detail::checked(code) != TAPELINE_OK) throw error(code, "the prefix is longer than the claim");
        return position;
    }

private:
    friend class publisher;
    claim() = default;
    claim(tapeline_ring_publisher *publisher, void *data, std::size_t size)
        : publisher_(publisher), data_(data), size_(size) {}

    tapeline_ring_publisher *publisher_ = nullptr;
    void *data_ = nullptr;
    std::size_t size_ = 0;
};

// Frames that become visible together; aborted unless committed.
class batch {
public:
    batch(batch &&other) noexcept
        : publisher_(std::exchange(other.publisher_, nullptr)), frames_(std::exchange(other.frames_, 0)) {}
    batch &operator=(batch &&) = delete;
    ~batch() {
        if (frames_ != 0) static_cast<void>(tapeline_ring_publisher_abort(publisher_));
    }

    // The next frame's bytes, to be written in place; nullptr if the ring is full. Frames claimed earlier can still
    // be committed.
    void *claim(std::size_t size) {
        void *data = nullptr;
        auto code = tapeline_ring_publisher_batch_claim(publisher_, size, &data);
        if (detail::checked(code) == TAPELINE_FULL) return nullptr;
        if (code != TAPELINE_OK) throw error(code, "the frame is longer than the ring takes");
        ++frames_;
        return data;
    }
    // Makes all frames visible; nothing for an empty batch.
    void commit() {
        if (std::exchange(frames_, 0) != 0) detail::checked(tapeline_ring_publisher_commit(publisher_, nullptr));
    }

private:
    friend class publisher;
    explicit batch(tapeline_ring_publisher *publisher) : publisher_(publisher) {}

    tapeline_ring_publisher *publisher_;
    std::size_t frames_ = 0;
};

// The single publisher of a ring. Its destructor ends the ring, as close() does, but ignores errors.
class publisher {
public:
    using state_type = tapeline_ring_publisher_state;

    // Creates a ring, or continues one whose publisher is gone.
    explicit publisher(const std::string &name, const options &wanted = {}) {
        tapeline_ring_publisher_options raw = {};
        raw.size = sizeof raw;
        raw.capacity = wanted.capacity;
        raw.max_frame = wanted.max_frame;
        raw.mode = wanted.mode;
        raw.keep = wanted.keep;
        raw.wake_on_flush = wanted.wake_on_flush;
        raw.policy = static_cast<std::uint32_t>(wanted.policy);
        raw.framing = static_cast<std::uint32_t>(wanted.framing);
        raw.set_group = wanted.group.has_value();
        raw.group = wanted.group.value_or(0);
        raw.huge_pages = wanted.huge_pages;
        raw.stall_limit_ns = static_cast<std::uint64_t>(wanted.stall_limit.count());
        detail::checked(tapeline_ring_publisher_open(name.c_str(), &raw, handle_.place()));
    }

    // Claims a frame, to be written in place; empty if the ring is full. Throws if the frame is longer than the
    // ring's longest.
    ring::claim claim(std::size_t size) {
        void *data = nullptr;
        auto code = tapeline_ring_publisher_claim(handle_.get(), size, &data);
        if (code == TAPELINE_OK) return ring::claim(handle_.get(), data, size);
        refuse(code);
        return ring::claim();
    }

    // Claims, copies and commits; false if the ring is full.
    bool publish(const void *data, std::size_t size) {
        auto code = tapeline_ring_publisher_publish(handle_.get(), data, size, nullptr);
        if (code == TAPELINE_OK) return true;
        refuse(code);
        return false;
    }
    bool publish(std::string_view text) { return publish(text.data(), text.size()); }

    ring::batch claim_batch() { return ring::batch(handle_.get()); }
    void flush() { detail::checked(tapeline_ring_publisher_flush(handle_.get())); }
    void set_note(const std::array<std::uint64_t, 8> &words) {
        detail::checked(tapeline_ring_publisher_set_note(handle_.get(), words.data()));
    }
    // Do not call it for every message: it reads each subscriber's position.
    state_type look() {
        state_type state;
        detail::checked(tapeline_ring_publisher_look(handle_.get(), &state, sizeof state));
        return state;
    }
    void lock_memory() { detail::checked(tapeline_ring_publisher_lock_memory(handle_.get())); }
    // Ends the ring. The publisher cannot be used afterwards.
    void close() { detail::checked(tapeline_ring_publisher_close(handle_.release())); }

private:
    static void refuse(tapeline_code code) {
        if (detail::checked(code) != TAPELINE_FULL) throw error(code, "the frame is longer than the ring takes");
    }

    detail::handle<tapeline_ring_publisher, tapeline_ring_publisher_close> handle_;
};

enum class start : std::uint32_t { newest = TAPELINE_NEWEST, oldest = TAPELINE_OLDEST };

enum class wait : std::uint32_t {
    adaptive = TAPELINE_WAIT_ADAPTIVE,
    spin = TAPELINE_WAIT_SPIN,
    pause = TAPELINE_WAIT_PAUSE,
    yield = TAPELINE_WAIT_YIELD,
    park = TAPELINE_WAIT_PARK,
};

// The result of reading from the ring.
enum class poll : std::int32_t {
    frame = TAPELINE_FRAME,
    empty = TAPELINE_EMPTY,
    ended = TAPELINE_ENDED,
    damaged = TAPELINE_DAMAGED,
    too_long = TAPELINE_TOO_LONG,
    evicted = TAPELINE_EVICTED, // Stalled for too long; join again.
    lost = TAPELINE_LOST,       // Broadcast only: lost() returns the number of frames.
};

// A frame: valid until the next call with its subscriber.
class frame {
public:
    const void *data() const noexcept { return raw_.bytes; }
    std::size_t size() const noexcept { return raw_.len; }
    std::uint64_t position() const noexcept { return raw_.position; }
    std::uint32_t epoch() const noexcept { return raw_.epoch; }
    std::string_view text() const noexcept { return {static_cast<const char *>(raw_.bytes), raw_.len}; }

private:
    friend class subscriber;
    tapeline_frame raw_ = {};
};

// A subscriber of a ring. While a subscriber of a gated ring lives, the publisher does not overwrite frames that
// it has not released.
class subscriber {
public:
    using state_type = tapeline_ring_subscriber_state;

    explicit subscriber(const std::string &name, start where = start::newest, const char *label = nullptr) {
        detail::checked(
            tapeline_ring_subscriber_join(name.c_str(), static_cast<std::uint32_t>(where), label, handle_.place()));
    }

    // Joins a broadcast ring, whose publisher never waits.
    static subscriber join_broadcast(const std::string &name, start where = start::newest, const char *label = nullptr) {
        subscriber joined;
        detail::checked(tapeline_ring_subscriber_join_broadcast(name.c_str(), static_cast<std::uint32_t>(where), label,
                                                           joined.handle_.place()));
        return joined;
    }

    // Lends the next frame and releases the previous one.
    poll next(frame &found) {
        return static_cast<poll>(detail::checked(tapeline_ring_subscriber_next(handle_.get(), &found.raw_)));
    }
    // Copies the next frame to `to`. `poll::too_long`: the frame is longer than `room`, and is lent instead.
    poll copy(void *to, std::size_t room, frame &found) {
        return static_cast<poll>(detail::checked(tapeline_ring_subscriber_copy(handle_.get(), to, room, &found.raw_)));
    }
    // Waits until next() would return something other than `poll::empty`; false if the timeout passes first.
    bool wait(ring::wait how, std::chrono::nanoseconds timeout) {
        auto ns = detail::ns(timeout);
        return detail::checked(tapeline_ring_subscriber_wait(handle_.get(), static_cast<std::uint32_t>(how), ns)) ==
               TAPELINE_OK;
    }
    // next(), but waits for a frame; `poll::empty` if the timeout passes first.
    poll wait_next(frame &found, ring::wait how = ring::wait::adaptive,
                   std::chrono::nanoseconds timeout = std::chrono::hours(1)) {
        auto found_what = next(found);
        if (found_what != poll::empty || !wait(how, timeout)) return found_what;
        return next(found);
    }
    // Number of frames that the latest `poll::lost` reported.
    std::uint64_t lost() const {
        std::uint64_t frames = 0;
        detail::checked(tapeline_ring_subscriber_lost(handle_.get(), &frames, nullptr));
        return frames;
    }
    bool is_evicted() const {
        return detail::checked(tapeline_ring_subscriber_is_evicted(handle_.get())) == TAPELINE_EVICTED;
    }
    void lock_memory() { detail::checked(tapeline_ring_subscriber_lock_memory(handle_.get())); }
    void release() { detail::checked(tapeline_ring_subscriber_release(handle_.get())); }
    // False while notes are written faster than they can be read.
    bool note(std::array<std::uint64_t, 8> &words) {
        return detail::checked(tapeline_ring_subscriber_note(handle_.get(), words.data())) == TAPELINE_OK;
    }
    // Do not call it for every message: it makes system calls.
    state_type look() const {
        state_type state;
        detail::checked(tapeline_ring_subscriber_look(handle_.get(), &state, sizeof state));
        return state;
    }

private:
    subscriber() = default;

    detail::handle<tapeline_ring_subscriber, tapeline_ring_subscriber_leave> handle_;
};

} // namespace tapeline::ring

#endif // TAPELINE_HPP
