// Messages, their fields, and the values of fields.

#ifndef TAPELINE_FIELDS_HPP
#define TAPELINE_FIELDS_HPP

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "error.hpp"

namespace tapeline {

// Elements that somebody else owns: C++20's std::span, as far as it is needed.
template <typename T> class span {
public:
    constexpr span() = default;
    constexpr span(T *data, std::size_t size) : data_(data), size_(size) {}
    template <std::size_t N> constexpr span(T (&array)[N]) : data_(array), size_(N) {}
    template <typename C, typename = decltype(std::declval<C &>().data())>
    constexpr span(C &&container) : data_(container.data()), size_(container.size()) {}

    constexpr T *data() const noexcept { return data_; }
    constexpr std::size_t size() const noexcept { return size_; }
    constexpr bool empty() const noexcept { return size_ == 0; }
    constexpr T *begin() const noexcept { return data_; }
    constexpr T *end() const noexcept { return data_ + size_; }
    constexpr T &operator[](std::size_t at) const { return data_[at]; }

private:
    T *data_ = nullptr;
    std::size_t size_ = 0;
};

using bytes = span<const std::byte>;

namespace detail {

inline std::string_view view(const tapeline_text &text) noexcept { return {text.data, text.len}; }
inline tapeline::bytes view(const tapeline_bytes &raw) noexcept {
    return {static_cast<const std::byte *>(raw.data), raw.len};
}

} // namespace detail

enum class value_kind : std::uint32_t {
    blank = TAPELINE_VALUE_BLANK,
    integer = TAPELINE_VALUE_INT,
    unsigned_integer = TAPELINE_VALUE_UINT,
    floating = TAPELINE_VALUE_DOUBLE,
    real = TAPELINE_VALUE_REAL,
    date = TAPELINE_VALUE_DATE,
    time = TAPELINE_VALUE_TIME,
    date_time = TAPELINE_VALUE_DATETIME,
    enumeration = TAPELINE_VALUE_ENUM,
    text = TAPELINE_VALUE_TEXT,
    bytes = TAPELINE_VALUE_BYTES,
};

// The number of a field of the library's dictionary; an error with the nearest name if there is none.
inline std::int16_t fid(const char *name) {
    tapeline_field_info info;
    detail::checked(tapeline_field_named(nullptr, name, &info));
    return info.fid;
}

// A field of a message, valid as long as the message.
class field {
public:
    std::int16_t fid() const noexcept { return raw_.fid; }
    // "" if the dictionary has no such field.
    std::string_view name() const noexcept { return detail::view(raw_.name); }
    value_kind kind() const noexcept { return static_cast<value_kind>(raw_.value.kind); }
    bool is_blank() const noexcept { return kind() == value_kind::blank; }
    // The value as a double; NaN if it is no number.
    double number() const noexcept {
        switch (kind()) {
        case value_kind::real: return raw_.value.data.real.number;
        case value_kind::floating: return raw_.value.data.number;
        case value_kind::integer: return static_cast<double>(raw_.value.data.integer);
        case value_kind::unsigned_integer:
        case value_kind::enumeration: return static_cast<double>(raw_.value.data.whole);
        default: return std::numeric_limits<double>::quiet_NaN();
        }
    }
    // The text of a string; "" if it is none.
    std::string_view text() const noexcept {
        return kind() == value_kind::text ? detail::view(raw_.value.data.text) : std::string_view();
    }
    // The value as on the wire.
    tapeline::bytes bytes() const noexcept { return detail::view(raw_.bytes); }
    // Its kind and data.
    const tapeline_value &value() const noexcept { return raw_.value; }

private:
    friend class fields;
    friend class message;
    tapeline_field raw_ = {};
};

// The fields of a message, to iterate once: `for (const auto &field : message.fields())`.
class fields {
public:
    class iterator {
    public:
        using iterator_category = std::input_iterator_tag;
        using value_type = field;
        using difference_type = std::ptrdiff_t;
        using pointer = const field *;
        using reference = const field &;

        const field &operator*() const noexcept { return fields_->now_; }
        const field *operator->() const noexcept { return &fields_->now_; }
        iterator &operator++() {
            if (!fields_->move()) fields_ = nullptr;
            return *this;
        }
        bool operator==(const iterator &other) const noexcept { return fields_ == other.fields_; }
        bool operator!=(const iterator &other) const noexcept { return fields_ != other.fields_; }

    private:
        friend class fields;
        explicit iterator(fields *of) : fields_(of) {}
        fields *fields_;
    };

    iterator begin() { return iterator(move() ? this : nullptr); }
    iterator end() { return iterator(nullptr); }

private:
    friend class message;
    fields() = default;
    bool move() { return detail::checked(tapeline_fields_next(&raw_, &now_.raw_)) == TAPELINE_FIELD; }

    tapeline_fields raw_;
    field now_;
};

// An RWF message, such as the body of a tick.
class message {
public:
    message() = default;
    message(tapeline::bytes bytes, const tapeline_dictionary *dictionary) : bytes_(bytes), dictionary_(dictionary) {}

    tapeline::bytes bytes() const noexcept { return bytes_; }
    const tapeline_dictionary *dictionary() const noexcept { return dictionary_; }

    // No fields if the message has other contents. Throws if it is malformed.
    tapeline::fields fields() const {
        tapeline::fields opened;
        detail::checked(tapeline_fields_open(bytes_.data(), bytes_.size(), dictionary_, &opened.raw_));
        return opened;
    }
    // A field by its number; none if the message does not have it.
    std::optional<field> find(std::int16_t fid) const {
        field found;
        auto code = tapeline_fields_find(bytes_.data(), bytes_.size(), dictionary_, fid, &found.raw_);
        if (detail::checked(code) != TAPELINE_FIELD) return std::nullopt;
        return found;
    }
    // The display text of a value of an enumeration; "" if the dictionary has none.
    std::string_view display(const field &of) const {
        tapeline_text text;
        detail::checked(tapeline_enum_display(dictionary_, of.fid(), of.value().data.whole, &text));
        return detail::view(text);
    }

private:
    tapeline::bytes bytes_;
    const tapeline_dictionary *dictionary_ = nullptr;
};

} // namespace tapeline

#endif // TAPELINE_FIELDS_HPP
