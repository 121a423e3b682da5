#include "tests/parquet_encoder.hpp"

#include <algorithm>
#include <map>

namespace bireme::test {

namespace {

using parquet::Codec;
using parquet::Encoding;
using parquet::PageType;
using parquet::Physical;

class Writer {
 public:
  std::vector<uint8_t> bytes;

  void byte(int value) { bytes.push_back(static_cast<uint8_t>(value)); }
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) byte(static_cast<int>(value & 0x7F) | 0x80);
    byte(static_cast<int>(value));
  }
  void zigzag(int64_t value) {
    varint(static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63));
  }
  void fixed(uint64_t value, int count) {
    for (int index = 0; index < count; ++index) byte(static_cast<int>(value >> (8 * index) & 0xFF));
  }
  template <typename Range>
  void append(const Range& range) {
    bytes.insert(bytes.end(), range.begin(), range.end());
  }
  // Values of `width` bits, the lowest first, filled up to whole bytes.
  void packed(const std::vector<uint64_t>& values, int width) {
    const size_t start = bytes.size();
    bytes.resize(start + (values.size() * static_cast<size_t>(width) + 7) / 8);
    size_t bit = 0;
    for (const uint64_t value : values) {
      for (int index = 0; index < width; ++index, ++bit) {
        bytes[start + bit / 8] |= static_cast<uint8_t>((value >> index & 1) << (bit % 8));
      }
    }
  }
};

bool chance(Random& random, int percent) {
  return static_cast<int>(random() % 100) < percent;
}

int bits_of(uint64_t value) {
  int bits = 0;
  for (; value > 0; value >>= 1) ++bits;
  return bits;
}

// Fields of a Thrift struct in the compact protocol: integers only, or bytes that are a value already.
class StructWriter {
 public:
  void integer(int id, int64_t value) {
    field(id, 5);
    out_.zigzag(value);
  }
  void flag(int id, bool value) { field(id, value ? 1 : 2); }
  void nested(int id, const std::vector<uint8_t>& content) {
    field(id, 12);
    out_.append(content);
  }
  std::vector<uint8_t> finish() {
    out_.byte(0);
    return out_.bytes;
  }

 private:
  void field(int id, int type) {
    if (id - last_ <= 15) {
      out_.byte((id - last_) << 4 | type);
    } else {
      out_.byte(type);
      out_.zigzag(id);
    }
    last_ = id;
  }

  Writer out_;
  int last_ = 0;
};

// Runs of codes, cut at random.
std::vector<uint8_t> encode_runs(Random& random, const std::vector<uint64_t>& codes, int width) {
  Writer out;
  for (size_t at = 0; at < codes.size();) {
    size_t same = 1;
    while (at + same < codes.size() && codes[at + same] == codes[at]) ++same;
    if ((same >= 8 && chance(random, 90)) || chance(random, 10)) {
      same = std::min<size_t>(same, 1 + random() % 1000);
      out.varint(same << 1);
      out.fixed(codes[at], (width + 7) / 8);
      at += same;
      continue;
    }
    const size_t groups = 1 + random() % 12;
    std::vector<uint64_t> values(
        codes.begin() + static_cast<std::ptrdiff_t>(at),
        codes.begin() + static_cast<std::ptrdiff_t>(std::min(codes.size(), at + 8 * groups)));
    at += values.size();
    values.resize((values.size() + 7) / 8 * 8);
    out.varint(values.size() / 8 << 1 | 1);
    out.packed(values, width);
  }
  return out.bytes;
}

