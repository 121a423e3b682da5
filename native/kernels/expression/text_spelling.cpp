// Texts spelt in another way: without accents, composed, quoted for regular expressions and for URLs, and
// bytes as texts.
//
// Letters of alphabets that are not known here, and bytes that are no text, are left to the reference
// backend.
#include "kernels/accents.hpp"
#include "kernels/code_points.hpp"
#include "kernels/expression/resolve.hpp"
#include "kernels/expression/text_writer.hpp"
#include "kernels/text.hpp"
#include "parquet/utf8.hpp"

namespace bireme {

namespace {

constexpr char kDigits[] = "0123456789ABCDEF";

bool is_letter_or_digit(char byte) {
  const char lower = static_cast<char>(byte | 0x20);
  return (lower >= 'a' && lower <= 'z') || (byte >= '0' && byte <= '9');
}

Str without_accents(const Call& call, std::string_view text, TextWriter& writer) {
  if (is_ascii(text)) return str_of(text);
  // What is known has no fewer bytes than what it becomes.
  char* out = writer.room(static_cast<int64_t>(text.size()));
  for (size_t at = 0; at < text.size();) {
    const Accentless made = without_accent(take_code_point(text, at));
    if (!made.is_known) leave_to_reference(call);
    if (made.stays) out = append_code_point(out, made.letter);
  }
  return writer.keep_until(out);
}

void strip_accents_kernel(Call& call) {
  make_texts(call, [&call](int64_t row, TextWriter& writer) {
    return without_accents(call, text_at(call, 0, row), writer);
  });
}

// The first character that may join others, or be one of several that are alike.
constexpr uint32_t kFirstCombining = 0x300;

void normalize_kernel(Call& call) {
  make_texts(call, [&call](int64_t row, TextWriter&) {
    const std::string_view text = text_at(call, 0, row);
    for (size_t at = 0; !is_ascii(text) && at < text.size();) {
      if (take_code_point(text, at) >= kFirstCombining) leave_to_reference(call);
    }
    return str_of(text);
  });
}

void escape_kernel(Call& call) {
  make_texts(call, [&call](int64_t row, TextWriter& writer) {
    const std::string_view text = text_at(call, 0, row);
    if (!is_ascii(text)) leave_to_reference(call);
    char* out = writer.room(2 * static_cast<int64_t>(text.size()));
    for (const char each : text) {
      if (!is_letter_or_digit(each) && each != '_') *out++ = '\\';
      *out++ = each;
    }
    return writer.keep_until(out);
  });
}

void url_encode_kernel(Call& call) {
  make_texts(call, [&call](int64_t row, TextWriter& writer) {
    const std::string_view text = text_at(call, 0, row);
    char* out = writer.room(3 * static_cast<int64_t>(text.size()));
    for (const char each : text) {
      if (is_letter_or_digit(each) || each == '_' || each == '-' || each == '.' || each == '~') {
        *out++ = each;
        continue;
      }
      const auto byte = static_cast<unsigned char>(each);
      *out++ = '%';
      *out++ = kDigits[byte >> 4];
      *out++ = kDigits[byte & 15];
    }
    return writer.keep_until(out);
  });
}

void check_text(const Call& call, std::string_view bytes) {
  if (is_ascii(bytes)) return;
  const auto end = static_cast<int32_t>(bytes.size());
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  if (!parquet::are_utf8(data, 0, &end, 1)) leave_to_reference(call);
}

int hex_value(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  const char lower = static_cast<char>(digit | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// A % without two digits behind it stays.
void url_decode_kernel(Call& call) {
  make_texts(call, [&call](int64_t row, TextWriter& writer) {
    const std::string_view text = text_at(call, 0, row);
    char* out = writer.room(static_cast<int64_t>(text.size()));
    for (size_t at = 0; at < text.size(); ++at) {
      const bool is_code = text[at] == '%' && at + 2 < text.size() && hex_value(text[at + 1]) >= 0 &&
                           hex_value(text[at + 2]) >= 0;
      *out++ =
          is_code ? static_cast<char>((hex_value(text[at + 1]) << 4) | hex_value(text[at + 2])) : text[at];
      if (is_code) at += 2;
    }
    const Str made = writer.keep_until(out);
    check_text(call, made.view());
    return made;
  });
}

void decode_kernel(Call& call) {
  make_texts(call, [&call](int64_t row, TextWriter&) {
    check_text(call, text_at(call, 0, row));
    return call.args[0]->at<Str>(row);
  });
}

template <Kernel kernel, Kind kind, bool can_raise>
void resolve_spelling(Node& node, std::span<const Node* const>) {
  if (node.args.size() != 1 || node.arg_types[0].kind != kind || node.type.kind != Kind::String)
    no_kernel(node);
  node.can_raise |= can_raise;
  node.kernel = kernel;
}

constexpr Function kFunctions[] = {
    {"strip_accents", resolve_spelling<strip_accents_kernel, Kind::String, false>},
    {"nfc_normalize", resolve_spelling<normalize_kernel, Kind::String, false>},
    {"regexp_escape", resolve_spelling<escape_kernel, Kind::String, false>},
    {"url_encode", resolve_spelling<url_encode_kernel, Kind::String, false>},
    {"url_decode", resolve_spelling<url_decode_kernel, Kind::String, true>},
    {"decode", resolve_spelling<decode_kernel, Kind::Binary, true>},
};

}  // namespace

std::span<const Function> text_spelling_functions() {
  return kFunctions;
}

}  // namespace bireme
