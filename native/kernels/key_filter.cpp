#include "kernels/key_filter.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "arrow/errors.hpp"
#include "kernels/group_cells.hpp"
#include "kernels/group_read.hpp"
#include "kernels/group_slots.hpp"
#include "kernels/hash.hpp"
#include "kernels/key_filter_loops.hpp"

namespace bireme {

namespace {

// A bitmap of a bit a value is made where it stays in the second-level cache, or costs at most this many bits
// a key.
constexpr uint64_t kBitmapBitsSmall = uint64_t{1} << 21;
constexpr uint64_t kBitmapBitsPerKey = 128;
// So many keys are compared one by one.
constexpr int64_t kListMax = 8;
// With four places a key, one key in about sixty that is not held passes.
constexpr int64_t kBloomBitsPerKey = 12;

constexpr bool is_integer_like(Kind kind) {
  return is_word(kind) && !is_float(kind);
}

constexpr WordRange kAnyWord = {0, ~uint64_t{0}};

// Calls work(words, rows) for the words of all valid rows, vector by vector.
template <typename Work>
void each_word(const Column& column, Work work) {
  uint64_t scratch[kVectorRows];
  uint64_t gathered[kVectorRows];
  uint8_t valid[kVectorRows];
  for (int64_t begin = 0; begin < column.rows; begin += kVectorRows) {
    const int64_t rows = std::min(kVectorRows, column.rows - begin);
    const uint64_t* words = words_of(column, begin, rows, scratch);
    if (!read_validity(column, begin, rows, valid)) {
      work(words, rows);
      continue;
    }
    int64_t count = 0;
    for (int64_t row = 0; row < rows; ++row) {
      gathered[count] = words[row];
      count += valid[row];
    }
    work(gathered, count);
  }
}

// The words of the keys of chunks; for dictionaries, of all entries.
EachWord each_word_of(std::span<const KeyChunk> chunks) {
  return [chunks](const WordVisit& visit) {
    for (KeyChunk chunk : chunks) {
      const Column& column = chunk->front();
      each_word(column.is_dictionary() ? *column.dictionary : column, visit);
    }
  };
}

class Bloom {
 public:
  static Bloom for_keys(int64_t keys) { return Bloom((keys * kBloomBitsPerKey + 63) / 64); }
  explicit Bloom(int64_t at_least) {
    const auto words = std::max<uint64_t>(2, std::bit_ceil(static_cast<uint64_t>(at_least)));
    words_.resize(static_cast<int64_t>(words), 0);
    shift_ = static_cast<uint32_t>(64 - std::countr_zero(words));
  }

  // What loops take; they write only where they say so.
  BloomWords words() const { return {const_cast<uint64_t*>(words_.data()), shift_}; }
  int64_t nbytes() const { return words_.nbytes(); }

 private:
  Cells<uint64_t> words_;
  uint32_t shift_ = 63;
};

// A filter that tells by a machine word per key.
class Filter : public KeyFilter {
 public:
  enum class Form { Range, Bitmap, List, Bloom };

  explicit Filter(std::vector<Type> types) : types_(std::move(types)) {}

  std::string kind() const override {
    switch (form_) {
      case Form::Range:
        return "range";
      case Form::Bitmap:
        return "bitmap";
      case Form::List:
        return "list";
      case Form::Bloom:
        return "bloom";
    }
    throw EngineBug("a key filter of no form");
  }
  int64_t nbytes() const override { return words_.nbytes() + (bloom_ == nullptr ? 0 : bloom_->nbytes()); }

 protected:
  void check(std::span<const Column> keys) const {
    if (keys.size() != types_.size()) throw EngineBug("a key filter was asked for another number of keys");
    for (size_t index = 0; index < keys.size(); ++index) {
      if (!same_values(keys[index].type, types_[index])) {
        throw EngineBug("a key filter for Arrow format '" + types_[index].format + "' was asked for '" +
                        keys[index].type.format + "'");
      }
    }
  }

  void test(const uint64_t* words, int64_t rows, uint8_t* keep) const {
    const KeyFilterLoops& loops = key_filter_loops();
    switch (form_) {
      case Form::Range:
        return loops.test_range(words, rows, range_, keep);
      case Form::Bitmap:
        return loops.test_bitmap(words, rows, range_, words_.data(), keep);
      case Form::List:
        return loops.test_list(words, rows, words_.data(), words_.size(), keep);
      case Form::Bloom:
        return loops.test_bloom(words, rows, range_, bloom_->words(), keep);
    }
  }