std::vector<uint8_t> encode_deltas(Random& random, const std::vector<int64_t>& values, bool is_narrow) {
  Writer out;
  const size_t miniblocks = size_t{1} << (random() % 3);
  const size_t size = 32 * (1 + random() % 2);
  out.varint(miniblocks * size);
  out.varint(miniblocks);
  out.varint(values.size());
  out.zigzag(values.empty() ? 0 : values[0]);
  for (size_t at = 1; at < values.size();) {
    std::vector<int64_t> deltas;
    for (; at < values.size() && deltas.size() < miniblocks * size; ++at) {
      const auto delta =
          static_cast<int64_t>(static_cast<uint64_t>(values[at]) - static_cast<uint64_t>(values[at - 1]));
      deltas.push_back(is_narrow ? static_cast<int32_t>(delta) : delta);
    }
    const int64_t least = *std::min_element(deltas.begin(), deltas.end());
    out.zigzag(least);
    std::vector<std::vector<uint64_t>> blocks;
    std::vector<int> widths;
    for (size_t first = 0; first < miniblocks * size; first += size) {
      std::vector<uint64_t> block;
      uint64_t any = 0;
      for (size_t index = first; index < std::min(first + size, deltas.size()); ++index) {
        const uint64_t above = static_cast<uint64_t>(deltas[index]) - static_cast<uint64_t>(least);
        block.push_back(is_narrow ? above & 0xFFFFFFFF : above);
        any |= block.back();
      }
      widths.push_back(bits_of(any));
      if (!block.empty()) {
        block.resize(size);
        blocks.push_back(block);
      }
    }
    for (const int width : widths) out.byte(width);
    for (size_t index = 0; index < blocks.size(); ++index) out.packed(blocks[index], widths[index]);
  }
  return out.bytes;
}

int64_t integer_of(const std::string& value) {
  uint64_t found = 0;
  std::memcpy(&found, value.data(), std::min<size_t>(8, value.size()));
  return value.size() == 4 ? static_cast<int32_t>(found) : static_cast<int64_t>(found);
}

std::vector<uint8_t> encode_plain(Physical physical, const std::vector<std::string>& values) {
  Writer out;
  if (physical == Physical::Boolean) {
    std::vector<uint64_t> bits;
    for (const std::string& value : values) bits.push_back(value[0] & 1);
    out.packed(bits, 1);
    return out.bytes;
  }
  for (const std::string& value : values) {
    if (physical == Physical::ByteArray) out.fixed(value.size(), 4);
    out.append(value);
  }
  return out.bytes;
}

std::vector<uint8_t> encode_lengths(Random& random, const std::vector<std::string>& values) {
  Writer out;
  std::vector<int64_t> lengths;
  for (const std::string& value : values) lengths.push_back(static_cast<int64_t>(value.size()));
  out.append(encode_deltas(random, lengths, true));
  for (const std::string& value : values) out.append(value);
  return out.bytes;
}

std::vector<uint8_t> encode_prefixes(Random& random, const std::vector<std::string>& values) {
  Writer out;
  std::vector<int64_t> prefixes;
  std::vector<std::string> suffixes;
  std::string last;
  for (const std::string& value : values) {
    size_t shared = 0;
    while (shared < std::min(last.size(), value.size()) && last[shared] == value[shared]) ++shared;
    prefixes.push_back(static_cast<int64_t>(shared));
    suffixes.push_back(value.substr(shared));
    last = value;
  }
  out.append(encode_deltas(random, prefixes, true));
  out.append(encode_lengths(random, suffixes));
  return out.bytes;
}

std::vector<uint8_t> encode_split(const std::vector<std::string>& values) {
  Writer out;
  for (size_t byte = 0; !values.empty() && byte < values[0].size(); ++byte) {
    for (const std::string& value : values) out.byte(static_cast<uint8_t>(value[byte]));
  }
  return out.bytes;
}

class ChunkEncoder {
 public:
  ChunkEncoder(Random& random, const DrawOptions& options) : random_(random), options_(options) {}

  Drawn run() {
    draw_type();
    draw_values();
    draw_layout();
    if (has_dictionary_) write_dictionary();
    while (next_row_ < drawn_.values.size()) write_data_page();
    drawn_.bytes = std::move(out_.bytes);
    drawn_.spec.rows = static_cast<int64_t>(drawn_.values.size());
    if (!is_indexed_) drawn_.spec.pages.clear();
    return std::move(drawn_);
  }

