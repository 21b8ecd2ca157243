// Every call of the C interface, with valid and invalid arguments. Ends with status 0 and "ok", or at the first
// failure.

#include "expect.h"

static const char *name;

static tapeline_ring_publisher *open_small(void) {
    tapeline_ring_publisher_options options = {.size = sizeof options, .capacity = 4096, .max_frame = 512};
    tapeline_ring_publisher *publisher;
    GIVES(TAPELINE_OK, tapeline_ring_publisher_open(name, &options, &publisher));
    return publisher;
}

static void put(tapeline_ring_publisher *publisher, const char *text) {
    GIVES(TAPELINE_OK, tapeline_ring_publisher_publish(publisher, text, strlen(text), NULL));
}

static void expect_frame(tapeline_ring_subscriber *subscriber, const char *text) {
    tapeline_frame frame;
    GIVES(TAPELINE_FRAME, tapeline_ring_subscriber_next(subscriber, &frame));
    EXPECT(frame.len == strlen(text) && memcmp(frame.bytes, text, frame.len) == 0);
    EXPECT(frame.epoch == 1);
}

static void bad_openings(void) {
    tapeline_ring_publisher *publisher = (tapeline_ring_publisher *)&name;
    tapeline_ring_subscriber *subscriber = (tapeline_ring_subscriber *)&name;
    EXPECT(strcmp(tapeline_last_error(), "") == 0);
    GIVES(TAPELINE_ERROR_NULL, tapeline_ring_publisher_open(NULL, NULL, &publisher));
    EXPECT(publisher == NULL);
    SAYS("name is NULL");
    GIVES(TAPELINE_ERROR_NULL, tapeline_ring_publisher_open(name, NULL, NULL));
    GIVES(TAPELINE_ERROR_NAME, tapeline_ring_publisher_open("a/b", NULL, &publisher));
    SAYS("hint: use 1 to 64");
    GIVES(TAPELINE_ERROR_ARGUMENT, tapeline_ring_publisher_open("\xff", NULL, &publisher));
    GIVES(TAPELINE_ERROR_NOT_FOUND, tapeline_ring_subscriber_join(name, TAPELINE_NEWEST, NULL, &subscriber));
    EXPECT(subscriber == NULL);
    SAYS("hint:");
    GIVES(TAPELINE_ERROR_ARGUMENT, tapeline_ring_subscriber_join(name, 7, NULL, &subscriber));
    GIVES(TAPELINE_ERROR_NULL, tapeline_ring_subscriber_join(name, TAPELINE_NEWEST, NULL, NULL));
    GIVES(TAPELINE_ERROR_NULL, tapeline_ring_subscriber_join_broadcast(NULL, TAPELINE_NEWEST, NULL, &subscriber));

    tapeline_ring_publisher_options options = {.size = sizeof options, .capacity = 5000};
    GIVES(TAPELINE_ERROR_OPTIONS, tapeline_ring_publisher_open(name, &options, &publisher));
    SAYS("5000");
    options.size = 0;
    GIVES(TAPELINE_ERROR_OPTIONS, tapeline_ring_publisher_open(name, &options, &publisher));
    SAYS("sizeof options");
    // A newer header's struct: valid while its new fields are zero.
    struct {
        tapeline_ring_publisher_options known;
        uint64_t later;
    } newer = {.known = {.size = sizeof newer}};
    newer.later = 1;
    GIVES(TAPELINE_ERROR_OPTIONS, tapeline_ring_publisher_open(name, &newer.known, &publisher));
    newer.later = 0;
    GIVES(TAPELINE_OK, tapeline_ring_publisher_open(name, &newer.known, &publisher));
    tapeline_ring_publisher *second;
    GIVES(TAPELINE_ERROR_PUBLISHER_ALIVE, tapeline_ring_publisher_open(name, NULL, &second));
    GIVES(TAPELINE_OK, tapeline_ring_publisher_close(publisher));
    GIVES(TAPELINE_OK, tapeline_ring_publisher_close(NULL));
    GIVES(TAPELINE_OK, tapeline_ring_subscriber_leave(NULL));
}

