// How far two texts are apart, in code points. What has no distance is left to the reference backend, which
// says why.
#include <algorithm>
#include <bit>
#include <numeric>

#include "kernels/code_points.hpp"
#include "kernels/expression/resolve.hpp"
#include "kernels/expression/text_writer.hpp"
#include "kernels/text.hpp"

namespace bireme {

namespace {

using CodePointTexts = std::vector<uint32_t>;

void read_code_points(std::string_view text, CodePointTexts& out) {
  out.clear();
  for (size_t at = 0; at < text.size();) out.push_back(take_code_point(text, at));
}

void resolve_two(Node& node, Kind result) {
  const bool fits = node.args.size() == 2 && node.arg_types[0].kind == Kind::String &&
                    node.arg_types[1].kind == Kind::String && node.type.kind == result;
  if (!fits) no_kernel(node);
}

// ---------------------------------------------------------------------------------------------- levenshtein

constexpr size_t kWordBits = 64;

// Which places of a text of at most 64 characters of ASCII hold each of them.
class Places {
 public:
  void read(std::string_view text) {
    for (const char each : text_) at(each) = 0;
    text_ = text;
    for (size_t place = 0; place < text.size(); ++place) at(text[place]) |= uint64_t{1} << place;
  }
  uint64_t of(char character) const { return bits_[static_cast<unsigned char>(character)]; }
  size_t size() const { return text_.size(); }

 private:
  uint64_t& at(char character) { return bits_[static_cast<unsigned char>(character)]; }

  uint64_t bits_[128] = {};
  std::string_view text_;
};

// A column of the table of distances as the bits in which it rises and falls (Myers, with Hyyrö's last row).
int64_t distance_by_bits(const Places& places, std::string_view text) {
  auto distance = static_cast<int64_t>(places.size());
  if (distance == 0) return static_cast<int64_t>(text.size());
  const uint64_t last = uint64_t{1} << (places.size() - 1);
  uint64_t rises = ~uint64_t{0};
  uint64_t falls = 0;
  for (const char each : text) {
    const uint64_t same = places.of(each);
    const uint64_t down = same | falls;
    const uint64_t across = (((same & rises) + rises) ^ rises) | same;
    uint64_t more = falls | ~(across | rises);
    uint64_t less = rises & across;
    distance += (more & last) != 0;
    distance -= (less & last) != 0;
    more = (more << 1) | 1;
    less <<= 1;
    rises = less | ~(down | more);
    falls = more & down;
  }
  return distance;
}

// Any two texts, a row of the table after the other.
class Table {
 public:
  int64_t distance(std::string_view left, std::string_view right) {
    read_code_points(left, left_);
    read_code_points(right, right_);
    row_.resize(right_.size() + 1);
    std::iota(row_.begin(), row_.end(), 0u);
    for (size_t number = 1; number <= left_.size(); ++number) next_row(number);
    return row_.back();
  }

 private:
  void next_row(size_t number) {
    uint32_t before = row_[0];
    row_[0] = static_cast<uint32_t>(number);
    for (size_t index = 1; index < row_.size(); ++index) {
      const uint32_t changed = before + (left_[number - 1] != right_[index - 1]);
      before = row_[index];
      row_[index] = std::min(std::min(row_[index], row_[index - 1]) + 1, changed);
    }
  }

  CodePointTexts left_;
  CodePointTexts right_;
  std::vector<uint32_t> row_;
};

void levenshtein_kernel(Call& call) {
  Places places;
  Table table;
  make_values<int64_t>(call, 0, [&](int64_t row) {
    std::string_view left = text_at(call, 0, row);
    std::string_view right = text_at(call, 1, row);
    if (left.size() < right.size()) std::swap(left, right);
    if (right.size() > kWordBits || !is_ascii(left) || !is_ascii(right)) return table.distance(left, right);
    places.read(right);
    return distance_by_bits(places, left);
  });
}

void resolve_levenshtein(Node& node, std::span<const Node* const>) {
  resolve_two(node, Kind::Int64);
  node.kernel = levenshtein_kernel;
}

// -------------------------------------------------------------------------------------------------- hamming

int64_t count_different_bytes(std::string_view left, std::string_view right) {
  int64_t different = 0;
  for (size_t at = 0; at < left.size(); ++at) different += left[at] != right[at];
  return different;
}

int64_t count_different(std::string_view left, std::string_view right) {
  int64_t different = 0;
  size_t there = 0;
  for (size_t here = 0; here < left.size();)
    different += take_code_point(left, here) != take_code_point(right, there);
  return different;
}

void hamming_kernel(Call& call) {
  make_values<int64_t>(call, 0, [&call](int64_t row) {
    const std::string_view left = text_at(call, 0, row);
    const std::string_view right = text_at(call, 1, row);
    if (count_characters(left) != count_characters(right)) leave_to_reference(call);
    return is_ascii(left) && is_ascii(right) ? count_different_bytes(left, right)
                                             : count_different(left, right);
  });
}

void resolve_hamming(Node& node, std::span<const Node* const>) {
  resolve_two(node, Kind::Int64);
  node.can_raise = true;
  node.kernel = hamming_kernel;
}

// -------------------------------------------------------------------------------------------------- jaccard

struct AsciiSet {
  uint64_t low = 0;
  uint64_t high = 0;

