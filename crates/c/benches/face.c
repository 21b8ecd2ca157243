// The C side of benches/face.rs: face pub NAME MESSAGES BYTES in-place|copy, or face sub NAME MESSAGES in-place|copy.
// The subscriber prints the ns from its first frame to the end.

#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tapeline.h>

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static int publish(const char *name, uint64_t messages, size_t bytes, int copies) {
    static unsigned char message[65536];
    tapeline_ring_publisher *publisher;
    tapeline_ring_publisher_state state;
    if (bytes < 8 || bytes > sizeof message || tapeline_ring_publisher_open(name, NULL, &publisher) != TAPELINE_OK) return 1;
    do tapeline_ring_publisher_look(publisher, &state, sizeof state);
    while (state.subscribers == 0);
    for (uint64_t i = 0; i < messages; i++) {
        if (copies) {
            memcpy(message, &i, sizeof i);
            while (tapeline_ring_publisher_publish(publisher, message, bytes, NULL) != TAPELINE_OK) {
            }
        } else {
            void *place;
            while (tapeline_ring_publisher_claim(publisher, bytes, &place) != TAPELINE_OK) {
            }
            memcpy(place, &i, sizeof i);
            tapeline_ring_publisher_commit(publisher, NULL);
        }
    }
    return tapeline_ring_publisher_close(publisher) != TAPELINE_OK;
}

static int subscribe(const char *name, uint64_t messages, int copies) {
    static unsigned char copy[65536];
    tapeline_ring_subscriber *subscriber;
    while (tapeline_ring_subscriber_join(name, TAPELINE_OLDEST, "bench", &subscriber) == TAPELINE_ERROR_NOT_FOUND) {
    }
    tapeline_frame frame;
    tapeline_code code;
    uint64_t frames = 0, sum = 0, number;
    int64_t start = 0;
    for (;;) {
        code = copies ? tapeline_ring_subscriber_copy(subscriber, copy, sizeof copy, &frame)
                      : tapeline_ring_subscriber_next(subscriber, &frame);
        if (code == TAPELINE_FRAME) {
            if (frames++ == 0) start = now();
            memcpy(&number, frame.bytes, sizeof number);
            sum += number;
        } else if (code != TAPELINE_EMPTY) {
            break;
        }
    }
    int64_t ns = now() - start;
    tapeline_ring_subscriber_leave(subscriber);
    printf("%" PRId64 "\n", ns);
    return !(code == TAPELINE_ENDED && frames == messages && sum == messages * (messages - 1) / 2);
}

int main(int count, char **arguments) {
    int copies = strcmp(arguments[count - 1], "copy") == 0;
    uint64_t messages = strtoull(arguments[3], NULL, 10);
    if (strcmp(arguments[1], "pub") == 0)
        return publish(arguments[2], messages, strtoull(arguments[4], NULL, 10), copies);
    return subscribe(arguments[2], messages, copies);
}
