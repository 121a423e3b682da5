// Which keys a join's build side may hold: what a scan asks before it decodes more columns of a row.
//
// Rule: a filter never drops a row whose key the build side holds; it may keep rows whose key it does not
// hold. Rows with a NULL among their keys are dropped (NULL-equal keys have no filter). Immutable once made;
// any number of threads may ask at once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "arrow/batch.hpp"
#include "arrow/column.hpp"
#include "kernels/join_words.hpp"

namespace bireme {

class KeyFilter {
 public:
  virtual ~KeyFilter() = default;

  // `keys` hold `count` values each, one column per key. Writes the ascending positions 0..count-1 of those
  // to keep into `out` (room for `count`) and returns how many. Throws EngineBug for columns of other types
  // than the build side's.
  virtual int64_t select(std::span<const Column> keys, int64_t count, uint32_t* out) const = 0;

  // "bitmap", "range", "bloom", "list": for explain and events.
  virtual std::string kind() const = 0;
  virtual bool is_exact() const = 0;
  virtual int64_t nbytes() const = 0;
  // Keys of one integer-like column (integers, dates, decimal64, timestamps): their smallest and largest
  // value, as int64; false otherwise. Where no key is held, low > high.
  virtual bool range(int64_t& low, int64_t& high) const = 0;
};

// The key columns of a part of the build side.
using KeyChunk = const std::vector<Column>*;

// The best filter for the keys of a build side (range or bitmap for dense domains, list for a few, else
// blocked Bloom with range). Null where no filter is possible. All chunks have the same types, and there is
// at least one.
std::shared_ptr<const KeyFilter> make_key_filter(std::span<const KeyChunk> chunks);
inline std::shared_ptr<const KeyFilter> make_key_filter(const Batch& keys) {
  const KeyChunk chunk = &keys.columns();
  return make_key_filter({&chunk, 1});
}

// Calls a visitor with all words of the keys, in vectors.
using WordVisit = std::function<void(const uint64_t* words, int64_t rows)>;
using EachWord = std::function<void(const WordVisit& visit)>;

// The same for keys that have words. NULL must not be a key.
std::shared_ptr<const KeyFilter> make_key_filter(const std::vector<Type>& types, const KeyWords& words,
                                                 const EachWord& each);

// A filter of keys that come bit by bit and are not kept: a Bloom filter of a given size, and with it the
// range where there is one. Any number of threads may add at once.
class KeyFilterBuild {
 public:
  // At least `bytes`.
  explicit KeyFilterBuild(int64_t bytes);
  ~KeyFilterBuild();

  // All keys have the types of the first.
  void add(const Batch& keys);
  int64_t nbytes() const;
  // The filter of all that was added, of which there was something; null where none is possible. Once.
  std::shared_ptr<const KeyFilter> finish();

 private:
  struct Seen;

  std::mutex mutex_;
  std::unique_ptr<Seen> seen_;
};

}  // namespace bireme
