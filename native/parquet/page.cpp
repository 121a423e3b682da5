#include "parquet/page.hpp"

#include "arrow/errors.hpp"
#include "parquet/crc32.hpp"
#include "parquet/lz4.hpp"
#include "parquet/snappy.hpp"
#include "parquet/wild_copy.hpp"

namespace bireme::parquet {

namespace {

void check_sum(const PageHeader& header, Bytes body) {
  if (header.crc.has_value() && crc32(body) != *header.crc) corrupt("its checksum is another");
}

// What no compressed data can become: before memory is taken for a size that was made up.
void check_ratio(Codec codec, Bytes body, int64_t plain_bytes) {
  constexpr int64_t kSnappyRatioMax = 64;
  constexpr int64_t kLz4RatioMax = 256;
  const auto stored = static_cast<int64_t>(body.size());
  const bool is_lz4 = codec == Codec::Lz4 || codec == Codec::Lz4Raw;
  if ((codec == Codec::Snappy && plain_bytes > stored * kSnappyRatioMax) ||
      (is_lz4 && plain_bytes > stored * kLz4RatioMax)) {
    corrupt("it is too short for what it is to become");
  }
}

}  // namespace

int stored_width(const ChunkSpec& spec) {
  switch (spec.physical) {
    case Physical::Int32:
    case Physical::Float:
      return 4;
    case Physical::Int64:
    case Physical::Double:
      return 8;
    case Physical::Int96:
      return 12;
    case Physical::FixedLenByteArray:
      return spec.type_length;
    default:
      return 0;
  }
}

Bytes PageLoader::decompress(Bytes body, int64_t plain_bytes, Buffer& buffer) {
  if (spec_.codec == Codec::None) {
    if (static_cast<int64_t>(body.size()) != plain_bytes) corrupt("its two sizes differ without compression");
    return body;
  }
  if (plain_bytes == 0) return {};
  check_ratio(spec_.codec, body, plain_bytes);
  if (spec_.codec == Codec::Snappy) {
    const Bytes stored = snappy_stored(body, plain_bytes);
    if (!stored.empty()) return stored;
  }
  buffer = Buffer(plain_bytes + kWildCopyBytes);
  auto* out = buffer.as<uint8_t>();
  if (spec_.codec == Codec::Snappy) {
    snappy_decompress(body, out, plain_bytes);
  } else if (spec_.codec == Codec::Lz4Raw) {
    lz4_decompress(body, out, plain_bytes);
  } else if (spec_.codec == Codec::Lz4) {
    lz4_hadoop_decompress(body, out, plain_bytes);
  } else if (decompressor_ != nullptr) {
    decompressor_->run(spec_.codec, body, {out, static_cast<size_t>(plain_bytes)});
  } else {
    throw Unsupported("Parquet pages of this compression need a decompressor");
  }
  bytes_decompressed_ += plain_bytes;
  return {out, static_cast<size_t>(plain_bytes)};
}

Page PageLoader::dictionary_page(const PageHeader& header, Bytes body) {
  if (header.encoding != Encoding::Plain && header.encoding != Encoding::PlainDictionary) {
    corrupt("a dictionary in an encoding that dictionaries do not have");
  }
  check_sum(header, body);
  Page page;
  page.validity = Validity(header.values);
  page.values = decompress(body, header.plain_bytes, page.decompressed);
  interpret_plain(page);
  return page;
}

Page PageLoader::data_page(const PageHeader& header, Bytes body) {
  check_sum(header, body);
  Page page;
  if (header.type == PageType::Data) {
    split_version_1(header, decompress(body, header.plain_bytes, page.decompressed), page);
  } else {
    const int64_t levels = int64_t{header.repetition_bytes} + header.definition_bytes;
    const int64_t plain_bytes = header.plain_bytes - levels;
    if (levels > static_cast<int64_t>(body.size()) || plain_bytes < 0)
      corrupt("its levels are longer than itself");
    const Bytes definition = body.subspan(static_cast<size_t>(header.repetition_bytes),
                                          static_cast<size_t>(header.definition_bytes));
    page.validity =
        spec_.is_optional ? Validity::from_runs(definition, header.values) : Validity(header.values);
    if (header.values - page.present() != header.nulls)
      corrupt("its header is wrong about how many values are NULL");
    const Bytes values = body.subspan(static_cast<size_t>(levels));
    page.values = header.is_compressed ? decompress(values, plain_bytes, page.decompressed) : values;
  }
  interpret(header.encoding, page);
  return page;
}

void PageLoader::split_version_1(const PageHeader& header, Bytes plain, Page& page) const {
  Cursor in(plain);
  if (!spec_.is_optional) {
    page.validity = Validity(header.values);
  } else if (header.level_encoding == Encoding::BitPacked) {
    page.validity =
        Validity::from_legacy_bits(in.take((static_cast<uint64_t>(header.values) + 7) / 8), header.values);
  } else if (header.level_encoding == Encoding::Rle) {
    page.validity = Validity::from_runs(in.take(in.fixed<uint32_t>()), header.values);
  } else {
    corrupt("its definition levels are in an encoding that levels do not have");
  }
  page.values = in.rest();
}

void PageLoader::interpret(Encoding encoding, Page& page) const {
  const bool is_words = spec_.physical == Physical::ByteArray;
  const bool is_integer = spec_.physical == Physical::Int32 || spec_.physical == Physical::Int64;
  const bool is_cells = stored_width(spec_) > 0;
  Cursor in(page.values);
  if (encoding == Encoding::Plain) {
    interpret_plain(page);
  } else if (encoding == Encoding::PlainDictionary || encoding == Encoding::RleDictionary) {
    page.form = Form::Codes;
    // Without a value there may not even be the width of codes.
    if (page.present() > 0) page.code_width = in.byte();
    page.values = in.rest();
  } else if (encoding == Encoding::Rle && spec_.physical == Physical::Boolean) {
    page.form = Form::Flags;
    page.code_width = 1;
    page.values = page.present() > 0 ? in.take(in.fixed<uint32_t>()) : Bytes{};
  } else if (encoding == Encoding::DeltaBinaryPacked && is_integer) {
    interpret_deltas(page);
  } else if (encoding == Encoding::DeltaLengthByteArray && is_words) {
    interpret_words(page.present() > 0 ? read_delta_lengths(in, page.present()) : Spans{}, page);
  } else if (encoding == Encoding::DeltaByteArray &&
             (is_words || spec_.physical == Physical::FixedLenByteArray)) {
    interpret_words(page.present() > 0 ? read_delta_bytes(in, page.present()) : Spans{}, page);
  } else if (encoding == Encoding::ByteStreamSplit && is_cells && spec_.physical != Physical::Int96) {
    interpret_split(page);
  } else {
    corrupt("it is in encoding " + std::to_string(static_cast<int>(encoding)) +
            ", in which its type cannot be");
  }
}

void PageLoader::interpret_deltas(Page& page) const {
  page.form = Form::Cells;
  if (page.present() == 0) return;
  const int64_t bytes = page.present() * stored_width(spec_);
  page.decoded = Buffer(bytes);
  Cursor in(page.values);
  if (spec_.physical == Physical::Int32) {
    read_deltas(in, page.present(), page.decoded.as<int32_t>());
  } else {
    read_deltas(in, page.present(), page.decoded.as<int64_t>());
  }
  page.values = {page.decoded.as<uint8_t>(), static_cast<size_t>(bytes)};
}

void PageLoader::interpret_words(Spans spans, Page& page) const {
  page.spans = std::move(spans);
  page.values = page.spans.bytes;
  page.form = Form::Spans;
  if (spec_.physical == Physical::ByteArray) return;
  const auto* offsets = page.spans.offsets.as<int32_t>();
  for (int64_t index = 0; index < page.present(); ++index) {
    if (offsets[index + 1] - offsets[index] != spec_.type_length)
      corrupt("a value is not as long as its type says");
  }
  page.form = Form::Cells;
}

void PageLoader::interpret_split(Page& page) const {
  const int64_t width = stored_width(spec_);
  const auto bytes = static_cast<int64_t>(page.values.size());
  page.form = Form::Split;
  page.split_cells = bytes / width;
  if (bytes % width != 0 || page.split_cells < page.present()) corrupt("it is shorter than its values");
}

void PageLoader::interpret_plain(Page& page) const {
  const auto bytes = static_cast<int64_t>(page.values.size());
  if (spec_.physical == Physical::ByteArray) {
    page.form = Form::Words;
    if (bytes < 4 * page.present()) corrupt("it is shorter than its values");
  } else if (spec_.physical == Physical::Boolean) {
    page.form = Form::Bits;
    if (bytes < (page.present() + 7) / 8) corrupt("it is shorter than its values");
  } else {
    page.form = Form::Cells;
    if (bytes < stored_width(spec_) * page.present()) corrupt("it is shorter than its values");
  }
}

}  // namespace bireme::parquet
