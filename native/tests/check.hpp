// The harness of the C++ tests: CHECK counts and reports failures, main returns how many there were.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace bireme::test {

inline int failures = 0;

inline void report(bool ok, const char* condition, const char* file, int line) {
  if (ok) return;
  ++failures;
  std::fprintf(stderr, "%s:%d: failed: %s\n", file, line, condition);
}

inline int finish() {
  if (failures > 0) std::fprintf(stderr, "%d failed\n", failures);
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace bireme::test

#define CHECK(condition) ::bireme::test::report((condition), #condition, __FILE__, __LINE__)
#define CHECK_THROWS(expression, error)                                            \
  do {                                                                             \
    bool thrown = false;                                                           \
    try {                                                                          \
      (void)(expression);                                                          \
    } catch (const error&) {                                                       \
      thrown = true;                                                               \
    }                                                                              \
    ::bireme::test::report(thrown, #expression " throws " #error, __FILE__, __LINE__); \
  } while (false)
