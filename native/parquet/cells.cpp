#include "parquet/cells.hpp"

#include <algorithm>

#include "arrow/errors.hpp"
#include "parquet/bitmap.hpp"
#include "parquet/codes.hpp"
#include "parquet/loops.hpp"

namespace bireme::parquet {

namespace {

constexpr uint32_t kBlockCodes = 1024;

void check_code(uint32_t code, int64_t codes_max) {
  if (code >= codes_max) corrupt("the code " + std::to_string(code) + " stands for no dictionary entry");
}

template <typename Cell>
void pick(const uint8_t* stored, const Positions& positions, uint8_t* out) {
  for (uint32_t index = 0; index < positions.count; ++index) {
    std::memcpy(out + index * sizeof(Cell), stored + positions.list[index] * sizeof(Cell), sizeof(Cell));
  }
}

struct Int96 {
  uint32_t words[3];
};

void pick_of_width(const uint8_t* stored, size_t width, const Positions& positions, uint8_t* out) {
  switch (width) {
    case 4:
      return pick<uint32_t>(stored, positions, out);
    case 8:
      return pick<uint64_t>(stored, positions, out);
    case 12:
      return pick<Int96>(stored, positions, out);
    case 16:
      return pick<uint128>(stored, positions, out);
    default:
      for (uint32_t index = 0; index < positions.count; ++index) {
        std::memcpy(out + index * width, stored + positions.list[index] * width, width);
      }
  }
}

void read_flags(const Page& page, const Positions& positions, uint8_t* flags) {
  uint32_t codes[kBlockCodes];
  CodeReader reader(page.values, page.code_width);
  for (uint32_t done = 0; done < positions.count; done += kBlockCodes) {
    const uint32_t count = std::min(kBlockCodes, positions.count - done);
    reader.read(positions.slice(done, count), codes);
    for (uint32_t index = 0; index < count; ++index) flags[done + index] = static_cast<uint8_t>(codes[index]);
  }
}

// Row i of eight has its byte k where row k has byte i: the eight words at `from`, `stride` bytes apart,
// become the eight cells at `to`.
void transpose_8x8(const uint8_t* from, int64_t stride, uint8_t* to) {
  uint64_t words[8];
  for (int row = 0; row < 8; ++row) words[row] = load<uint64_t>(from + row * stride);
  const auto exchange = [&](int distance, int bits, uint64_t mask) {
    for (int row = 0; row < 8; ++row) {
      if ((row & distance) != 0) continue;
      const uint64_t moved = ((words[row] >> bits) ^ words[row + distance]) & mask;
      words[row + distance] ^= moved;
      words[row] ^= moved << bits;
    }
  };
  exchange(4, 32, 0x00000000FFFFFFFF);
  exchange(2, 16, 0x0000FFFF0000FFFF);
  exchange(1, 8, 0x00FF00FF00FF00FF);
  for (int row = 0; row < 8; ++row) store(to + 8 * row, words[row]);
}

void join_split(const Page& page, size_t width, const Positions& positions, uint8_t* out) {
  const uint8_t* bytes = page.values.data();
  const int64_t stride = page.split_cells;
  uint32_t done = 0;
  if (positions.is_range() && width == 8) {
    for (; positions.count - done >= 8; done += 8) {
      transpose_8x8(bytes + positions.begin + done, stride, out + 8 * static_cast<int64_t>(done));
    }
  }
  for (; done < positions.count; ++done) {
    const uint8_t* from = bytes + positions[done];
    uint8_t* cell = out + done * width;
    for (size_t byte = 0; byte < width; ++byte) cell[byte] = from[static_cast<int64_t>(byte) * stride];
  }
}

template <typename Cell>
void gather(const uint32_t* codes, uint32_t count, const void* values, uint8_t* out) {
  for (uint32_t index = 0; index < count; ++index) {
    const auto cell = load<Cell>(static_cast<const uint8_t*>(values) + codes[index] * sizeof(Cell));
    store(out + index * sizeof(Cell), cell);
  }
}

void gather_of_width(const uint32_t* codes, uint32_t count, const void* values, int width, uint8_t* out) {
  switch (width) {
    case 1:
      return gather<uint8_t>(codes, count, values, out);
    case 2:
      return gather<uint16_t>(codes, count, values, out);
    case 4:
      return loops().gather4(codes, count, static_cast<const uint32_t*>(values),
                             reinterpret_cast<uint32_t*>(out));
    case 8:
      return loops().gather8(codes, count, static_cast<const uint64_t*>(values),
                             reinterpret_cast<uint64_t*>(out));
    default:
      return gather<uint128>(codes, count, values, out);
  }
}

}  // namespace

void read_page_codes(const Page& page, const Positions& positions, int64_t codes_max, uint32_t* codes) {
  CodeReader reader(page.values, page.code_width);
  if (positions.count > 0) check_code(reader.read(positions, codes), codes_max);
}

void CellReader::read(const Page& page, const Positions& positions, const DictionaryCells& dictionary,
                      void* cells) {
  auto* out = static_cast<uint8_t*>(cells);
  const auto width = static_cast<int64_t>(conversion_.stored_bytes());
  if (positions.count == 0) return;
  if (page.form == Form::Codes) {
    read_codes(page, positions, dictionary, out);
  } else if (page.form == Form::Cells && positions.is_range()) {
    conversion_.run(page.values.data() + positions.begin * width, positions.count, cells);
  } else if (conversion_.is_copy()) {
    read_stored(page, positions, out);
  } else {
    const int64_t bytes = positions.count * width;
    if (stored_.capacity() < bytes + 64) stored_ = Buffer(bytes);
    read_stored(page, positions, stored_.as<uint8_t>());
    conversion_.run(stored_.as<uint8_t>(), positions.count, cells);
  }
}

void CellReader::read_stored(const Page& page, const Positions& positions, uint8_t* stored) const {
  switch (page.form) {
    case Form::Cells:
      return pick_of_width(page.values.data(), static_cast<size_t>(conversion_.stored_bytes()), positions,
                           stored);
    case Form::Bits:
      for (uint32_t index = 0; index < positions.count; ++index) {
        stored[index] = bit_at(page.values.data(), positions[index]);
      }
      return;
    case Form::Flags:
      return read_flags(page, positions, stored);
    case Form::Split:
      return join_split(page, static_cast<size_t>(conversion_.stored_bytes()), positions, stored);
    default:
      throw EngineBug("a page of values of fixed width in a form for others");
  }
}

// By blocks, so that codes stay in the nearest cache.
void CellReader::read_codes(const Page& page, const Positions& positions, const DictionaryCells& dictionary,
                            uint8_t* cells) const {
  uint32_t codes[kBlockCodes];
  CodeReader reader(page.values, page.code_width);
  const auto width = static_cast<size_t>(cell_bytes());
  for (uint32_t done = 0; done < positions.count; done += kBlockCodes) {
    const uint32_t count = std::min(kBlockCodes, positions.count - done);
    check_code(reader.read(positions.slice(done, count), codes), dictionary.count);
    gather_of_width(codes, count, dictionary.cells, static_cast<int>(width), cells + done * width);
  }
}

}  // namespace bireme::parquet
