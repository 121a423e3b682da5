// One flat column chunk of a Parquet row group: from the bytes in the file to the values of the rows that are
// wanted.
//
// Rule: nothing in the bytes is believed. Every length, count and code is checked before it is used, and what
// does not hold is `Corrupt` with the place in the chunk. Only what is asked for is decompressed and decoded:
// a page without a wanted row costs its header. Which rows are wanted is the business of scan/; files and
// footers, that of storage/ in Python.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "arrow/column.hpp"
#include "arrow/output.hpp"

namespace bireme::parquet {

// Parquet's own numbers (parquet.thrift).
enum class Physical : uint8_t {
  Boolean = 0,
  Int32 = 1,
  Int64 = 2,
  Int96 = 3,
  Float = 4,
  Double = 5,
  ByteArray = 6,
  FixedLenByteArray = 7,
};
enum class Codec : uint8_t {
  None = 0,
  Snappy = 1,
  Gzip = 2,
  Lzo = 3,
  Brotli = 4,
  Lz4 = 5,
  Zstd = 6,
  Lz4Raw = 7
};

// The bytes are not what the format or the footer says.
class Corrupt : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Decompresses one page into exactly `out`; throws Corrupt. For codecs that we have no kernel for; called
// from compute threads without the GIL.
class Decompressor {
 public:
  virtual ~Decompressor() = default;
  virtual void run(Codec codec, std::span<const uint8_t> in, std::span<uint8_t> out) = 0;
};

// A page as the file's offset index has it; offsets count from the first byte of `ChunkSpec::bytes`.
struct PageLocation {
  int64_t offset;
  int32_t nbytes;
  int64_t first_row;
};

struct ChunkSpec {
  Physical physical = Physical::Int64;
  int32_t type_length = 0;  // bytes of a FixedLenByteArray
  Type type;  // what comes out, in the engine's layout (decimals of up to 18 digits as Decimal64, ...)
  // A whole number that values are multiplied with or divided by on their way out (milliseconds to
  // microseconds, say).
  int64_t multiplier = 1;
  int64_t divisor = 1;
  Codec codec = Codec::None;
  bool is_optional = false;  // max definition level 1; else 0. Deeper ones are not flat.
  int64_t rows = 0;
  std::span<const uint8_t> bytes;   // the dictionary page, if any, and the data pages; outlives the reader
  std::vector<PageLocation> pages;  // empty where the file has no offset index
  // Where only some pages of the chunk were read, of which the first begins at or before row 0: what they
  // are, beside their bytes. `rows` counts from row 0 on; the last page may have more.
  struct Part {
    int64_t first_row = 0;                // of the first page: 0 or less
    std::span<const uint8_t> dictionary;  // the dictionary page, which `bytes` does not have; may be empty
  };
  std::optional<Part> part;
};

// Ascending positions in the row group; all of them where `rows` is null.
struct Selection {
  const uint32_t* rows = nullptr;
  int64_t count = 0;
  bool all() const { return rows == nullptr; }
};

// What a chunk can be read as. Throws Unsupported from the constructor for encodings and types that pyarrow
// is to read.
class ChunkReader {
 public:
  ChunkReader(ChunkSpec spec, Decompressor* decompressor);
  ~ChunkReader();
  ChunkReader(ChunkReader&&) noexcept;

  int64_t rows() const;
  const Type& type() const;

  // Whether every value is a code of the chunk's dictionary. Reads page headers, no values.
  bool is_dictionary();
  // The dictionary's values (decoded once, no NULLs), valid while the reader lives.
  const Column& dictionary();

  // The values of the rows, in order. A chunk can be read any number of times; pages that the last call left
  // decompressed are used again.
  OutputColumn read(const Selection& rows);
  // For chunks that are dictionaries: int32 codes instead of values.
  OutputColumn read_codes(const Selection& rows);
  // For chunks that are dictionaries: of `rows`, those whose code has keep[code] != 0; for NULL rows
  // `keep_null`. `out` has room for rows.count; may be the memory of rows.rows. Returns how many.
  int64_t select_codes(const Selection& rows, std::span<const uint8_t> keep, bool keep_null, uint32_t* out);

  // Let go of what no further call will ask for: decompressed pages, and the dictionary's values.
  void forget_pages();
  void forget_dictionary();

  // Bytes that were decompressed and pages that were skipped so far, for events.
  int64_t bytes_decompressed() const;
  int64_t pages_skipped() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace bireme::parquet
