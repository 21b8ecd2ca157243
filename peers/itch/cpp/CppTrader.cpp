// chronoxor/CppTrader: its ITCHHandler and the books of its "optimized aggressive" market manager, price levels alone. The
// manager is part of a program, which is included here whole with its `main` renamed; the handler's source is included too, so
// that the compiler sees both at once. The program reads a file in pieces of 8 KiB; here the messages are in memory, and go to
// the handler one by one. Its limits: 300 million references, for which it takes 4.8 GB, and 10,000 symbols.
#include "adapter.h"

// Beside its headers' folder. Nobody calls this `main`, so that the compiler drops it, and what it calls need not be linked.
#define main static program_main
#include "../performance/market_manager_optimized_aggressive.cpp"
#undef main
#include "../source/trader/providers/nasdaq/itch_handler.cpp"

namespace {

struct Peer {
  MarketManagerOptimized market;
  MyITCHHandler handler{market};

  explicit Peer(const adapter::Sizes &sizes) {
    if (sizes.highest_reference >= 300'000'000 || sizes.symbols >= 10'000) {
      fprintf(stderr, "CppTrader: more references or symbols than it can have\n");
      exit(1);
    }
  }

  void apply(const uint8_t *message) {
    // The length is before the message. The handler only reads, though what it asks for is not const.
    if (!handler.ProcessMessage(const_cast<uint8_t *>(message), adapter::n2(message - 2))) {
      fprintf(stderr, "CppTrader: a message that it does not take\n");
      exit(1);
    }
  }

  adapter::Side best(uint16_t locate, bool is_ask) const {
    const OrderBook *book = market.GetOrderBook(locate);
    const Level *level = is_ask ? book->best_ask() : book->best_bid();
    if (level == nullptr) return {0, 0};
    // A negative price is an offer.
    return {uint64_t(is_ask ? -level->Price : level->Price), level->Volume};
  }
};

}  // namespace

int main(int count, char **arguments) { return adapter::run<Peer>(count, arguments); }
