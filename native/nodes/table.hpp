// The table of all nodes: open addressing over entries in the order in which they were made.
//
// The table holds its nodes. When it has grown by as many as were in use (at least kNodesKept), those that
// nothing else refers to are dropped; until then a node, with what is known of it, is there for the next
// query about the same things.
#pragma once

#include <Python.h>

#include <cstdint>
#include <span>
#include <vector>

#include "nodes/node.hpp"

namespace bireme::nodes {

class NodeTable {
 public:
  static constexpr int64_t kNodesKept = 16'384;
  static constexpr int64_t kBytesPerNode = 256;

  // The node of this class with these fields (borrowed), or nullptr; with an error set where a comparison
  // failed.
  Node* find(const NodeClass& cls, std::span<PyObject* const> values, uint64_t hash);

  // Takes over a node that is not there yet.
  void add(Node* node, uint64_t hash);

  // Drops the nodes that nobody uses if there are too many. Nodes that the caller holds stay.
  void drop_when_grown() {
    if (in_use_ > limit_) drop_unused();
  }

  // Drops the nodes that nobody uses now.
  void drop_unused();

  // Counts a large value of a new node as so many more nodes.
  void weigh(int64_t bytes) { limit_ -= bytes / kBytesPerNode; }

  int64_t size() const { return in_use_; }

 private:
  struct Entry {
    uint64_t hash;
    Node* node;  // nullptr: dropped
  };

  void index_entries(size_t capacity);
  void place(uint64_t hash, uint32_t entry);

  std::vector<Entry> entries_;
  std::vector<uint32_t> slots_;  // number of an entry, plus one
  uint64_t moves_ = 0;           // how often the slots have changed
  int64_t in_use_ = 0;
  int64_t limit_ = kNodesKept;
  bool is_dropping_ = false;
};

NodeTable& table();

// A hash of a value that is equal for values that are the same; -1 is no error. False with an error for what
// has none.
bool hash_of(PyObject* value, uint64_t* hash);

inline uint64_t mixed(uint64_t hash, uint64_t more) {
  hash = (hash ^ more) * 0x9E3779B97F4A7C15u;
  return hash ^ hash >> 32;
}

}  // namespace bireme::nodes
