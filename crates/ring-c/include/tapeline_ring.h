// The ring's C face: one publisher, up to 64 subscribers in any processes of this machine, nothing lost.
//
// Every call that can go otherwise gives a tapeline_code: zero or above is an outcome of normal work, below zero an
// error, whose text with a hint is in tapeline_last_error() of the same thread. No call throws.
//
// Pointers: a handle that is NULL, or another NULL that is not allowed by name, is TAPELINE_ERROR_NULL. Everything else
// that is passed must be what it is declared to be, a handle must be one that was given and not yet given back, and
// results are written only where it is said.
//
// Threads: a handle may be passed from thread to thread, and is used by one at a time. Two handles share nothing.
// A child made by fork() must not use its parent's handles, nor live on for long without exec(): it keeps the locks by
// which others see that the parent is alive.
//
// Made by cbindgen from crates/ring-c/src; a test keeps them the same. How to build and link: docs/ring-c.md.

#ifndef TAPELINE_RING_H
#define TAPELINE_RING_H

#include <stddef.h>
#include <stdint.h>

// What a call gave. Zero and above: an outcome. Below zero: an error; tapeline_last_error() has its text. Later
// releases may add both.
enum tapeline_code
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // Done.
    TAPELINE_OK = 0,
    // A frame.
    TAPELINE_FRAME = 1,
    // No frame yet. More may come: also from another publisher, if this one has died.
    TAPELINE_EMPTY = 2,
    // No frame, and the publisher has said that no more come.
    TAPELINE_ENDED = 3,
    // Something other than a publisher has written into the ring; the subscriber can go no further.
    TAPELINE_DAMAGED = 4,
    // The wait was over before a frame came.
    TAPELINE_TIMED_OUT = 5,
    // A subscriber has not yet released the room. Nothing is lost by trying again.
    TAPELINE_FULL = 6,
    // Longer than the ring's longest frame, than what was claimed, or than the buffer to copy to.
    TAPELINE_TOO_LONG = 7,
    // This subscriber held the full ring for longer than its stall limit, and the publisher has gone on without it. It
    // stays so: leave, and join again.
    TAPELINE_EVICTED = 8,
    // The publisher of a broadcast ring has passed this subscriber, which goes on at the oldest frame that is whole;
    // tapeline_subscriber_lost() says how much is lost.
    TAPELINE_LOST = 9,
    // A NULL where none is allowed.
    TAPELINE_ERROR_NULL = -1,
    // An argument that is none of its values, or text that is not UTF-8.
    TAPELINE_ERROR_ARGUMENT = -2,
    // A call that cannot come now: a claim or a batch is open, or none is.
    TAPELINE_ERROR_ORDER = -3,
    // The library failed in a way that its makers excluded. The handle can only be given back.
    TAPELINE_ERROR_PANIC = -4,
    // A name that cannot be a ring's.
    TAPELINE_ERROR_NAME = -5,
    // Options that no ring can have, or that this release does not know.
    TAPELINE_ERROR_OPTIONS = -6,
    // There is no such ring.
    TAPELINE_ERROR_NOT_FOUND = -7,
    // Another publisher holds the ring.
    TAPELINE_ERROR_PUBLISHER_ALIVE = -8,
    // The ring is there with another shape than was asked for.
    TAPELINE_ERROR_OTHER_SHAPE = -9,
    // The file is no ring.
    TAPELINE_ERROR_FOREIGN = -10,
    // The ring has another layout than this release reads.
    TAPELINE_ERROR_LAYOUT = -11,
    // Something has overwritten the ring.
    TAPELINE_ERROR_DAMAGED = -12,
    // The ring has as many subscribers as it takes.
    TAPELINE_ERROR_NO_SLOT = -13,
    // The file system for shared memory is too small.
    TAPELINE_ERROR_NO_ROOM = -14,
    // A system call failed.
    TAPELINE_ERROR_SYSTEM = -15,
    // The ring has the other policy.
    TAPELINE_ERROR_OTHER_POLICY = -16,
    // The machine does not give huge pages.
    TAPELINE_ERROR_NO_HUGE_PAGES = -17,
    // Another error.
    TAPELINE_ERROR_OTHER = -99,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum tapeline_code tapeline_code;
#else
typedef int32_t tapeline_code;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Where a subscriber joins.
enum tapeline_start
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // Behind the newest frame: only what comes from now on.
    TAPELINE_NEWEST = 0,
    // At the oldest frame that is still there for sure, about 7/8 of the ring back.
    TAPELINE_OLDEST = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum tapeline_start tapeline_start;
