// Functions of texts. Positions and lengths count code points; lower, upper, ilike and trim know ASCII only
// and throw NeedsReference for what else they meet.
#include <algorithm>
#include <optional>

#include "kernels/expression/resolve.hpp"
#include "kernels/expression/text_writer.hpp"
#include "kernels/like.hpp"
#include "kernels/text.hpp"

namespace bireme {

namespace {

bool all_strings(const Node& node, size_t count) {
  if (node.args.size() != count) return false;
  return std::all_of(node.arg_types.begin(), node.arg_types.end(),
                     [](const Type& type) { return type.kind == Kind::String; });
}

// ------------------------------------------------------------------------------------------------ tests

template <typename Test>
void test_rows(Call& call, Test test) {
  const Vector& a = *call.args[0];
  uint8_t* out = call.out_as<uint8_t>();
  for (int64_t row = 0; row < call.rows; ++row) out[row] = test(a.at<Str>(row).view());
}

bool begins(std::string_view text, std::string_view part) {
  return text.size() >= part.size() && same_bytes(text.data(), part.data(), part.size());
}
bool ends(std::string_view text, std::string_view part) {
  return text.size() >= part.size() &&
         same_bytes(text.data() + (text.size() - part.size()), part.data(), part.size());
}
bool holds(std::string_view text, std::string_view part) {
  return find_bytes(text, part) != kNotFound;
}

void like_kernel(Call& call) {
  const auto& pattern = *static_cast<const LikePattern*>(call.node.state.get());
  const std::string_view part = pattern.part();
  switch (pattern.form()) {
    case LikePattern::Form::Equal:
      return test_rows(call, [part](std::string_view text) {
        return text.size() == part.size() && same_bytes(text.data(), part.data(), part.size());
      });
    case LikePattern::Form::Prefix:
      return test_rows(call, [part](std::string_view text) { return begins(text, part); });
    case LikePattern::Form::Suffix:
      return test_rows(call, [part](std::string_view text) { return ends(text, part); });
    case LikePattern::Form::Contains:
      return test_rows(call, [part](std::string_view text) { return holds(text, part); });
    case LikePattern::Form::General:
      return test_rows(call, [&pattern](std::string_view text) { return pattern.matches(text); });
  }
}

std::string lowered(std::string_view text) {
  std::string lower(text);
  for (char& byte : lower) byte = byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte + 32) : byte;
  return lower;
}

void check_ascii(const Call& call) {
  for (int64_t row = 0; row < call.rows; ++row) {
    if (is_live(call, row) && !is_ascii(call.args[0]->at<Str>(row).view()))
      throw NeedsReference(call.node.function);
  }
}

void ilike_kernel(Call& call) {
  check_ascii(call);
  const auto& pattern = *static_cast<const LikePattern*>(call.node.state.get());
  std::string lower;
  test_rows(call, [&pattern, &lower](std::string_view text) {
    lower.resize(text.size());
    change_case(text, 'A', lower.data());
    return pattern.matches(lower);
  });
}

// One argument; `text` is the pattern, numbers[0] the escape or -1.
template <bool ignore_case>
void resolve_like(Node& node, std::span<const Node* const>) {
  if (!all_strings(node, 1) || node.type.kind != Kind::Bool) no_kernel(node);
  if (ignore_case && !is_ascii(node.text)) no_kernel(node);
  const auto fold = [](int64_t byte) { return byte >= 'A' && byte <= 'Z' ? byte + 32 : byte; };
  auto pattern = ignore_case ? std::make_shared<LikePattern>(lowered(node.text), fold(node.numbers[0]))
                             : std::make_shared<LikePattern>(node.text, node.numbers[0]);
  if (!pattern->valid()) no_kernel(node);
  node.state = std::move(pattern);
  node.kernel = ignore_case ? ilike_kernel : like_kernel;
}

// GLOB as LIKE: * is any text, ? one character, a backslash takes the next one as it is. Sets have no kernel.
std::optional<std::string> like_of_glob(std::string_view glob) {
  std::string like;
  for (size_t at = 0; at < glob.size(); ++at) {
    char each = glob[at];
    if (each == '[') return std::nullopt;
    if (each == '*' || each == '?') {
      like += each == '*' ? '%' : '_';
      continue;
    }
    if (each == '\\' && at + 1 < glob.size()) each = glob[++at];
    if (each == '%' || each == '_' || each == '\\') like += '\\';
    like += each;
  }
  return like;
}

void resolve_glob(Node& node, std::span<const Node* const>) {
  const auto like = like_of_glob(node.text);
  if (!all_strings(node, 1) || node.type.kind != Kind::Bool || !like.has_value()) no_kernel(node);
  node.state = std::make_shared<LikePattern>(*like, '\\');
  node.kernel = like_kernel;
}

template <bool (*test)(std::string_view, std::string_view)>
void part_kernel(Call& call) {
  uint8_t* out = call.out_as<uint8_t>();
  for (int64_t row = 0; row < call.rows; ++row) {
    out[row] = test(call.args[0]->at<Str>(row).view(), call.args[1]->at<Str>(row).view());
  }
}

template <bool (*test)(std::string_view, std::string_view)>
void resolve_part(Node& node, std::span<const Node* const>) {
  if (!all_strings(node, 2) || node.type.kind != Kind::Bool) no_kernel(node);
  node.kernel = part_kernel<test>;
}

// --------------------------------------------------------------------------------------------- measures

void length_kernel(Call& call) {
  map_unary<Str, int64_t>(call, [](const Str& text) { return count_characters(text.view()); });
}

void octets_kernel(Call& call) {
  map_unary<Str, int64_t>(call, [](const Str& text) { return static_cast<int64_t>(text.size); });
}

void resolve_length(Node& node, std::span<const Node* const>) {
  if (!all_strings(node, 1) || node.type.kind != Kind::Int64) no_kernel(node);
  node.kernel = length_kernel;
}

void resolve_octets(Node& node, std::span<const Node* const>) {
  if (node.args.size() != 1 || !is_string(node.arg_types[0].kind) || node.type.kind != Kind::Int64)
    no_kernel(node);
  node.kernel = octets_kernel;
}

void position_kernel(Call& call) {
  int64_t* out = call.out_as<int64_t>();
  for (int64_t row = 0; row < call.rows; ++row) {
    const std::string_view text = call.args[0]->at<Str>(row).view();
    const size_t found = find_bytes(text, call.args[1]->at<Str>(row).view());
    out[row] = found == kNotFound ? 0 : count_characters(text.substr(0, found)) + 1;
  }
}

void resolve_position(Node& node, std::span<const Node* const>) {
  if (!all_strings(node, 2) || node.type.kind != Kind::Int64) no_kernel(node);
  node.kernel = position_kernel;
}

// ----------------------------------------------------------------------------------------------- pieces

// The characters [begin, end) of a text; both may lie outside of it.
std::string_view slice(std::string_view text, int64_t begin, int64_t end) {
  if (end <= 0 || begin >= end) return {};
  begin = std::max<int64_t>(begin, 0);
  const auto size = static_cast<int64_t>(text.size());
  if (begin >= size) return {};
  end = std::min(end, size);
  if (is_ascii(text.substr(0, static_cast<size_t>(end)))) {
    return text.substr(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
  }
  const size_t from = character_start(text, begin);
  const std::string_view rest = text.substr(from);
  return rest.substr(0, character_start(rest, end - begin));
}

int64_t clamp_sum(int64_t a, int64_t b) {
  int64_t sum;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a < 0 ? INT64_MIN : INT64_MAX;
}

// As the reference's `substring`: `start` from 1, negative from the end; a negative length ends before the
// start.
std::string_view substring(std::string_view text, int64_t start, int64_t length, bool has_length) {
  int64_t begin = start > 0 ? start - 1 : start < 0 ? clamp_sum(count_characters(text), start) : -1;
  int64_t end = has_length ? clamp_sum(begin, length) : INT64_MAX;
  if (begin > end) std::swap(begin, end);
  return slice(text, begin, end);
}

void substring_kernel(Call& call) {
  Str* out = call.out_as<Str>();
  const bool has_length = call.args.size() == 3;
  for (int64_t row = 0; row < call.rows; ++row) {
    if (!is_live(call, row)) {
      out[row] = Str{"", 0, 0};
      continue;
    }
    const int64_t length = has_length ? call.args[2]->at<int64_t>(row) : 0;
    out[row] = str_of(
        substring(call.args[0]->at<Str>(row).view(), call.args[1]->at<int64_t>(row), length, has_length));
  }
}

void resolve_substring(Node& node, std::span<const Node* const>) {
  const bool fits = (node.args.size() == 2 || node.args.size() == 3) &&
                    node.arg_types[0].kind == Kind::String && node.arg_types[1].kind == Kind::Int64 &&
                    node.arg_types.back().kind == Kind::Int64 && node.type.kind == Kind::String;
  if (!fits) no_kernel(node);
  node.kernel = substring_kernel;
}

// text[first:last]: positions from 1, negative ones from the end.
std::string_view part_between(std::string_view text, int64_t first, int64_t last) {
  const int64_t begin = first > 0 ? first - 1 : first < 0 ? clamp_sum(count_characters(text), first) : 0;
  const int64_t end = last >= 0 ? last : clamp_sum(count_characters(text) + 1, last);
  return slice(text, std::max<int64_t>(begin, 0), end);
}

void between_kernel(Call& call) {
  make_texts(call, [&call](int64_t row, TextWriter&) {
    const int64_t first = call.args[1]->at<int64_t>(row);
    return str_of(part_between(text_at(call, 0, row), first, call.args[2]->at<int64_t>(row)));
  });
}

void resolve_between(Node& node, std::span<const Node* const>) {
  const bool fits = node.args.size() == 3 && node.arg_types[0].kind == Kind::String &&
                    node.arg_types[1].kind == Kind::Int64 && node.arg_types[2].kind == Kind::Int64;
  if (!fits) no_kernel(node);
  node.kernel = between_kernel;
}

template <bool from_left>
void side_kernel(Call& call) {
  Str* out = call.out_as<Str>();
  for (int64_t row = 0; row < call.rows; ++row) {
    const std::string_view text = call.args[0]->at<Str>(row).view();
    const int64_t count = call.args[1]->at<int64_t>(row);
    const int64_t size = count_characters(text);
    if (from_left) {
      out[row] = str_of(slice(text, 0, count >= 0 ? count : clamp_sum(size, count)));
    } else {
      out[row] = str_of(slice(text,
                              count >= 0           ? clamp_sum(size, -count)
                              : count == INT64_MIN ? size
                                                   : -count,
                              size));
    }
  }
}

template <bool from_left>
void resolve_side(Node& node, std::span<const Node* const>) {
  expect_args(node, 2);
  if (node.arg_types[0].kind != Kind::String || node.arg_types[1].kind != Kind::Int64) no_kernel(node);
  node.kernel = side_kernel<from_left>;
}

std::string_view trimmed(std::string_view text, bool left, bool right, const Node& node) {
  while (left && !text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (right && !text.empty() && text.back() == ' ') text.remove_suffix(1);
  // Other alphabets have blanks of their own.
  const bool has_others =
      !text.empty() && ((left && is_foreign(text.front())) || (right && is_foreign(text.back())));
  if (has_others) throw NeedsReference(node.function);
  return text;
}

template <bool left, bool right>
void trim_kernel(Call& call) {
  Str* out = call.out_as<Str>();
  for (int64_t row = 0; row < call.rows; ++row) {
    const Str& text = call.args[0]->at<Str>(row);
    out[row] = is_live(call, row) ? str_of(trimmed(text.view(), left, right, call.node)) : Str{"", 0, 0};
  }
}

size_t character_before(std::string_view text, size_t end) {
  --end;
  while (end > 0 && is_continuation(text[end])) --end;
  return end;
}

// Without the characters that are among those given.
std::string_view stripped(std::string_view text, std::string_view characters, bool left, bool right) {
  const auto is_among = [characters](std::string_view one) {
    return one.size() == 1 ? characters.find(one[0]) != kNotFound : find_bytes(characters, one) != kNotFound;
  };
  while (left && !text.empty()) {
    const size_t next = next_character(text, 0);
    if (!is_among(text.substr(0, next))) break;
    text.remove_prefix(next);
  }
  while (right && !text.empty()) {
    const size_t last = character_before(text, text.size());
    if (!is_among(text.substr(last))) break;
    text = text.substr(0, last);
  }
  return text;
}

template <bool left, bool right>
void strip_kernel(Call& call) {
  make_texts(call, [&call](int64_t row, TextWriter&) {
    return str_of(stripped(text_at(call, 0, row), text_at(call, 1, row), left, right));
  });
}

template <bool left, bool right>
void resolve_trim(Node& node, std::span<const Node* const>) {
  if (!all_strings(node, 1) && !all_strings(node, 2)) no_kernel(node);
  node.kernel = node.args.size() == 1 ? trim_kernel<left, right> : strip_kernel<left, right>;
}

// ------------------------------------------------------------------------------------------- new texts

template <char first>
void case_kernel(Call& call) {
  check_ascii(call);
  Str* out = call.out_as<Str>();
  int64_t size = 0;
  for (int64_t row = 0; row < call.rows; ++row) {
    if (is_live(call, row)) size += call.args[0]->at<Str>(row).size;
  }
  auto* made = call.arena.take_array<char>(size);
  for (int64_t row = 0; row < call.rows; ++row) {
    const std::string_view text =
        is_live(call, row) ? call.args[0]->at<Str>(row).view() : std::string_view("", 0);
    change_case(text, first, made);
    out[row] = {made, static_cast<uint32_t>(text.size()), 0};
    made += text.size();
  }
}

template <char first>
void resolve_case_change(Node& node, std::span<const Node* const>) {
  if (!all_strings(node, 1) || node.type.kind != Kind::String) no_kernel(node);
  node.kernel = case_kernel<first>;
}

// Joins the texts of a row, without those that are NULL.
Str joined(const Call& call, int64_t row, TextWriter& writer) {
  int64_t size = 0;
  for (const Vector* arg : call.args) size += arg->is_valid(row) ? int64_t{arg->at<Str>(row).size} : 0;
  char* at = writer.room(size);
  for (const Vector* arg : call.args) {
    if (arg->is_valid(row)) at = append(at, arg->at<Str>(row).view());
  }
  return writer.keep(size);
}

void concat_kernel(Call& call) {
  make_texts(call, [&call](int64_t row, TextWriter& writer) { return joined(call, row, writer); });
}

template <bool strict>
void resolve_concat(Node& node, std::span<const Node* const>) {
  if (node.args.empty() || !all_strings(node, node.args.size()) || node.type.kind != Kind::String)
    no_kernel(node);
  node.strict = strict;
  node.kernel = concat_kernel;
}

constexpr Function kFunctions[] = {
    {"like", resolve_like<false>},         {"ilike", resolve_like<true>},
    {"starts_with", resolve_part<begins>}, {"ends_with", resolve_part<ends>},
    {"contains", resolve_part<holds>},     {"length", resolve_length},
    {"octet_length", resolve_octets},      {"position", resolve_position},
    {"substring", resolve_substring},      {"left", resolve_side<true>},
    {"right", resolve_side<false>},        {"trim", resolve_trim<true, true>},
    {"ltrim", resolve_trim<true, false>},  {"rtrim", resolve_trim<false, true>},
    {"lower", resolve_case_change<'A'>},   {"upper", resolve_case_change<'a'>},
    {"list_slice", resolve_between},       {"glob", resolve_glob},
    {"concat", resolve_concat<false>},     {"concat_op", resolve_concat<true>},
};

}  // namespace

std::span<const Function> string_functions() {
  return kFunctions;
}

}  // namespace bireme
