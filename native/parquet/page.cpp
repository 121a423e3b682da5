#include "parquet/page.hpp"

#include "arrow/errors.hpp"
#include "parquet/crc32.hpp"
#include "parquet/snappy.hpp"

namespace bireme::parquet {

namespace {

void check_sum(const PageHeader& header, Bytes body) {
  if (header.crc.has_value() && crc32(body) != *header.crc) corrupt("its checksum is another");
}

void unsupported(const char* what) {
  throw Unsupported(what);
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
  buffer = Buffer(plain_bytes + kSnappySlackBytes);
  auto* out = buffer.as<uint8_t>();
  if (spec_.codec == Codec::Snappy) {
    snappy_decompress(body, out, plain_bytes);
  } else if (decompressor_ != nullptr) {
    decompressor_->run(spec_.codec, body, {out, static_cast<size_t>(plain_bytes)});
  } else {
    unsupported("pages of this compression are not read here");
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
  switch (encoding) {
    case Encoding::Plain:
      return interpret_plain(page);
    case Encoding::PlainDictionary:
    case Encoding::RleDictionary: {
      page.form = Form::Codes;
      if (page.present() == 0) return;  // and then perhaps not even the width of codes
      Cursor in(page.values);
      page.code_width = in.byte();
      page.values = in.rest();
      return;
    }
    default:
      unsupported("pages of this encoding are not read here");
  }
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
