#include "kernels/json.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/json_bytes.hpp"

namespace bireme {

namespace {

using json::is_digit;
using json::is_high;
using json::is_low;
using json::is_space;
using json::is_whole_number;
using json::read_unit;

// As in the reference backend, whose language has a stack that is not deeper.
constexpr int kDepthMax = 200;

// Goes through one text. Its functions say whether what they were to find is there.
class Reader {
 public:
  explicit Reader(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}

  bool document(const JsonPath& path, std::string_view& part, bool& is_found) {
    path_ = &path;
    if (!value(0, true, 0)) return false;
    spaces();
    part = part_;
    is_found = is_found_;
    return at_ == end_;
  }

  // How many elements the array has whose bracket was just opened; does not move.
  int64_t count_elements() {
    const char* start = at_;
    const JsonPath nothing;
    path_ = &nothing;
    int64_t count = 0;
    const bool is_whole = elements([&](int64_t) {
      ++count;
      return value(0, false, 1);
    });
    at_ = start;
    return is_whole ? count : -1;
  }

  bool open(char bracket) {
    spaces();
    return take(bracket);
  }

 private:
  void spaces() {
    while (at_ < end_ && is_space(*at_)) ++at_;
  }
  bool take(char byte) {
    if (at_ == end_ || *at_ != byte) return false;
    ++at_;
    return true;
  }

  // A value that is `wanted` where the path leads through it, `step` steps of which are done.
  bool value(size_t step, bool wanted, int depth) {
    spaces();
    if (at_ == end_ || depth > kDepthMax) return false;
    const char* start = at_;
    const bool is_part = wanted && step == path_->size();
    if (!any(step, wanted && !is_part, depth)) return false;
    if (is_part) {
      part_ = {start, static_cast<size_t>(at_ - start)};
      is_found_ = true;
    }
    return true;
  }

  bool any(size_t step, bool wanted, int depth) {
    switch (*at_) {
      case '{':
        ++at_;
        return object(step, wanted, depth);
      case '[':
        ++at_;
        return array(step, wanted, depth);
      case '"':
        return string();
      case 't':
        return word("true");
      case 'f':
        return word("false");
      case 'n':
        if (end_ - at_ >= 2 && at_[1] == 'u') return word("null");
        return not_finite();
      default:
        return number();
    }
  }

  bool object(size_t step, bool wanted, int depth) {
    spaces();
    while (!take('}')) {
      const char* start = at_;
      if (!string()) return false;
      const bool is_wanted =
          wanted && !is_found_ && is_key(step, {start, static_cast<size_t>(at_ - start)});
      spaces();
      if (!take(':')) return false;
      if (!value(step + 1, is_wanted, depth + 1)) return false;
      if (is_wanted) wanted = false;
      spaces();
      if (take(',')) {
        spaces();
      } else if (at_ == end_ || *at_ != '}') {
        return false;
      }
    }
    return true;
  }

  template <typename Element>
  bool elements(Element element) {
    spaces();
    for (int64_t index = 0; !take(']'); ++index) {
      if (!element(index)) return false;
      spaces();
      if (take(',')) {
        spaces();
      } else if (at_ == end_ || *at_ != ']') {
        return false;
      }
    }
    return true;
  }

  bool array(size_t step, bool wanted, int depth) {
    int64_t index = -1;
    if (wanted && (*path_)[step].kind != JsonStep::Kind::Key) {
      index = (*path_)[step].index;
      if (index < 0 && (*path_)[step].kind == JsonStep::Kind::Index && !from_start(index, depth)) return false;
    }
    return elements([&](int64_t at) { return value(step + 1, wanted && at == index, depth + 1); });
  }

  // An index from the end as one from the start, or one that no element has.
  bool from_start(int64_t& index, int depth) {
    const char* start = at_;
    int64_t count = 0;
    if (!elements([&](int64_t) {
          ++count;
          return value(0, false, depth + 1);
        }))
      return false;
    at_ = start;
    index = index + count < 0 ? -1 : index + count;
    return true;
  }