static void null_handles(void) {
    void *place;
    uint64_t words[8];
    tapeline_frame frame;
    tapeline_ring_publisher_state publisher_state;
    tapeline_ring_subscriber_state subscriber_state;
    GIVES(TAPELINE_ERROR_NULL, tapeline_ring_publisher_claim(NULL, 1, &place));
    GIVES(TAPELINE_ERROR_NULL, tapeline_ring_publisher_batch_claim(NULL, 1, &place));
    GIVES(TAPELINE_ERROR_NULL, tapeline_ring_publisher_commit(NULL, NULL));
    GIVES(TAPELINE_ERROR_NULL, tapeline_ring_publisher_commit_prefix(NULL, 1, NULL));
    GIVES(TAPELINE_ERROR_NULL, tapeline_ring_publisher_abort(NULL));
    GIVES(TAPELINE_ERROR_NULL, tapeline_ring_publisher_publish(NULL, "a", 1, NULL));
    GIVES(TAPELINE_ERROR_NULL, tapeline_ring_publisher_flush(NULL));
    GIVES(TAPELINE_ERROR_NULL, tapeline_ring_publisher_set_note(NULL, words));
    GIVES(TAPELINE_ERROR_NULL, tapeline_ring_publisher_look(NULL, &publisher_state, sizeof publisher_state));
    GIVES(TAPELINE_ERROR_NULL, tapeline_ring_subscriber_next(NULL, &frame));
    GIVES(TAPELINE_ERROR_NULL, tapeline_ring_subscriber_copy(NULL, words, sizeof words, &frame));
    GIVES(TAPELINE_ERROR_NULL, tapeline_ring_subscriber_wait(NULL, TAPELINE_WAIT_SPIN, 0));
    GIVES(TAPELINE_ERROR_NULL, tapeline_ring_subscriber_release(NULL));
    GIVES(TAPELINE_ERROR_NULL, tapeline_ring_subscriber_look(NULL, &subscriber_state, sizeof subscriber_state));
    GIVES(TAPELINE_ERROR_NULL, tapeline_ring_subscriber_note(NULL, words));
    GIVES(TAPELINE_ERROR_NULL, tapeline_ring_subscriber_lost(NULL, NULL, NULL));
    GIVES(TAPELINE_ERROR_NULL, tapeline_ring_subscriber_is_evicted(NULL));
    GIVES(TAPELINE_ERROR_NULL, tapeline_ring_publisher_lock_memory(NULL));
    GIVES(TAPELINE_ERROR_NULL, tapeline_ring_subscriber_lock_memory(NULL));
    SAYS("subscriber is NULL");
}

