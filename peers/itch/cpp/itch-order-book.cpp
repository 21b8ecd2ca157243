// charles-cooper/itch-order-book: its decoder of the seven order messages and its books, called as its main.cpp calls them,
// but for the input, which is in memory. Its limits: references below 2^31, memory by the highest of them, 16,384 symbols.
#include "adapter.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <type_traits>

#include "itch.h"
#include "order_book.h"

namespace {

struct Peer {
  explicit Peer(const adapter::Sizes &sizes) {
    if (sizes.highest_reference >= uint64_t(std::numeric_limits<int32_t>::max()) || sizes.symbols >= order_book::MAX_BOOKS) {
      fprintf(stderr, "itch-order-book: more references or symbols than it can have\n");
      exit(1);
    }
    order_book::oid_map.reserve(order_id_t(sizes.highest_reference));
  }

  // A negative price is an offer.
  static sprice_t signed_price(price_t price, BUY_SELL side) {
    const auto value = int32_t(uint32_t(price));
    return sprice_t(side == BUY_SELL::SELL ? -value : value);
  }

  template <class Add>
  static void add(const Add &m) {
    order_book::add_order(order_id_t(m.oid), book_id_t(m.stock_locate), signed_price(m.price, m.buy), m.qty);
  }

  void apply(const uint8_t *message) {
    const char *at = reinterpret_cast<const char *>(message);
    switch (itch_t(message[0])) {
      case itch_t::ADD_ORDER: {
        add(itch_message<itch_t::ADD_ORDER>::parse(at));
        break;
      }
      case itch_t::ADD_ORDER_MPID: {
        add(itch_message<itch_t::ADD_ORDER_MPID>::parse(at).add_msg);
        break;
      }
      case itch_t::EXECUTE_ORDER: {
        const auto m = itch_message<itch_t::EXECUTE_ORDER>::parse(at);
        order_book::execute_order(order_id_t(m.oid), m.qty);
        break;
      }
      case itch_t::EXECUTE_ORDER_WITH_PRICE: {
        const auto m = itch_message<itch_t::EXECUTE_ORDER_WITH_PRICE>::parse(at);
        order_book::execute_order(order_id_t(m.exec.oid), m.exec.qty);
        break;
      }
      case itch_t::REDUCE_ORDER: {
        const auto m = itch_message<itch_t::REDUCE_ORDER>::parse(at);
        order_book::cancel_order(order_id_t(m.oid), m.qty);
        break;
      }
      case itch_t::DELETE_ORDER: {
        const auto m = itch_message<itch_t::DELETE_ORDER>::parse(at);
        order_book::delete_order(order_id_t(m.oid));
        break;
      }
      case itch_t::REPLACE_ORDER: {
        const auto m = itch_message<itch_t::REPLACE_ORDER>::parse(at);
        order_book::replace_order(order_id_t(m.oid), order_id_t(m.new_order_id), m.new_qty,
                                  signed_price(m.new_price, BUY_SELL::BUY));
        break;
      }
      default:
        break;
    }
  }

  adapter::Side best(uint16_t locate, bool is_ask) const {
    const order_book &book = order_book::s_books[locate];
    const auto &levels = is_ask ? book.m_offers : book.m_bids;
    if (levels.empty()) return {0, 0};
    const int32_t price = int32_t(levels.back().m_price);
    return {uint64_t(is_ask ? -price : price), uint64_t(order_book::s_levels[levels.back().m_ptr].m_qty)};
  }
};

}  // namespace

int main(int count, char **arguments) { return adapter::run<Peer>(count, arguments); }
