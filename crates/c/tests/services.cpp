// The C++ wrapper of ticks, fields, journals, consumers and publishers, without a server. Its argument is a folder that it may write in.

#include <cmath>
#include <cstring>
#include <iostream>
#include <vector>

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

static void fields() {
    // An update of BID=39.91 and ASK=blank.
    const unsigned char update[] = {0, 9, 4, 6, 0, 0, 0, 0, 0, 4, 0, 8, 0, 2, 0, 22, 3, 12, 0x0f, 0x97, 0, 25, 0};
    const auto *bytes = reinterpret_cast<const std::byte *>(update);
    const tapeline::message message({bytes, sizeof update}, nullptr);
    std::vector<std::string> names;
    for (const auto &field : message.fields()) names.emplace_back(field.name());
    EXPECT((names == std::vector<std::string>{"BID", "ASK"}));
    const auto bid = message.find(tapeline::fid("BID"));
    EXPECT(bid && bid->number() == 39.91 && bid->kind() == tapeline::value_kind::real && bid->bytes().size() == 3);
    EXPECT(message.find(25)->is_blank() && std::isnan(message.find(25)->number()) && message.find(25)->text().empty());
    EXPECT(!message.find(6));
    EXPECT(thrown([] { static_cast<void>(tapeline::fid("BIDD")); }) == TAPELINE_ERROR_FIELD);
    const tapeline::message cut({bytes, sizeof update - 1}, nullptr);
    EXPECT(thrown([&] { for (const auto &field : cut.fields()) static_cast<void>(field); }) == TAPELINE_ERROR_MALFORMED);
    EXPECT(thrown([&] { tapeline::tick tick(update, sizeof update); }) == TAPELINE_ERROR_MALFORMED);
}

static void journals(const std::string &folder) {
    EXPECT(thrown([] { tapeline::journal none("there/is/none"); }) == TAPELINE_ERROR_JOURNAL);
    tapeline::journal journal(folder);
    journal.seek(3);
    journal.seek(std::chrono::system_clock::now());
    tapeline::tick tick;
    EXPECT(journal.next(tick) == tapeline::journal::next_kind::end);
    journal.each([](const tapeline::tick &) { throw std::runtime_error("there is no tick"); });
}

static void consumers() {
    EXPECT(thrown([] { tapeline::consumer none({"localhost"}); }) == TAPELINE_ERROR_CONNECTION);
    tapeline::session session{"127.0.0.1:1"};
    session.password = "secret";
    tapeline::consumer consumer(session);
    consumer.subscribe("S", {"AAPL", "MSFT"});
    auto moved = std::move(consumer);
    EXPECT(thrown([&] { consumer.subscribe("S", {}); }) == TAPELINE_ERROR_NULL);
    bool was_told = false;
    moved.run([&](const tapeline::event &event) {
        was_told = event.kind() == tapeline::event_kind::disconnected && !event.text().empty() && !event.find(22) &&
                   event.server() == "127.0.0.1:1";
        return !was_told;
    });
    EXPECT(was_told);
    // What a callback throws leaves run(), and no library code is between.
    try {
        tapeline::consumer another(session);
        another.run([](const tapeline::event &) -> bool { throw std::logic_error("mine"); });
        EXPECT(false);
    } catch (const std::logic_error &error) {
        EXPECT(std::strcmp(error.what(), "mine") == 0);
    }
}

static void publishers() {
    tapeline::publisher publisher({"127.0.0.1:1"}, 1, "S");
    const std::string name = "NYSE";
    publisher.publish("IBM", {{"BID", 39.91}, {"BIDSIZE", 9U}, {"ASKSIZE", -9}, {"CURRENCY", "USD"}, {"BID_SRC", name}});
    publisher.publish("IBM", {tapeline::field_value("BID")});
    const std::vector<tapeline::field_value> fields = {{"ASK", 40}};
    publisher.publish("IBM", fields);
    EXPECT(thrown([&] { publisher.publish("IBM", {{"BIDD", 1}}); }) == TAPELINE_ERROR_FIELD);
    EXPECT(!publisher.flush(std::chrono::milliseconds(1)) && !publisher.is_ready());
    while (publisher.disconnected().empty()) publisher.turn(std::chrono::milliseconds(1));
}

int main(int, char **arguments) try {
    fields();
    journals(arguments[1]);
    consumers();
    publishers();
    std::cout << "ok\n";
    return 0;
} catch (const std::exception &failure) {
    std::cerr << failure.what() << "\n";
    return 1;
}
