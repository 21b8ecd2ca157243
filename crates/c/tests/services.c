// Every call for ticks, fields, journals, consumers and publishers, with valid and invalid arguments, without a server. Ends with
// status 0 and "ok", or at the first failure. Its argument is a folder that it may write in.

#include "expect.h"

// An update of BID=39.91, ASK=blank, BIDSIZE=malformed, and a field that no dictionary has.
static const unsigned char update[] = {0,    9,    4,    6,    0,    0,    0,    0,    0,  4,  0,  // The header.
                                       8,    0,    4,                                              // Four fields.
                                       0,    22,   3,    12,   0x0f, 0x97, 0,    25,   0,          //
                                       0,    30,   2,    0x50, 1,    0x75, 0x30, 2,    0xab, 0xcd};
static const char *folder;

static void ticks(void) {
    tapeline_tick tick;
    unsigned char frame[64 + 4 + sizeof update] = {1};
    GIVES(TAPELINE_ERROR_NULL, tapeline_tick_parse(NULL, 1, &tick, sizeof tick));
    GIVES(TAPELINE_ERROR_NULL, tapeline_tick_parse(frame, sizeof frame, NULL, sizeof tick));
    GIVES(TAPELINE_ERROR_MALFORMED, tapeline_tick_parse(frame, 10, &tick, sizeof tick));
    SAYS("64 bytes are needed and 10 are there; hint:");
    GIVES(TAPELINE_ERROR_MALFORMED, tapeline_tick_parse(frame, sizeof frame, &tick, sizeof tick));
    SAYS("kind 0 at offset 58");
    frame[40] = 9;
    frame[58] = 4;
    frame[59] = 0x20;
    frame[61] = 4;
    frame[62] = 1;
    memcpy(frame + 64, "AAPL", 4);
    memcpy(frame + 68, update, sizeof update);
    GIVES(TAPELINE_OK, tapeline_tick_parse(frame, sizeof frame, &tick, sizeof tick));
    EXPECT(tick.sequence == 1 && tick.published_ns == 9 && tick.kind == TAPELINE_TICK_UPDATE && tick.suspect == 1);
    EXPECT(tick.state == TAPELINE_FEED_LIVE && tick.item.len == 4 && memcmp(tick.item.data, "AAPL", 4) == 0);
    EXPECT(tick.body.len == sizeof update && tick.body.data == frame + 68 && tick.source.len == 0);
    EXPECT(tick.frame.data == frame && tick.frame.len == sizeof frame);
    // An older header's struct is shorter.
    memset(&tick, 0x55, sizeof tick);
    GIVES(TAPELINE_OK, tapeline_tick_parse(frame, sizeof frame, &tick, offsetof(tapeline_tick, item)));
    EXPECT(tick.published_ns == 9 && tick.item.len == SIZE_MAX / 255 * 0x55);
}

static void fields(void) {
    tapeline_fields fields = {{0}};
    tapeline_field field;
    GIVES(TAPELINE_ERROR_ORDER, tapeline_fields_next(&fields, &field));
    SAYS("tapeline_fields_open");
    GIVES(TAPELINE_ERROR_NULL, tapeline_fields_next(NULL, &field));
    GIVES(TAPELINE_ERROR_NULL, tapeline_fields_open(NULL, 0, NULL, &fields));
    GIVES(TAPELINE_ERROR_NULL, tapeline_fields_open(update, sizeof update, NULL, NULL));
    GIVES(TAPELINE_ERROR_MALFORMED, tapeline_fields_open(update, 5, NULL, &fields));
    GIVES(TAPELINE_OK, tapeline_fields_open(update, sizeof update, NULL, &fields));
    GIVES(TAPELINE_FIELD, tapeline_fields_next(&fields, &field));
    EXPECT(field.fid == 22 && field.name.len == 3 && memcmp(field.name.data, "BID", 3) == 0 && field.data_type == 8);
    EXPECT(field.value.kind == TAPELINE_VALUE_REAL && field.value.data.real.mantissa == 3991);
    EXPECT(field.value.data.real.hint == 12 && field.value.data.real.number == 39.91 && field.bytes.len == 3);
    GIVES(TAPELINE_FIELD, tapeline_fields_next(&fields, &field));
    EXPECT(field.fid == 25 && field.value.kind == TAPELINE_VALUE_BLANK);
    GIVES(TAPELINE_FIELD, tapeline_fields_next(&fields, &field));
    EXPECT(field.fid == 30 && field.value.kind == TAPELINE_VALUE_BYTES && field.value.data.bytes.len == 2);
    GIVES(TAPELINE_FIELD, tapeline_fields_next(&fields, &field));
    EXPECT(field.fid == 30000 && field.name.len == 0 && field.data_type == 0);
    EXPECT(field.value.kind == TAPELINE_VALUE_BYTES && memcmp(field.value.data.bytes.data, "\xab\xcd", 2) == 0);
    GIVES(TAPELINE_ENDED, tapeline_fields_next(&fields, &field));
    // Cut in the middle of the last field.
    GIVES(TAPELINE_OK, tapeline_fields_open(update, sizeof update - 1, NULL, &fields));
    for (int i = 0; i < 3; i++) GIVES(TAPELINE_FIELD, tapeline_fields_next(&fields, &field));
    GIVES(TAPELINE_ERROR_MALFORMED, tapeline_fields_next(&fields, &field));

    GIVES(TAPELINE_FIELD, tapeline_fields_find(update, sizeof update, NULL, 25, &field));
    EXPECT(field.fid == 25);
    GIVES(TAPELINE_EMPTY, tapeline_fields_find(update, sizeof update, NULL, 6, &field));
    GIVES(TAPELINE_ERROR_NULL, tapeline_fields_find(update, sizeof update, NULL, 6, NULL));
    // A status has no fields.
    static const unsigned char status[] = {0, 8, 3, 6, 0, 0, 0, 0, 0, 0};
    GIVES(TAPELINE_NO_FIELDS, tapeline_fields_open(status, sizeof status, NULL, &fields));
    GIVES(TAPELINE_ENDED, tapeline_fields_next(&fields, &field));
    GIVES(TAPELINE_NO_FIELDS, tapeline_fields_find(status, sizeof status, NULL, 6, &field));
}

