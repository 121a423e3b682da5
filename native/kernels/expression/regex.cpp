// Regular expressions with a constant pattern. What `regex::parse` does not take, and what makes too large an
// automaton, has no kernel here.
//
// A node's text is the pattern; numbers[0] says how it is meant (kIgnoreCase …), numbers[1] which group is
// extracted.
#include <cstring>
#include <utility>

#include "kernels/expression/allowance.hpp"
#include "kernels/expression/resolve.hpp"
#include "kernels/expression/text_writer.hpp"
#include "kernels/regex/automaton.hpp"
#include "kernels/regex/rewrite.hpp"

namespace bireme {

namespace {

constexpr int64_t kIgnoreCase = 1;
constexpr int64_t kDotTakesAll = 2;
constexpr int64_t kLiteral = 4;
constexpr int64_t kAllMatches = 8;

struct Search {
  std::shared_ptr<const regex::Automaton> automaton;
  regex::Rewrite rewrite;
  int group = 0;
  bool all = false;
};

const Search& search_of(const Call& call) {
  return *static_cast<const Search*>(call.node.state.get());
}

bool is_text(const Node& node, size_t arg) {
  return node.arg_types[arg].kind == Kind::String;
}

regex::Expression expression_of(const Node& node) {
  const int64_t meant = node.numbers[0];
  auto expression = regex::parse(node.text, {.ignore_case = (meant & kIgnoreCase) != 0,
                                             .dot_takes_all = (meant & kDotTakesAll) != 0,
                                             .literal = (meant & kLiteral) != 0});
  if (!expression.has_value()) no_kernel(node);
  return std::move(*expression);
}

std::shared_ptr<const regex::Automaton> automaton_of(const Node& node, const regex::Expression& expression,
                                                     regex::Where where, uint32_t marks) {
  const auto nfa = regex::compile(expression.root, where, marks);
  auto automaton = nfa.has_value() ? regex::Automaton::make(*nfa, marks) : nullptr;
  if (automaton == nullptr) no_kernel(node);
  return automaton;
}

// ---------------------------------------------------------------------------------------- whether it matches

void matches_kernel(Call& call) {
  const regex::Automaton& automaton = *search_of(call).automaton;
  uint8_t* out = call.out_as<uint8_t>();
  for (int64_t row = 0; row < call.rows; ++row)
    out[row] = automaton.matches(call.args[0]->at<Str>(row).view());
}

template <regex::Where where>
void resolve_matches(Node& node, std::span<const Node* const>) {
  if (node.args.size() != 1 || !is_text(node, 0) || node.type.kind != Kind::Bool) no_kernel(node);
  auto search = std::make_shared<Search>();
  search->automaton = automaton_of(node, expression_of(node), where, 0);
  node.state = std::move(search);
  node.kernel = matches_kernel;
}

// ------------------------------------------------------------------------------------------ parts of a match

void extract_kernel(Call& call) {
  const Search& search = search_of(call);
  Str* out = call.out_as<Str>();
  regex::Found found;
  for (int64_t row = 0; row < call.rows; ++row) {
    const std::string_view text = call.args[0]->at<Str>(row).view();
    const bool any = search.automaton->find(text, 0, found);
    const std::string_view part = any ? found.group(text, search.group) : std::string_view();
    out[row] = part.empty() ? Str{"", 0, 0} : str_of(part);
  }
}

void resolve_extract(Node& node, std::span<const Node* const>) {
  if (node.args.size() != 1 || !is_text(node, 0) || node.type.kind != Kind::String) no_kernel(node);
  const regex::Expression expression = expression_of(node);
  const int64_t group = node.numbers[1];
  if (group < 0 || group > expression.groups || group >= regex::kGroupsMax) no_kernel(node);
  auto search = std::make_shared<Search>();
  search->group = static_cast<int>(group);
  search->automaton = automaton_of(node, expression, regex::Where::Anywhere, regex::marks_of(search->group));
  node.state = std::move(search);
  node.kernel = extract_kernel;
}

void replace_kernel(Call& call) {
  const Search& search = search_of(call);
  Allotment allotment(call.arena.allowance());
  regex::Scratch scratch([&allotment](size_t bytes) { allotment.reach(static_cast<int64_t>(bytes)); });
  make_texts(call, [&](int64_t row, TextWriter& writer) {
    const std::string_view text = text_at(call, 0, row);
    const std::string_view made =
        regex::replace(text, *search.automaton, search.rewrite, search.all, scratch);
    if (made.empty()) return kNoText;
    if (made.data() != scratch.view().data()) return str_of(made);  // a part of the text
    char* out = writer.room(static_cast<int64_t>(made.size()));
    return writer.keep_until(append(out, made));
  });
}

// The second argument, a constant, is what takes the place of a match.
void resolve_replace(Node& node, std::span<const Node* const> args) {
  const bool fits = node.args.size() == 2 && is_text(node, 0) && is_text(node, 1) &&
                    node.type.kind == Kind::String && args[1]->node_class == NodeClass::Literal &&
                    !args[1]->is_null;
  if (!fits) no_kernel(node);
  const regex::Expression expression = expression_of(node);
  Str by;
  std::memcpy(&by, args[1]->value, sizeof by);
  auto rewrite = regex::Rewrite::parse(by.view(), expression.groups);
  if (!rewrite.has_value()) no_kernel(node);
  auto search = std::make_shared<Search>();
  search->rewrite = std::move(*rewrite);
  search->all = (node.numbers[0] & kAllMatches) != 0;
  const uint32_t marks = regex::marks_of(0) | search->rewrite.marks();
  search->automaton = automaton_of(node, expression, regex::Where::Anywhere, marks);
  node.state = std::move(search);
  node.kernel = replace_kernel;
}

constexpr Function kFunctions[] = {
    {"regexp_matches", resolve_matches<regex::Where::Anywhere>},
    {"regexp_full_match", resolve_matches<regex::Where::Whole>},
    {"regexp_extract", resolve_extract},
    {"regexp_replace", resolve_replace},
};

}  // namespace

std::span<const Function> regex_functions() {
  return kFunctions;
}

}  // namespace bireme