 private:
  void draw_type() {
    parquet::ChunkSpec& spec = drawn_.spec;
    spec.physical = static_cast<Physical>(random_() % 8);
    switch (spec.physical) {
      case Physical::Boolean:
        spec.type = simple_type(Kind::Bool);
        break;
      case Physical::Int32:
        spec.type = simple_type(chance(random_, 50) ? Kind::Int32 : Kind::Date32);
        break;
      case Physical::Int64:
        spec.type = chance(random_, 50) ? simple_type(Kind::Int64) : decimal64_type(15, 2);
        break;
      case Physical::Int96:
        spec.type = parse_type("tsu:");
        break;
      case Physical::Float:
        spec.type = simple_type(Kind::Float32);
        break;
      case Physical::Double:
        spec.type = simple_type(Kind::Float64);
        break;
      case Physical::ByteArray:
        spec.type = simple_type(chance(random_, 50) ? Kind::String : Kind::Binary);
        break;
      case Physical::FixedLenByteArray:
        spec.type = chance(random_, 50) ? simple_type(Kind::Binary) : decimal128_type(38, 4);
        spec.type_length = spec.type.kind == Kind::Binary ? 1 + static_cast<int>(random_() % 20)
                                                          : 1 + static_cast<int>(random_() % 16);
        break;
    }
    static constexpr Codec kCodecs[] = {Codec::None, Codec::Snappy, Codec::Lz4Raw, Codec::Lz4};
    spec.codec = kCodecs[random_() % 4];
    spec.is_optional = chance(random_, 60);
  }

  std::string draw_value() {
    const auto width =
        static_cast<size_t>(drawn_.spec.physical == Physical::Int96 ? 12 : width_of_physical());
    if (drawn_.spec.physical == Physical::ByteArray) {
      std::string text = "value " + std::to_string(random_() % distinct_);
      if (chance(random_, 5)) text += std::string(random_() % 90, 'x') + "\xC3\xA9";
      return chance(random_, 5) ? "" : text;
    }
    Writer out;
    out.fixed(random_() % distinct_ * scale_, 8);
    // Of Int96, days that a timestamp has room for.
    out.fixed(drawn_.spec.physical == Physical::Int96 ? 2440588 + random_() % 1000 : 0, 8);
    out.bytes.resize(std::max(width, out.bytes.size()));
    return {out.bytes.begin(), out.bytes.begin() + static_cast<std::ptrdiff_t>(width)};
  }

  size_t width_of_physical() const {
    switch (drawn_.spec.physical) {
      case Physical::Boolean:
        return 1;
      case Physical::Int32:
      case Physical::Float:
        return 4;
      case Physical::FixedLenByteArray:
        return static_cast<size_t>(drawn_.spec.type_length);
      default:
        return 8;
    }
  }

  void draw_values() {
    distinct_ = 1 + random_() % (chance(random_, 50) ? 6 : 1000);
    scale_ = chance(random_, 50) ? 1 : random_();
    const uint64_t drawn = random_() % static_cast<uint64_t>(options_.rows_max + 1);
    const auto rows = static_cast<size_t>(options_.rows.value_or(static_cast<int64_t>(drawn)));
    const int null_percent = chance(random_, 30) ? 0 : static_cast<int>(random_() % 101);
    const int repeat_percent = static_cast<int>(random_() % 100);
    for (size_t row = 0; row < rows; ++row) {
      if (row > 0 && chance(random_, repeat_percent)) {
        drawn_.values.push_back(drawn_.values.back());
      } else if (drawn_.spec.is_optional && chance(random_, null_percent)) {
        drawn_.values.emplace_back();
      } else {
        std::string value = draw_value();
        if (drawn_.spec.physical == Physical::Boolean) value[0] = static_cast<char>(value[0] & 1);
        drawn_.values.emplace_back(std::move(value));
      }
    }
  }

  void draw_layout() {
    is_version_2_ = chance(random_, 50);
    is_indexed_ = chance(random_, 50);
    page_rows_max_ = 1 + random_() % (2 * drawn_.values.size() + 2);
    has_dictionary_ = drawn_.spec.physical != Physical::Boolean && chance(random_, 50);
    dictionary_max_ = chance(random_, 70) ? SIZE_MAX : 1 + random_() % 20;
    for (const Value& value : drawn_.values) {
      if (has_dictionary_ && value.has_value() && codes_.size() < dictionary_max_) {
        if (codes_.emplace(*value, codes_.size()).second) dictionary_.push_back(*value);
      }
    }
  }

  std::vector<uint8_t> compressed(const std::vector<uint8_t>& plain) {
    switch (drawn_.spec.codec) {
      case Codec::Snappy:
        return snappy_compress(random_, plain);
      case Codec::Lz4Raw:
        return lz4_compress(random_, plain);
      case Codec::Lz4:
        return hadoop(plain);
      default:
        return plain;
    }
  }

