// From the word of a key to the link of its first build row, in the form that suits the keys a build side
// turns out to have.
//
// Rule: forms differ in memory and in how many lines of it a look-up touches, never in what they find.
//   sequence  keys in order without a gap: the row is computed, nothing is kept
//   ranked    keys in order: a bit a value, and the row is the number of bits before
//   linked    the same for keys in any order, with a link a key
//   direct    a link a value, where there are hardly more values than rows
//   hash      everything else
// Built in parts that may run at once and each of which may run again: a part clears what is its own first.
// Never changes afterwards.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/join_chain.hpp"
#include "kernels/join_loops.hpp"
#include "kernels/join_words.hpp"
#include "kernels/key_filter.hpp"

namespace bireme {

// The build side's keys, in the order of its rows.
struct WordSource {
  struct Chunk {
    std::span<const Column> keys;
    int64_t first_row = 0;
    int64_t rows = 0;
    int64_t valid = 0;
    uint64_t low = 0;  // offsets in the range of all words, of the smallest and largest of the chunk
    uint64_t high = 0;
  };

  KeyWords words;
  std::vector<Chunk> chunks;  // only such as have valid rows
  int64_t rows = 0;
  int64_t valid = 0;
  bool ascending = false;  // all rows have words, and these ascend strictly
};

class WordLookup {
 public:
  virtual ~WordLookup() = default;

  // The name of its form, for explain.
  virtual std::string form() const = 0;
  virtual int64_t nbytes() const = 0;
  // Does one of `parts` parts, which together do all.
  virtual void build(const WordSource& source, Chains& chains, int part, int parts) = 0;
  // Ends the build, when all parts are done.
  virtual void finish(Chains&) {}

  // Sets heads[row] to the link of the key's first build row, or kNoRow, for at most kVectorRows words.
  virtual void find(const uint64_t* words, int64_t rows, uint32_t* heads) const = 0;

  // Calls `visit` with all words, each once, vector by vector.
  virtual void each_word(const WordVisit& visit) const = 0;
};

std::unique_ptr<WordLookup> make_lookup(const WordSource& source, int parts);

}  // namespace bireme