static void frames(void) {
    tapeline_ring_publisher *publisher = open_small();
    tapeline_ring_subscriber *subscriber;
    GIVES(TAPELINE_OK, tapeline_ring_subscriber_join(name, TAPELINE_OLDEST, "api test", &subscriber));
    tapeline_frame frame;
    GIVES(TAPELINE_EMPTY, tapeline_ring_subscriber_next(subscriber, &frame));
    GIVES(TAPELINE_TIMED_OUT, tapeline_ring_subscriber_wait(subscriber, TAPELINE_WAIT_PARK, 1000));
    GIVES(TAPELINE_ERROR_ARGUMENT, tapeline_ring_subscriber_wait(subscriber, 99, 0));
    GIVES(TAPELINE_ERROR_NULL, tapeline_ring_subscriber_next(subscriber, NULL));
    GIVES(TAPELINE_ERROR_NULL, tapeline_ring_publisher_claim(publisher, 1, NULL));
    GIVES(TAPELINE_ERROR_NULL, tapeline_ring_publisher_publish(publisher, NULL, 1, NULL));
    GIVES(TAPELINE_TOO_LONG, tapeline_ring_publisher_publish(publisher, "a", SIZE_MAX, NULL));

    // One frame, in place; nothing is visible before the commit.
    void *place;
    uint64_t position = 99;
    GIVES(TAPELINE_ERROR_ORDER, tapeline_ring_publisher_commit(publisher, NULL));
    GIVES(TAPELINE_ERROR_ORDER, tapeline_ring_publisher_abort(publisher));
    GIVES(TAPELINE_TOO_LONG, tapeline_ring_publisher_claim(publisher, 513, &place));
    GIVES(TAPELINE_OK, tapeline_ring_publisher_claim(publisher, 5, &place));
    memcpy(place, "first", 5);
    GIVES(TAPELINE_EMPTY, tapeline_ring_subscriber_next(subscriber, &frame));
    GIVES(TAPELINE_ERROR_ORDER, tapeline_ring_publisher_claim(publisher, 5, &place));
    GIVES(TAPELINE_ERROR_ORDER, tapeline_ring_publisher_batch_claim(publisher, 5, &place));
    GIVES(TAPELINE_ERROR_ORDER, tapeline_ring_publisher_publish(publisher, "a", 1, NULL));
    GIVES(TAPELINE_ERROR_ORDER, tapeline_ring_publisher_flush(publisher));
    SAYS("commit or abort");
    GIVES(TAPELINE_OK, tapeline_ring_publisher_commit(publisher, &position));
    EXPECT(position == 0);
    GIVES(TAPELINE_OK, tapeline_ring_subscriber_wait(subscriber, TAPELINE_WAIT_ADAPTIVE, UINT64_C(10000000000)));
    GIVES(TAPELINE_OK, tapeline_ring_subscriber_wait(subscriber, TAPELINE_WAIT_PARK, UINT64_MAX));
    expect_frame(subscriber, "first");

    // Aborted, cut short, empty.
    GIVES(TAPELINE_OK, tapeline_ring_publisher_claim(publisher, 100, &place));
    memset(place, 'x', 100);
    GIVES(TAPELINE_OK, tapeline_ring_publisher_abort(publisher));
    GIVES(TAPELINE_OK, tapeline_ring_publisher_claim(publisher, 100, &place));
    memcpy(place, "prefix, and more", 16);
    GIVES(TAPELINE_OK, tapeline_ring_publisher_commit_prefix(publisher, 6, &position));
    GIVES(TAPELINE_OK, tapeline_ring_publisher_claim(publisher, 10, &place));
    GIVES(TAPELINE_TOO_LONG, tapeline_ring_publisher_commit_prefix(publisher, 11, NULL));
    GIVES(TAPELINE_ERROR_ORDER, tapeline_ring_publisher_commit(publisher, NULL));
    GIVES(TAPELINE_OK, tapeline_ring_publisher_publish(publisher, NULL, 0, &position));
    expect_frame(subscriber, "prefix");
    expect_frame(subscriber, "");
    GIVES(TAPELINE_EMPTY, tapeline_ring_subscriber_next(subscriber, &frame));

    // A batch: all or nothing.
    GIVES(TAPELINE_TOO_LONG, tapeline_ring_publisher_batch_claim(publisher, 513, &place));
    GIVES(TAPELINE_ERROR_ORDER, tapeline_ring_publisher_commit(publisher, NULL));
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 3; i++) {
            GIVES(TAPELINE_OK, tapeline_ring_publisher_batch_claim(publisher, 2, &place));
            char text[2] = {(char)('a' + round), (char)('0' + i)};
            memcpy(place, text, 2);
            GIVES(TAPELINE_EMPTY, tapeline_ring_subscriber_next(subscriber, &frame));
        }
        GIVES(TAPELINE_ERROR_ORDER, tapeline_ring_publisher_commit_prefix(publisher, 1, NULL));
        if (round == 0) GIVES(TAPELINE_OK, tapeline_ring_publisher_abort(publisher));
    }
    GIVES(TAPELINE_OK, tapeline_ring_publisher_commit(publisher, NULL));
    expect_frame(subscriber, "b0");
    expect_frame(subscriber, "b1");
    expect_frame(subscriber, "b2");

    // Copies; a frame that does not fit is lent instead.
    char copy[4];
    put(publisher, "copy");
    put(publisher, "longer");
    put(publisher, "");
    GIVES(TAPELINE_FRAME, tapeline_ring_subscriber_copy(subscriber, copy, sizeof copy, &frame));
    EXPECT(frame.bytes == copy && frame.len == 4 && memcmp(copy, "copy", 4) == 0);
    GIVES(TAPELINE_TOO_LONG, tapeline_ring_subscriber_copy(subscriber, copy, sizeof copy, &frame));
    EXPECT(frame.len == 6 && memcmp(frame.bytes, "longer", 6) == 0 && memcmp(copy, "copy", 4) == 0);
    GIVES(TAPELINE_FRAME, tapeline_ring_subscriber_copy(subscriber, NULL, 0, &frame));
    GIVES(TAPELINE_ERROR_NULL, tapeline_ring_subscriber_copy(subscriber, NULL, 1, &frame));
    GIVES(TAPELINE_EMPTY, tapeline_ring_subscriber_copy(subscriber, copy, sizeof copy, &frame));

    // Notes, and the states.
    uint64_t note[8] = {1, 2, 3, 4, 5, 6, 7, 8}, read[8];
    GIVES(TAPELINE_OK, tapeline_ring_publisher_set_note(publisher, note));
    GIVES(TAPELINE_ERROR_NULL, tapeline_ring_publisher_set_note(publisher, NULL));
    GIVES(TAPELINE_OK, tapeline_ring_subscriber_note(subscriber, read));
    EXPECT(memcmp(note, read, sizeof note) == 0);
    GIVES(TAPELINE_OK, tapeline_ring_publisher_flush(publisher));
    struct {
        tapeline_ring_publisher_state known;
        uint64_t later;
    } state = {.later = 5};
    GIVES(TAPELINE_OK, tapeline_ring_publisher_look(publisher, &state.known, sizeof state));
    EXPECT(state.known.frames == 9 && state.known.epoch == 1 && state.known.subscribers == 1);
    EXPECT(state.known.capacity == 4096 && state.known.max_frame == 512 && state.known.backlog_bytes == 0);
    EXPECT(state.later == 0);
    tapeline_ring_subscriber_state seen = {.reserved = 77};
    GIVES(TAPELINE_OK, tapeline_ring_subscriber_look(subscriber, &seen, offsetof(tapeline_ring_subscriber_state, reserved)));
    EXPECT(seen.position == state.known.position && seen.lag_bytes == 0 && seen.epoch == 1);
    EXPECT(seen.publisher_alive == 1 && seen.named == 1 && seen.reserved == 77);

    // Full, and space again as soon as the subscriber releases.
    uint64_t published = 0;
    while (tapeline_ring_publisher_publish(publisher, copy, sizeof copy, NULL) == TAPELINE_OK) published++;
    EXPECT(published > 100 && published < 4096 / 16 + 1);
    GIVES(TAPELINE_FULL, tapeline_ring_publisher_claim(publisher, 4, &place));
    GIVES(TAPELINE_FULL, tapeline_ring_publisher_batch_claim(publisher, 4, &place));
    GIVES(TAPELINE_FRAME, tapeline_ring_subscriber_next(subscriber, &frame));
    for (uint64_t i = 1; i < published; i++) GIVES(TAPELINE_FRAME, tapeline_ring_subscriber_next(subscriber, &frame));
    GIVES(TAPELINE_OK, tapeline_ring_subscriber_release(subscriber));
    put(publisher, "last");

    // The end comes after the last frame; an open claim is not visible.
    GIVES(TAPELINE_OK, tapeline_ring_publisher_claim(publisher, 4, &place));
    GIVES(TAPELINE_OK, tapeline_ring_publisher_close(publisher));
    expect_frame(subscriber, "last");
    GIVES(TAPELINE_ENDED, tapeline_ring_subscriber_next(subscriber, &frame));
    GIVES(TAPELINE_OK, tapeline_ring_subscriber_look(subscriber, &seen, sizeof seen));
    EXPECT(seen.publisher_alive == 0 && seen.named == 0 && seen.reserved == 0);
    GIVES(TAPELINE_OK, tapeline_ring_subscriber_leave(subscriber));
}

