// The ring from C: a publisher and a subscriber whose messages `tapeline ring sub` and `tapeline ring pub` understand.
//
//     cc -O2 ring.c -o ring $(pkg-config --cflags --libs tapeline)
//
//     ./ring pub NAME MESSAGES SUBSCRIBERS     waits for SUBSCRIBERS subscribers, publishes, closes
//     ./ring sub NAME [copy]                   reads until the publisher closes, checks that nothing is missing
//
// A message starts with a word: 12 bits of mark, 4 bits for the kind of content, 48 bits of sequence.

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tapeline.h>

enum { MARK = 0x7a9, MESSAGE_BYTES = 32, LONGEST = 65536 };

static int fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, tapeline_last_error());
    return 1;
}

static int publish(const char *name, uint64_t messages, uint32_t subscribers) {
    tapeline_ring_publisher_options options = {.size = sizeof options, .capacity = 1 << 20};
    tapeline_ring_publisher *publisher;
    if (tapeline_ring_publisher_open(name, &options, &publisher) != TAPELINE_OK) return fail("cannot publish");

    tapeline_ring_publisher_state state;
    do {
        if (tapeline_ring_publisher_look(publisher, &state, sizeof state) != TAPELINE_OK) return fail("cannot look");
    } while (state.subscribers < subscribers);

    // A continued ring continues the sequence.
    for (uint64_t sequence = state.frames; sequence < state.frames + messages;) {
        void *place;
        switch (tapeline_ring_publisher_claim(publisher, MESSAGE_BYTES, &place)) {
        case TAPELINE_OK: {
            uint64_t words[MESSAGE_BYTES / 8] = {(uint64_t)MARK << 52 | sequence};
            memcpy(place, words, sizeof words);
            if (tapeline_ring_publisher_commit(publisher, NULL) != TAPELINE_OK) return fail("cannot commit");
            sequence++;
            break;
        }
        case TAPELINE_FULL: // A subscriber is behind: try again, nothing is lost.
            break;
        default:
            return fail("cannot claim");
        }
    }
    if (tapeline_ring_publisher_close(publisher) != TAPELINE_OK) return fail("cannot close");
    printf("published %" PRIu64 "\n", messages);
    return 0;
}

static int subscribe(const char *name, int copies) {
    tapeline_ring_subscriber *subscriber;
    if (tapeline_ring_subscriber_join(name, TAPELINE_OLDEST, "an example in C", &subscriber) != TAPELINE_OK)
        return fail("cannot join");

    static unsigned char copy[LONGEST];
    uint64_t frames = 0, missing = 0, expected = 0;
    for (;;) {
        tapeline_frame frame;
        tapeline_code code = copies ? tapeline_ring_subscriber_copy(subscriber, copy, sizeof copy, &frame)
                                    : tapeline_ring_subscriber_next(subscriber, &frame);
        if (code == TAPELINE_EMPTY) {
            if (tapeline_ring_subscriber_wait(subscriber, TAPELINE_WAIT_ADAPTIVE, UINT64_C(60000000000)) != TAPELINE_OK) {
                fprintf(stderr, "nothing came for a minute\n");
                return 1;
            }
            continue;
        }
        if (code == TAPELINE_ENDED) break;
        uint64_t word = 0;
        if (code == TAPELINE_FRAME && frame.len >= sizeof word) memcpy(&word, frame.bytes, sizeof word);
        if (code != TAPELINE_FRAME || word >> 52 != MARK) {
            fprintf(stderr, "at position %" PRIu64 " stands no message of `ring pub`\n", frame.position);
            return 1;
        }
        uint64_t sequence = word & ((UINT64_C(1) << 48) - 1);
        if (frames > 0 && sequence != expected) missing++;
        expected = sequence + 1;
        frames++;
    }
    if (tapeline_ring_subscriber_leave(subscriber) != TAPELINE_OK) return fail("cannot leave");
    printf("read %" PRIu64 ", missing %" PRIu64 "\n", frames, missing);
    return missing != 0;
}

int main(int count, char **arguments) {
    if (count == 5 && strcmp(arguments[1], "pub") == 0)
        return publish(arguments[2], strtoull(arguments[3], NULL, 10), (uint32_t)strtoul(arguments[4], NULL, 10));
    if (count >= 3 && strcmp(arguments[1], "sub") == 0)
        return subscribe(arguments[2], count > 3 && strcmp(arguments[3], "copy") == 0);
    fprintf(stderr, "usage: ring pub NAME MESSAGES SUBSCRIBERS | ring sub NAME [copy]\n");
    return 2;
}
