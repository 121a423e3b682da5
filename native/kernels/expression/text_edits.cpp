// How many changes make one text of another, in code points: levenshtein and damerau_levenshtein.
//
// What tables of single texts take is part of the allowance.
#include <algorithm>
#include <numeric>

#include "kernels/code_points.hpp"
#include "kernels/expression/allowance.hpp"
#include "kernels/expression/resolve.hpp"
#include "kernels/expression/text_writer.hpp"
#include "kernels/text.hpp"

namespace bireme {

namespace {

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

// The different characters of a text, numbered.
class Alphabet {
 public:
  explicit Alphabet(const CodePointTexts& text) : letters_(text) {
    std::sort(letters_.begin(), letters_.end());
    letters_.erase(std::unique(letters_.begin(), letters_.end()), letters_.end());
  }
  size_t size() const { return letters_.size(); }
  // The size of the alphabet for a character that the text has not.
  size_t number_of(uint32_t character) const {
    const auto found = std::lower_bound(letters_.begin(), letters_.end(), character);
    const bool is_there = found != letters_.end() && *found == character;
    return is_there ? static_cast<size_t>(found - letters_.begin()) : letters_.size();
  }

 private:
  CodePointTexts letters_;
};

// Any two texts: a column in blocks of 64 rows, from the top, with what goes from one to the next.
class Blocks {
 public:
  int64_t distance(std::string_view left, std::string_view right, Allowance& allowance) {
    Allotment allotment(allowance);
    const int64_t bytes = kBytesACharacter * static_cast<int64_t>(left.size() + right.size());
    allotment.reach(bytes);
    read_code_points(left, left_);
    read_code_points(right, right_);
    if (left_.size() < right_.size()) left_.swap(right_);
    if (right_.empty()) return static_cast<int64_t>(left_.size());
    const Alphabet alphabet(right_);
    blocks_ = (right_.size() + kWordBits - 1) / kWordBits;
    allotment.reach(bytes + static_cast<int64_t>((alphabet.size() + 1) * blocks_ * sizeof(uint64_t)));
    find_places(alphabet);
    rises_.assign(blocks_, ~uint64_t{0});
    falls_.assign(blocks_, 0);
    distance_ = static_cast<int64_t>(right_.size());
    for (const uint32_t each : left_) next_column(places_.data() + alphabet.number_of(each) * blocks_);
    return distance_;
  }

 private:
  static constexpr int64_t kBytesACharacter = 16;

  void find_places(const Alphabet& alphabet) {
    places_.assign((alphabet.size() + 1) * blocks_, 0);
    for (size_t place = 0; place < right_.size(); ++place) {
      uint64_t& rows = places_[alphabet.number_of(right_[place]) * blocks_ + place / kWordBits];
      rows |= uint64_t{1} << (place % kWordBits);
    }
  }

  void next_column(const uint64_t* same_places) {
    uint64_t more_in = 1;
    uint64_t less_in = 0;
    for (size_t block = 0; block < blocks_; ++block) {
      const uint64_t rises = rises_[block];
      const uint64_t same = same_places[block] | less_in;
      const uint64_t across = (((same & rises) + rises) ^ rises) | same | falls_[block];
      uint64_t more = falls_[block] | ~(across | rises);
      uint64_t less = across & rises;
      const size_t low = block + 1 == blocks_ ? (right_.size() - 1) % kWordBits : kWordBits - 1;
      const uint64_t more_out = (more >> low) & 1;
      const uint64_t less_out = (less >> low) & 1;
      more = (more << 1) | more_in;
      less = (less << 1) | less_in;
      rises_[block] = less | ~(across | more);
      falls_[block] = more & across;
      more_in = more_out;
      less_in = less_out;
    }
    distance_ += static_cast<int64_t>(more_in) - static_cast<int64_t>(less_in);
  }