  std::vector<uint8_t> hadoop(const std::vector<uint8_t>& plain) {
    const std::vector<uint8_t> block = lz4_compress(random_, plain);
    if (plain.empty() || chance(random_, 30)) return block;
    Writer out;
    out.fixed(__builtin_bswap32(static_cast<uint32_t>(plain.size())), 4);
    out.fixed(__builtin_bswap32(static_cast<uint32_t>(block.size())), 4);
    out.append(block);
    return out.bytes;
  }

  int64_t header_value(int64_t value) {
    if (!options_.damage_headers || !chance(random_, 8)) return value;
    const int64_t corners[] = {
        0, -1, 1, INT32_MAX, INT32_MIN, value + 1, value - 1, value * 2, static_cast<int32_t>(random_())};
    return corners[random_() % 9];
  }

  void hurt(std::vector<uint8_t>& page) {
    if (options_.damage_pages && chance(random_, 50)) damage(random_, page);
  }

  void write_dictionary() {
    std::vector<uint8_t> plain = encode_plain(drawn_.spec.physical, dictionary_);
    hurt(plain);
    const std::vector<uint8_t> body = compressed(plain);
    StructWriter described;
    described.integer(1, header_value(static_cast<int64_t>(dictionary_.size())));
    described.integer(2, header_value(chance(random_, 50) ? 0 : 2));
    StructWriter header;
    header.integer(1, header_value(2));
    header.integer(2, header_value(static_cast<int64_t>(plain.size())));
    header.integer(3, header_value(static_cast<int64_t>(body.size())));
    header.nested(7, described.finish());
    out_.append(header.finish());
    out_.append(body);
  }

  // The present values of the page, in an encoding that suits them.
  std::vector<uint8_t> encode(const std::vector<std::string>& values, Encoding& encoding) {
    const Physical physical = drawn_.spec.physical;
    const bool are_codes =
        has_dictionary_ && std::all_of(values.begin(), values.end(),
                                       [&](const std::string& value) { return codes_.count(value) > 0; });
    if (are_codes) {
      encoding = chance(random_, 50) ? Encoding::PlainDictionary : Encoding::RleDictionary;
      Writer out;
      const int width = std::max(bits_of(dictionary_.size()), static_cast<int>(random_() % 33));
      out.byte(width);
      std::vector<uint64_t> codes;
      for (const std::string& value : values) codes.push_back(codes_.at(value));
      out.append(encode_runs(random_, codes, width));
      return out.bytes;
    }
    const int draw = static_cast<int>(random_() % 3);
    if (physical == Physical::Boolean && draw > 0) {
      encoding = Encoding::Rle;
      std::vector<uint64_t> flags;
      for (const std::string& value : values) flags.push_back(static_cast<uint64_t>(value[0]));
      const std::vector<uint8_t> runs = encode_runs(random_, flags, 1);
      Writer out;
      out.fixed(runs.size(), 4);
      out.append(runs);
      return out.bytes;
    }
    if ((physical == Physical::Int32 || physical == Physical::Int64) && draw == 1) {
      encoding = Encoding::DeltaBinaryPacked;
      std::vector<int64_t> integers;
      for (const std::string& value : values) integers.push_back(integer_of(value));
      return encode_deltas(random_, integers, physical == Physical::Int32);
    }
    if (physical == Physical::ByteArray && draw == 1) {
      encoding = Encoding::DeltaLengthByteArray;
      return encode_lengths(random_, values);
    }
    if ((physical == Physical::ByteArray || physical == Physical::FixedLenByteArray) && draw == 2) {
      encoding = Encoding::DeltaByteArray;
      return encode_prefixes(random_, values);
    }
    const bool can_split =
        physical != Physical::ByteArray && physical != Physical::Boolean && physical != Physical::Int96;
    encoding = can_split && draw > 0 ? Encoding::ByteStreamSplit : Encoding::Plain;
    return encoding == Encoding::Plain ? encode_plain(physical, values) : encode_split(values);
  }

  void write_data_page() {
    const size_t rows = std::min(drawn_.values.size() - next_row_, 1 + random_() % page_rows_max_);
    std::vector<std::string> present;
    std::vector<uint64_t> levels;
    for (size_t row = next_row_; row < next_row_ + rows; ++row) {
      levels.push_back(drawn_.values[row].has_value());
      if (drawn_.values[row].has_value()) present.push_back(*drawn_.values[row]);
    }
    Encoding encoding = Encoding::Plain;
    std::vector<uint8_t> values = encode(present, encoding);
    const auto offset = static_cast<int64_t>(out_.bytes.size());
    if (is_version_2_) {
      write_version_2(levels, values, encoding, rows - present.size());
    } else {
      write_version_1(levels, values, encoding);
    }
    drawn_.spec.pages.push_back({offset,
                                 static_cast<int32_t>(static_cast<int64_t>(out_.bytes.size()) - offset),
                                 static_cast<int64_t>(next_row_)});
    next_row_ += rows;
  }

