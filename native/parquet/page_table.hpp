// Where the pages of a chunk are, and which rows they hold.
//
// Rule: with an offset index a page's header is not looked at before the page is asked for; without one
// headers are walked from the first on, once. An index is believed no more than anything else. Of a part of a
// chunk the headers that were read are walked.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "parquet/page_header.hpp"

namespace bireme::parquet {

class PageTable {
 public:
  // Looks at the first header, and without an index at all of them. `spec` must outlive the table.
  explicit PageTable(const ChunkSpec& spec);

  struct Entry {
    int64_t offset = 0;  // of the page's header
    int64_t nbytes = 0;  // up to where the page must end
    int64_t first_row = 0;
    int64_t rows = 0;
    std::optional<PageHeader> header;
  };

  int64_t count() const { return static_cast<int64_t>(entries_.size()); }
  const Entry& operator[](int64_t page) const { return entries_[static_cast<size_t>(page)]; }
  // The header of a data page, which has as many values as the page has rows.
  const PageHeader& header(int64_t page);
  // A page as it is in the file, without its header.
  Bytes body(int64_t page);

  const std::optional<PageHeader>& dictionary_header() const { return dictionary_; }
  Bytes dictionary_body() const;

 private:
  PageHeader parse(Bytes bytes, int64_t offset) const;
  void take_dictionary();
  void follow_index();
  void walk();

  const ChunkSpec& spec_;
  std::optional<PageHeader> dictionary_;
  std::vector<Entry> entries_;
};

// What went wrong in a page, with the place in the chunk.
[[noreturn]] void corrupt_page(int64_t offset, const char* what);

}  // namespace bireme::parquet
