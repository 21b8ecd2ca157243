// A publisher of items to a hub.

#ifndef TAPELINE_PUBLISHER_HPP
#define TAPELINE_PUBLISHER_HPP

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

#include "fields.hpp"
#include "session.hpp"

namespace tapeline {

// A field to publish, such as {"BID", 39.91}. It keeps pointers to its name and text.
class field_value {
public:
    // Blank.
    explicit field_value(const char *name) noexcept {
        raw_.name = name;
        raw_.value.kind = TAPELINE_VALUE_BLANK;
    }
    field_value(const char *name, double number) noexcept : field_value(name) {
        raw_.value.kind = TAPELINE_VALUE_DOUBLE;
        raw_.value.data.number = number;
    }
    template <typename Int, typename = std::enable_if_t<std::is_integral_v<Int>>>
    field_value(const char *name, Int number) noexcept : field_value(name) {
        if constexpr (std::is_signed_v<Int>) {
            raw_.value.kind = TAPELINE_VALUE_INT;
            raw_.value.data.integer = number;
        } else {
            raw_.value.kind = TAPELINE_VALUE_UINT;
            raw_.value.data.whole = number;
        }
    }
    field_value(const char *name, std::string_view text) noexcept : field_value(name) {
        raw_.value.kind = TAPELINE_VALUE_TEXT;
        raw_.value.data.text = {text.data(), text.size()};
    }
    field_value(const char *name, const char *text) noexcept : field_value(name, std::string_view(text)) {}
    // Any other value.
    field_value(const char *name, const tapeline_value &value) noexcept : field_value(name) { raw_.value = value; }

private:
    friend class publisher;
    tapeline_field_value raw_ = {};
};

// A publisher of the items of one service. It reconnects by itself; each connection begins with images.
class publisher {
public:
    // Does not wait: the calls below connect.
    publisher(const session &with, std::uint16_t service_id, const std::string &service) {
        auto options = detail::options(with);
        detail::checked(tapeline_publisher_open(&options, service_id, service.c_str(), handle_.place()));
    }

    // Publishes fields of an item: an image if the hub has none yet, else an update.
    void publish(const std::string &item, span<const field_value> fields) {
        static_assert(sizeof(field_value) == sizeof(tapeline_field_value));
        const auto *raw = fields.empty() ? nullptr : &fields.data()->raw_;
        detail::checked(tapeline_publisher_publish(handle_.get(), item.c_str(), raw, fields.size()));
    }
    void publish(const std::string &item, std::initializer_list<field_value> fields) {
        publish(item, span<const field_value>(fields.begin(), fields.size()));
    }

    // Waits until the connection has taken everything; false if the timeout passes first.
    bool flush(std::chrono::nanoseconds timeout) {
        return detail::checked(tapeline_publisher_flush(handle_.get(), detail::ns(timeout))) == TAPELINE_OK;
    }
    // Does what is due, and waits for at most `timeout` until the hub sends something.
    void turn(std::chrono::nanoseconds timeout) {
        detail::checked(tapeline_publisher_turn(handle_.get(), detail::ns(timeout)));
    }
    // Whether the hub has accepted the login.
    bool is_ready() { return detail::checked(tapeline_publisher_is_ready(handle_.get(), nullptr)) == TAPELINE_OK; }
    // The reason of the last disconnect; "" if there was none. Valid until the next call.
    std::string_view disconnected() {
        tapeline_text reason;
        detail::checked(tapeline_publisher_is_ready(handle_.get(), &reason));
        return detail::view(reason);
    }

private:
    detail::handle<tapeline_publisher, tapeline_publisher_close> handle_;
};

} // namespace tapeline

#endif // TAPELINE_PUBLISHER_HPP