  void write_version_1(const std::vector<uint64_t>& levels, const std::vector<uint8_t>& values,
                       Encoding encoding) {
    Writer page;
    Encoding level_encoding = Encoding::Rle;
    if (drawn_.spec.is_optional && chance(random_, 20)) {
      level_encoding = Encoding::BitPacked;
      std::vector<uint8_t> bits((levels.size() + 7) / 8);
      for (size_t row = 0; row < levels.size(); ++row)
        bits[row / 8] |= static_cast<uint8_t>(levels[row] << (7 - row % 8));
      page.append(bits);
    } else if (drawn_.spec.is_optional) {
      const std::vector<uint8_t> runs = encode_runs(random_, levels, 1);
      page.fixed(runs.size(), 4);
      page.append(runs);
    }
    page.append(values);
    hurt(page.bytes);
    const std::vector<uint8_t> body = compressed(page.bytes);
    StructWriter described;
    described.integer(1, header_value(static_cast<int64_t>(levels.size())));
    described.integer(2, header_value(static_cast<int>(encoding)));
    described.integer(3, header_value(static_cast<int>(level_encoding)));
    described.integer(4, 3);
    write_page(PageType::Data, 5, described.finish(), page.bytes.size(), body);
  }

  void write_version_2(const std::vector<uint64_t>& levels, std::vector<uint8_t> values, Encoding encoding,
                       size_t nulls) {
    std::vector<uint8_t> runs;
    if (drawn_.spec.is_optional) runs = encode_runs(random_, levels, 1);
    hurt(runs);
    hurt(values);
    const bool is_compressed = chance(random_, 70);
    std::vector<uint8_t> body = runs;
    const std::vector<uint8_t> tail = is_compressed ? compressed(values) : values;
    body.insert(body.end(), tail.begin(), tail.end());
    StructWriter described;
    described.integer(1, header_value(static_cast<int64_t>(levels.size())));
    described.integer(2, header_value(static_cast<int64_t>(nulls)));
    described.integer(3, header_value(static_cast<int64_t>(levels.size())));
    described.integer(4, header_value(static_cast<int>(encoding)));
    described.integer(5, header_value(static_cast<int64_t>(runs.size())));
    described.integer(6, header_value(0));
    described.flag(7, is_compressed);
    write_page(PageType::DataV2, 8, described.finish(), runs.size() + values.size(), body);
  }

  void write_page(PageType type, int id, const std::vector<uint8_t>& described, size_t plain_bytes,
                  const std::vector<uint8_t>& body) {
    StructWriter header;
    header.integer(1, header_value(static_cast<int>(type)));
    header.integer(2, header_value(static_cast<int64_t>(plain_bytes)));
    header.integer(3, header_value(static_cast<int64_t>(body.size())));
    header.nested(id, described);
    out_.append(header.finish());
    out_.append(body);
  }

  Random& random_;
  DrawOptions options_;
  Drawn drawn_;
  Writer out_;
  uint64_t distinct_ = 1;
  uint64_t scale_ = 1;
  size_t next_row_ = 0;
  size_t page_rows_max_ = 1;
  bool is_version_2_ = false;
  bool is_indexed_ = false;
  bool has_dictionary_ = false;
  size_t dictionary_max_ = 0;
  std::map<std::string, uint64_t> codes_;
  std::vector<std::string> dictionary_;
};

// The longest earlier piece that repeats at `at`, among some that are tried.
std::pair<size_t, size_t> find_repeat(Random& random, const std::vector<uint8_t>& plain, size_t at,
                                      size_t length_max) {
  size_t best_offset = 0;
  size_t best_length = 0;
  for (int attempt = 0; attempt < 6 && at > 0; ++attempt) {
    const size_t offset = 1 + random() % std::min<size_t>(at, attempt < 3 ? 20 : 60000);
    size_t length = 0;
    while (length < length_max && at + length < plain.size() &&
           plain[at + length] == plain[at + length - offset])
      ++length;
    if (length > best_length) {
      best_length = length;
      best_offset = offset;
    }
  }
  return {best_offset, best_length};
}

