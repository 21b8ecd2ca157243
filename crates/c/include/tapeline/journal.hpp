// The reader of a plant's journal.

#ifndef TAPELINE_JOURNAL_HPP
#define TAPELINE_JOURNAL_HPP

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "tick.hpp"

namespace tapeline {

// Ticks `first` to `last` are not in a journal.
struct gap {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
};

// A journal, read while its plant may write on.
class journal {
public:
    enum class next_kind : std::int32_t {
        tick = TAPELINE_TICK,
        missing = TAPELINE_MISSING, // missing() returns which ticks.
        end = TAPELINE_EMPTY,       // A running plant writes on.
    };

    explicit journal(const std::string &folder) {
        detail::checked(tapeline_journal_open(folder.c_str(), handle_.place()));
    }

    void seek(std::uint64_t sequence) { detail::checked(tapeline_journal_seek(handle_.get(), sequence)); }
    // To the first tick that was published at this time or later.
    void seek(std::chrono::system_clock::time_point time) {
        auto since = std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch());
        detail::checked(tapeline_journal_seek_time(handle_.get(), detail::ns(since)));
    }

    // Reads the next tick, which is valid until the next call. Throws at damage.
    next_kind next(tick &found) {
        auto code = tapeline_journal_next(handle_.get(), &found.raw_, sizeof found.raw_);
        return static_cast<next_kind>(detail::checked(code));
    }
    // The gap that the latest `next_kind::missing` reported.
    gap missing() const {
        gap found;
        detail::checked(tapeline_journal_missing(handle_.get(), &found.first, &found.last));
        return found;
    }

    // Calls `on_tick(const tick &)` with each tick to the end. Throws at a gap, and at damage.
    template <typename OnTick> void each(OnTick on_tick) {
        tick found;
        for (;;) {
            auto what = next(found);
            if (what == next_kind::end) return;
            if (what == next_kind::missing) {
                auto lost = missing();
                throw error(TAPELINE_MISSING, "the journal does not have the ticks " + std::to_string(lost.first) +
                                                  " to " + std::to_string(lost.last));
            }
            on_tick(std::as_const(found));
        }
    }

private:
    detail::handle<tapeline_journal, tapeline_journal_close> handle_;
};

} // namespace tapeline

#endif // TAPELINE_JOURNAL_HPP
