// Publishes prices of an item to a hub:
//
//     cc -O2 publisher.c -o publisher $(pkg-config --cflags --libs tapeline)
//     ./publisher HUB SERVICE ITEM UPDATES
//
// HUB is a host and port, such as localhost:14003.

#include <stdio.h>
#include <stdlib.h>
#include <tapeline.h>

static int failed(void) {
    fprintf(stderr, "error: %s\n", tapeline_last_error());
    return 1;
}

// Waits until the hub has taken everything; returns 0 after an error.
static int flush(tapeline_publisher *publisher) {
    for (;;) {
        tapeline_code code = tapeline_publisher_flush(publisher, UINT64_C(1000000000));
        if (code != TAPELINE_TIMED_OUT) return code == TAPELINE_OK;
        tapeline_text reason;
        if (tapeline_publisher_is_ready(publisher, &reason) != TAPELINE_OK)
            fprintf(stderr, "waiting for the hub: %.*s\n", (int)reason.len, reason.data);
    }
}

int main(int count, char **arguments) {
    if (count != 5) {
        fprintf(stderr, "usage: publisher HUB SERVICE ITEM UPDATES\n");
        return 2;
    }
    tapeline_session_options options = {.size = sizeof options, .servers = arguments[1], .user = "example"};
    tapeline_publisher *publisher;
    if (tapeline_publisher_open(&options, 1, arguments[2], &publisher) != TAPELINE_OK) return failed();
    long updates = strtol(arguments[4], NULL, 10);
    int status = 0;
    // The first is the image.
    for (long i = 0; i <= updates && status == 0; i++) {
        const tapeline_field_value fields[] = {
            {.name = "BID", .value = {.kind = TAPELINE_VALUE_REAL, .data.real = {.mantissa = 3991 + i, .hint = 12}}},
            {.name = "ASK", .value = {.kind = TAPELINE_VALUE_DOUBLE, .data.number = 40 + 0.01 * (double)i}},
            {.name = "BIDSIZE", .value = {.kind = TAPELINE_VALUE_INT, .data.integer = i}},
        };
        if (tapeline_publisher_publish(publisher, arguments[3], fields, 3) != TAPELINE_OK || !flush(publisher))
            status = failed();
    }
    if (status == 0) printf("published %ld\n", updates);
    tapeline_publisher_close(publisher);
    return status;
}
