// Texts as codes and back: code points, hexadecimal and binary digits, base 64, digests, and characters
// changed for others.
//
// What is no code is left to the reference backend, which says so.
#include <array>
#include <unordered_map>

#include "kernels/code_points.hpp"
#include "kernels/digest.hpp"
#include "kernels/expression/resolve.hpp"
#include "kernels/expression/text_writer.hpp"
#include "kernels/hash.hpp"
#include "kernels/text.hpp"

namespace bireme {

namespace {

constexpr char kDigits[] = "0123456789ABCDEF";
constexpr char kSmallDigits[] = "0123456789abcdef";
constexpr char kLetters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// One argument of either kind.
void expect_one(const Node& node, Kind kind, Kind result, Kind other = Kind::Other) {
  const bool fits = node.args.size() == 1 && node.type.kind == result &&
                    (node.arg_types[0].kind == kind || node.arg_types[0].kind == other);
  if (!fits) no_kernel(node);
}

// ---------------------------------------------------------------------------------------------- code points

template <int of_nothing>
void code_point_kernel(Call& call) {
  make_values<int32_t>(call, 0, [&call](int64_t row) {
    const std::string_view text = text_at(call, 0, row);
    size_t at = 0;
    return text.empty() ? of_nothing : static_cast<int32_t>(take_code_point(text, at));
  });
}

template <int of_nothing>
void resolve_code_point(Node& node, std::span<const Node* const>) {
  expect_one(node, Kind::String, Kind::Int32);
  node.kernel = code_point_kernel<of_nothing>;
}

void chr_kernel(Call& call) {
  make_texts(call, [&call](int64_t row, TextWriter& writer) {
    const int32_t code = call.args[0]->at<int32_t>(row);
    if (code < 0 || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) leave_to_reference(call);
    return writer.keep_until(append_code_point(writer.room(4), static_cast<uint32_t>(code)));
  });
}

void resolve_chr(Node& node, std::span<const Node* const> args) {
  expect_one(node, Kind::Int32, Kind::String);
  node.can_raise |= !are_constant(args);
  node.kernel = chr_kernel;
}

// --------------------------------------------------------------------------------------------------- digits

// Every byte in digits of `bits` bits each.
template <int bits>
void bytes_in_digits_kernel(Call& call) {
  make_texts(call, [&call](int64_t row, TextWriter& writer) {
    const std::string_view text = text_at(call, 0, row);
    char* out = writer.room(static_cast<int64_t>(text.size()) * (8 / bits));
    for (const char each : text) {
      const auto byte = static_cast<unsigned char>(each);
      for (int shift = 8 - bits; shift >= 0; shift -= bits)
        *out++ = kDigits[(byte >> shift) & ((1 << bits) - 1)];
    }
    return writer.keep_until(out);
  });
}

template <int bits>
void resolve_digits(Node& node, std::span<const Node* const>) {
  expect_args(node, 1);
  const Kind kind = node.arg_types[0].kind;
  if (!is_string(kind) || node.type.kind != Kind::String) no_kernel(node);
  node.kernel = bytes_in_digits_kernel<bits>;
}

constexpr int8_t kNone = -1;

template <size_t size>
constexpr std::array<int8_t, 256> values_of(const char (&digits)[size]) {
  std::array<int8_t, 256> values{};
  values.fill(kNone);
  for (size_t index = 0; index + 1 < size; ++index)
    values[static_cast<unsigned char>(digits[index])] = static_cast<int8_t>(index);
  return values;
}

constexpr std::array<int8_t, 256> hex_values() {
  auto values = values_of(kDigits);
  for (int letter = 0; letter < 6; ++letter)
    values[static_cast<size_t>('a' + letter)] = static_cast<int8_t>(10 + letter);
  return values;
}

constexpr std::array<int8_t, 256> kHexValues = hex_values();
constexpr std::array<int8_t, 256> kLetterValues = values_of(kLetters);

// An odd number of digits begins with a zero that is not written.
void unhex_kernel(Call& call) {
  make_texts(call, [&call](int64_t row, TextWriter& writer) {
    const std::string_view text = text_at(call, 0, row);
    const size_t odd = text.size() % 2;
    char* out = writer.room(static_cast<int64_t>(text.size() / 2 + 1));
    int wrong = 0;
    for (size_t at = 0; at < text.size() + odd; at += 2) {
      const int high = at < odd ? 0 : kHexValues[static_cast<unsigned char>(text[at - odd])];
      const int low = kHexValues[static_cast<unsigned char>(text[at + 1 - odd])];
      wrong |= high | low;
      *out++ = static_cast<char>((high << 4) | low);
    }
    if (wrong < 0) leave_to_reference(call);
    return writer.keep_until(out);
  });
}

void resolve_unhex(Node& node, std::span<const Node* const> args) {
  expect_one(node, Kind::String, Kind::Binary);
  node.can_raise |= !are_constant(args);
  node.kernel = unhex_kernel;
}

// -------------------------------------------------------------------------------------------------- base 64

uint32_t three_bytes(std::string_view bytes, size_t at) {
  uint32_t word = 0;
  for (size_t index = 0; index < 3; ++index) {
    const size_t place = at + index;
    word = (word << 8) | (place < bytes.size() ? static_cast<unsigned char>(bytes[place]) : 0u);
  }
  return word;
}

void to_base64_kernel(Call& call) {
  make_texts(call, [&call](int64_t row, TextWriter& writer) {
    const std::string_view bytes = text_at(call, 0, row);
    char* out = writer.room(static_cast<int64_t>((bytes.size() + 2) / 3 * 4));
    for (size_t at = 0; at < bytes.size(); at += 3, out += 4) {
      const uint32_t word = three_bytes(bytes, at);
      for (int letter = 0; letter < 4; ++letter) out[letter] = kLetters[(word >> (18 - 6 * letter)) & 63];
    }
    for (size_t missing = (3 - bytes.size() % 3) % 3; missing > 0; --missing)
      out[-static_cast<int>(missing)] = '=';
    return writer.keep_until(out);
  });
}

void resolve_to_base64(Node& node, std::span<const Node* const>) {
  expect_one(node, Kind::Binary, Kind::String);
  node.kernel = to_base64_kernel;
}

void from_base64_kernel(Call& call) {
  make_texts(call, [&call](int64_t row, TextWriter& writer) {
    std::string_view text = text_at(call, 0, row);
    if (text.size() % 4 != 0) leave_to_reference(call);
    size_t missing = 0;
    for (; missing < 2 && missing < text.size() && text[text.size() - 1 - missing] == '='; ++missing) {
    }
    const int64_t size = static_cast<int64_t>(text.size() / 4 * 3 - missing);
    char* out = writer.room(size + 3);
    int wrong = 0;
    for (size_t at = 0; at < text.size(); at += 4) {
      uint32_t word = 0;
      for (size_t index = at; index < at + 4; ++index) {
        const bool is_filling = index >= text.size() - missing;
        const int value = is_filling ? 0 : kLetterValues[static_cast<unsigned char>(text[index])];
        wrong |= value;
        word = (word << 6) | static_cast<uint32_t>(value & 63);
      }
      for (int shift = 16; shift >= 0; shift -= 8) *out++ = static_cast<char>(word >> shift);
    }
    if (wrong < 0) leave_to_reference(call);
    return writer.keep(size);
  });
}

void resolve_from_base64(Node& node, std::span<const Node* const> args) {
  expect_one(node, Kind::String, Kind::Binary);
  node.can_raise |= !are_constant(args);
  node.kernel = from_base64_kernel;
}

// -------------------------------------------------------------------------------------------------- digests

template <void (*digest)(std::string_view, uint8_t*), int bytes>
void digest_kernel(Call& call) {
  make_texts(call, [&call](int64_t row, TextWriter& writer) {
    uint8_t made[bytes];
    digest(text_at(call, 0, row), made);
    char* out = writer.room(2 * bytes);
    for (const uint8_t byte : made) {
      *out++ = kSmallDigits[byte >> 4];
      *out++ = kSmallDigits[byte & 15];
    }
    return writer.keep_until(out);
  });
}

template <void (*digest)(std::string_view, uint8_t*), int bytes>
void resolve_digest(Node& node, std::span<const Node* const>) {
  expect_one(node, Kind::String, Kind::String, Kind::Binary);
  node.kernel = digest_kernel<digest, bytes>;
}

// ----------------------------------------------------------------------------------------------------- hash

template <typename T>
uint64_t hash_one(const T& value) {
  if constexpr (std::is_same_v<T, Str>) {
    return hash_bytes(value.view());
  } else if constexpr (std::is_floating_point_v<T>) {
    return hash_double(static_cast<double>(value));
  } else if constexpr (sizeof(T) == 16) {
    return hash_int128(value);
  } else if constexpr (std::is_signed_v<T>) {
    return hash_word(static_cast<uint64_t>(static_cast<int64_t>(value)));
  } else {
    return hash_word(static_cast<uint64_t>(value));
  }
}

template <typename T>
void add_hashes(Call& call, size_t arg) {
  const Vector& vector = *call.args[arg];
  auto* out = call.out_as<uint64_t>();
  for (int64_t row = 0; row < call.rows; ++row) {
    const uint64_t hash = vector.is_valid(row) ? hash_one(vector.at<T>(row)) : kNullHash;
    out[row] = arg == 0 ? hash : hash_combine(out[row], hash);
  }
}

void hash_kernel(Call& call) {
  for (size_t arg = 0; arg < call.args.size(); ++arg) {
    const Physical physical = physical_of(call.node.arg_types[arg].kind);
    if (physical == Physical::Str) {
      add_hashes<Str>(call, arg);
    } else if (physical == Physical::B8) {
      add_hashes<uint8_t>(call, arg);
    } else {
      visit_number(physical, [&call, arg]<typename T>(T) { add_hashes<T>(call, arg); });
    }
  }
}

void resolve_hash(Node& node, std::span<const Node* const>) {
  if (node.args.empty() || node.type.kind != Kind::UInt64) no_kernel(node);
  node.strict = false;
  node.kernel = hash_kernel;
}

// --------------------------------------------------------------------------------- the same bytes, counted

void encode_kernel(Call& call) {
  make_texts(call, [&call](int64_t row, TextWriter&) { return call.args[0]->at<Str>(row); });
}

void resolve_encode(Node& node, std::span<const Node* const>) {
  expect_one(node, Kind::String, Kind::Binary);
  node.kernel = encode_kernel;
}

void bit_length_kernel(Call& call) {
  map_unary<Str, int64_t>(call, [](const Str& text) { return int64_t{8} * text.size; });
}

void resolve_bit_length(Node& node, std::span<const Node* const>) {
  expect_one(node, Kind::String, Kind::Int64);
  node.kernel = bit_length_kernel;
}

// ------------------------------------------------------------------------------------------------ translate

// What takes the place of characters: a code point, or none.
class Translation {
 public:
  Translation(std::string_view old, std::string_view by) {
    for (size_t code = 0; code < small_.size(); ++code) small_[code] = static_cast<int32_t>(code);
    size_t to = 0;
    for (size_t at = 0; at < old.size();) {
      const uint32_t from = take_code_point(old, at);
      const int32_t code = to < by.size() ? static_cast<int32_t>(take_code_point(by, to)) : kRemoved;
      if (code >= 0x80) bytes_per_byte_ = 4;
      if (!known_.emplace(from, code).second) continue;
      if (from < small_.size()) small_[from] = code;
    }
  }

