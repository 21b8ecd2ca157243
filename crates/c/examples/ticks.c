// Reads the ticks of a plant, from its ring or from its journal:
//
//     cc -O2 ticks.c -o ticks $(pkg-config --cflags --libs tapeline)
//     ./ticks ring NAME          until the plant ends
//     ./ticks journal FOLDER FROM  from this sequence to the end
//
// Prints each tick, and how many there were.

#include <stdlib.h>
#include <string.h>

#include "print.h"

static int failed(void) {
    fprintf(stderr, "error: %s\n", tapeline_last_error());
    return 1;
}

static uint64_t ticks, missing, expected;

static int print_tick(const tapeline_tick *tick) {
    static const char *const kinds[] = {"", "", "image", "status", "update"};
    printf("%" PRIu64 " %s ", tick->sequence, kinds[tick->kind]);
    print_text(tick->item);
    int is_good = print_fields(tick->body, NULL);
    printf("\n");
    if (expected != 0 && tick->sequence > expected) missing += tick->sequence - expected;
    expected = tick->sequence + 1;
    ticks++;
    return is_good;
}

static int of_ring(const char *name) {
    tapeline_ring_subscriber *subscriber;
    if (tapeline_ring_subscriber_join(name, TAPELINE_OLDEST, "an example in C", &subscriber) != TAPELINE_OK)
        return failed();
    tapeline_frame frame;
    tapeline_tick tick;
    tapeline_code code;
    int status = 0;
    while (status == 0 && (code = tapeline_ring_subscriber_next(subscriber, &frame)) != TAPELINE_ENDED) {
        if (code == TAPELINE_EMPTY) {
            code = tapeline_ring_subscriber_wait(subscriber, TAPELINE_WAIT_ADAPTIVE, UINT64_C(1000000000));
            if (code < 0) status = failed();
        } else if (code == TAPELINE_FRAME) {
            if (tapeline_tick_parse(frame.bytes, frame.len, &tick, sizeof tick) != TAPELINE_OK || !print_tick(&tick))
                status = failed();
        } else {
            fprintf(stderr, "error: this reader was evicted, or the ring is damaged (%d)\n", (int)code);
            status = 1;
        }
    }
    tapeline_ring_subscriber_leave(subscriber);
    return status;
}

static int of_journal(const char *folder, uint64_t from) {
    tapeline_journal *journal;
    if (tapeline_journal_open(folder, &journal) != TAPELINE_OK) return failed();
    int status = 0;
    if (tapeline_journal_seek(journal, from) != TAPELINE_OK) status = failed();
    tapeline_tick tick;
    tapeline_code code;
    while (status == 0 && (code = tapeline_journal_next(journal, &tick, sizeof tick)) != TAPELINE_EMPTY) {
        uint64_t first, last;
        if (code == TAPELINE_MISSING && tapeline_journal_missing(journal, &first, &last) == TAPELINE_OK)
            fprintf(stderr, "missing: %" PRIu64 " to %" PRIu64 "\n", first, last);
        else if (code != TAPELINE_TICK || !print_tick(&tick))
            status = failed();
    }
    tapeline_journal_close(journal);
    return status;
}

int main(int count, char **arguments) {
    int status = 2;
    if (count == 3 && strcmp(arguments[1], "ring") == 0)
        status = of_ring(arguments[2]);
    else if (count == 4 && strcmp(arguments[1], "journal") == 0)
        status = of_journal(arguments[2], strtoull(arguments[3], NULL, 10));
    else
        fprintf(stderr, "usage: ticks ring NAME | ticks journal FOLDER FROM\n");
    if (status != 2) printf("read %" PRIu64 ", missing %" PRIu64 "\n", ticks, missing);
    return status;
}