  explicit AsciiSet(std::string_view text) {
    for (const char each : text) {
      const uint64_t bit = uint64_t{1} << (each & 63);
      low |= each < 64 ? bit : 0;
      high |= each < 64 ? 0 : bit;
    }
  }
};

double jaccard_of_ascii(std::string_view left, std::string_view right) {
  const AsciiSet one(left);
  const AsciiSet other(right);
  const int common = std::popcount(one.low & other.low) + std::popcount(one.high & other.high);
  const int all = std::popcount(one.low | other.low) + std::popcount(one.high | other.high);
  return static_cast<double>(common) / all;
}

CodePointTexts different_code_points(std::string_view text) {
  CodePointTexts found;
  read_code_points(text, found);
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

double jaccard_of_any(std::string_view left, std::string_view right) {
  const CodePointTexts one = different_code_points(left);
  const CodePointTexts other = different_code_points(right);
  CodePointTexts common;
  std::set_intersection(one.begin(), one.end(), other.begin(), other.end(), std::back_inserter(common));
  return static_cast<double>(common.size()) / static_cast<double>(one.size() + other.size() - common.size());
}

void jaccard_kernel(Call& call) {
  make_values<double>(call, 0, [&call](int64_t row) {
    const std::string_view left = text_at(call, 0, row);
    const std::string_view right = text_at(call, 1, row);
    if (left.empty() || right.empty()) leave_to_reference(call);
    return is_ascii(left) && is_ascii(right) ? jaccard_of_ascii(left, right) : jaccard_of_any(left, right);
  });
}

void resolve_jaccard(Node& node, std::span<const Node* const>) {
  resolve_two(node, Kind::Float64);
  node.can_raise = true;
  node.kernel = jaccard_kernel;
}

// ----------------------------------------------------------------------------------------
// damerau_levenshtein

// With changes of places between which other changes may lie (Lowrance and Wagner).
class SwapTable {
 public:
  int64_t distance(std::string_view left, std::string_view right) {
    read_code_points(left, left_);
    read_code_points(right, right_);
    width_ = right_.size() + 2;
    far_ = static_cast<uint32_t>(left_.size() + right_.size());
    costs_.assign((left_.size() + 2) * width_, far_);
    std::iota(costs_.begin() + static_cast<int64_t>(width_) + 1,
              costs_.begin() + 2 * static_cast<int64_t>(width_), 0u);
    last_row_.clear();
    for (size_t row = 1; row <= left_.size(); ++row) fill_row(row);
    return costs_.back();
  }

 private:
  uint32_t& cost(size_t row, size_t column) { return costs_[row * width_ + column]; }

  // The last row before of a character; few are different.
  uint32_t& last_row_of(uint32_t character) {
    for (auto& [known, row] : last_row_) {
      if (known == character) return row;
    }
    return last_row_.emplace_back(character, 0u).second;
  }

  void fill_row(size_t row) {
    size_t last_column = 0;
    cost(row + 1, 1) = static_cast<uint32_t>(row);
    for (size_t column = 1; column <= right_.size(); ++column) {
      const bool same = left_[row - 1] == right_[column - 1];
      const size_t from_row = last_row_of(right_[column - 1]);
      const size_t between = (row - from_row - 1) + 1 + (column - last_column - 1);
      const uint32_t moved = cost(from_row, last_column) + static_cast<uint32_t>(between);
      const uint32_t changed = cost(row, column) + !same;
      const uint32_t longer = std::min(cost(row + 1, column), cost(row, column + 1)) + 1;
      cost(row + 1, column + 1) = std::min(std::min(changed, longer), moved);
      if (same) last_column = column;
    }
    last_row_of(left_[row - 1]) = static_cast<uint32_t>(row);
  }

  CodePointTexts left_;
  CodePointTexts right_;
  std::vector<uint32_t> costs_;
  std::vector<std::pair<uint32_t, uint32_t>> last_row_;
  size_t width_ = 0;
  uint32_t far_ = 0;
};

void damerau_kernel(Call& call) {
  SwapTable table;
  make_values<int64_t>(call, 0, [&call, &table](int64_t row) {
    return table.distance(text_at(call, 0, row), text_at(call, 1, row));
  });
}

void resolve_damerau(Node& node, std::span<const Node* const>) {
  resolve_two(node, Kind::Int64);
  node.kernel = damerau_kernel;
}

// ---------------------------------------------------------------------------------------------- jaro,
// winkler

class Jaro {
 public:
  double similarity(std::string_view left, std::string_view right) {
    read_code_points(left, left_);
    read_code_points(right, right_);
    find_matches();
    if (matched_.empty()) return !left.empty() && left == right ? 1 : 0;
    const auto count = static_cast<double>(matched_.size());
    const double moved = static_cast<double>(count_misplaced() / 2);
    return (count / static_cast<double>(left_.size()) + count / static_cast<double>(right_.size()) +
            (count - moved) / count) /
           3;
  }

  // Winkler adds for a common beginning where texts are alike.
  double with_beginning(double alike) const {
    if (alike <= 0.7) return alike;
    size_t begin = 0;
    const size_t most = std::min({left_.size(), right_.size(), size_t{4}});
    while (begin < most && left_[begin] == right_[begin]) ++begin;
    return alike + static_cast<double>(begin) * 0.1 * (1 - alike);
  }

 private:
  void find_matches() {
    const int64_t size = static_cast<int64_t>(right_.size());
    const int64_t reach = static_cast<int64_t>(std::max(left_.size(), right_.size())) / 2 - 1;
    taken_.assign(right_.size(), 0);
    matched_.clear();
    for (int64_t place = 0; place < static_cast<int64_t>(left_.size()); ++place) {
      const uint32_t character = left_[static_cast<size_t>(place)];
      for (int64_t other = std::max<int64_t>(0, place - reach); other < std::min(size, place + reach + 1);
           ++other) {
        const auto there = static_cast<size_t>(other);
        if (taken_[there] || right_[there] != character) continue;
        taken_[there] = 1;
        matched_.push_back(character);
        break;
      }
    }
  }

  size_t count_misplaced() const {
    size_t misplaced = 0;
    size_t next = 0;
    for (size_t place = 0; place < right_.size(); ++place) {
      if (taken_[place]) misplaced += right_[place] != matched_[next++];
    }
    return misplaced;
  }

  CodePointTexts left_;
  CodePointTexts right_;
  CodePointTexts matched_;
  std::vector<uint8_t> taken_;
};

template <bool is_winkler>
void jaro_kernel(Call& call) {
  Jaro jaro;
  make_values<double>(call, 0, [&call, &jaro](int64_t row) {
    double alike = jaro.similarity(text_at(call, 0, row), text_at(call, 1, row));
    if (is_winkler) alike = jaro.with_beginning(alike);
    const double least = call.args.size() == 3 ? call.args[2]->at<double>(row) : 0;
    return alike >= least ? alike : 0;
  });
}

template <bool is_winkler>
void resolve_jaro(Node& node, std::span<const Node* const>) {
  const size_t count = node.args.size();
  bool fits = (count == 2 || count == 3) && node.type.kind == Kind::Float64;
  for (size_t arg = 0; fits && arg < count; ++arg)
    fits = node.arg_types[arg].kind == (arg < 2 ? Kind::String : Kind::Float64);
  if (!fits) no_kernel(node);
  node.kernel = jaro_kernel<is_winkler>;
}

constexpr Function kFunctions[] = {
    {"damerau_levenshtein", resolve_damerau},
    {"jaro_similarity", resolve_jaro<false>},
    {"jaro_winkler_similarity", resolve_jaro<true>},
    {"levenshtein", resolve_levenshtein},
    {"hamming", resolve_hamming},
    {"jaccard", resolve_jaccard},
};

}  // namespace

std::span<const Function> text_distance_functions() {
  return kFunctions;
}

}  // namespace bireme