  std::vector<Type> types_;
  Form form_ = Form::List;
  WordRange range_ = kAnyWord;
  Cells<uint64_t> words_;  // the bitmap or the list
  std::unique_ptr<Bloom> bloom_;
};

// Keys that have words.
class WordFilter final : public Filter {
 public:
  WordFilter(std::vector<Type> types, KeyWords words, const EachWord& each, bool only_keys)
      : Filter(std::move(types)), key_words_(std::move(words)), only_keys_(only_keys) {
    int64_t keys = 0;
    each([&](const uint64_t* values, int64_t rows) {
      if (key_words_.is_plain()) key_filter_loops().widen(values, rows, &low_, &high_);
      keys += rows;
    });
    if (keys == 0) return;  // a list of none
    range_ = key_words_.range();
    if (key_words_.is_plain()) {
      range_ = {static_cast<uint64_t>(low_), static_cast<uint64_t>(high_) - static_cast<uint64_t>(low_)};
    }
    const uint64_t limit = std::max(kBitmapBitsSmall, static_cast<uint64_t>(keys) * kBitmapBitsPerKey);
    if (key_words_.is_integer_like() && range_.reach < limit) {
      make_bitmap(each);
    } else if (!make_list(each, keys)) {
      make_bloom(each, keys);
    }
  }

  // Of one key, whose values lie between `low` and `high` and are in `bloom`.
  WordFilter(std::vector<Type> types, KeyWords words, int64_t low, int64_t high, std::unique_ptr<Bloom> bloom)
      : Filter(std::move(types)), key_words_(std::move(words)), only_keys_(false), low_(low), high_(high) {
    if (low_ > high_) return;  // a list of none
    form_ = Form::Bloom;
    bloom_ = std::move(bloom);
    if (!key_words_.is_integer_like()) return;
    range_ = {static_cast<uint64_t>(low_), static_cast<uint64_t>(high_) - static_cast<uint64_t>(low_)};
  }

  bool is_exact() const override { return form_ != Form::Bloom && only_keys_; }

  bool range(int64_t& low, int64_t& high) const override {
    // Words of unsigned numbers beyond the signed ones do not lie in their order.
    if (!key_words_.is_plain() || !key_words_.is_integer_like()) return false;
    if (types_[0].kind == Kind::UInt64 && low_ < 0) return false;
    low = low_;
    high = high_;
    return true;
  }

  int64_t select(std::span<const Column> keys, int64_t count, uint32_t* out) const override {
    check(keys);
    if (key_words_.is_plain() && keys[0].is_dictionary()) return select_codes(keys[0], count, out);
    WordReader reader(key_words_, keys);
    return select_vectors(count, out, [&](int64_t begin, int64_t rows, uint8_t* keep) {
      bool all = true;
      const uint64_t* words = reader.read(begin, rows, all);
      test(words, rows, keep);
      for (int64_t row = 0; !all && row < rows; ++row) keep[row] &= reader.keep()[row];
    });
  }

 private:
  template <typename Test>
  static int64_t select_vectors(int64_t count, uint32_t* out, Test test_rows) {
    uint8_t keep[kVectorRows];
    int64_t kept = 0;
    for (int64_t begin = 0; begin < count; begin += kVectorRows) {
      const int64_t rows = std::min(kVectorRows, count - begin);
      test_rows(begin, rows, keep);
      kept += key_filter_loops().positions(keep, rows, static_cast<uint32_t>(begin), out + kept);
    }
    return kept;
  }

  // Each entry is looked up once.
  int64_t select_codes(const Column& column, int64_t count, uint32_t* out) const {
    const Column& entries = *column.dictionary;
    Cells<uint8_t> wanted;
    wanted.resize(std::max<int64_t>(entries.rows, 1), 0);
    uint64_t scratch[kVectorRows];
    for (int64_t begin = 0; begin < entries.rows; begin += kVectorRows) {
      const int64_t rows = std::min(kVectorRows, entries.rows - begin);
      test(words_of(entries, begin, rows, scratch), rows, wanted.data() + begin);
    }
    for (int64_t entry = 0; entry < entries.rows; ++entry) {
      if (!entries.is_valid(entry)) wanted[entry] = 0;
    }
    const int32_t* codes = column.codes();
    return select_vectors(count, out, [&](int64_t begin, int64_t rows, uint8_t* keep) {
      for (int64_t row = 0; row < rows; ++row) {
        keep[row] = column.is_valid(begin + row) ? wanted[codes[begin + row]] : uint8_t{0};
      }
    });
  }

