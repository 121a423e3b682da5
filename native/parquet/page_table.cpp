#include "parquet/page_table.hpp"

#include "arrow/errors.hpp"

namespace bireme::parquet {

void corrupt_page(int64_t offset, const char* what) {
  corrupt("the page at byte " + std::to_string(offset) + " of the column chunk: " + what);
}

PageTable::PageTable(const ChunkSpec& spec) : spec_(spec) {
  if (spec.rows > 0 && spec.bytes.empty()) corrupt("the column chunk has no bytes");
  if (spec.part.has_value()) take_dictionary();
  if (spec.pages.empty() || spec.part.has_value()) {
    walk();
  } else {
    follow_index();
  }
}

PageHeader PageTable::parse(Bytes bytes, int64_t offset) const {
  try {
    return parse_page_header(bytes.subspan(static_cast<size_t>(offset)));
  } catch (const Corrupt& error) {
    corrupt_page(offset, error.what());
  }
}

void PageTable::take_dictionary() {
  if (spec_.part->first_row > 0) throw EngineBug("a part of a column chunk begins after its first row");
  if (spec_.part->dictionary.empty()) return;
  PageHeader header = parse(spec_.part->dictionary, 0);
  if (header.type != PageType::Dictionary) corrupt("the column chunk does not begin with its dictionary");
  dictionary_ = header;
}

void PageTable::follow_index() {
  const auto total = static_cast<int64_t>(spec_.bytes.size());
  const int64_t first_offset = spec_.pages.front().offset;
  for (size_t index = 0; index < spec_.pages.size(); ++index) {
    const PageLocation& page = spec_.pages[index];
    const bool is_last = index + 1 == spec_.pages.size();
    const int64_t end_row = is_last ? spec_.rows : spec_.pages[index + 1].first_row;
    const bool is_inside = page.offset >= 0 && page.nbytes >= 0 && page.offset <= total - page.nbytes;
    if (!is_inside || page.first_row < 0 || page.first_row > end_row || (index == 0 && page.first_row != 0)) {
      corrupt("the offset index of the column chunk is wrong about page " + std::to_string(index));
    }
    entries_.push_back({page.offset, page.nbytes, page.first_row, end_row - page.first_row, std::nullopt});
  }
  if (first_offset > 0) {
    PageHeader header = parse(spec_.bytes.first(static_cast<size_t>(first_offset)), 0);
    if (header.type == PageType::Dictionary) dictionary_ = header;
  }
}

void PageTable::walk() {
  const auto total = static_cast<int64_t>(spec_.bytes.size());
  int64_t offset = 0;
  int64_t rows = spec_.part.has_value() ? spec_.part->first_row : 0;
  while (rows < spec_.rows) {
    if (offset >= total) {
      corrupt("the column chunk ends after " + std::to_string(rows) + " of " + std::to_string(spec_.rows) +
              " rows");
    }
    PageHeader header = parse(spec_.bytes, offset);
    const int64_t nbytes = int64_t{header.header_bytes} + header.stored_bytes;
    if (header.is_data()) {
      entries_.push_back({offset, nbytes, rows, header.values, header});
      rows += header.values;
    } else if (header.type == PageType::Dictionary) {
      if (dictionary_.has_value() || !entries_.empty())
        corrupt_page(offset, "a dictionary that is not the first page");
      dictionary_ = header;
    }
    offset += nbytes;
  }
  if (rows > spec_.rows && !spec_.part.has_value()) {
    corrupt("the pages of the column chunk have " + std::to_string(rows) + " rows where the row group has " +
            std::to_string(spec_.rows));
  }
}

const PageHeader& PageTable::header(int64_t page) {
  Entry& entry = entries_[static_cast<size_t>(page)];
  if (!entry.header.has_value()) {
    entry.header = parse(spec_.bytes.first(static_cast<size_t>(entry.offset + entry.nbytes)), entry.offset);
  }
  const PageHeader& found = *entry.header;
  if (!found.is_data()) corrupt_page(entry.offset, "not a page of values");
  if (found.values != entry.rows || found.rows != entry.rows) {
    corrupt_page(entry.offset, "it does not have as many values as rows");
  }
  return found;
}

Bytes PageTable::body(int64_t page) {
  const PageHeader& found = header(page);
  const int64_t offset = entries_[static_cast<size_t>(page)].offset + found.header_bytes;
  return spec_.bytes.subspan(static_cast<size_t>(offset), static_cast<size_t>(found.stored_bytes));
}

Bytes PageTable::dictionary_body() const {
  const Bytes page = spec_.part.has_value() ? spec_.part->dictionary : spec_.bytes;
  return page.subspan(static_cast<size_t>(dictionary_->header_bytes),
                      static_cast<size_t>(dictionary_->stored_bytes));
}

}  // namespace bireme::parquet