#else
typedef uint32_t tapeline_start;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// How to wait for a frame: each trades the processor for time.
enum tapeline_wait
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // Polls with the processor's pause for 50 µs, then sleeps until woken.
    TAPELINE_WAIT_ADAPTIVE = 0,
    // Polls without a break: the least latency, a whole core.
    TAPELINE_WAIT_SPIN = 1,
    // Polls with the processor's pause: a whole core, kind to a sibling thread.
    TAPELINE_WAIT_PAUSE = 2,
    // Gives the core to others between polls.
    TAPELINE_WAIT_YIELD = 3,
    // Sleeps until woken.
    TAPELINE_WAIT_PARK = 4,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum tapeline_wait tapeline_wait;
#else
typedef uint32_t tapeline_wait;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// What becomes of subscribers that are slow. Fixed when a ring is made.
enum tapeline_policy
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // The publisher waits for them: nothing is lost.
    TAPELINE_GATED = 0,
    // The publisher never waits: they are told how much they lost.
    TAPELINE_BROADCAST = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum tapeline_policy tapeline_policy;
#else
typedef uint32_t tapeline_policy;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// How frames lie.
enum tapeline_framing
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // One after the other: the most messages a second.
    TAPELINE_PACKED = 0,
    // Each on cache lines of its own: the least latency where messages come every 100 ns or faster.
    TAPELINE_LINES = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum tapeline_framing tapeline_framing;
#else
typedef uint32_t tapeline_framing;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The one publisher of a ring.
typedef struct tapeline_publisher tapeline_publisher;

// One of a ring's subscribers. While one of a gated ring lives, the publisher does not write over what it has not
// released.
typedef struct tapeline_subscriber tapeline_subscriber;

// What a new ring is to be like. An existing ring that is continued must have the same shape. Zero is the default of
// every field but the first: `tapeline_publisher_options options = { .size = sizeof options };`.
typedef struct tapeline_publisher_options {
    // sizeof(tapeline_publisher_options). Later releases add fields behind the last one; this tells which there are.
    size_t size;
    // Bytes of the data area, a power of two from 4096; 0 = 1 MiB.
    size_t capacity;
    // The longest frame in bytes, up to a quarter of the capacity; 0 = that quarter.
    size_t max_frame;
    // Permission bits of the segment; 0 = 0600.
    uint32_t mode;
    // Not 0: keep the ring's name after the publisher has closed, so that subscribers can still join and drain.
    uint32_t keep;
    // Not 0: sleeping subscribers are woken by tapeline_publisher_flush() alone, not by each commit. For frames that
    // come in bursts.
    uint32_t wake_on_flush;
    // A tapeline_policy: what becomes of subscribers that are slow.
    uint32_t policy;
    // A tapeline_framing: how frames lie.
    uint32_t framing;
    // Not 0: the segment is given to `group`.
    uint32_t set_group;
    // The group's number. With a mode of 0660 its members can subscribe.
    uint32_t group;
    // Not 0: lay the data area on huge pages (of 2 MiB, so the capacity is at least that).
    uint32_t huge_pages;
    // For how long a live subscriber may hold a full ring without releasing anything, in ns; then it is evicted and
    // told so. 0 = for ever. Broadcast rings take none.
    uint64_t stall_limit_ns;
} tapeline_publisher_options;

// What tapeline_publisher_look() tells.
typedef struct tapeline_publisher_state {
    // Where the next frame will stand: bytes since the ring's first frame, headers and padding included.
    uint64_t position;
    // Frames committed to this ring, by this publisher and those before it.
    uint64_t frames;
    // Claims that were refused because the ring was full.
    uint64_t full;
    // Subscribers that died and no longer hold the ring up.
    uint64_t reclaimed;
    // Bytes that the slowest subscriber has not yet released, as far as it has said.
    uint64_t backlog_bytes;
    // Bytes of the data area.
    uint64_t capacity;
    // The longest frame in bytes.
    uint64_t max_frame;
    // 1 for the ring's first publisher, one more for each that continued it (modulo 2^24).
    uint32_t epoch;
    // Subscribers that are registered now; dead ones count until their room is needed.
    uint32_t subscribers;
    // Live subscribers that stalled for longer than the ring's limit and were left behind.
    uint64_t evicted;
} tapeline_publisher_state;

