#include "parquet/chunk.hpp"

#include <algorithm>
#include <optional>

#include "arrow/errors.hpp"
#include "parquet/bitmap.hpp"
#include "parquet/cells.hpp"
#include "parquet/codes.hpp"
#include "parquet/page.hpp"
#include "parquet/page_table.hpp"
#include "parquet/spread.hpp"
#include "parquet/utf8.hpp"
#include "parquet/words.hpp"

namespace bireme::parquet {

namespace {

// Pages stay decompressed up to about so many bytes, the latest ones.
constexpr int64_t kKeptBytesMax = int64_t{2} << 20;

// The wanted rows of one page.
struct Piece {
  int64_t page = 0;
  int64_t first_row = 0;  // of the page
  int64_t done = 0;       // how many of the selection lie in earlier pages
  Positions rows;         // from the page's first row on
};

void check_spec(const ChunkSpec& spec) {
  if (spec.codec == Codec::Lzo || spec.codec > Codec::Lz4Raw)
    throw Unsupported("Parquet pages compressed with LZO");
  if (spec.rows < 0 || spec.rows > INT32_MAX) throw Unsupported("a row group of more than 2^31 rows");
  if (spec.physical == Physical::FixedLenByteArray && spec.type_length <= 0) {
    corrupt("a column of fixed width has no width");
  }
}

void check_selection(const Selection& selection, int64_t rows) {
  uint32_t descents = 0;
  for (int64_t index = 1; index < selection.count; ++index) {
    descents |= selection.rows[index - 1] >= selection.rows[index];
  }
  if (descents != 0 || (selection.count > 0 && selection.rows[selection.count - 1] >= rows)) {
    throw EngineBug("rows wanted of a column chunk do not ascend or are not its rows");
  }
}

Keep make_keep(std::span<const uint8_t> given, uint8_t* flags) {
  Keep keep{flags, static_cast<int64_t>(given.size())};
  for (size_t code = 0; code < given.size(); ++code) flags[code] = given[code] != 0;
  for (size_t code = 0; code < std::min<size_t>(given.size(), 256); ++code) {
    keep.bits[code / 32] |= uint32_t{flags[code]} << (code % 32);
  }
  return keep;
}

void make_room(Buffer& buffer, int64_t bytes) {
  if (buffer.capacity() < bytes + 64) buffer = Buffer(bytes);
}

}  // namespace

struct ChunkReader::State {
  State(ChunkSpec given, Decompressor* decompressor)
      : spec((check_spec(given), std::move(given))),
        table(spec),
        loader(spec, decompressor),
        pages(table.count()) {
    const bool is_words = is_string(spec.type.kind);
    const bool is_bytes =
        spec.physical == Physical::ByteArray || spec.physical == Physical::FixedLenByteArray;
    if (is_words && !is_bytes) throw Unsupported("numbers read as text");
    if (is_words) {
      words.emplace(cell_bytes_of_words());
    } else {
      cells.emplace(spec);
    }
  }

  int64_t cell_bytes_of_words() const {
    return spec.physical == Physical::FixedLenByteArray ? spec.type_length : 0;
  }
  // Calls work(piece) for each page with wanted rows; what is Corrupt there is told with its place.
  template <typename Work>
  void each_piece(const Selection& selection, Work work);
  Page& load(int64_t page);
  void drop_pages();
  void drop_all_pages();
  DictionaryCells dictionary_cells();
  const Column& dictionary_column();
  void load_dictionary();
  void append_words(Page& page, const Validity::Located& located, int32_t* ends);
  OutputColumn read_cells(const Selection& selection);
  OutputColumn read_words(const Selection& selection);
  bool are_codes();
  void need_codes();

