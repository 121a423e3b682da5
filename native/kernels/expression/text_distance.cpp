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

constexpr Function kFunctions[] = {
    {"levenshtein", resolve_levenshtein},
    {"hamming", resolve_hamming},
    {"jaccard", resolve_jaccard},
};

}  // namespace

std::span<const Function> text_distance_functions() {
  return kFunctions;
}

}  // namespace bireme
