// A scanned column of one task, wherever its rows come from: a chunk of a file, or memory that holds them
// decoded.
//
// Rule: both answer alike. What is decoded already is looked at where it lies for as long as all its rows are
// wanted, and gathered once some have been dropped.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "arrow/column.hpp"
#include "arrow/output.hpp"
#include "parquet/chunk.hpp"

namespace bireme::scan {

class ScannedColumn {
 public:
  virtual ~ScannedColumn() = default;

  virtual const Type& type() const = 0;
  // Whether all its values are codes of a dictionary, and the entries of that (no NULLs; valid while this
  // lives).
  virtual bool is_dictionary() = 0;
  virtual const Column& dictionary() = 0;
  // As those of parquet::ChunkReader.
  virtual OutputColumn read(const parquet::Selection& rows) = 0;
  virtual OutputColumn read_codes(const parquet::Selection& rows) = 0;
  virtual int64_t select_codes(const parquet::Selection& rows, std::span<const uint8_t> keep, bool keep_null,
                               uint32_t* out) = 0;
  // All rows, where they are decoded already; else null. Not to be asked where only some of them are there.
  virtual const Column* whole() const = 0;

  // As those of parquet::ChunkReader.
  virtual void forget_pages() = 0;
  virtual void forget_dictionary() = 0;

  virtual int64_t bytes_decompressed() const = 0;
  virtual int64_t pages_skipped() const = 0;
};

// Throws Unsupported, parquet::Corrupt.
std::unique_ptr<ScannedColumn> scanned_chunk(parquet::ChunkSpec spec, parquet::Decompressor* decompressor);

// `column`, which must outlive it, has the rows from `first` on; others are not asked for.
std::unique_ptr<ScannedColumn> scanned_memory(const Column& column, int64_t first = 0);

}  // namespace bireme::scan