  CodePointTexts left_;
  CodePointTexts right_;
  std::vector<uint64_t> places_;  // by character of `right_`: the rows that have it, a block after the other
  std::vector<uint64_t> rises_;
  std::vector<uint64_t> falls_;
  size_t blocks_ = 0;
  int64_t distance_ = 0;
};

void levenshtein_kernel(Call& call) {
  Places places;
  Blocks blocks;
  make_values<int64_t>(call, 0, [&](int64_t row) {
    std::string_view left = text_at(call, 0, row);
    std::string_view right = text_at(call, 1, row);
    if (left.size() < right.size()) std::swap(left, right);
    if (right.size() > kWordBits || !is_ascii(left) || !is_ascii(right))
      return blocks.distance(left, right, call.arena.allowance());
    places.read(right);
    return distance_by_bits(places, left);
  });
}

void resolve_levenshtein(Node& node, std::span<const Node* const>) {
  expect_two_texts(node, Kind::Int64);
  node.kernel = levenshtein_kernel;
}

// ------------------------------------------------------------------------------------------ damerau_levenshtein

// With changes of places between which other changes may lie (Lowrance and Wagner). Of the table only two rows
// are kept, and what of others can be less than all other ways (Zhao and Sahni).
class SwapRows {
 public:
  int64_t distance(std::string_view left, std::string_view right, Allowance& allowance) {
    Allotment allotment(allowance);
    allotment.reach(kBytesACharacter * static_cast<int64_t>(left.size() + right.size()));
    read_code_points(left, left_);
    read_code_points(right, right_);
    const Alphabet alphabet(right_);
    numbers_.clear();
    for (const uint32_t each : right_) numbers_.push_back(alphabet.number_of(each));
    last_row_.assign(alphabet.size() + 1, kNone);
    far_ = static_cast<int64_t>(std::max(left_.size(), right_.size())) + 1;
    before_swap_.assign(right_.size() + 1, far_);
    above_.assign(right_.size() + 2, far_);
    row_.assign(right_.size() + 2, far_);
    std::iota(row_.begin() + 1, row_.end(), int64_t{0});
    for (size_t number = 1; number <= left_.size(); ++number)
      next_row(static_cast<int64_t>(number), alphabet.number_of(left_[number - 1]));
    return row_.back();
  }

 private:
  static constexpr int64_t kBytesACharacter = 64;
  static constexpr int64_t kNone = -1;

  // row_ and above_ have a cell before their first.
  void next_row(int64_t number, size_t character) {
    row_.swap(above_);
    int64_t last_column = kNone;
    int64_t two_above = row_[1];
    int64_t before_last = far_;
    row_[1] = number;
    for (size_t column = 1; column <= right_.size(); ++column) {
      const auto at = static_cast<int64_t>(column);
      const size_t here = numbers_[column - 1];
      int64_t least =
          std::min(above_[column] + (here != character), std::min(row_[column], above_[column + 1]) + 1);
      if (here == character) {
        last_column = at;
        before_swap_[column] = above_[column - 1];
        before_last = two_above;
      } else if (at - last_column == 1) {
        least = std::min(least, before_swap_[column] + number - last_row_[here]);
      } else if (number - last_row_[here] == 1) {
        least = std::min(least, before_last + at - last_column);
      }
      two_above = row_[column + 1];
      row_[column + 1] = least;
    }
    last_row_[character] = number;
  }

  CodePointTexts left_;
  CodePointTexts right_;
  std::vector<size_t> numbers_;    // of the characters of `right_`
  std::vector<int64_t> last_row_;  // by character: the last row before that has it
  std::vector<int64_t> row_;
  std::vector<int64_t> above_;
  std::vector<int64_t> before_swap_;
  int64_t far_ = 0;
};

void damerau_kernel(Call& call) {
  SwapRows rows;
  make_values<int64_t>(call, 0, [&call, &rows](int64_t row) {
    return rows.distance(text_at(call, 0, row), text_at(call, 1, row), call.arena.allowance());
  });
}

void resolve_damerau(Node& node, std::span<const Node* const>) {
  expect_two_texts(node, Kind::Int64);
  node.kernel = damerau_kernel;
}

constexpr Function kFunctions[] = {
    {"levenshtein", resolve_levenshtein},
    {"damerau_levenshtein", resolve_damerau},
};

}  // namespace

std::span<const Function> text_edit_functions() {
  return kFunctions;
}

}  // namespace bireme
