// The header in front of every page, in Thrift's compact protocol.
#pragma once

#include <cstdint>
#include <optional>

#include "parquet/bytes.hpp"

namespace bireme::parquet {

// Parquet's own numbers (parquet.thrift).
enum class PageType : uint8_t { Data = 0, Index = 1, Dictionary = 2, DataV2 = 3 };
enum class Encoding : uint8_t {
  Plain = 0,
  PlainDictionary = 2,
  Rle = 3,
  BitPacked = 4,
  DeltaBinaryPacked = 5,
  DeltaLengthByteArray = 6,
  DeltaByteArray = 7,
  RleDictionary = 8,
  ByteStreamSplit = 9,
};

struct PageHeader {
  PageType type = PageType::Data;
  int32_t header_bytes = 0;
  int32_t stored_bytes = 0;  // of the page after its header, as it is in the file
  int32_t plain_bytes = 0;   // the same when decompressed
  std::optional<uint32_t> crc;
  int32_t values = 0;  // NULLs count
  Encoding encoding = Encoding::Plain;
  Encoding level_encoding = Encoding::Rle;  // of definition levels; version 1 only
  // Version 2 only.
  int32_t rows = 0;
  int32_t nulls = 0;
  int32_t definition_bytes = 0;
  int32_t repetition_bytes = 0;
  bool is_compressed = true;

  bool is_data() const { return type == PageType::Data || type == PageType::DataV2; }
  bool is_dictionary_coded() const {
    return encoding == Encoding::PlainDictionary || encoding == Encoding::RleDictionary;
  }
};

// The header at the start of `bytes`. Throws Corrupt; the sizes in what it returns are not negative and lie
// within `bytes`.
PageHeader parse_page_header(Bytes bytes);

}  // namespace bireme::parquet