// A frame, where it lies in shared memory.
typedef struct tapeline_frame {
    // Its bytes: read them, and only until the next call with this subscriber.
    const void *bytes;
    // How many.
    size_t len;
    // Where it stands in the ring's stream: bytes since the first frame, headers and padding included.
    uint64_t position;
    // Which publisher wrote it: 1 for the ring's first, one more for each that continued it (modulo 2^24).
    uint32_t epoch;
} tapeline_frame;

// What tapeline_subscriber_look() tells.
typedef struct tapeline_subscriber_state {
    // Where the next frame stands.
    uint64_t position;
    // Bytes between this subscriber and the publisher's cursor, which lags by up to an eighth of the ring.
    uint64_t lag_bytes;
    // Bytes of the data area.
    uint64_t capacity;
    // The longest frame that can come, in bytes.
    uint64_t max_frame;
    // Which publisher has the ring now.
    uint32_t epoch;
    // 1 if there is a live publisher, by the lock that dies with it; else 0.
    uint32_t publisher_alive;
    // 1 if the ring still goes by its name. If not, no publisher will ever continue it.
    uint32_t named;
    // 0.
    uint32_t reserved;
    // For how long this subscriber may hold the full ring; 0 = for ever.
    uint64_t stall_limit_ns;
} tapeline_subscriber_state;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The text of this thread's latest error, with a hint where there is one; "" before the first. Never NULL. It stays
// as it is until this thread's next error: copy it to keep it.
const char *tapeline_last_error(void);

// This library's version, such as "0.1.0".
const char *tapeline_ring_version(void);

// Makes a ring, or continues one whose publisher is gone: with the next epoch, from the last committed frame, and its
// subscribers keep their places.
//
// `name`: 1 to 64 of A-Z a-z 0-9 . _ -. `options` may be NULL: all defaults. The handle goes to `*publisher`, which is
// NULL after an error; give it back with tapeline_publisher_close().
tapeline_code tapeline_publisher_open(const char *name,
                                      const struct tapeline_publisher_options *options,
                                      struct tapeline_publisher **publisher);

// Claims a frame of `len` bytes, to be written at `*bytes` and then committed or aborted. The bytes are what the ring
// held there before. TAPELINE_FULL, TAPELINE_TOO_LONG: nothing is claimed, and `*bytes` is left alone.
tapeline_code tapeline_publisher_claim(struct tapeline_publisher *publisher,
                                       size_t len,
                                       void **bytes);

// Claims the next frame of a batch, which the first such call opens: frames that become visible at once, with
// tapeline_publisher_commit(). TAPELINE_FULL, TAPELINE_TOO_LONG: what was claimed before can still be committed; a batch
// of nearly the whole ring is full for ever.
tapeline_code tapeline_publisher_batch_claim(struct tapeline_publisher *publisher,
                                             size_t len,
                                             void **bytes);

// Makes the claimed frame visible, or all frames of the batch at once. `position` may be NULL, or gets where the
// (first) frame stands.
tapeline_code tapeline_publisher_commit(struct tapeline_publisher *publisher,
                                        uint64_t *position);

// Makes the claimed frame visible with its first `len` bytes alone. TAPELINE_TOO_LONG if less was claimed; then the
// claim is aborted.
tapeline_code tapeline_publisher_commit_prefix(struct tapeline_publisher *publisher,
                                               size_t len,
                                               uint64_t *position);

// Gives up what is claimed, a frame or a batch: it was never there.
tapeline_code tapeline_publisher_abort(struct tapeline_publisher *publisher);

// Claims, copies and commits in one go: `len` bytes at `bytes`, which may be NULL if `len` is 0. `position` may be NULL.
tapeline_code tapeline_publisher_publish(struct tapeline_publisher *publisher,
                                         const void *bytes,
                                         size_t len,
                                         uint64_t *position);

// Brings up to date what others see from outside, and wakes subscribers that sleep where the options leave that to
// this call.
tapeline_code tapeline_publisher_flush(struct tapeline_publisher *publisher);

// Writes the ring's note: 8 words that any subscriber can read at any time, whole or not at all.
tapeline_code tapeline_publisher_set_note(struct tapeline_publisher *publisher, const uint64_t *words);

// Tells about the publisher and its ring. `size`: sizeof *state, since later releases add fields. Not for every
// message: it looks at each subscriber.
tapeline_code tapeline_publisher_look(struct tapeline_publisher *publisher,
                                      struct tapeline_publisher_state *state,
                                      size_t size);