static void dictionary(void) {
    tapeline_field_info info;
    tapeline_text text;
    GIVES(TAPELINE_OK, tapeline_field_named(NULL, "ASK", &info));
    EXPECT(info.fid == 25 && info.data_type == 8 && info.name.len == 3);
    GIVES(TAPELINE_ERROR_FIELD, tapeline_field_named(NULL, "BIDSIZ", &info));
    SAYS("there is no field \"BIDSIZ\" in the dictionary; hint: did you mean BIDSIZE?");
    GIVES(TAPELINE_ERROR_FIELD, tapeline_field_named(NULL, "bid", &info));
    SAYS("did you mean BID?");
    GIVES(TAPELINE_ERROR_NULL, tapeline_field_named(NULL, NULL, &info));
    GIVES(TAPELINE_ERROR_NULL, tapeline_field_named(NULL, "BID", NULL));
    GIVES(TAPELINE_OK, tapeline_field_named(NULL, "CURRENCY", &info));
    GIVES(TAPELINE_OK, tapeline_enum_display(NULL, info.fid, 840, &text));
    EXPECT(text.len == 3 && memcmp(text.data, "USD", 3) == 0);
    GIVES(TAPELINE_EMPTY, tapeline_enum_display(NULL, info.fid, UINT64_MAX, &text));
    EXPECT(text.len == 0 && text.data != NULL);
    GIVES(TAPELINE_EMPTY, tapeline_enum_display(NULL, 22, 1, &text));
    GIVES(TAPELINE_ERROR_NULL, tapeline_enum_display(NULL, info.fid, 840, NULL));
}

static void journals(void) {
    tapeline_journal *journal = (tapeline_journal *)&folder;
    tapeline_tick tick;
    uint64_t first = 1, last = 1;
    GIVES(TAPELINE_ERROR_NULL, tapeline_journal_open(NULL, &journal));
    EXPECT(journal == NULL);
    GIVES(TAPELINE_ERROR_NULL, tapeline_journal_open(folder, NULL));
    GIVES(TAPELINE_ERROR_JOURNAL, tapeline_journal_open("there/is/none", &journal));
    EXPECT(journal == NULL);
    SAYS("there/is/none");
    SAYS("hint: is this the journal's folder?");
    GIVES(TAPELINE_ERROR_NULL, tapeline_journal_next(NULL, &tick, sizeof tick));
    GIVES(TAPELINE_ERROR_NULL, tapeline_journal_seek(NULL, 1));
    GIVES(TAPELINE_ERROR_NULL, tapeline_journal_seek_time(NULL, 1));
    GIVES(TAPELINE_ERROR_NULL, tapeline_journal_missing(NULL, NULL, NULL));
    GIVES(TAPELINE_OK, tapeline_journal_close(NULL));
    // An empty folder is an empty journal.
    GIVES(TAPELINE_OK, tapeline_journal_open(folder, &journal));
    GIVES(TAPELINE_ERROR_NULL, tapeline_journal_next(journal, NULL, sizeof tick));
    GIVES(TAPELINE_EMPTY, tapeline_journal_next(journal, &tick, sizeof tick));
    GIVES(TAPELINE_OK, tapeline_journal_seek(journal, 5));
    GIVES(TAPELINE_OK, tapeline_journal_seek_time(journal, 5));
    GIVES(TAPELINE_OK, tapeline_journal_missing(journal, &first, &last));
    EXPECT(first == 0 && last == 0);
    GIVES(TAPELINE_OK, tapeline_journal_close(journal));
}