static void kept_ring(void) {
    tapeline_ring_publisher_options options = {.size = sizeof options, .capacity = 4096, .keep = 1, .wake_on_flush = 1};
    tapeline_ring_publisher *publisher;
    tapeline_ring_subscriber *subscriber;
    GIVES(TAPELINE_OK, tapeline_ring_publisher_open(name, &options, &publisher));
    put(publisher, "old");
    GIVES(TAPELINE_OK, tapeline_ring_publisher_close(publisher));
    options.capacity = 8192;
    GIVES(TAPELINE_ERROR_OTHER_SHAPE, tapeline_ring_publisher_open(name, &options, &publisher));
    options.capacity = 4096;
    options.keep = 0;
    GIVES(TAPELINE_OK, tapeline_ring_publisher_open(name, &options, &publisher));
    put(publisher, "new");
    GIVES(TAPELINE_OK, tapeline_ring_subscriber_join(name, TAPELINE_OLDEST, NULL, &subscriber));
    tapeline_frame frame;
    expect_frame(subscriber, "old");
    GIVES(TAPELINE_FRAME, tapeline_ring_subscriber_next(subscriber, &frame));
    EXPECT(frame.epoch == 2);
    GIVES(TAPELINE_OK, tapeline_ring_publisher_close(publisher));
    GIVES(TAPELINE_OK, tapeline_ring_subscriber_leave(subscriber));
}

