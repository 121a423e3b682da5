// One page of values, decompressed and taken apart: which rows have a value, and the values in a form that
// can be read by position.
#pragma once

#include <cstdint>

#include "arrow/buffer.hpp"
#include "parquet/delta.hpp"
#include "parquet/levels.hpp"
#include "parquet/page_header.hpp"

namespace bireme::parquet {

// How the values of a page lie in its bytes.
enum class Form : uint8_t {
  Cells,  // of the same width each
  Bits,   // booleans, a bit each
  Flags,  // booleans, in runs
  Split,  // the first bytes of all values, then all the second ones, ...
  Words,  // each with 4 bytes of length before it
  Spans,  // each between two offsets
  Codes,  // of dictionary entries, in runs
};

struct Page {
  Validity validity;
  Form form = Form::Cells;
  Bytes values;
  int code_width = 0;       // Codes and Flags
  int64_t split_cells = 0;  // Split: how many values there are
  Buffer decompressed;      // what `values` points into, if not the file's bytes
  Buffer decoded;           // the same for Cells that were not such in the file
  Spans spans;              // Spans, and Cells that were
  // Words: the last value that was looked for, and where it starts. Looking goes on from there.
  int64_t word_index = 0;
  int64_t word_offset = 0;

  int64_t present() const { return validity.present(); }
  int64_t nbytes() const {
    return decompressed.capacity() + decoded.capacity() + spans.offsets.capacity() + spans.memory.capacity();
  }
};

// Takes pages of one chunk apart.
class PageLoader {
 public:
  // Both must outlive the loader.
  PageLoader(const ChunkSpec& spec, Decompressor* decompressor) : spec_(spec), decompressor_(decompressor) {}

  // Throws Corrupt, Unsupported.
  Page data_page(const PageHeader& header, Bytes body);
  // The values of the dictionary page, which are in the encoding PLAIN.
  Page dictionary_page(const PageHeader& header, Bytes body);

  int64_t bytes_decompressed() const { return bytes_decompressed_; }

 private:
  // `body`, or what it is when decompressed, which `buffer` holds then.
  Bytes decompress(Bytes body, int64_t plain_bytes, Buffer& buffer);
  void split_version_1(const PageHeader& header, Bytes plain, Page& page) const;
  void interpret(Encoding encoding, Page& page) const;
  void interpret_plain(Page& page) const;
  void interpret_runs(Page& page) const;
  void interpret_deltas(Page& page) const;
  void interpret_words(Spans spans, Page& page) const;
  void interpret_split(Page& page) const;

  const ChunkSpec& spec_;
  Decompressor* decompressor_;
  int64_t bytes_decompressed_ = 0;
};

// Bytes of a value of a physical type of fixed width in the file; 0 for Boolean and ByteArray.
int stored_width(const ChunkSpec& spec);

}  // namespace bireme::parquet
