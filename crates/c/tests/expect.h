// Checks that end the program with the line that failed.

#ifndef EXPECT_H
#define EXPECT_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tapeline.h>

#define EXPECT(condition)                                                                                         \
    do {                                                                                                           \
        if (!(condition)) {                                                                                        \
            fprintf(stderr, "line %d: not so: %s (last error: %s)\n", __LINE__, #condition, tapeline_last_error()); \
            exit(1);                                                                                               \
        }                                                                                                          \
    } while (0)
#define GIVES(expected, call)                                                                                \
    do {                                                                                                      \
        tapeline_code code_ = (call);                                                                         \
        if (code_ != (expected)) {                                                                            \
            fprintf(stderr, "line %d: %s gave %d, not %s (last error: %s)\n", __LINE__, #call, (int)code_, #expected, \
                    tapeline_last_error());                                                                   \
            exit(1);                                                                                          \
        }                                                                                                     \
    } while (0)
#define SAYS(text) EXPECT(strstr(tapeline_last_error(), text) != NULL)

#endif