static void consumers(void) {
    tapeline_consumer *consumer = (tapeline_consumer *)&folder;
    tapeline_event event;
    const char *items[] = {"AAPL", NULL};
    tapeline_session_options options = {.size = sizeof options};
    GIVES(TAPELINE_ERROR_NULL, tapeline_consumer_open(NULL, &consumer));
    EXPECT(consumer == NULL);
    GIVES(TAPELINE_ERROR_NULL, tapeline_consumer_open(&options, NULL));
    GIVES(TAPELINE_ERROR_NULL, tapeline_consumer_open(&options, &consumer));
    SAYS("the option servers is NULL");
    const char *const wrong[] = {"localhost", "localhost:", ":14002", "localhost:99999", "localhost:0", "a:1,b"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        options.servers = wrong[i];
        GIVES(TAPELINE_ERROR_CONNECTION, tapeline_consumer_open(&options, &consumer));
        SAYS("hint: write it as HOST:PORT");
    }
    options.servers = " , ";
    GIVES(TAPELINE_ERROR_OPTIONS, tapeline_consumer_open(&options, &consumer));
    options.servers = "localhost:1";
    options.trusted_certificates = "no-such-file.pem";
    GIVES(TAPELINE_ERROR_OPTIONS, tapeline_consumer_open(&options, &consumer));
    SAYS("set tls to 1");
    options.tls = 1;
    GIVES(TAPELINE_ERROR_CONNECTION, tapeline_consumer_open(&options, &consumer));
    SAYS("no-such-file.pem");
    options.size = 4;
    GIVES(TAPELINE_ERROR_OPTIONS, tapeline_consumer_open(&options, &consumer));
    GIVES(TAPELINE_ERROR_NULL, tapeline_consumer_subscribe(NULL, "S", items, 1));
    GIVES(TAPELINE_ERROR_NULL, tapeline_consumer_poll(NULL, 0, &event, sizeof event));
    GIVES(TAPELINE_OK, tapeline_consumer_close(NULL));

    // Nobody listens: that is an event, and the consumer tries again.
    options = (tapeline_session_options){.size = sizeof options, .servers = "127.0.0.1:1", .password = "secret"};
    for (options.json = 0; options.json < 2; options.json++) {
        GIVES(TAPELINE_OK, tapeline_consumer_open(&options, &consumer));
        GIVES(TAPELINE_ERROR_NULL, tapeline_consumer_subscribe(consumer, NULL, items, 1));
        GIVES(TAPELINE_ERROR_NULL, tapeline_consumer_subscribe(consumer, "S", NULL, 1));
        GIVES(TAPELINE_ERROR_NULL, tapeline_consumer_subscribe(consumer, "S", items, 2));
        GIVES(TAPELINE_OK, tapeline_consumer_subscribe(consumer, "S", items, 1));
        GIVES(TAPELINE_ERROR_NULL, tapeline_consumer_poll(consumer, 0, NULL, sizeof event));
        do GIVES(TAPELINE_EVENT, tapeline_consumer_poll(consumer, UINT64_MAX, &event, sizeof event));
        while (event.kind != TAPELINE_EVENT_DISCONNECTED);
        EXPECT(event.server.len == 11 && memcmp(event.server.data, "127.0.0.1:1", 11) == 0);
        EXPECT(event.text.len > 0 && event.item.len == 0 && event.message.len == 0);
        GIVES(TAPELINE_OK, tapeline_consumer_close(consumer));
    }
}

static tapeline_code one(tapeline_publisher *publisher, const char *name, tapeline_value value) {
    tapeline_field_value field = {.name = name, .value = value};
    return tapeline_publisher_publish(publisher, "IBM", &field, 1);
}

static tapeline_value text(const char *text) {
    return (tapeline_value){.kind = TAPELINE_VALUE_TEXT, .data.text = {text, strlen(text)}};
}
static tapeline_value number(double number) {
    return (tapeline_value){.kind = TAPELINE_VALUE_DOUBLE, .data.number = number};
}
static tapeline_value integer(int64_t integer) {
    return (tapeline_value){.kind = TAPELINE_VALUE_INT, .data.integer = integer};
}

