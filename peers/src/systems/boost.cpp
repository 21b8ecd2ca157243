// boost::lockfree::spsc_queue in shared memory: a sender and a receiver process, with the measuring loops in their own
// language, so that no call stands between the queue and its user.
//
// At its best: slots of the message's size, known at compile time; capacity known at compile time; `push`, with a copy
// constructor that writes the slot in 8-byte moves (a wide move would wait for the stores that built the message). Taken out
// with `pop`, or with `consume_all`, which reads and stores the indices once for all that is there.

#include <boost/lockfree/spsc_queue.hpp>

#include <cstdint>
#include <cstring>
#include <new>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <x86intrin.h>

namespace {

std::uint64_t word(const unsigned char *at) {
    std::uint64_t value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

// One 8-byte store, which the compiler leaves as it is.
void store_word(unsigned char *at, std::uint64_t value) {
    asm volatile("movq %1, %0" : "=m"(*reinterpret_cast<std::uint64_t *>(at)) : "r"(value));
}

template <std::size_t N> struct slot {
    alignas(8) unsigned char bytes[N];

    slot() = default;
    // What a message changes is copied as it was stored; the rest is never written and may move as it likes.
    slot(const slot &other) {
        std::memcpy(bytes + 16, other.bytes + 16, N - 24);
        store_word(bytes, word(other.bytes));
        store_word(bytes + 8, word(other.bytes + 8));
        store_word(bytes + N - 8, word(other.bytes + N - 8));
    }
    slot &operator=(const slot &other) = default;

    void set(std::uint64_t first, std::uint64_t stamp, std::uint64_t last) {
        store_word(bytes, first);
        store_word(bytes + 8, stamp);
        store_word(bytes + N - 8, last);
    }
};

} // namespace

extern "C" {

// The sender's message: `message.rs` has the same.
struct boost_message {
    std::uint64_t first, stamp, last;
    const unsigned char *body;
};

// What a receiver counts: `Tally` in `message.rs`.
struct boost_tally {
    std::uint64_t expected, lost, disordered, torn, sent, started, ended;
};

typedef void (*boost_unusual)(boost_tally *, std::uint64_t first, std::uint64_t stamp, std::uint64_t last);
typedef void (*boost_each)(void *user, const unsigned char *bytes, std::size_t len);

// The functions for one length of message.
struct boost_functions {
    void *(*open)(const char *name, int create);
    int (*push)(void *queue, const boost_message *message);
    std::uint64_t (*push_many)(void *queue, std::uint64_t first, std::uint64_t count, const unsigned char *body, int read_clock);
    std::uint64_t (*consume)(void *queue, int batch, void *user, boost_each each);
    std::uint64_t (*drain)(void *queue, int batch, boost_tally *tally, boost_unusual unusual);
};
}

namespace {

template <std::size_t N> struct functions {
    // As many bytes as our ring has.
    using queue = boost::lockfree::spsc_queue<slot<N>, boost::lockfree::capacity<(1 << 20) / N>>;

    static void *open(const char *name, int create) {
        int file = shm_open(name, O_RDWR | (create ? O_CREAT | O_EXCL : 0), 0600);
        if (file < 0)
            return nullptr;
        void *memory = MAP_FAILED;
        if (!create || ftruncate(file, sizeof(queue)) == 0)
            memory = mmap(nullptr, sizeof(queue), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
        close(file);
        // Both have it: the name has served.
        if (!create)
            shm_unlink(name);
        if (memory == MAP_FAILED)
            return nullptr;
        return create ? new (memory) queue : memory;
    }

    static slot<N> draft(const unsigned char *body) {
        slot<N> made;
        std::memcpy(made.bytes, body, N);
        return made;
    }

    static int push(void *memory, const boost_message *message) {
        static thread_local slot<N> made = draft(message->body);
        made.set(message->first, message->stamp, message->last);
        return static_cast<queue *>(memory)->push(made);
    }

    static std::uint64_t push_many(void *memory, std::uint64_t first, std::uint64_t count, const unsigned char *body,
                                   int read_clock) {
        queue &to = *static_cast<queue *>(memory);
        slot<N> made = draft(body);
        std::uint64_t refused = 0;
        for (std::uint64_t sequence = first; sequence < first + count; ++sequence) {
            if (read_clock)
                asm volatile("" : : "r"(__rdtsc()));
            made.set(sequence, 0, sequence);
            while (!to.push(made)) {
                ++refused;
                _mm_pause();
            }
        }
        return refused;
    }

    // Gives messages to `take`: all that is there, or one.
    template <typename F> static std::uint64_t take(void *memory, int batch, F &&take) {
        queue &from = *static_cast<queue *>(memory);
        if (batch)
            return from.consume_all(take);
        slot<N> copy;
        if (!from.pop(copy))
            return 0;
        take(copy);
        return 1;
    }

    static std::uint64_t consume(void *memory, int batch, void *user, boost_each each) {
        return take(memory, batch, [=](const slot<N> &message) { each(user, message.bytes, N); });
    }

    static std::uint64_t drain(void *memory, int batch, boost_tally *tally, boost_unusual unusual) {
        slot<N> copy;
        return take(memory, batch, [&](const slot<N> &message) {
            std::memcpy(copy.bytes, message.bytes, N);
            asm volatile("" : : "r"(copy.bytes) : "memory");
            const std::uint64_t first = word(copy.bytes), last = word(copy.bytes + N - 8);
            if (first == tally->expected && last == first)
                ++tally->expected;
            else
                unusual(tally, first, word(copy.bytes + 8), last);
        });
    }

    static constexpr boost_functions table = {open, push, push_many, consume, drain};
};

} // namespace

// The functions for messages of `len` bytes; null where none are built in.
extern "C" const boost_functions *boost_queue(std::size_t len) {
    switch (len) {
    case 32:
        return &functions<32>::table;
    case 100:
        return &functions<100>::table;
    case 500:
        return &functions<500>::table;
    case 1500:
        return &functions<1500>::table;
    default:
        return nullptr;
    }
}
