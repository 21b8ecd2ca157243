// Stands in for cpp-optparse, with which the `main` of CppTrader's program reads its arguments. That `main` never runs.
#pragma once

#include <string>

namespace optparse {

struct Value : std::string {
  explicit operator bool() const { return false; }
};

struct Values {
  Value get(const char *) const { return {}; }
  bool is_set(const char *) const { return false; }
};

struct OptionParser {
  OptionParser &version(const char *) { return *this; }
  OptionParser &add_option(const char *, const char *) { return *this; }
  OptionParser &dest(const char *) { return *this; }
  OptionParser &help(const char *) { return *this; }
  Values parse_args(int, char **) { return {}; }
  void print_help() {}
};

}  // namespace optparse
