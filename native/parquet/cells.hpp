// Values of fixed width, read from a page by position into the engine's layout.
#pragma once

#include "arrow/buffer.hpp"
#include "parquet/conversion.hpp"
#include "parquet/page.hpp"
#include "parquet/positions.hpp"

namespace bireme::parquet {

// The dictionary's values in the engine's layout.
struct DictionaryCells {
  const void* cells = nullptr;
  int64_t count = 0;
};

class CellReader {
 public:
  explicit CellReader(const ChunkSpec& spec) : conversion_(spec) {}

  int cell_bytes() const { return conversion_.cell_bytes(); }

  // The values at the positions, which must be less than page.present(). Throws Corrupt.
  void read(const Page& page, const Positions& positions, const DictionaryCells& dictionary, void* cells);

 private:
  void read_stored(const Page& page, const Positions& positions, uint8_t* stored) const;
  void read_codes(const Page& page, const Positions& positions, const DictionaryCells& dictionary,
                  uint8_t* cells) const;

  Conversion conversion_;
  Buffer stored_;
};

// The codes of a page of the form Codes, all less than `codes_max`. Throws Corrupt.
void read_page_codes(const Page& page, const Positions& positions, int64_t codes_max, uint32_t* codes);

}  // namespace bireme::parquet
