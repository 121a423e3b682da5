#include <algorithm>
#include <charconv>
#include <utility>

#include "kernels/json.hpp"
#include "kernels/json_bytes.hpp"

namespace bireme {

namespace {

using json::is_whole_number;

// "[3]", "[-1]" or "[#-1]", from behind the bracket up to the one that closes it.
bool parse_index(std::string_view text, JsonStep& step) {
  step.kind = JsonStep::Kind::Index;
  bool from_end = false;
  if (!text.empty() && text[0] == '#') {
    if (text.size() < 3 || text[1] != '-') return false;
    from_end = true;
    text.remove_prefix(2);
  } else if (!text.empty() && text[0] == '-') {
    from_end = true;
    text.remove_prefix(1);
  }
  if (!is_whole_number(text)) return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), step.index);
  if (error != std::errc()) return false;
  if (from_end) step.index = -step.index;
  return true;
}

bool parse_steps(std::string_view text, JsonPath& path) {
  while (!text.empty()) {
    JsonStep step;
    if (text[0] == '[') {
      const size_t close = text.find(']');
      if (close == std::string_view::npos || !parse_index(text.substr(1, close - 1), step)) return false;
      text.remove_prefix(close + 1);
    } else if (text[0] == '.' && text.size() > 1) {
      text.remove_prefix(1);
      const bool is_quoted = text[0] == '"';
      if (is_quoted) text.remove_prefix(1);
      const size_t end = is_quoted ? text.find('"') : std::min(text.find_first_of(".["), text.size());
      if (end == std::string_view::npos || end == 0) return false;
      step.key = text.substr(0, end);
      if (!is_quoted && step.key == "*") return false;
      text.remove_prefix(end + (is_quoted ? 1 : 0));
    } else {
      return false;
    }
    path.push_back(std::move(step));
  }
  return true;
}

bool parse_pointer(std::string_view text, JsonPath& path) {
  while (!text.empty()) {
    text.remove_prefix(1);
    const size_t end = std::min(text.find('/'), text.size());
    const std::string_view name = text.substr(0, end);
    JsonStep step;
    step.kind = JsonStep::Kind::Either;
    step.index = -1;
    if (is_whole_number(name)) std::from_chars(name.data(), name.data() + name.size(), step.index);
    for (size_t at = 0; at < name.size(); ++at) {
      if (name[at] == '~' && at + 1 < name.size() && (name[at + 1] == '0' || name[at + 1] == '1')) {
        step.key += name[++at] == '0' ? '~' : '/';
      } else {
        step.key += name[at];
      }
    }
    path.push_back(std::move(step));
    text.remove_prefix(end);
  }
  return true;
}

}  // namespace

bool parse_json_path(std::string_view text, JsonPath& path) {
  path.clear();
  if (text.empty()) return true;
  if (text[0] == '$') return parse_steps(text.substr(1), path);
  if (text[0] == '/') return parse_pointer(text, path);
  JsonStep step;
  step.key = text;
  path.push_back(std::move(step));
  return true;
}

}  // namespace bireme
