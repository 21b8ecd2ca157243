// lillianqin/book-project: its OrderBook, with the orders of each level in line. Its framing reads files and its price goes
// by way of a double; here the messages are in memory, and the price is made of the message's number.
#include "adapter.h"

#include "orderbook/OrderBook.h"

namespace {

using bookproj::orderbook::BookID;
using bookproj::orderbook::CID;
using bookproj::orderbook::ExecInfo;
using bookproj::orderbook::OrderBook;
using bookproj::orderbook::Price;
using bookproj::orderbook::Quantity;
using bookproj::orderbook::ReferenceNum;
using bookproj::orderbook::Timestamp;
using BookSide = bookproj::orderbook::Side;

// Its prices have eight decimals, those of the messages four.
constexpr int64_t SCALE = 10'000;

struct Peer {
  OrderBook book{BookID(0)};

  explicit Peer(const adapter::Sizes &sizes) {
    book.reserve(size_t(sizes.symbols) + 1, sizes.orders, sizes.levels);
    book.resize(CID(sizes.symbols + 1));
  }

  static Price price(const uint8_t *at) { return Price::fromRaw(int64_t(adapter::n4(at)) * SCALE); }

  void apply(const uint8_t *m) {
    using namespace adapter;
    const Timestamp time{std::chrono::nanoseconds(timestamp(m))};
    const ReferenceNum reference{n8(m + 11)};
    switch (m[0]) {
      case 'A':
      case 'F':
        book.newOrder(reference, CID(n2(m + 1)), m[19] == 'B' ? BookSide::Bid : BookSide::Ask, Quantity(n4(m + 20)),
                      price(m + 32), time);
        break;
      case 'E':
      case 'C': {
        ExecInfo execution;
        execution.matchNum = n8(m + 23);
        if (m[0] == 'C') {
          execution.printable = m[31] == 'Y';
          execution.hasPrice = true;
          execution.price = price(m + 32);
        }
        book.executeOrder(reference, Quantity(n4(m + 19)), execution, time);
        break;
      }
      case 'X':
        book.reduceOrderBy(reference, Quantity(n4(m + 19)), time);
        break;
      case 'D':
        book.deleteOrder(reference, time);
        break;
      case 'U':
        book.replaceOrder(reference, ReferenceNum(n8(m + 19)), Quantity(n4(m + 27)), price(m + 31), time);
        break;
      default:
        break;
    }
  }

  adapter::Side best(uint16_t locate, bool is_ask) const {
    const auto *level = book.topLevel(CID(locate), is_ask ? BookSide::Ask : BookSide::Bid);
    if (level == nullptr) return {0, 0};
    return {uint64_t(Price::toRaw(level->price) / SCALE), uint64_t(level->totalShares)};
  }
};

}  // namespace

int main(int count, char **arguments) { return adapter::run<Peer>(count, arguments); }
