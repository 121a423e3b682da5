// What one run of a program takes for values whose sizes show only while it runs: texts that kernels make, and
// tables that they need for single rows.
//
// Rule: memory is asked for before it is taken. Where it is not there the run ends with TooMuchAtOnce, and
// whoever made it may run it over fewer rows.
#pragma once

#include <cstdint>

namespace bireme {

class Allowance {
 public:
  Allowance() = default;
  Allowance(const Allowance&) = delete;
  Allowance& operator=(const Allowance&) = delete;

  // Throws TooMuchAtOnce.
  void take(int64_t bytes);
  void give(int64_t bytes) { taken_ -= bytes; }

 private:
  int64_t taken_ = 0;
};

// Part of an allowance, for as long as it lives.
class Allotment {
 public:
  explicit Allotment(Allowance& allowance) : allowance_(allowance) {}
  ~Allotment() { allowance_.give(bytes_); }
  Allotment(const Allotment&) = delete;
  Allotment& operator=(const Allotment&) = delete;

  // Makes it at least so large. Throws TooMuchAtOnce.
  void reach(int64_t bytes) {
    if (bytes <= bytes_) return;
    allowance_.take(bytes - bytes_);
    bytes_ = bytes;
  }

 private:
  Allowance& allowance_;
  int64_t bytes_ = 0;
};

}  // namespace bireme