  bool is_key(size_t step, std::string_view quoted) const {
    const JsonStep& wanted = (*path_)[step];
    if (wanted.kind == JsonStep::Kind::Index) return false;
    if (is_plain_json_text(quoted)) return quoted.substr(1, quoted.size() - 2) == wanted.key;
    std::string key(quoted.size(), '\0');
    const char* end = write_json_text(quoted, key.data());
    return std::string_view(key.data(), static_cast<size_t>(end - key.data())) == wanted.key;
  }

  bool word(std::string_view expected) {
    if (static_cast<size_t>(end_ - at_) < expected.size()) return false;
    if (std::memcmp(at_, expected.data(), expected.size()) != 0) return false;
    at_ += expected.size();
    return true;
  }

  bool string() {
    if (!take('"')) return false;
    while (at_ < end_) {
      const auto byte = static_cast<unsigned char>(*at_++);
      if (byte == '"') return true;
      if (byte < 0x20) return false;
      if (byte == '\\' && !escape()) return false;
    }
    return false;
  }

  bool escape() {
    if (at_ == end_) return false;
    const char kind = *at_++;
    if (kind != 'u') return std::strchr("\"\\/bfnrt", kind) != nullptr && kind != '\0';
    const int32_t unit = read_unit(at_, end_);
    if (unit < 0 || is_low(unit)) return false;
    at_ += 4;
    if (!is_high(unit)) return true;
    if (end_ - at_ < 6 || at_[0] != '\\' || at_[1] != 'u' || !is_low(read_unit(at_ + 2, end_))) return false;
    at_ += 6;
    return true;
  }

  bool digits() {
    const char* start = at_;
    while (at_ < end_ && is_digit(*at_)) ++at_;
    return at_ > start;
  }

  bool number() {
    take('-');
    if (at_ < end_ && !is_digit(*at_)) return not_finite();
    if (take('0')) {
      if (at_ < end_ && is_digit(*at_)) return false;
    } else if (!digits()) {
      return false;
    }
    if (take('.') && !digits()) return false;
    if (at_ < end_ && (*at_ == 'e' || *at_ == 'E')) {
      ++at_;
      if (!take('+')) take('-');
      return digits();
    }
    return true;
  }

  bool not_finite() {
    for (const std::string_view name : {"infinity", "inf", "nan"}) {
      const auto size = static_cast<std::ptrdiff_t>(name.size());
      if (end_ - at_ < size) continue;
      if (std::equal(name.begin(), name.end(), at_, [](char left, char right) { return left == (right | 0x20); })) {
        at_ += size;
        return true;
      }
    }
    return false;
  }

  const char* at_;
  const char* end_;
  const JsonPath* path_ = nullptr;
  std::string_view part_;
  bool is_found_ = false;
};

}  // namespace

JsonFound find_json(std::string_view text, const JsonPath& path, std::string_view& part) {
  bool is_found = false;
  if (!Reader(text).document(path, part, is_found)) return JsonFound::Malformed;
  return is_found ? JsonFound::Part : JsonFound::Missing;
}

JsonKind kind_of_json(std::string_view value) {
  switch (value[0]) {
    case '{':
      return JsonKind::Object;
    case '[':
      return JsonKind::Array;
    case '"':
      return JsonKind::Text;
    case 't':
      return JsonKind::True;
    case 'f':
      return JsonKind::False;
    case 'n':
      return value == "null" ? JsonKind::Null : JsonKind::Real;
    default:
      return is_whole_number(value[0] == '-' ? value.substr(1) : value) ? JsonKind::Whole : JsonKind::Real;
  }
}

int64_t elements_of_json(std::string_view array) {
  Reader reader(array);
  return reader.open('[') ? reader.count_elements() : 0;
}

}  // namespace bireme
