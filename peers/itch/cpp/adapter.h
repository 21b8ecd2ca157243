// What all peers in C++ have in common: the input in memory, the time of one pass over it, and the best prices at the end.
//
// A peer is a type with
//   Peer(const Sizes &);                             its tables, made before the time starts
//   void apply(const uint8_t *message);              one message without its length
//   Side best(uint16_t locate, bool is_ask) const;   its best price and the shares there
//
// The program's arguments are the file with the messages before the stretch, the file of the stretch, the number of symbols,
// and how many orders and levels there will be at most. It prints "ns N", and for each symbol the best prices as "locate
// bid shares ask shares", zeros where there is none.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace adapter {

struct Sizes {
  uint16_t symbols;
  size_t orders;
  size_t levels;
  uint64_t highest_reference;
};

struct Side {
  uint64_t price;
  uint64_t shares;
};

inline uint16_t n2(const uint8_t *at) {
  uint16_t value;
  memcpy(&value, at, 2);
  return __builtin_bswap16(value);
}

inline uint32_t n4(const uint8_t *at) {
  uint32_t value;
  memcpy(&value, at, 4);
  return __builtin_bswap32(value);
}

inline uint64_t n8(const uint8_t *at) {
  uint64_t value;
  memcpy(&value, at, 8);
  return __builtin_bswap64(value);
}

inline uint64_t timestamp(const uint8_t *message) { return uint64_t(n2(message + 5)) << 32 | n4(message + 7); }

struct File {
  const uint8_t *begin;
  size_t size;

  explicit File(const char *path) {
    const int file = open(path, O_RDONLY);
    struct stat about;
    if (file < 0 || fstat(file, &about) != 0) {
      perror(path);
      exit(1);
    }
    size = size_t(about.st_size);
    // Every page is there before the time starts.
    void *memory = mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
    if (memory == MAP_FAILED) {
      perror(path);
      exit(1);
    }
    begin = static_cast<const uint8_t *>(memory);
    close(file);
  }

  template <class Each>
  void each(Each apply) const {
    for (const uint8_t *at = begin, *end = begin + size; at < end; at += 2 + n2(at)) apply(at + 2);
  }
};

template <class Peer>
int run(int count, char **arguments) {
  if (count != 6) {
    fprintf(stderr, "usage: %s BEFORE FILE SYMBOLS ORDERS LEVELS\n", arguments[0]);
    return 2;
  }
  const File before(arguments[1]), file(arguments[2]);
  Sizes sizes{uint16_t(atoi(arguments[3])), size_t(atoll(arguments[4])), size_t(atoll(arguments[5])), 0};
  for (const File *of : {&before, &file}) {
    of->each([&](const uint8_t *message) {
      const uint8_t kind = message[0];
      if (kind != 'A' && kind != 'F' && kind != 'U') return;
      const uint64_t reference = n8(message + (kind == 'U' ? 19 : 11));
      if (reference > sizes.highest_reference) sizes.highest_reference = reference;
    });
  }
  Peer peer(sizes);
  before.each([&](const uint8_t *message) { peer.apply(message); });

  const auto start = std::chrono::steady_clock::now();
  file.each([&](const uint8_t *message) { peer.apply(message); });
  const auto time = std::chrono::steady_clock::now() - start;

  printf("ns %lld\n", static_cast<long long>(std::chrono::nanoseconds(time).count()));
  for (uint32_t locate = 1; locate <= sizes.symbols; ++locate) {
    const Side bid = peer.best(uint16_t(locate), false), ask = peer.best(uint16_t(locate), true);
    printf("%u %llu %llu %llu %llu\n", locate, (unsigned long long)bid.price, (unsigned long long)bid.shares,
           (unsigned long long)ask.price, (unsigned long long)ask.shares);
  }
  return 0;
}

}  // namespace adapter
