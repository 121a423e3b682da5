#include "kernels/regex/automaton.hpp"

#include <algorithm>
#include <compare>
#include <map>
#include <optional>
#include <span>
#include <utility>

namespace bireme::regex {

namespace {

constexpr size_t kTableMax = 1 << 14;

struct TooLarge {};

// A way through the program: where it is, and the row of registers that it has.
struct Way {
  int32_t at;
  int row;

  auto operator<=>(const Way&) const = default;
};

// A way that a step leads to: from which row, and which marks it passed.
struct Step {
  int32_t at;
  int row;
  uint32_t passed;
};

}  // namespace

class Builder {
 public:
  Builder(const Nfa& nfa, uint32_t marks) : code_(nfa.code), made_(std::make_shared<Automaton>()) {
    for (int mark = 0; mark < 32; ++mark) {
      if ((marks >> mark & 1) != 0) made_->marks_.push_back(mark);
    }
    find_classes();
    made_->at_begin_ = start(nfa.start, true);
    made_->elsewhere_ = start(nfa.start, false);
    for (size_t state = 0; state < ways_.size(); ++state) add_steps(state);
  }

  std::shared_ptr<const Automaton> take() { return std::move(made_); }

 private:
  using Form = Instruction::Form;

  // Bytes that no instruction tells apart are one class.
  void find_classes() {
    std::array<bool, 257> begins{};
    for (const Instruction& each : code_) {
      if (each.form != Form::Bytes) continue;
      begins[each.low] = true;
      begins[static_cast<size_t>(each.high) + 1] = true;
    }
    uint8_t number = 0;
    samples_.push_back(0);
    for (size_t byte = 0; byte < 256; ++byte) {
      if (byte > 0 && begins[byte]) {
        ++number;
        samples_.push_back(static_cast<uint8_t>(byte));
      }
      made_->class_of_[byte] = number;
    }
    made_->classes_ = static_cast<uint32_t>(samples_.size());
  }

  Automaton::Start start(int32_t at, bool begin) {
    begin_step();
    follow({at, -1, 0}, begin);
    Automaton::Start made;
    made.state = finish_step(made.moves) * made_->classes_;
    return made;
  }

  void add_steps(size_t state) {
    find_end(state);
    const std::vector<Way> ways = ways_[state];  // steps make states, which moves those that there are
    for (size_t number = 0; number < samples_.size(); ++number) {
      begin_step();
      for (const Way& way : ways) {
        const Instruction& each = code_[static_cast<size_t>(way.at)];
        if (each.form != Form::Bytes || samples_[number] < each.low || samples_[number] > each.high) continue;
        follow({each.next, way.row, 0}, false);
      }
      Automaton::Moves moves;
      const uint32_t next = finish_step(moves);
      const bool event = moves.count > 0 || ways_[next].empty() || made_->states_[next].match_row >= 0;
      made_->table_.push_back(next * made_->classes_ | (event ? Automaton::kEvent : 0));
      made_->table_moves_.push_back(moves);
    }
  }

  // ----------------------------------------------------------------------------------------------- a step

  void begin_step() {
    seen_.assign(code_.size(), 0);
    steps_.clear();
    matched_ = false;
  }

  // Goes on without taking a byte; what comes after a match is not preferred to it, and given up.
  void follow(Step step, bool begin) {
    if (matched_ || seen_[static_cast<size_t>(step.at)]) return;
    seen_[static_cast<size_t>(step.at)] = 1;
    const Instruction& each = code_[static_cast<size_t>(step.at)];
    switch (each.form) {
      case Form::Fork:
        follow({each.next, step.row, step.passed}, begin);
        follow({each.other, step.row, step.passed}, begin);
        return;
      case Form::Mark:
        return follow({each.next, step.row, step.passed | 1u << each.mark}, begin);
      case Form::Begin:
        if (begin) follow({each.next, step.row, step.passed}, begin);
        return;
      case Form::Match:
        matched_ = true;
        [[fallthrough]];
      case Form::Bytes:
      case Form::End:
        steps_.push_back(step);
    }
  }

  // The number of the state that the steps lead to, and what moves between registers on the way.
  uint32_t finish_step(Automaton::Moves& moves) {
    std::vector<std::pair<int, uint32_t>> rows;
    std::vector<Way> ways;
    for (const Step& step : steps_) {
      const std::pair<int, uint32_t> origin(step.row, step.passed);
      const auto found = std::find(rows.begin(), rows.end(), origin);
      ways.push_back({step.at, static_cast<int>(found - rows.begin())});
      if (found == rows.end()) rows.push_back(origin);
    }
    if (rows.size() * made_->marks_.size() > Automaton::kRegistersMax) throw TooLarge{};
    moves.first = static_cast<uint32_t>(made_->moves_.size());
    for (size_t row = 0; row < rows.size(); ++row) add_moves(rows[row].first, rows[row].second, row);
    moves.count = static_cast<uint32_t>(made_->moves_.size()) - moves.first;
    return state_of(std::move(ways));
  }

  void add_moves(int old_row, uint32_t passed, size_t row) {
    const size_t width = made_->marks_.size();
    for (size_t place = 0; place < width; ++place) {
      const auto to = static_cast<uint16_t>(row * width + place);
      if ((passed >> made_->marks_[place] & 1) != 0) {
        made_->moves_.push_back({to, Automaton::kPosition});
      } else if (old_row < 0) {
        made_->moves_.push_back({to, Automaton::kNowhere});
      } else if (static_cast<size_t>(old_row) != row) {
        made_->moves_.push_back({to, static_cast<uint16_t>(static_cast<size_t>(old_row) * width + place)});
      }
    }
  }

