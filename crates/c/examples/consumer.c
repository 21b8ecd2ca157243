// Prints the images and updates of items of a service:
//
//     cc -O2 consumer.c -o consumer $(pkg-config --cflags --libs tapeline)
//     ./consumer SERVER SERVICE MESSAGES ITEM...
//
// SERVER is a host and port, such as localhost:14002. Ends after so many messages; 0: never. In the environment, TAPELINE_USER and
// TAPELINE_PASSWORD are the login, TAPELINE_CA a file of certificates to trust (then with TLS), and TAPELINE_JSON=1 is for JSON.

#include <stdlib.h>
#include <string.h>

#include "print.h"

static int failed(void) {
    fprintf(stderr, "error: %s\n", tapeline_last_error());
    return 1;
}

// Prints an event; returns 1 for a message of an item, 0 for another event, below 0 after an error.
static int print_event(const tapeline_event *event) {
    switch (event->kind) {
    case TAPELINE_EVENT_IMAGE:
    case TAPELINE_EVENT_UPDATE:
        printf("%s ", event->kind == TAPELINE_EVENT_IMAGE ? "image" : "update");
        print_text(event->item);
        if (!print_fields(event->message, event->dictionary)) return -1;
        printf("\n");
        return 1;
    case TAPELINE_EVENT_STATUS:
    case TAPELINE_EVENT_STATE:
        printf("status ");
        print_text(event->item);
        printf(" %s: ", event->has_state && event->stream_state != 1 ? "closed" : "state");
        print_text(event->text);
        printf("\n");
        return 1;
    case TAPELINE_EVENT_CONNECTED: fprintf(stderr, "connected: %.*s\n", (int)event->server.len, event->server.data); return 0;
    case TAPELINE_EVENT_DISCONNECTED:
    case TAPELINE_EVENT_NOTE:
        fprintf(stderr, "note: %.*s %.*s\n", (int)event->server.len, event->server.data, (int)event->text.len,
                event->text.data);
        return 0;
    default: return 0;
    }
}

int main(int count, char **arguments) {
    if (count < 5) {
        fprintf(stderr, "usage: consumer SERVER SERVICE MESSAGES ITEM...\n");
        return 2;
    }
    const char *certificates = getenv("TAPELINE_CA");
    tapeline_session_options options = {.size = sizeof options,
                                        .servers = arguments[1],
                                        .user = getenv("TAPELINE_USER"),
                                        .password = getenv("TAPELINE_PASSWORD"),
                                        .trusted_certificates = certificates,
                                        .tls = certificates != NULL,
                                        .json = getenv("TAPELINE_JSON") != NULL};
    tapeline_consumer *consumer;
    if (tapeline_consumer_open(&options, &consumer) != TAPELINE_OK) return failed();
    const char *const *items = (const char *const *)(arguments + 4);
    int status = 0;
    if (tapeline_consumer_subscribe(consumer, arguments[2], items, (size_t)(count - 4)) != TAPELINE_OK)
        status = failed();
    unsigned long wanted = strtoul(arguments[3], NULL, 10), messages = 0;
    while (status == 0 && (wanted == 0 || messages < wanted)) {
        tapeline_event event;
        tapeline_code code = tapeline_consumer_poll(consumer, UINT64_C(1000000000), &event, sizeof event);
        if (code == TAPELINE_TIMED_OUT) continue;
        int printed = code == TAPELINE_EVENT ? print_event(&event) : -1;
        if (printed < 0) status = failed();
        messages += printed > 0;
        fflush(stdout);
    }
    tapeline_consumer_close(consumer);
    return status;
}