static void broadcast_ring(void) {
    tapeline_ring_publisher_options options = {.size = sizeof options, .capacity = 4096, .policy = TAPELINE_BROADCAST};
    tapeline_ring_publisher *publisher;
    tapeline_ring_subscriber *subscriber;
    GIVES(TAPELINE_OK, tapeline_ring_publisher_open(name, &options, &publisher));
    GIVES(TAPELINE_ERROR_OTHER_POLICY, tapeline_ring_subscriber_join(name, TAPELINE_OLDEST, NULL, &subscriber));
    EXPECT(subscriber == NULL);
    GIVES(TAPELINE_OK, tapeline_ring_subscriber_join_broadcast(name, TAPELINE_OLDEST, "slow", &subscriber));
    put(publisher, "first");
    expect_frame(subscriber, "first");
    // The publisher does not wait for a subscriber that does not read.
    uint64_t numbers = 1000, lost = 0, read = 0, bytes = 0;
    for (uint64_t i = 0; i < numbers; i++)
        GIVES(TAPELINE_OK, tapeline_ring_publisher_publish(publisher, &i, sizeof i, NULL));
    tapeline_frame frame;
    GIVES(TAPELINE_LOST, tapeline_ring_subscriber_next(subscriber, &frame));
    EXPECT(frame.bytes == NULL && frame.len == 0);
    GIVES(TAPELINE_OK, tapeline_ring_subscriber_lost(subscriber, &lost, &bytes));
    GIVES(TAPELINE_OK, tapeline_ring_subscriber_lost(subscriber, NULL, NULL));
    EXPECT(bytes == 16 * lost);
    uint64_t number;
    while (tapeline_ring_subscriber_copy(subscriber, &number, sizeof number, &frame) == TAPELINE_FRAME)
        EXPECT(number == lost + read++);
    EXPECT(lost > 0 && lost + read == numbers);
    GIVES(TAPELINE_OK, tapeline_ring_publisher_close(publisher));
    GIVES(TAPELINE_ENDED, tapeline_ring_subscriber_next(subscriber, &frame));
    GIVES(TAPELINE_OK, tapeline_ring_subscriber_leave(subscriber));
}

