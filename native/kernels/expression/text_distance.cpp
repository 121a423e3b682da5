// How far two texts are apart, in code points. What has no distance is left to the reference backend, which
// says why.
#include <algorithm>
#include <bit>
#include <iterator>

#include "kernels/code_points.hpp"
#include "kernels/expression/resolve.hpp"
#include "kernels/expression/text_writer.hpp"
#include "kernels/text.hpp"

namespace bireme {

namespace {

// -------------------------------------------------------------------------------------------------- hamming

int64_t count_different_bytes(std::string_view left, std::string_view right) {
  int64_t different = 0;
  for (size_t at = 0; at < left.size(); ++at) different += left[at] != right[at];
  return different;
}

int64_t count_different(std::string_view left, std::string_view right) {
  int64_t different = 0;
  size_t there = 0;
  // Of bytes that are no text there may be more here than there.
  for (size_t here = 0; here < left.size() && there < right.size();)
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
  expect_two_texts(node, Kind::Int64);
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
  expect_two_texts(node, Kind::Float64);
  node.can_raise = true;
  node.kernel = jaccard_kernel;
}

// ------------------------------------------------------------------------------------------------ jaro, winkler

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
    {"jaro_similarity", resolve_jaro<false>},
    {"jaro_winkler_similarity", resolve_jaro<true>},
    {"hamming", resolve_hamming},
    {"jaccard", resolve_jaccard},
};

}  // namespace

std::span<const Function> text_distance_functions() {
  return kFunctions;
}

}  // namespace bireme