  const ChunkSpec spec;
  PageTable table;
  PageLoader loader;
  std::vector<std::unique_ptr<Page>> pages;  // those that are decompressed
  std::vector<int64_t> kept;                 // which of them can be dropped, the oldest first
  int64_t kept_bytes = 0;
  std::optional<CellReader> cells;
  std::optional<WordWriter> words;
  std::optional<bool> is_dictionary;
  OutputColumn dictionary;  // its memory
  std::unique_ptr<Column> dictionary_view;
  int64_t pages_skipped = 0;
  // Scratch: of one page each.
  Buffer relative_rows;
  Buffer positions;
  Buffer bitmap;
  Buffer dense;
};

template <typename Work>
void ChunkReader::State::each_piece(const Selection& selection, Work work) {
  if (!selection.all()) check_selection(selection, spec.rows);
  int64_t done = 0;
  for (int64_t page = 0; page < table.count(); ++page) {
    const PageTable::Entry& entry = table[page];
    // Of a part of a chunk the first page may begin before its rows, and the last one end behind them.
    const int64_t begin = std::max(int64_t{0}, -entry.first_row);
    const int64_t end = std::max(begin, std::min(entry.rows, spec.rows - entry.first_row));
    Piece piece{page,
                entry.first_row,
                done,
                {nullptr, static_cast<uint32_t>(begin), static_cast<uint32_t>(end - begin)}};
    if (!selection.all()) {
      const uint32_t* from = selection.rows + done;
      const uint32_t* last = selection.rows + selection.count;
      const uint32_t* to = std::lower_bound(from, last, entry.first_row + entry.rows,
                                            [](uint32_t row, int64_t bound) { return row < bound; });
      const auto count = static_cast<uint32_t>(to - from);
      if (count == 0) {
        ++pages_skipped;
        continue;
      }
      const auto first_row = static_cast<uint32_t>(entry.first_row);  // modulo 2^32, as what follows
      piece.rows = {nullptr, from[0] - first_row, count};
      if (to[-1] - from[0] + 1 != count) {
        make_room(relative_rows, int64_t{count} * 4);
        auto* relative = relative_rows.as<uint32_t>();
        for (uint32_t index = 0; index < count; ++index) relative[index] = from[index] - first_row;
        piece.rows.list = relative;
      }
    }
    if (piece.rows.count == 0) continue;
    try {
      work(piece);
    } catch (const Corrupt& error) {
      corrupt_page(entry.offset, error.what());
    }
    done += piece.rows.count;
  }
}

Page& ChunkReader::State::load(int64_t page) {
  auto& place = pages[static_cast<size_t>(page)];
  if (place == nullptr) {
    drop_pages();
    const Bytes body = table.body(page);
    place = std::make_unique<Page>(loader.data_page(table.header(page), body));
    kept.push_back(page);
    kept_bytes += place->nbytes();
  }
  return *place;
}

void ChunkReader::State::drop_all_pages() {
  for (const int64_t page : kept) pages[static_cast<size_t>(page)].reset();
  kept.clear();
  kept_bytes = 0;
}

void ChunkReader::State::drop_pages() {
  size_t dropped = 0;
  while (dropped < kept.size() && kept_bytes > kKeptBytesMax) {
    auto& place = pages[static_cast<size_t>(kept[dropped++])];
    kept_bytes -= place->nbytes();
    place.reset();
  }
  kept.erase(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(dropped));
}

bool ChunkReader::State::are_codes() {
  if (!is_dictionary.has_value()) {
    is_dictionary = table.dictionary_header().has_value();
    for (int64_t page = 0; page < table.count() && *is_dictionary; ++page) {
      is_dictionary = table.header(page).is_dictionary_coded();
    }
  }
  return *is_dictionary;
}

void ChunkReader::State::need_codes() {
  if (!are_codes()) throw EngineBug("codes wanted of a column chunk that is not all codes");
}

void ChunkReader::State::load_dictionary() {
  if (dictionary_view != nullptr) return;
  if (!table.dictionary_header().has_value()) corrupt("codes without a dictionary");
  const PageHeader& header = *table.dictionary_header();
  try {
    Page page = loader.dictionary_page(header, table.dictionary_body());
    const Positions all{nullptr, 0, static_cast<uint32_t>(header.values)};
    if (words.has_value()) {
      WordWriter writer(cell_bytes_of_words());
      dictionary.offsets = Buffer((int64_t{header.values} + 1) * 4);
      auto* offsets = dictionary.offsets.as<int32_t>();
      offsets[0] = 0;
      writer.append(page, all, nullptr, offsets + 1);
      if (spec.type.kind == Kind::String && !are_utf8(writer.data(), 0, offsets + 1, header.values)) {
        corrupt("a word of the dictionary is not UTF-8");
      }
      dictionary.values = writer.take();
    } else {
      dictionary.values = Buffer(int64_t{header.values} * cells->cell_bytes());
      cells->read(page, all, {}, dictionary.values.data());
    }
  } catch (const Corrupt& error) {
    corrupt_page(0, error.what());
  }
  auto view = std::make_unique<Column>();
  view->type = spec.type;
  view->rows = header.values;
  view->values = dictionary.values.data();
  view->offsets = dictionary.offsets.as<int32_t>();
  dictionary_view = std::move(view);
}

const Column& ChunkReader::State::dictionary_column() {
  load_dictionary();
  return *dictionary_view;
}

DictionaryCells ChunkReader::State::dictionary_cells() {
  const Column& column = dictionary_column();
  return {column.values, column.rows};
}

OutputColumn ChunkReader::State::read_cells(const Selection& selection) {
  OutputColumn column;
  column.type = spec.type;
  column.rows = selection.all() ? spec.rows : selection.count;
  const int64_t width = cells->cell_bytes();
  column.values = Buffer(column.rows * width);
  ValidityWriter validity(column.rows);
  each_piece(selection, [&](const Piece& piece) {
    const Page& page = load(piece.page);
    const Validity::Located located = page.validity.locate(piece.rows, positions, bitmap);
    validity.append(located, piece.rows.count);
    auto* out = column.values.as<uint8_t>() + piece.done * width;
    const DictionaryCells values = page.form == Form::Codes ? dictionary_cells() : DictionaryCells{};
    if (located.nulls == 0) return cells->read(page, located.values, values, out);
    make_room(dense, (int64_t{located.values.count} + 1) * width);
    std::memset(dense.as<uint8_t>() + located.values.count * width, 0, static_cast<size_t>(width));
    cells->read(page, located.values, values, dense.data());
    spread_cells(dense.data(), located.bitmap, piece.rows.count, static_cast<int>(width), out);
  });
  validity.finish(column);
  if (spec.type.kind == Kind::Bool) {
    Buffer bits(bitmap_bytes(column.rows));
    pack_bytes(column.values.as<uint8_t>(), column.rows, bits.as<uint8_t>());
    column.values = std::move(bits);
  }
  return column;
}

void ChunkReader::State::append_words(Page& page, const Validity::Located& located, int32_t* ends) {
  const int64_t begin = words->size();
  words->append(page, located.values, page.form == Form::Codes ? &dictionary_column() : nullptr, ends);
  const bool is_known_text = page.form == Form::Codes || spec.type.kind == Kind::Binary;
  if (!is_known_text && !are_utf8(words->data(), begin, ends, located.values.count)) {
    corrupt("a value is not UTF-8");
  }
}

OutputColumn ChunkReader::State::read_words(const Selection& selection) {
  OutputColumn column;
  column.type = spec.type;
  column.rows = selection.all() ? spec.rows : selection.count;
  column.offsets = Buffer((column.rows + 1) * 4);
  auto* offsets = column.offsets.as<int32_t>();
  offsets[0] = 0;
  ValidityWriter validity(column.rows);
  words->take();  // what an error left behind
  words->expect(column.rows);
  each_piece(selection, [&](const Piece& piece) {
    Page& page = load(piece.page);
    const Validity::Located located = page.validity.locate(piece.rows, positions, bitmap);
    validity.append(located, piece.rows.count);
    int32_t* ends = offsets + 1 + piece.done;
    const int32_t start = offsets[piece.done];
    if (located.nulls == 0) return append_words(page, located, ends);
    make_room(dense, int64_t{located.values.count} * 4);
    append_words(page, located, dense.as<int32_t>());
    spread_ends(dense.as<int32_t>(), located.bitmap, piece.rows.count, start, ends);
  });
  validity.finish(column);
  column.values = words->take();
  return column;
}

ChunkReader::ChunkReader(ChunkSpec spec, Decompressor* decompressor)
    : state_(std::make_unique<State>(std::move(spec), decompressor)) {}
ChunkReader::~ChunkReader() = default;
ChunkReader::ChunkReader(ChunkReader&&) noexcept = default;

int64_t ChunkReader::rows() const {
  return state_->spec.rows;
}
const Type& ChunkReader::type() const {
  return state_->spec.type;
}
void ChunkReader::forget_pages() {
  state_->drop_all_pages();
}
void ChunkReader::forget_dictionary() {
  state_->dictionary_view.reset();
  state_->dictionary = OutputColumn{};
}
bool ChunkReader::is_dictionary() {
  return state_->are_codes();
}
int64_t ChunkReader::bytes_decompressed() const {
  return state_->loader.bytes_decompressed();
}
int64_t ChunkReader::pages_skipped() const {
  return state_->pages_skipped;
}

const Column& ChunkReader::dictionary() {
  state_->need_codes();
  return state_->dictionary_column();
}

OutputColumn ChunkReader::read(const Selection& rows) {
  return state_->words.has_value() ? state_->read_words(rows) : state_->read_cells(rows);
}

OutputColumn ChunkReader::read_codes(const Selection& rows) {
  State& state = *state_;
  state.need_codes();
  const int64_t codes_max = state.table.dictionary_header()->values;
  OutputColumn column;
  column.type = simple_type(Kind::Int32);
  column.rows = rows.all() ? state.spec.rows : rows.count;
  column.values = Buffer(column.rows * 4);
  ValidityWriter validity(column.rows);
  state.each_piece(rows, [&](const Piece& piece) {
    const Page& page = state.load(piece.page);
    const Validity::Located located = page.validity.locate(piece.rows, state.positions, state.bitmap);
    validity.append(located, piece.rows.count);
    auto* out = column.values.as<uint32_t>() + piece.done;
    if (located.nulls == 0) return read_page_codes(page, located.values, codes_max, out);
    make_room(state.dense, (int64_t{located.values.count} + 1) * 4);
    auto* codes = state.dense.as<uint32_t>();
    codes[located.values.count] = 0;
    read_page_codes(page, located.values, codes_max, codes);
    spread_cells(codes, located.bitmap, piece.rows.count, 4, out);
  });
  validity.finish(column);
  return column;
}

int64_t ChunkReader::select_codes(const Selection& rows, std::span<const uint8_t> keep, bool keep_null,
                                  uint32_t* out) {
  State& state = *state_;
  state.need_codes();
  const int64_t codes_max = state.table.dictionary_header()->values;
  if (static_cast<int64_t>(keep.size()) != codes_max) throw EngineBug("not one flag per dictionary entry");
  Buffer flags(codes_max);
  const Keep kept_codes = make_keep(keep, flags.as<uint8_t>());
  int64_t kept = 0;
  state.each_piece(rows, [&](const Piece& piece) {
    const Page& page = state.load(piece.page);
    const Validity::Located located = page.validity.locate(piece.rows, state.positions, state.bitmap);
    const auto row_at = [&](uint32_t index) {
      return static_cast<uint32_t>(piece.first_row) + piece.rows[index];
    };
    if (located.nulls == 0) {
      const uint32_t* list = piece.rows.is_range() ? nullptr : rows.rows + piece.done;
      CodeReader reader(page.values, page.code_width);
      kept += reader.select(located.values, row_at(0), list, kept_codes, out + kept);
      return;
    }
    make_room(state.dense, (int64_t{located.values.count} + 1) * 4);
    auto* codes = state.dense.as<uint32_t>();
    codes[located.values.count] = 0;
    read_page_codes(page, located.values, codes_max, codes);
    for (uint32_t index = 0; index < piece.rows.count; ++index) {
      const bool is_valid = bit_at(located.bitmap, index);
      out[kept] = row_at(index);
      kept += is_valid ? kept_codes.flags[*codes] : keep_null;
      codes += is_valid;
    }
  });
  return kept;
}

}  // namespace bireme::parquet