static void eviction(void) {
    // A short limit (1 ms): the subscriber is evicted soon after the ring is full.
    tapeline_ring_publisher_options options = {
        .size = sizeof options, .capacity = 4096, .framing = TAPELINE_LINES, .stall_limit_ns = 1000000};
    tapeline_ring_publisher *publisher;
    tapeline_ring_subscriber *subscriber;
    GIVES(TAPELINE_OK, tapeline_ring_publisher_open(name, &options, &publisher));
    GIVES(TAPELINE_OK, tapeline_ring_subscriber_join(name, TAPELINE_OLDEST, "stalled", &subscriber));
    GIVES(TAPELINE_OK, tapeline_ring_subscriber_is_evicted(subscriber));
    tapeline_ring_publisher_state state = {.evicted = 0};
    while (state.evicted == 0) {
        tapeline_code code = tapeline_ring_publisher_publish(publisher, "x", 1, NULL);
        EXPECT(code == TAPELINE_OK || code == TAPELINE_FULL);
        GIVES(TAPELINE_OK, tapeline_ring_publisher_look(publisher, &state, sizeof state));
    }
    tapeline_frame frame;
    GIVES(TAPELINE_EVICTED, tapeline_ring_subscriber_is_evicted(subscriber));
    GIVES(TAPELINE_EVICTED, tapeline_ring_subscriber_next(subscriber, &frame));
    EXPECT(frame.position == 0 && frame.bytes == NULL);
    tapeline_ring_subscriber_state seen;
    GIVES(TAPELINE_OK, tapeline_ring_subscriber_look(subscriber, &seen, sizeof seen));
    EXPECT(seen.stall_limit_ns == 1000000);
    GIVES(TAPELINE_OK, tapeline_ring_subscriber_leave(subscriber));
    GIVES(TAPELINE_OK, tapeline_ring_publisher_close(publisher));
}

static void bad_choices(void) {
    tapeline_ring_publisher *publisher;
    tapeline_ring_publisher_options options = {.size = sizeof options, .policy = 2};
    GIVES(TAPELINE_ERROR_ARGUMENT, tapeline_ring_publisher_open(name, &options, &publisher));
    SAYS("2 is no policy");
    options.policy = TAPELINE_GATED;
    options.framing = 9;
    GIVES(TAPELINE_ERROR_ARGUMENT, tapeline_ring_publisher_open(name, &options, &publisher));
    options.framing = TAPELINE_PACKED;
    options.huge_pages = 1;
    options.capacity = 4096;
    GIVES(TAPELINE_ERROR_OPTIONS, tapeline_ring_publisher_open(name, &options, &publisher));
    // 64 KiB are below the usual limit on locked memory.
    options = (tapeline_ring_publisher_options){.size = sizeof options, .capacity = 65536};
    tapeline_ring_subscriber *subscriber;
    GIVES(TAPELINE_OK, tapeline_ring_publisher_open(name, &options, &publisher));
    GIVES(TAPELINE_OK, tapeline_ring_subscriber_join(name, TAPELINE_NEWEST, NULL, &subscriber));
    tapeline_code code = tapeline_ring_publisher_lock_memory(publisher);
    EXPECT(code == TAPELINE_OK || code == TAPELINE_ERROR_SYSTEM);
    GIVES(code, tapeline_ring_subscriber_lock_memory(subscriber));
    GIVES(TAPELINE_OK, tapeline_ring_subscriber_leave(subscriber));
    GIVES(TAPELINE_OK, tapeline_ring_publisher_close(publisher));
}

int main(int count, char **arguments) {
    EXPECT(count == 2);
    name = arguments[1];
    EXPECT(strlen(tapeline_version()) > 0);
    bad_openings();
    null_handles();
    frames();
    kept_ring();
    broadcast_ring();
    eviction();
    bad_choices();
    puts("ok");
    return 0;
}
