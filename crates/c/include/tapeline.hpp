// Tapeline for C++17: handles that free themselves, errors as exceptions, outcomes as values, views instead of copies.
// A thin wrapper of tapeline.h, which documents more.
//
//     tapeline::consumer consumer({"localhost:14002"});
//     consumer.subscribe("TAPELINE", {"AAPL", "MSFT"});
//     consumer.run([](const tapeline::event &event) {
//         if (auto bid = event.find(tapeline::fid("BID"))) std::cout << event.item() << " " << bid->number() << "\n";
//         return true; // false ends run()
//     });
//
// Exceptions are thrown by this header alone, never by the library. What a view refers to is valid as long as the comment
// of its function says. As in C, a handle may move from thread to thread, and only one thread may use it at a time.

#ifndef TAPELINE_HPP
#define TAPELINE_HPP

#include "tapeline/consumer.hpp"
#include "tapeline/error.hpp"
#include "tapeline/fields.hpp"
#include "tapeline/journal.hpp"
#include "tapeline/publisher.hpp"
#include "tapeline/ring.hpp"
#include "tapeline/session.hpp"
#include "tapeline/tick.hpp"

#endif // TAPELINE_HPP
