// Values of any length (strings, bytes), read from a page by position into one run of bytes with offsets.
#pragma once

#include "arrow/buffer.hpp"
#include "arrow/column.hpp"
#include "parquet/page.hpp"
#include "parquet/positions.hpp"

namespace bireme::parquet {

// Grows as values are added to it.
class WordWriter {
 public:
  // For chunks of ByteArray, and of FixedLenByteArray as bytes of `cell_bytes` each (0: not of fixed width).
  explicit WordWriter(int64_t cell_bytes) : cell_bytes_(cell_bytes) {}

  // Appends the values at the positions, which must be less than page.present(), and writes where each ends.
  // `dictionary` is for pages of codes. Throws Corrupt; Unsupported where offsets would leave 32 bits.
  void append(Page& page, const Positions& positions, const Column* dictionary, int32_t* ends);

  // How many values will come in all; a guess of how many bytes that makes saves copies.
  void expect(int64_t words) { words_expected_ = words; }

  int64_t size() const { return size_; }
  const uint8_t* data() const { return bytes_.as<uint8_t>(); }
  // What was written, and an empty writer.
  Buffer take();

 private:
  void reserve(int64_t bytes, int64_t words);
  void put(const uint8_t* from, int64_t length, const uint8_t* readable_end);
  void append_words(Page& page, const Positions& positions, int32_t* ends);
  void append_spans(const Page& page, const Positions& positions, int32_t* ends);
  void append_split(const Page& page, const Positions& positions, int32_t* ends);
  void append_cells(const Page& page, const Positions& positions, int32_t* ends);
  void append_codes(const Page& page, const Positions& positions, const Column& dictionary, int32_t* ends);

  int64_t cell_bytes_;
  Buffer bytes_;
  int64_t size_ = 0;
  int64_t words_ = 0;
  int64_t words_expected_ = 0;
};

}  // namespace bireme::parquet