static void publishers(void) {
    tapeline_publisher *publisher;
    tapeline_text reason;
    tapeline_session_options options = {.size = sizeof options, .servers = "127.0.0.1:1"};
    GIVES(TAPELINE_ERROR_NULL, tapeline_publisher_open(NULL, 1, "S", &publisher));
    GIVES(TAPELINE_ERROR_NULL, tapeline_publisher_open(&options, 1, NULL, &publisher));
    GIVES(TAPELINE_ERROR_NULL, tapeline_publisher_open(&options, 1, "S", NULL));
    GIVES(TAPELINE_ERROR_NULL, tapeline_publisher_publish(NULL, "IBM", NULL, 0));
    GIVES(TAPELINE_ERROR_NULL, tapeline_publisher_flush(NULL, 0));
    GIVES(TAPELINE_ERROR_NULL, tapeline_publisher_turn(NULL, 0));
    GIVES(TAPELINE_ERROR_NULL, tapeline_publisher_is_ready(NULL, NULL));
    GIVES(TAPELINE_OK, tapeline_publisher_close(NULL));
    GIVES(TAPELINE_OK, tapeline_publisher_open(&options, 1, "S", &publisher));
    GIVES(TAPELINE_ERROR_NULL, tapeline_publisher_publish(publisher, NULL, NULL, 0));
    GIVES(TAPELINE_ERROR_NULL, tapeline_publisher_publish(publisher, "IBM", NULL, 1));

    // Each type takes what fits.
    GIVES(TAPELINE_OK, one(publisher, "BID", number(39.91)));
    GIVES(TAPELINE_OK, one(publisher, "BID", integer(40)));
    GIVES(TAPELINE_OK, one(publisher, "BID", (tapeline_value){.kind = TAPELINE_VALUE_BLANK}));
    GIVES(TAPELINE_OK, one(publisher, "CURRENCY", text("USD")));
    GIVES(TAPELINE_OK, one(publisher, "CURRENCY", integer(840)));
    GIVES(TAPELINE_OK, one(publisher, "BID_SRC", text("NYSE")));
    tapeline_value time = {.kind = TAPELINE_VALUE_TIME, .data.time = {.hour = 14, .minute = 30, .nanosecond = 5}};
    GIVES(TAPELINE_OK, one(publisher, "QUOTIM_NS", time));
    tapeline_field_value by_number = {.fid = 25, .value = number(40.01)};
    GIVES(TAPELINE_OK, tapeline_publisher_publish(publisher, "IBM", &by_number, 1));
    GIVES(TAPELINE_ERROR_FIELD, one(publisher, "BIDD", number(1)));
    SAYS("IBM: there is no field \"BIDD\"");
    by_number.fid = 30000;
    GIVES(TAPELINE_ERROR_FIELD, tapeline_publisher_publish(publisher, "IBM", &by_number, 1));
    SAYS("there is no field 30000");
    GIVES(TAPELINE_ERROR_FIELD, one(publisher, "BID", text("high")));
    SAYS("the field BID is of type REAL, and cannot have the value high; hint: give a number");
    GIVES(TAPELINE_ERROR_FIELD, one(publisher, "BID", number(1e300)));
    GIVES(TAPELINE_ERROR_FIELD, one(publisher, "CURRENCY", text("no such")));
    GIVES(TAPELINE_ERROR_FIELD, one(publisher, "CURRENCY", integer(-1)));
    GIVES(TAPELINE_ERROR_FIELD, one(publisher, "QUOTIM_NS", integer(5)));
    GIVES(TAPELINE_ERROR_ARGUMENT, one(publisher, "BID", (tapeline_value){.kind = 99}));
    tapeline_value real = {.kind = TAPELINE_VALUE_REAL, .data.real = {.mantissa = 1, .hint = 32}};
    GIVES(TAPELINE_ERROR_ARGUMENT, one(publisher, "BID", real));
    tapeline_value null_text = {.kind = TAPELINE_VALUE_TEXT, .data.text = {NULL, 3}};
    GIVES(TAPELINE_ERROR_NULL, one(publisher, "BID_SRC", null_text));

    // Nobody listens: no call waits for longer than it was told.
    GIVES(TAPELINE_TIMED_OUT, tapeline_publisher_flush(publisher, 1000000));
    GIVES(TAPELINE_OK, tapeline_publisher_turn(publisher, 1000));
    do GIVES(TAPELINE_EMPTY, tapeline_publisher_is_ready(publisher, &reason));
    while (reason.len == 0 && tapeline_publisher_turn(publisher, 1000000) == TAPELINE_OK);
    EXPECT(reason.len > 0 && memcmp(reason.data, "127.0.0.1:1: ", 13) == 0);
    GIVES(TAPELINE_ERROR_CONNECTION, tapeline_publisher_close(publisher));
    SAYS("the last values of \"IBM\" were not sent");
}

int main(int count, char **arguments) {
    EXPECT(count == 2);
    folder = arguments[1];
    ticks();
    fields();
    dictionary();
    journals();
    consumers();
    publishers();
    printf("ok\n");
    return 0;
}
