#include "kernels/regex/nfa.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace bireme::regex {

namespace {

constexpr size_t kInstructionsMax = 2000;

struct TooLong {};

// Whether a match can begin only where the text does.
bool begins_with_text(const Syntax& syntax) {
  switch (syntax.form) {
    case Syntax::Form::Begin:
      return true;
    case Syntax::Form::Group:
      return begins_with_text(syntax.parts.front());
    case Syntax::Form::Sequence:
      return !syntax.parts.empty() && begins_with_text(syntax.parts.front());
    case Syntax::Form::Choice:
      return std::all_of(syntax.parts.begin(), syntax.parts.end(), begins_with_text);
    default:
      return false;
  }
}

// Builds from the end: every part is made with what comes after it.
class Compiler {
 public:
  explicit Compiler(uint32_t marks) : marks_(marks) {}

  Nfa compile(const Syntax& root, Where where) {
    int32_t at = add({.form = Instruction::Form::Match});
    if (where == Where::Whole) at = add({.form = Instruction::Form::End, .next = at});
    at = mark(1, at);
    at = mark(0, part(root, at));
    if (where == Where::Whole) {
      at = add({.form = Instruction::Form::Begin, .next = at});
    } else if (!begins_with_text(root)) {
      // What begins earlier is preferred: one byte further only as the second way.
      const int32_t search = add({.form = Instruction::Form::Fork, .next = at});
      const int32_t further = add({.form = Instruction::Form::Bytes, .low = 0, .high = 0xff, .next = search});
      code_[static_cast<size_t>(search)].other = further;
      at = search;
    }
    return {std::move(code_), at};
  }

 private:
  int32_t add(Instruction instruction) {
    if (code_.size() == kInstructionsMax) throw TooLong{};
    code_.push_back(instruction);
    return static_cast<int32_t>(code_.size()) - 1;
  }

  int32_t mark(int number, int32_t next) {
    if ((marks_ >> number & 1) == 0) return next;
    return add({.form = Instruction::Form::Mark, .next = next, .mark = number});
  }

  int32_t fork(int32_t preferred, int32_t other, bool greedy) {
    if (!greedy) std::swap(preferred, other);
    return add({.form = Instruction::Form::Fork, .next = preferred, .other = other});
  }

  int32_t part(const Syntax& syntax, int32_t next) {
    switch (syntax.form) {
      case Syntax::Form::Empty:
        return next;
      case Syntax::Form::Class:
        return char_class(syntax.characters, next);
      case Syntax::Form::Begin:
        return add({.form = Instruction::Form::Begin, .next = next});
      case Syntax::Form::End:
        return add({.form = Instruction::Form::End, .next = next});
      case Syntax::Form::Group:
        return group(syntax, next);
      case Syntax::Form::Sequence:
        for (auto each = syntax.parts.rbegin(); each != syntax.parts.rend(); ++each) next = part(*each, next);
        return next;
      case Syntax::Form::Choice:
        return choice(syntax, next);
      case Syntax::Form::Repeat:
        return repeat(syntax, next);
    }
    return next;
  }

  int32_t group(const Syntax& syntax, int32_t next) {
    if (syntax.group >= kGroupsMax) return part(syntax.parts.front(), next);
    const int32_t end = mark(2 * syntax.group + 1, next);
    return mark(2 * syntax.group, part(syntax.parts.front(), end));
  }

  int32_t choice(const Syntax& syntax, int32_t next) {
    int32_t all = part(syntax.parts.back(), next);
    for (size_t index = syntax.parts.size() - 1; index-- > 0;) {
      all = fork(part(syntax.parts[index], next), all, true);
    }
    return all;
  }

  int32_t repeat(const Syntax& syntax, int32_t next) {
    const Syntax& body = syntax.parts.front();
    int32_t at = next;
    if (syntax.most == kAny) {
      const int32_t loop = add({.form = Instruction::Form::Fork});
      const int32_t again = part(body, loop);
      Instruction& made = code_[static_cast<size_t>(loop)];
      made.next = syntax.greedy ? again : next;
      made.other = syntax.greedy ? next : again;
      at = loop;
    } else {
      for (int more = syntax.least; more < syntax.most; ++more)
        at = fork(part(body, at), next, syntax.greedy);
    }
    for (int times = 0; times < syntax.least; ++times) at = part(body, at);
    return at;
  }

  // ---------------------------------------------------------------------------------------------- classes

  int32_t char_class(const std::vector<CodePoints>& ranges, int32_t next) {
    int32_t all = -1;
    for (const CodePoints& range : ranges) add_range(range.first, range.last, next, all);
    return all;
  }

  // Adds the characters of a range as further ways of `all`: cut so that each part has one length in bytes,
  // and so that each byte of a part takes a range of its own, whatever the others are.
  void add_range(uint32_t first, uint32_t last, int32_t next, int32_t& all) {
    for (const uint32_t end : {0x7fu, 0x7ffu, 0xffffu}) {
      if (first <= end && last > end) {
        add_range(first, end, next, all);
        return add_range(end + 1, last, next, all);
      }
    }
    const int bytes = last <= 0x7f ? 1 : last <= 0x7ff ? 2 : last <= 0xffff ? 3 : 4;
    for (int low_bytes = 1; low_bytes < bytes; ++low_bytes) {
      const uint32_t low = (1u << (6 * low_bytes)) - 1;
      if ((first & ~low) == (last & ~low)) continue;
      if ((first & low) != 0) {
        add_range(first, first | low, next, all);
        return add_range((first | low) + 1, last, next, all);
      }
      if ((last & low) != low) {
        add_range(first, (last & ~low) - 1, next, all);
        return add_range(last & ~low, last, next, all);
      }
    }
    const int32_t way = byte_ranges(first, last, bytes, next);
    all = all < 0 ? way : fork(way, all, true);
  }

  int32_t byte_ranges(uint32_t first, uint32_t last, int bytes, int32_t next) {
    static constexpr uint8_t kLead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (int left = bytes - 1; left > 0; --left) {
      next =
          take(static_cast<uint8_t>(0x80 | (first & 0x3f)), static_cast<uint8_t>(0x80 | (last & 0x3f)), next);
      first >>= 6;
      last >>= 6;
    }
    return take(static_cast<uint8_t>(kLead[bytes] | first), static_cast<uint8_t>(kLead[bytes] | last), next);
  }

  // Equal instructions are one, so that the ends of characters are shared.
  int32_t take(uint8_t low, uint8_t high, int32_t next) {
    const auto [found, is_new] = takes_.try_emplace({low, high, next}, -1);
    if (is_new)
      found->second = add({.form = Instruction::Form::Bytes, .low = low, .high = high, .next = next});
    return found->second;
  }

  uint32_t marks_;
  std::vector<Instruction> code_;
  std::map<std::tuple<uint8_t, uint8_t, int32_t>, int32_t> takes_;
};

}  // namespace

std::optional<Nfa> compile(const Syntax& root, Where where, uint32_t marks) {
  try {
    return Compiler(marks).compile(root, where);
  } catch (const TooLong&) {
    return std::nullopt;
  }
}

}  // namespace bireme::regex