// Says that nothing more comes, and gives the handle back, also after an error: subscribers drain, then see
// TAPELINE_ENDED. The ring's name goes, unless it is to be kept. What is claimed is aborted. NULL does nothing.
tapeline_code tapeline_publisher_close(struct tapeline_publisher *publisher);

// Keeps the ring in memory: none of it is ever swapped out. An error where the system does not allow so much.
tapeline_code tapeline_publisher_lock_memory(struct tapeline_publisher *publisher);

// Joins a gated ring. `start`: a tapeline_start. `label`: shown to people who look at the ring (its first 48 bytes), or
// NULL: this process's command. The handle goes to `*subscriber`, which is NULL after an error; give it back with
// tapeline_subscriber_leave().
tapeline_code tapeline_subscriber_join(const char *name,
                                       uint32_t start,
                                       const char *label,
                                       struct tapeline_subscriber **subscriber);

// Joins a broadcast ring, whose publisher waits for nobody; otherwise as tapeline_subscriber_join(). Frames are copies
// of the subscriber's own, and TAPELINE_LOST says that some were missed.
tapeline_code tapeline_subscriber_join_broadcast(const char *name,
                                                 uint32_t start,
                                                 const char *label,
                                                 struct tapeline_subscriber **subscriber);

// The next frame, borrowed, to `*frame`; releases the one before. TAPELINE_FRAME, TAPELINE_EMPTY,
// TAPELINE_ENDED, TAPELINE_EVICTED and TAPELINE_DAMAGED (`frame->position` says where), TAPELINE_LOST.
//
// The frame lies in the ring, or in a copy of the subscriber's own if the ring has a stall limit. Either way it stays as
// it is until the next call.
tapeline_code tapeline_subscriber_next(struct tapeline_subscriber *subscriber,
                                       struct tapeline_frame *frame);

// Copies the next frame to the `room` bytes at `to`; `*frame` is that copy. TAPELINE_TOO_LONG if it is longer than
// `room`: nothing is copied, and `*frame` is borrowed as by tapeline_subscriber_next(), so that it is not lost.
// Otherwise as tapeline_subscriber_next().
tapeline_code tapeline_subscriber_copy(struct tapeline_subscriber *subscriber,
                                       void *to,
                                       size_t room,
                                       struct tapeline_frame *frame);

// How much the latest TAPELINE_LOST stood for: frames, and bytes of the ring. Either place may be NULL. Zero on a gated
// ring.
tapeline_code tapeline_subscriber_lost(const struct tapeline_subscriber *subscriber,
                                       uint64_t *frames,
                                       uint64_t *bytes);

// Whether this subscriber has been evicted by now: TAPELINE_EVICTED, else TAPELINE_OK.
tapeline_code tapeline_subscriber_is_evicted(const struct tapeline_subscriber *subscriber);

// Waits until tapeline_subscriber_next() has something other than TAPELINE_EMPTY to give: TAPELINE_OK, or
// TAPELINE_TIMED_OUT after `timeout_ns`. `how`: a tapeline_wait. Releases all frames read.
tapeline_code tapeline_subscriber_wait(struct tapeline_subscriber *subscriber,
                                       uint32_t how,
                                       uint64_t timeout_ns);

// Tells the publisher now that all frames read so far are released, the one lent last included. Only for a subscriber
// that stops reading for a while without having seen TAPELINE_EMPTY.
tapeline_code tapeline_subscriber_release(struct tapeline_subscriber *subscriber);

// Tells about the subscriber and its ring. `size`: sizeof *state, since later releases add fields. Not for every
// message: it asks the system whether the publisher lives.
tapeline_code tapeline_subscriber_look(const struct tapeline_subscriber *subscriber,
                                       struct tapeline_subscriber_state *state,
                                       size_t size);

// Reads the publisher's note, 8 words, to `words`; all zero before the first. TAPELINE_EMPTY while notes are written
// faster than they can be read.
tapeline_code tapeline_subscriber_note(const struct tapeline_subscriber *subscriber,
                                       uint64_t *words);

// Leaves the ring and gives the handle back. NULL does nothing.
tapeline_code tapeline_subscriber_leave(struct tapeline_subscriber *subscriber);

// Keeps the ring in memory: none of it is ever swapped out. An error where the system does not allow so much.
tapeline_code tapeline_subscriber_lock_memory(const struct tapeline_subscriber *subscriber);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* TAPELINE_RING_H */
