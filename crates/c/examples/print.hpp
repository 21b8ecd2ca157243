// How the examples in C++ print fields.

#ifndef PRINT_HPP
#define PRINT_HPP

#include <iomanip>
#include <ostream>
#include <tapeline.hpp>

inline void print_value(std::ostream &out, const tapeline::message &message, const tapeline::field &field) {
    using tapeline::value_kind;
    const auto &time = field.value().data.time;
    switch (field.kind()) {
    case value_kind::text: out << field.text(); break;
    case value_kind::enumeration: out << message.display(field); break;
    case value_kind::time:
        out << std::setfill('0') << std::setw(2) << +time.hour << ':' << std::setw(2) << +time.minute << ':'
            << std::setw(2) << +time.second << '.' << std::setw(9) << time.nanosecond;
        break;
    case value_kind::date:
        out << std::setfill('0') << std::setw(4) << time.year << '-' << std::setw(2) << +time.month << '-'
            << std::setw(2) << +time.day;
        break;
    case value_kind::blank: break;
    case value_kind::date_time:
    case value_kind::bytes: out << '<' << field.bytes().size() << " bytes>"; break;
    default: out << std::setprecision(15) << field.number();
    }
}

// As " NAME=value" for each field.
inline std::ostream &operator<<(std::ostream &out, const tapeline::message &message) {
    for (const auto &field : message.fields()) {
        out << ' ';
        if (field.name().empty())
            out << field.fid();
        else
            out << field.name();
        out << '=';
        print_value(out, message, field);
    }
    return out;
}

#endif
