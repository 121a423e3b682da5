// A map from nodes, by identity, for what is known of them during one traversal.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "nodes/node.hpp"

namespace bireme::nodes {

// Open addressing over entries in the order in which they were added. Plans have some dozens of relations, so
// a map of its own for each node that is remembered (as std::unordered_map has) would be most of the work.
template <class Value>
class NodeMap {
 public:
  NodeMap() : slots_(kSlotsMin, 0) { entries_.reserve(kSlotsMin / 2); }

  // What is known of the node, or nullptr; until the next one is added.
  Value* find(const Node* node) {
    const uint32_t slot = slots_[place_of(node)];
    return slot == 0 ? nullptr : &entries_[slot - 1].second;
  }

  // Adds a node that is not there yet.
  Value& add(const Node* node, Value value) {
    entries_.emplace_back(node, std::move(value));
    if (entries_.size() * 2 > slots_.size()) {
      grow();
    } else {
      slots_[place_of(node)] = static_cast<uint32_t>(entries_.size());
    }
    return entries_.back().second;
  }

 private:
  static constexpr size_t kSlotsMin = 64;

  // Where the node is, or would be.
  size_t place_of(const Node* node) const {
    const size_t mask = slots_.size() - 1;
    size_t at = (reinterpret_cast<uintptr_t>(node) * 0x9E3779B97F4A7C15u >> 32) & mask;
    while (slots_[at] != 0 && entries_[slots_[at] - 1].first != node) at = (at + 1) & mask;
    return at;
  }

  void grow() {
    slots_.assign(slots_.size() * 2, 0);
    for (size_t index = 0; index < entries_.size(); ++index) {
      slots_[place_of(entries_[index].first)] = static_cast<uint32_t>(index + 1);
    }
  }

  std::vector<std::pair<const Node*, Value>> entries_;
  std::vector<uint32_t> slots_;  // number of an entry, plus one
};

}  // namespace bireme::nodes
