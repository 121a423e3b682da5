// What is made of texts that come again from row to row, such as formats: it is made once, and remembered.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace bireme {

template <typename Made>
class ByText {
 public:
  // What make(text), an optional, holds; null where it holds nothing. Valid until the next call.
  template <typename Make>
  const Made* get(std::string_view text, Make make) {
    auto found = known_.find(text);
    if (found == known_.end()) {
      if (known_.size() == kTextsMax) known_.clear();
      found = known_.emplace(std::string(text), make(text)).first;
    }
    return found->second.has_value() ? &*found->second : nullptr;
  }

 private:
  static constexpr size_t kTextsMax = 64;

  std::map<std::string, std::optional<Made>, std::less<>> known_;
};

}  // namespace bireme
