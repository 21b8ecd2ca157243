// A consumer of items of a plant, a hub or any other OMM provider.

#ifndef TAPELINE_CONSUMER_HPP
#define TAPELINE_CONSUMER_HPP

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fields.hpp"
#include "session.hpp"

namespace tapeline {

enum class event_kind : std::uint32_t {
    other = TAPELINE_EVENT_OTHER,
    connected = TAPELINE_EVENT_CONNECTED,
    disconnected = TAPELINE_EVENT_DISCONNECTED, // text(): the reason. The consumer tries again.
    ready = TAPELINE_EVENT_READY,
    image = TAPELINE_EVENT_IMAGE,
    update = TAPELINE_EVENT_UPDATE,
    status = TAPELINE_EVENT_STATUS,
    state = TAPELINE_EVENT_STATE, // text(): an item's state, without a message.
    note = TAPELINE_EVENT_NOTE,
};

// An event, valid until the next call with its consumer.
class event {
public:
    event_kind kind() const noexcept { return static_cast<event_kind>(raw_.kind); }
    bool is_image() const noexcept { return kind() == event_kind::image; }
    bool is_update() const noexcept { return kind() == event_kind::update; }
    // Service and item; "" if the event is of no item.
    std::string_view service() const noexcept { return detail::view(raw_.service); }
    std::string_view item() const noexcept { return detail::view(raw_.item); }
    std::string_view text() const noexcept { return detail::view(raw_.text); }
    // The server that was connected or disconnected; else "".
    std::string_view server() const noexcept { return detail::view(raw_.server); }
    tapeline::message message() const noexcept { return {detail::view(raw_.message), raw_.dictionary}; }
    // A field of the message by its number; none if there is no message, or it does not have the field.
    std::optional<field> find(std::int16_t fid) const {
        if (raw_.message.len == 0) return std::nullopt;
        return message().find(fid);
    }
    // All the rest, such as the states of the stream and its data.
    const tapeline_event &raw() const noexcept { return raw_; }

private:
    friend class consumer;
    tapeline_event raw_ = {};
};

// A consumer. It reconnects by itself, and requests its items again.
class consumer {
public:
    // Does not wait: poll() and run() connect.
    explicit consumer(const session &with) {
        auto options = detail::options(with);
        detail::checked(tapeline_consumer_open(&options, handle_.place()));
    }

    // Requests items of a service by name.
    void subscribe(const std::string &service, const std::vector<std::string> &items) {
        std::vector<const char *> names;
        names.reserve(items.size());
        for (const auto &item : items) names.push_back(item.c_str());
        detail::checked(tapeline_consumer_subscribe(handle_.get(), service.c_str(), names.data(), names.size()));
    }

    // Takes the next event; false if there is none within `timeout`. Throws if the login is refused, or the session has
    // ended for good.
    bool poll(event &found, std::chrono::nanoseconds timeout) {
        auto code = tapeline_consumer_poll(handle_.get(), detail::ns(timeout), &found.raw_, sizeof found.raw_);
        return detail::checked(code) == TAPELINE_EVENT;
    }

    // Calls `on_event(const event &)` with each event, until it returns false. Throws as poll(), and whatever `on_event`
    // throws.
    template <typename OnEvent> void run(OnEvent on_event) {
        event found;
        for (;;) {
            if (poll(found, std::chrono::seconds(1)) && !on_event(std::as_const(found))) return;
        }
    }

private:
    detail::handle<tapeline_consumer, tapeline_consumer_close> handle_;
};

} // namespace tapeline

#endif // TAPELINE_CONSUMER_HPP