  void make_bitmap(const EachWord& each) {
    form_ = Form::Bitmap;
    words_.resize(static_cast<int64_t>(range_.reach / 64 + 1), 0);
    uint64_t* bits = words_.data();
    const uint64_t low = range_.low;
    each([&](const uint64_t* words, int64_t rows) {
      for (int64_t row = 0; row < rows; ++row)
        bits[(words[row] - low) >> 6] |= uint64_t{1} << ((words[row] - low) & 63);
    });
    uint64_t distinct = 0;
    for (int64_t word = 0; word < words_.size(); ++word)
      distinct += static_cast<uint64_t>(std::popcount(bits[word]));
    if (distinct <= range_.reach) return;
    form_ = Form::Range;  // each value in the range is a key
    words_.clear();
  }

  bool make_list(const EachWord& each, int64_t keys) {
    std::vector<uint64_t> list;
    // A few keys come in few rows; more rows are not looked through for them.
    if (keys > 1024) return false;
    each([&](const uint64_t* words, int64_t rows) { list.insert(list.end(), words, words + rows); });
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    if (static_cast<int64_t>(list.size()) > kListMax) return false;
    form_ = Form::List;
    for (uint64_t word : list) words_.push_back(word);
    return true;
  }

  void make_bloom(const EachWord& each, int64_t keys) {
    form_ = Form::Bloom;
    if (!key_words_.is_integer_like()) range_ = kAnyWord;
    bloom_ = std::make_unique<Bloom>(Bloom::for_keys(keys));
    each([&](const uint64_t* words, int64_t rows) {
      key_filter_loops().add_bloom(words, rows, bloom_->words());
    });
  }

  KeyWords key_words_;
  bool only_keys_;  // not also entries of dictionaries that no row has
  int64_t low_ = std::numeric_limits<int64_t>::max();
  int64_t high_ = std::numeric_limits<int64_t>::min();
};

bool has_null(std::span<const Column> keys, int64_t row) {
  return std::any_of(keys.begin(), keys.end(), [&](const Column& column) {
    if (column.type.kind == Kind::Null || !column.is_valid(row)) return true;
    return column.is_dictionary() && !column.dictionary->is_valid(column.codes()[row]);
  });
}

bool may_have_nulls(std::span<const Column> keys) {
  return std::any_of(keys.begin(), keys.end(), [](const Column& column) {
    return column.may_have_nulls() || (column.is_dictionary() && column.dictionary->may_have_nulls());
  });
}

// Keys of any columns that have a hash.
class HashFilter final : public Filter {
 public:
  explicit HashFilter(std::span<const KeyChunk> chunks) : Filter(types_of(*chunks[0])) {
    int64_t keys = 0;
    for (KeyChunk chunk : chunks) keys += chunk->front().rows;
    if (keys == 0) return;  // a list of none
    form_ = Form::Bloom;
    bloom_ = std::make_unique<Bloom>(Bloom::for_keys(keys));
    for (KeyChunk chunk : chunks) {
      Cells<uint64_t> hashes = hashes_of(*chunk, chunk->front().rows);
      key_filter_loops().add_bloom(hashes.data(), hashes.size(), bloom_->words());
    }
  }

  HashFilter(std::vector<Type> types, std::unique_ptr<Bloom> bloom) : Filter(std::move(types)) {
    form_ = Form::Bloom;
    bloom_ = std::move(bloom);
  }

  bool is_exact() const override { return form_ != Form::Bloom; }
  bool range(int64_t&, int64_t&) const override { return false; }

  int64_t select(std::span<const Column> keys, int64_t count, uint32_t* out) const override {
    check(keys);
    if (form_ == Form::List) return 0;
    const Cells<uint64_t> hashes = hashes_of(keys, count);
    const bool nulls = may_have_nulls(keys);
    uint8_t keep[kVectorRows];
    int64_t kept = 0;
    for (int64_t begin = 0; begin < count; begin += kVectorRows) {
      const int64_t rows = std::min(kVectorRows, count - begin);
      test(hashes.data() + begin, rows, keep);
      for (int64_t row = 0; nulls && row < rows; ++row) {
        if (has_null(keys, begin + row)) keep[row] = 0;
      }
      kept += key_filter_loops().positions(keep, rows, static_cast<uint32_t>(begin), out + kept);
    }
    return kept;
  }