  Str apply(std::string_view text, TextWriter& writer) const {
    char* out = writer.room(static_cast<int64_t>(text.size()) * bytes_per_byte_);
    for (size_t at = 0; at < text.size();) {
      const int32_t code = of(take_code_point(text, at));
      if (code >= 0) out = append_code_point(out, static_cast<uint32_t>(code));
    }
    return writer.keep_until(out);
  }

 private:
  static constexpr int32_t kRemoved = -1;

  int32_t of(uint32_t code) const {
    if (code < small_.size()) return small_[code];
    const auto found = known_.find(code);
    return found == known_.end() ? static_cast<int32_t>(code) : found->second;
  }

  std::array<int32_t, 128> small_{};
  std::unordered_map<uint32_t, int32_t> known_;
  int64_t bytes_per_byte_ = 1;
};

void translate_kernel(Call& call) {
  const bool is_one = call.args[1]->constant && call.args[2]->constant;
  const Translation one =
      is_one ? Translation(text_at(call, 1, 0), text_at(call, 2, 0)) : Translation({}, {});
  make_texts(call, [&call, &one, is_one](int64_t row, TextWriter& writer) {
    const std::string_view text = text_at(call, 0, row);
    if (is_one) return one.apply(text, writer);
    return Translation(text_at(call, 1, row), text_at(call, 2, row)).apply(text, writer);
  });
}

void resolve_translate(Node& node, std::span<const Node* const>) {
  expect_args(node, 3);
  for (const Type& type : node.arg_types) {
    if (type.kind != Kind::String) no_kernel(node);
  }
  node.kernel = translate_kernel;
}

constexpr Function kFunctions[] = {
    {"ascii", resolve_code_point<0>},
    {"unicode", resolve_code_point<-1>},
    {"chr", resolve_chr},
    {"hex", resolve_digits<4>},
    {"bin", resolve_digits<1>},
    {"unhex", resolve_unhex},
    {"to_base64", resolve_to_base64},
    {"from_base64", resolve_from_base64},
    {"md5", resolve_digest<md5, kMd5Bytes>},
    {"sha1", resolve_digest<sha1, kSha1Bytes>},
    {"sha256", resolve_digest<sha256, kSha256Bytes>},
    {"hash", resolve_hash},
    {"encode", resolve_encode},
    {"bit_length", resolve_bit_length},
    {"translate", resolve_translate},
};

}  // namespace

std::span<const Function> text_code_functions() {
  return kFunctions;
}

}  // namespace bireme
