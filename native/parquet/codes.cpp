#include "parquet/codes.hpp"

#include <algorithm>
#include <limits>

#include "parquet/bit_packing.hpp"

namespace bireme::parquet {

namespace {

constexpr int kWidthMax = 32;
constexpr int64_t kBlockCodes = 1024;
// Where fewer of a run's codes are wanted than one in so many, they are taken out one by one.
constexpr int64_t kSparse = 4;

// How many of the first `count` positions lie before `end`; at least the first does.
int64_t count_before(const uint32_t* list, int64_t count, int64_t end) {
  if (list[count - 1] < end) return count;
  int64_t reach = 1;
  while (reach < count && list[reach] < end) reach *= 2;
  const auto* found = std::lower_bound(list + reach / 2, list + std::min(reach, count), end,
                                       [](uint32_t position, int64_t bound) { return position < bound; });
  return found - list;
}

int checked_width(int width) {
  if (width > kWidthMax) corrupt("codes have " + std::to_string(width) + " bits");
  return width;
}

}  // namespace

CodeReader::CodeReader(Bytes runs, int width)
    : in_(runs),
      readable_end_(runs.data() + runs.size()),
      width_(checked_width(width)),
      mask_(static_cast<uint32_t>((uint64_t{1} << width) - 1)) {}

void CodeReader::next_run() {
  const uint64_t header = in_.varint();
  run_.begin = run_.end;
  run_.is_packed = (header & 1) != 0;
  int64_t length =
      static_cast<int64_t>(std::min<uint64_t>(header >> 1, std::numeric_limits<uint32_t>::max()));
  if (run_.is_packed) {
    length *= 8;
    if (width_ > 0) {
      // The last run may be cut where its codes end.
      const int64_t bytes = std::min(length / 8 * width_, in_.left());
      run_.packed = in_.take(static_cast<uint64_t>(bytes));
      length = std::min(length, bytes * 8 / width_);
    } else {
      run_.is_packed = false;
      run_.code = 0;
    }
  } else {
    run_.code = 0;
    const Bytes code = in_.take(static_cast<uint64_t>((width_ + 7) / 8));
    if (!code.empty()) std::memcpy(&run_.code, code.data(), code.size());
    if ((run_.code & ~mask_) != 0) corrupt("a run's code has more bits than codes have");
  }
  run_.end += length;
}

const CodeReader::Run& CodeReader::run_at(int64_t position) {
  while (position >= run_.end) next_run();
  return run_;
}

uint32_t CodeReader::code_at(int64_t index) const {
  return static_cast<uint32_t>(packed_at(run_.packed.data(), readable_end_, width_, index));
}

uint32_t CodeReader::unpack(int64_t first, int64_t count, uint32_t* out) const {
  return unpack_bits(run_.packed.data(), readable_end_, width_, first, count, out);
}

uint32_t CodeReader::read_list(const uint32_t* list, int64_t count, uint32_t* out) const {
  uint32_t largest = 0;
  const auto begin = static_cast<uint32_t>(run_.begin);
  const int64_t spread = list[count - 1] - list[0] + 1;
  if (count * kSparse < spread || spread > kBlockCodes) {
    for (int64_t index = 0; index < count; ++index) {
      out[index] = code_at(list[index] - begin);
      largest = std::max(largest, out[index]);
    }
    return largest;
  }
  uint32_t codes[kBlockCodes];
  largest = unpack(list[0] - begin, spread, codes);
  for (int64_t index = 0; index < count; ++index) out[index] = codes[list[index] - list[0]];
  return largest;
}

uint32_t CodeReader::read(const Positions& positions, uint32_t* out) {
  uint32_t largest = 0;
  for (int64_t done = 0; done < positions.count;) {
    const int64_t position = positions[static_cast<uint32_t>(done)];
    const Run& run = run_at(position);
    int64_t count = positions.count - done;
    if (positions.is_range()) {
      count = std::min(count, run.end - position);
    } else {
      count = count_before(positions.list + done, count, run.end);
    }
    if (!run.is_packed) {
      std::fill_n(out + done, count, run.code);
      largest = std::max(largest, run.code);
    } else if (positions.is_range()) {
      largest = std::max(largest, unpack(position - run.begin, count, out + done));
    } else {
      // In pieces whose codes, if they are dense, fit the block.
      count = count_before(positions.list + done, count, position + kBlockCodes);
      largest = std::max(largest, read_list(positions.list + done, count, out + done));
    }
    done += count;
  }
  return largest;
}

int64_t CodeReader::select(const Positions& positions, uint32_t first_row, const uint32_t* rows,
                           const Keep& keep, uint32_t* out) {
  int64_t kept = 0;
  uint32_t codes[kBlockCodes];
  for (uint32_t done = 0; done < positions.count;) {
    const int64_t position = positions[done];
    const Run& run = run_at(position);
    int64_t count = positions.count - done;
    count = positions.is_range() ? std::min(count, run.end - position)
                                 : count_before(positions.list + done, count, run.end);
    if (run.is_packed) count = std::min(count, kBlockCodes);
    const auto length = static_cast<uint32_t>(count);
    const uint32_t largest = run.is_packed ? read(positions.slice(done, length), codes) : run.code;
    if (largest >= keep.count)
      corrupt("the code " + std::to_string(largest) + " stands for no dictionary entry");
    if (run.is_packed) {
      kept += rows == nullptr ? loops().select_range(codes, count, first_row + done, keep, out + kept)
                              : loops().select_list(codes, count, rows + done, keep, out + kept);
    } else if (keep.flags[run.code] != 0) {
      if (rows == nullptr) {
        for (uint32_t index = 0; index < length; ++index) out[kept + index] = first_row + done + index;
      } else {
        std::memmove(out + kept, rows + done, length * sizeof(uint32_t));
      }
      kept += count;
    }
    done += length;
  }
  return kept;
}

}  // namespace bireme::parquet
