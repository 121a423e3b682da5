// Texts made of parts of others: replaced, split, joined, filled up, turned around. Counts are of code
// points.
//
// Rows that fail, for texts too long or nothing to fill up with, are left to the reference backend.
#include <algorithm>

#include "kernels/expression/resolve.hpp"
#include "kernels/expression/text_writer.hpp"
#include "kernels/text.hpp"

namespace bireme {

namespace {

// As in the reference backend.
constexpr int64_t kTextBytesMax = int64_t{1} << 30;

// The kinds of arguments: s a text, i an INT64.
void expect_kinds(const Node& node, std::string_view kinds) {
  bool fits = node.args.size() == kinds.size() && node.type.kind == Kind::String;
  for (size_t arg = 0; fits && arg < kinds.size(); ++arg)
    fits = node.arg_types[arg].kind == (kinds[arg] == 's' ? Kind::String : Kind::Int64);
  if (!fits) no_kernel(node);
}

size_t find_from(std::string_view text, std::string_view part, size_t from) {
  const size_t found =
      part.size() == 1 ? text.substr(from).find(part[0]) : find_bytes(text.substr(from), part);
  return found == kNotFound ? kNotFound : found + from;
}

int64_t count_parts(std::string_view text, std::string_view separator) {
  int64_t parts = 1;
  for (size_t at = find_from(text, separator, 0); at != kNotFound;
       at = find_from(text, separator, at + separator.size()))
    ++parts;
  return parts;
}

// ------------------------------------------------------------------------------------------------- replace

Str replaced(std::string_view text, std::string_view old, std::string_view by, TextWriter& writer) {
  size_t found = old.empty() ? kNotFound : find_from(text, old, 0);
  if (found == kNotFound) return str_of(text);
  auto size = static_cast<int64_t>(text.size());
  if (by.size() > old.size())
    size += (count_parts(text, old) - 1) * static_cast<int64_t>(by.size() - old.size());
  char* out = writer.room(size);
  size_t done = 0;
  for (; found != kNotFound; found = find_from(text, old, done)) {
    out = append(append(out, text.substr(done, found - done)), by);
    done = found + old.size();
  }
  return writer.keep_until(append(out, text.substr(done)));
}

void replace_kernel(Call& call) {
  make_texts(call, [&call](int64_t row, TextWriter& writer) {
    return replaced(text_at(call, 0, row), text_at(call, 1, row), text_at(call, 2, row), writer);
  });
}

void resolve_replace(Node& node, std::span<const Node* const>) {
  expect_kinds(node, "sss");
  node.kernel = replace_kernel;
}

// -------------------------------------------------------------------------------------------------- split

std::string_view character(std::string_view text, int64_t index) {
  const size_t from = character_start(text, index);
  return from == text.size() ? std::string_view() : text.substr(from, next_character(text, from) - from);
}

// The part of that number, from 0.
std::string_view part(std::string_view text, std::string_view separator, int64_t index) {
  size_t begin = 0;
  for (; index > 0; --index) {
    const size_t found = find_from(text, separator, begin);
    if (found == kNotFound) return {};
    begin = found + separator.size();
  }
  return text.substr(begin, std::min(find_from(text, separator, begin), text.size()) - begin);
}

std::string_view split_part(std::string_view text, std::string_view separator, int64_t number) {
  const auto count = [&] {
    return separator.empty() ? count_characters(text) : count_parts(text, separator);
  };
  const int64_t index = number > 0 ? number - 1 : number + count();
  if (number == 0 || index < 0) return {};
  return separator.empty() ? character(text, index) : part(text, separator, index);
}

void split_part_kernel(Call& call) {
  make_texts(call, [&call](int64_t row, TextWriter&) {
    return str_of(split_part(text_at(call, 0, row), text_at(call, 1, row), call.args[2]->at<int64_t>(row)));
  });
}

void resolve_split_part(Node& node, std::span<const Node* const>) {
  expect_kinds(node, "ssi");
  node.kernel = split_part_kernel;
}

// --------------------------------------------------------------------------------------------------- join

// NULL where the separator is.
void keep_validity(Call& call, const Vector& of) {
  if (!of.constant || of.valid == nullptr) {
    call.valid = of.valid;
    return;
  }
  auto* valid = call.arena.take_array<uint8_t>(call.rows);
  std::memset(valid, of.valid[0], static_cast<size_t>(call.rows));
  call.valid = valid;
}

Str joined(const Call& call, int64_t row, TextWriter& writer) {
  const std::string_view between = text_at(call, 0, row);
  int64_t size = 0;
  for (size_t arg = 1; arg < call.args.size(); ++arg) {
    if (call.args[arg]->is_valid(row))
      size += static_cast<int64_t>(text_at(call, arg, row).size() + between.size());
  }
  char* out = writer.room(size);
  bool is_first = true;
  for (size_t arg = 1; arg < call.args.size(); ++arg) {
    if (!call.args[arg]->is_valid(row)) continue;
    if (!is_first) out = append(out, between);
    out = append(out, text_at(call, arg, row));
    is_first = false;
  }
  return writer.keep_until(out);
}

void concat_ws_kernel(Call& call) {
  keep_validity(call, *call.args[0]);
  make_texts(call, [&call](int64_t row, TextWriter& writer) { return joined(call, row, writer); });
}

void resolve_concat_ws(Node& node, std::span<const Node* const>) {
  expect_kinds(node, std::string(std::max<size_t>(node.args.size(), 2), 's'));
  node.strict = false;
  node.kernel = concat_ws_kernel;
}

// ------------------------------------------------------------------------------------------------- fill up

char* append_times(char* out, std::string_view text, int64_t times) {
  if (text.size() == 1) {
    std::memset(out, text[0], static_cast<size_t>(times));
    return out + times;
  }
  for (; times > 0; --times) out = append(out, text);
  return out;
}

template <bool at_left>
Str padded(const Call& call, int64_t row, TextWriter& writer) {
  const std::string_view text = text_at(call, 0, row);
  const std::string_view pad = text_at(call, 2, row);
  const int64_t length = call.args[1]->at<int64_t>(row);
  if (length <= 0) return kNoText;
  const int64_t missing = length - count_characters(text);
  if (missing <= 0) return str_of(text.substr(0, character_start(text, length)));
  if (pad.empty() || missing > kTextBytesMax / static_cast<int64_t>(pad.size())) leave_to_reference(call);
  const int64_t pad_length = count_characters(pad);
  const std::string_view rest = pad.substr(0, character_start(pad, missing % pad_length));
  const int64_t times = missing / pad_length;
  char* out =
      writer.room(static_cast<int64_t>(text.size() + rest.size() + pad.size() * static_cast<size_t>(times)));
  if (!at_left) out = append(out, text);
  out = append(append_times(out, pad, times), rest);
  if (at_left) out = append(out, text);
  return writer.keep_until(out);
}

template <bool at_left>
void pad_kernel(Call& call) {
  make_texts(call, [&call](int64_t row, TextWriter& writer) { return padded<at_left>(call, row, writer); });
}

template <bool at_left>
void resolve_pad(Node& node, std::span<const Node* const> args) {
  expect_kinds(node, "sis");
  node.can_raise |= !are_constant(args.subspan(1));
  node.kernel = pad_kernel<at_left>;
}

void repeat_kernel(Call& call) {
  make_texts(call, [&call](int64_t row, TextWriter& writer) {
    const std::string_view text = text_at(call, 0, row);
    const int64_t times = text.empty() ? 0 : std::max<int64_t>(call.args[1]->at<int64_t>(row), 0);
    if (times == 0) return kNoText;
    const auto size = static_cast<int64_t>(text.size());
    if (times > kTextBytesMax / size) leave_to_reference(call);
    return writer.keep_until(append_times(writer.room(times * size), text, times));
  });
}

void resolve_repeat(Node& node, std::span<const Node* const> args) {
  expect_kinds(node, "si");
  node.can_raise |= !are_constant(args.subspan(1));
  node.kernel = repeat_kernel;
}

// ------------------------------------------------------------------------------------------- turned around

void reverse_ascii(std::string_view text, char* out) {
  size_t left = text.size();
  const char* from = text.data();
  for (; left >= 8; left -= 8, from += 8) {
    const uint64_t turned = __builtin_bswap64(load_word<uint64_t>(from));
    std::memcpy(out + left - 8, &turned, 8);
  }
  for (; left > 0; --left, ++from) out[left - 1] = *from;
}

void reverse_characters(std::string_view text, char* out) {
  out += text.size();
  for (size_t at = 0; at < text.size();) {
    const size_t next = next_character(text, at);
    out -= next - at;
    std::memcpy(out, text.data() + at, next - at);
    at = next;
  }
}

void reverse_kernel(Call& call) {
  make_texts(call, [&call](int64_t row, TextWriter& writer) {
    const std::string_view text = text_at(call, 0, row);
    const auto size = static_cast<int64_t>(text.size());
    char* out = writer.room(size);
    if (is_ascii(text)) {
      reverse_ascii(text, out);
    } else {
      reverse_characters(text, out);
    }
    return writer.keep(size);
  });
}

void resolve_reverse(Node& node, std::span<const Node* const>) {
  expect_kinds(node, "s");
  node.kernel = reverse_kernel;
}

constexpr Function kFunctions[] = {
    {"replace", resolve_replace}, {"split_part", resolve_split_part}, {"concat_ws", resolve_concat_ws},
    {"lpad", resolve_pad<true>},  {"rpad", resolve_pad<false>},       {"repeat", resolve_repeat},
    {"reverse", resolve_reverse},
};

}  // namespace

std::span<const Function> text_part_functions() {
  return kFunctions;
}

}  // namespace bireme