  static std::vector<Type> types_of(const std::vector<Column>& keys) {
    std::vector<Type> types;
    for (const Column& column : keys) types.push_back(column.type);
    return types;
  }

  static Cells<uint64_t> hashes_of(std::span<const Column> keys, int64_t rows) {
    std::vector<const Column*> columns;
    for (const Column& column : keys) columns.push_back(&column);
    Cells<uint64_t> hashes;
    hashes.resize(std::max<int64_t>(rows, 1));
    hash_rows(columns, rows, hashes.data());
    return hashes;
  }
};

bool have_filter(const std::vector<Column>& keys) {
  return !keys.empty() && std::all_of(keys.begin(), keys.end(), [](const Column& column) {
    return is_canonical(column.type.kind) && column.type.kind != Kind::Null;
  });
}

}  // namespace

struct KeyFilterBuild::Seen {
  explicit Seen(int64_t bytes) : bloom(std::make_unique<Bloom>((bytes + 7) / 8)) {}

  void add(const std::vector<Column>& keys) {
    if (types.empty()) begin(keys);
    if (!possible || keys[0].rows == 0) return;
    const KeyFilterLoops& loops = key_filter_loops();
    if (!is_word_key) {
      const Cells<uint64_t> hashes = HashFilter::hashes_of(keys, keys[0].rows);
      return loops.add_bloom(hashes.data(), keys[0].rows, bloom->words());
    }
    const Column& column = keys[0].is_dictionary() ? *keys[0].dictionary : keys[0];
    each_word(column, [&](const uint64_t* values, int64_t rows) {
      loops.widen(values, rows, &low, &high);
      loops.add_bloom(values, rows, bloom->words());
    });
  }

  void begin(const std::vector<Column>& keys) {
    possible = have_filter(keys);
    if (!possible) return;
    types = HashFilter::types_of(keys);
    is_word_key = keys.size() == 1 && is_word(keys[0].type.kind);
    if (is_word_key) words.fit(keys, 0, {WordBounds{}});
  }

  std::vector<Type> types;
  KeyWords words;
  bool possible = false;
  bool is_word_key = false;
  int64_t low = std::numeric_limits<int64_t>::max();
  int64_t high = std::numeric_limits<int64_t>::min();
  std::unique_ptr<Bloom> bloom;
};

KeyFilterBuild::KeyFilterBuild(int64_t bytes) : seen_(std::make_unique<Seen>(bytes)) {}

KeyFilterBuild::~KeyFilterBuild() = default;

void KeyFilterBuild::add(const Batch& keys) {
  std::lock_guard lock(mutex_);
  if (seen_ == nullptr) throw EngineBug("keys come after their filter was made");
  seen_->add(keys.columns());
}

int64_t KeyFilterBuild::nbytes() const {
  return seen_ == nullptr ? 0 : seen_->bloom->nbytes();
}

std::shared_ptr<const KeyFilter> KeyFilterBuild::finish() {
  std::lock_guard lock(mutex_);
  if (seen_ == nullptr) throw EngineBug("a key filter is made twice");
  const std::unique_ptr<Seen> seen = std::move(seen_);
  if (!seen->possible) return nullptr;
  if (!seen->is_word_key) return std::make_shared<HashFilter>(seen->types, std::move(seen->bloom));
  return std::make_shared<WordFilter>(seen->types, seen->words, seen->low, seen->high,
                                      std::move(seen->bloom));
}

std::shared_ptr<const KeyFilter> make_key_filter(std::span<const KeyChunk> chunks) {
  const std::vector<Column>& keys = *chunks[0];
  if (!have_filter(keys)) return nullptr;
  if (keys.size() > 1 || !is_word(keys[0].type.kind)) return std::make_shared<HashFilter>(chunks);
  const bool only_keys = std::none_of(chunks.begin(), chunks.end(),
                                      [](KeyChunk chunk) { return chunk->front().is_dictionary(); });
  KeyWords words;
  words.fit(keys, 0, {WordBounds{}});
  return std::make_shared<WordFilter>(std::vector<Type>{keys[0].type}, words, each_word_of(chunks),
                                      only_keys);
}

std::shared_ptr<const KeyFilter> make_key_filter(const std::vector<Type>& types, const KeyWords& words,
                                                 const EachWord& each) {
  return std::make_shared<WordFilter>(types, words, each, true);
}

}  // namespace bireme
