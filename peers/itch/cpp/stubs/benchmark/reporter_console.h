// Stands in for CppBenchmark, with which the `main` of CppTrader's program prints its time. That `main` never runs.
#pragma once

#include <cstdint>
#include <string>

namespace CppBenchmark {

struct ReporterConsole {
  static std::string GenerateTimePeriod(uint64_t) { return {}; }
};

}  // namespace CppBenchmark
