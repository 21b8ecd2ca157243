// A consumer at full load, for the processor time of an update: consumer SERVER SERVICE ITEMS SECONDS. It opens the items RDT1, RDT2 …,
// decodes every field of every update, and counts from the last image on. Prints the updates and fields, and the ns of processor
// time of this process for each update.

#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tapeline.h>

static int64_t now_ns(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static int failed(void) {
    fprintf(stderr, "%s\n", tapeline_last_error());
    return 1;
}

static double sum;

// Decodes every field; returns how many, or -1 after an error.
static int decode(const tapeline_event *event) {
    tapeline_fields fields;
    tapeline_field field;
    tapeline_code code = tapeline_fields_open(event->message.data, event->message.len, event->dictionary, &fields);
    int count = 0;
    while (code == TAPELINE_OK || code == TAPELINE_FIELD) {
        code = tapeline_fields_next(&fields, &field);
        if (code != TAPELINE_FIELD) break;
        if (field.value.kind == TAPELINE_VALUE_REAL) sum += field.value.data.real.number;
        count++;
    }
    return code == TAPELINE_ENDED ? count : -1;
}

int main(int count, char **arguments) {
    if (count != 5) return 2;
    const size_t items = strtoull(arguments[3], NULL, 10);
    const int64_t seconds = strtoll(arguments[4], NULL, 10);
    tapeline_session_options options = {.size = sizeof options, .servers = arguments[1], .user = "bench"};
    tapeline_consumer *consumer;
    if (tapeline_consumer_open(&options, &consumer) != TAPELINE_OK) return failed();
    char(*names)[24] = calloc(items, sizeof *names);
    const char **pointers = calloc(items, sizeof *pointers);
    if (names == NULL || pointers == NULL) return 1;
    for (size_t i = 0; i < items; i++) {
        snprintf(names[i], sizeof names[i], "RDT%zu", i + 1);
        pointers[i] = names[i];
    }
    if (tapeline_consumer_subscribe(consumer, arguments[2], pointers, items) != TAPELINE_OK) return failed();
    uint64_t images = 0, updates = 0, decoded = 0;
    int64_t end = INT64_MAX, used = 0, began = 0;
    while (now_ns(CLOCK_MONOTONIC) < end) {
        // The clock is read once for some hundred updates.
        for (int i = 0; i < 256; i++) {
            tapeline_event event;
            tapeline_code code = tapeline_consumer_poll(consumer, UINT64_C(100000000), &event, sizeof event);
            if (code < 0) return failed();
            if (code != TAPELINE_EVENT) break;
            if (event.kind == TAPELINE_EVENT_IMAGE && ++images == items) {
                began = now_ns(CLOCK_MONOTONIC);
                end = began + seconds * INT64_C(1000000000);
                used = now_ns(CLOCK_PROCESS_CPUTIME_ID);
            }
            if (event.kind != TAPELINE_EVENT_UPDATE) continue;
            int fields = decode(&event);
            if (fields < 0) return failed();
            if (images < items) continue;
            updates++;
            decoded += (uint64_t)fields;
        }
    }
    used = now_ns(CLOCK_PROCESS_CPUTIME_ID) - used;
    double lasted = (double)(now_ns(CLOCK_MONOTONIC) - began) / 1e9;
    printf("%" PRIu64 " updates, %.0f/s, %.1f fields each: %.0f ns of processor time each (%.1f %% of a core; sum %g)\n",
           updates, (double)updates / lasted, (double)decoded / (double)updates, (double)used / (double)updates,
           (double)used / lasted / 1e7, sum);
    tapeline_consumer_close(consumer);
    free(names);
    free(pointers);
    return 0;
}