  uint32_t state_of(std::vector<Way> ways) {
    const auto [found, is_new] = numbers_.try_emplace(ways, static_cast<uint32_t>(ways_.size()));
    if (!is_new) return found->second;
    if ((ways_.size() + 1) * made_->classes_ > kTableMax) throw TooLarge{};
    Automaton::State state;
    if (ways.empty()) made_->dead_ = found->second * made_->classes_;
    if (!ways.empty() && code_[static_cast<size_t>(ways.back().at)].form == Form::Match) {
      state.match_row = ways.back().row;
      state.is_last = ways.size() == 1;
    }
    made_->states_.push_back(state);
    ways_.push_back(std::move(ways));
    return found->second;
  }

  // ------------------------------------------------------------------------------------- the end of a text

  void find_end(size_t state) {
    begin_step();
    const std::vector<Way>& ways = ways_[state];
    for (const Way& way : ways) {
      const Instruction& each = code_[static_cast<size_t>(way.at)];
      if (each.form == Form::Match) return;
      if (each.form != Form::End) continue;
      const std::optional<Step> last = at_end({each.next, way.row, 0});
      if (!last.has_value()) continue;
      Automaton::State& made = made_->states_[state];
      made.ends = true;
      made.end_moves.first = static_cast<uint32_t>(made_->moves_.size());
      add_moves(last->row, last->passed, 0);
      made.end_moves.count = static_cast<uint32_t>(made_->moves_.size()) - made.end_moves.first;
      return;
    }
  }

  // The match that is preferred of those that need no further byte.
  std::optional<Step> at_end(Step step) {
    if (seen_[static_cast<size_t>(step.at)]) return std::nullopt;
    seen_[static_cast<size_t>(step.at)] = 1;
    const Instruction& each = code_[static_cast<size_t>(step.at)];
    switch (each.form) {
      case Form::Match:
        return step;
      case Form::Fork: {
        const std::optional<Step> preferred = at_end({each.next, step.row, step.passed});
        return preferred.has_value() ? preferred : at_end({each.other, step.row, step.passed});
      }
      case Form::Mark:
        return at_end({each.next, step.row, step.passed | 1u << each.mark});
      case Form::End:
        return at_end({each.next, step.row, step.passed});
      case Form::Begin:
        throw TooLarge{};  // after an end: only an empty text has both, and states do not know
      case Form::Bytes:
        break;
    }
    return std::nullopt;
  }

  const std::vector<Instruction>& code_;
  std::shared_ptr<Automaton> made_;
  std::vector<uint8_t> samples_;        // by class of bytes: one of them
  std::vector<std::vector<Way>> ways_;  // by state
  std::map<std::vector<Way>, uint32_t> numbers_;
  std::vector<uint8_t> seen_;
  std::vector<Step> steps_;
  bool matched_ = false;
};

std::shared_ptr<const Automaton> Automaton::make(const Nfa& nfa, uint32_t marks) {
  try {
    return Builder(nfa, marks).take();
  } catch (const TooLarge&) {
    return nullptr;
  }
}

// All at once: what is moved is what was there before.
void Automaton::apply(Moves moves, size_t position, uint32_t* registers) const {
  uint32_t values[kRegistersMax];
  const std::span<const Move> all(moves_.data() + moves.first, moves.count);
  for (size_t index = 0; index < all.size(); ++index) {
    const uint16_t from = all[index].from;
    values[index] = from == kPosition ? static_cast<uint32_t>(position) : registers[from];
  }
  for (size_t index = 0; index < all.size(); ++index) registers[all[index].to] = values[index];
}

void Automaton::keep(int row, const uint32_t* registers, Found& found) const {
  const uint32_t* values = registers + static_cast<size_t>(row) * marks_.size();
  for (size_t place = 0; place < marks_.size(); ++place)
    found.marks[static_cast<size_t>(marks_[place])] = values[place];
}

bool Automaton::matches(std::string_view text) const {
  uint32_t state = at_begin_.state;
  const State* reached = &states_[state / classes_];
  if (reached->match_row >= 0) return true;
  for (const char byte : text) {
    const uint32_t entry = table_[state + class_of_[static_cast<unsigned char>(byte)]];
    state = entry & ~kEvent;
    if ((entry & kEvent) == 0) continue;
    reached = &states_[state / classes_];
    if (reached->match_row >= 0) return true;
    if (state == dead_) return false;
  }
  return states_[state / classes_].ends;
}

bool Automaton::find(std::string_view text, size_t from, Found& found) const {
  uint32_t registers[kRegistersMax];
  const Start& start = from == 0 ? at_begin_ : elsewhere_;
  uint32_t state = start.state;
  // Nothing is read from registers yet.
  for (uint32_t index = 0; index < start.moves.count; ++index) {
    const Move& move = moves_[start.moves.first + index];
    registers[move.to] = move.from == kPosition ? static_cast<uint32_t>(from) : kUnset;
  }
  bool any = false;
  const auto arrive = [&] {
    const State& reached = states_[state / classes_];
    if (reached.match_row < 0) return state == dead_;
    keep(reached.match_row, registers, found);
    any = true;
    return reached.is_last;
  };
  if (arrive()) return any;
  for (size_t at = from; at < text.size(); ++at) {
    const size_t index = state + class_of_[static_cast<unsigned char>(text[at])];
    const uint32_t entry = table_[index];
    state = entry & ~kEvent;
    if ((entry & kEvent) == 0) continue;
    apply(table_moves_[index], at + 1, registers);
    if (arrive()) return any;
  }
  const State& last = states_[state / classes_];
  if (!last.ends) return any;
  apply(last.end_moves, text.size(), registers);
  keep(0, registers, found);
  return true;
}

}  // namespace bireme::regex
