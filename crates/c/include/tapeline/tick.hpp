// Ticks: the frames of a plant's ring, and the records of its journal.

#ifndef TAPELINE_TICK_HPP
#define TAPELINE_TICK_HPP

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fields.hpp"

namespace tapeline {

enum class tick_kind : std::uint32_t {
    image = TAPELINE_TICK_IMAGE,
    status = TAPELINE_TICK_STATUS,
    update = TAPELINE_TICK_UPDATE,
};

enum class feed_state : std::uint32_t {
    initial = TAPELINE_FEED_INITIAL,
    live = TAPELINE_FEED_LIVE,
    recovering = TAPELINE_FEED_RECOVERING,
    stale = TAPELINE_FEED_STALE,
};

// A tick, valid as long as the bytes that it was read from.
class tick {
public:
    tick() = default;
    // Reads a tick, such as a frame of a plant's ring: `tapeline::tick(frame.data(), frame.size())`.
    tick(const void *data, std::size_t size) {
        detail::checked(tapeline_tick_parse(data, size, &raw_, sizeof raw_));
    }

    std::uint64_t sequence() const noexcept { return raw_.sequence; }
    std::string_view item() const noexcept { return detail::view(raw_.item); }
    tick_kind kind() const noexcept { return static_cast<tick_kind>(raw_.kind); }
    feed_state state() const noexcept { return static_cast<feed_state>(raw_.state); }
    // Values may be wrong, because messages before this tick are lost.
    bool is_suspect() const noexcept { return raw_.suspect != 0; }
    tapeline::message message() const noexcept { return {detail::view(raw_.body), nullptr}; }
    // All the rest, such as its times.
    const tapeline_tick &raw() const noexcept { return raw_; }

private:
    friend class journal;
    tapeline_tick raw_ = {};
};

} // namespace tapeline

#endif // TAPELINE_TICK_HPP