void snappy_literal(Writer& out, const std::vector<uint8_t>& plain, size_t from, size_t to) {
  if (from == to) return;
  const size_t length = to - from - 1;
  if (length < 60) {
    out.byte(static_cast<int>(length << 2));
  } else {
    const int bytes = length < 256 ? 1 : length < 65536 ? 2 : 3;
    out.byte((59 + bytes) << 2);
    out.fixed(length, bytes);
  }
  out.bytes.insert(out.bytes.end(), plain.begin() + static_cast<std::ptrdiff_t>(from),
                   plain.begin() + static_cast<std::ptrdiff_t>(to));
}

void lz4_length(Writer& out, size_t length) {
  if (length < 15) return;
  for (length -= 15; length >= 255; length -= 255) out.byte(255);
  out.byte(static_cast<int>(length));
}

void lz4_sequence(Writer& out, const std::vector<uint8_t>& plain, size_t from, size_t to, size_t offset,
                  size_t length) {
  const size_t literals = to - from;
  const size_t match = offset == 0 ? 0 : length - 4;
  out.byte(static_cast<int>(std::min<size_t>(15, literals) << 4 | std::min<size_t>(15, match)));
  lz4_length(out, literals);
  out.bytes.insert(out.bytes.end(), plain.begin() + static_cast<std::ptrdiff_t>(from),
                   plain.begin() + static_cast<std::ptrdiff_t>(to));
  if (offset == 0) return;
  out.fixed(offset, 2);
  lz4_length(out, match);
}

}  // namespace

std::vector<uint8_t> snappy_compress(Random& random, const std::vector<uint8_t>& plain) {
  Writer out;
  out.varint(plain.size());
  size_t literal = 0;
  for (size_t at = 0; at < plain.size();) {
    const auto [offset, length] = find_repeat(random, plain, at, 64);
    if (length < 4) {
      ++at;
      continue;
    }
    snappy_literal(out, plain, literal, at);
    if (length <= 11 && offset < 2048) {
      out.byte(static_cast<int>(1 | (length - 4) << 2 | (offset >> 8) << 5));
      out.byte(static_cast<int>(offset & 0xFF));
    } else {
      const bool is_wide = random() % 8 == 0;
      out.byte(static_cast<int>((is_wide ? 3 : 2) | (length - 1) << 2));
      out.fixed(offset, is_wide ? 4 : 2);
    }
    at += length;
    literal = at;
  }
  snappy_literal(out, plain, literal, plain.size());
  return out.bytes;
}

std::vector<uint8_t> lz4_compress(Random& random, const std::vector<uint8_t>& plain) {
  Writer out;
  size_t literal = 0;
  for (size_t at = 0; at < plain.size();) {
    const auto [offset, length] = find_repeat(random, plain, at, 1000);
    // The last five bytes are always literals.
    if (length < 4 || at + length + 5 > plain.size()) {
      ++at;
      continue;
    }
    lz4_sequence(out, plain, literal, at, offset, length);
    at += length;
    literal = at;
  }
  lz4_sequence(out, plain, literal, plain.size(), 0, 0);
  return out.bytes;
}

void damage(Random& random, std::vector<uint8_t>& bytes) {
  const int edits = 1 + static_cast<int>(random() % 3);
  for (int edit = 0; edit < edits && !bytes.empty(); ++edit) {
    const size_t at = random() % bytes.size();
    const auto place = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    switch (random() % 6) {
      case 0:
        bytes[at] = static_cast<uint8_t>(bytes[at] ^ (1 << (random() % 8)));
        break;
      case 1:
        bytes[at] = static_cast<uint8_t>(random());
        break;
      case 2:
        bytes[at] = random() % 2 == 0 ? 0xFF : 0;
        break;
      case 3:
        bytes.resize(at);
        break;
      case 4:
        bytes.insert(place, static_cast<uint8_t>(random()));
        break;
      default:
        bytes.erase(place, place + static_cast<std::ptrdiff_t>(
                                       std::min<size_t>(bytes.size() - at, 1 + random() % 9)));
    }
  }
}

Drawn draw_chunk(Random& random, const DrawOptions& options) {
  Drawn drawn = ChunkEncoder(random, options).run();
  return drawn;
}

}  // namespace bireme::test
