// Errors as exceptions, and handles that free themselves: the base of the other headers.

#ifndef TAPELINE_ERROR_HPP
#define TAPELINE_ERROR_HPP

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include "../tapeline.h"

namespace tapeline {

// An error, with a hint where there is one. `code()` is one of the TAPELINE_ERROR_ values, or an outcome that
// the call does not allow, such as TAPELINE_TOO_LONG.
class error : public std::runtime_error {
public:
    error(tapeline_code code, const std::string &text) : std::runtime_error(text), code_(code) {}
    tapeline_code code() const noexcept { return code_; }

private:
    tapeline_code code_;
};

namespace detail {

inline tapeline_code checked(tapeline_code code) {
    if (static_cast<int32_t>(code) < 0) throw error(code, tapeline_last_error());
    return code;
}

// A negative time is none.
inline std::uint64_t ns(std::chrono::nanoseconds time) noexcept {
    return time.count() < 0 ? 0 : static_cast<std::uint64_t>(time.count());
}

// A handle of the C library: one owner, moved but not copied.
template <typename Handle, tapeline_code (*give_back)(Handle *)> class handle {
public:
    handle() = default;
    handle(handle &&other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
    handle &operator=(handle &&other) noexcept {
        if (this != &other) {
            // An assignment, like a destructor, cannot report an error.
            static_cast<void>(give_back(raw_));
            raw_ = std::exchange(other.raw_, nullptr);
        }
        return *this;
    }
    ~handle() { static_cast<void>(give_back(raw_)); }

    Handle *get() const noexcept { return raw_; }
    Handle **place() noexcept { return &raw_; }
    Handle *release() noexcept { return std::exchange(raw_, nullptr); }

private:
    Handle *raw_ = nullptr;
};

} // namespace detail

} // namespace tapeline

#endif // TAPELINE_ERROR_HPP
