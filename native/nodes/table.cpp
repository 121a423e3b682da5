#include "nodes/table.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace bireme::nodes {

namespace {

constexpr size_t kSlotsMin = 1024;
constexpr uint64_t kNanHash = 0x7FF8;

// Whether two values are the same constant: of one class and equal, with 0.0 and -0.0 told apart, and NaN
// equal to itself. 1, where they are; 0, where not; -1 with an error.
int same(PyObject* left, PyObject* right) {
  if (left == right) return 1;
  if (Py_TYPE(left) != Py_TYPE(right)) return 0;
  if (PyFloat_CheckExact(left)) {
    const double a = PyFloat_AsDouble(left);
    const double b = PyFloat_AsDouble(right);
    return (std::isnan(a) && std::isnan(b)) || std::memcmp(&a, &b, sizeof a) == 0;
  }
  if (!PyTuple_Check(left)) return PyObject_RichCompareBool(left, right, Py_EQ);
  const Py_ssize_t size = tuple_size(left);
  if (tuple_size(right) != size) return 0;
  for (Py_ssize_t index = 0; index < size; ++index) {
    const int answer = same(tuple_item(left, index), tuple_item(right, index));
    if (answer != 1) return answer;
  }
  return 1;
}

int same_fields(Node* node, const NodeClass& cls, std::span<PyObject* const> values) {
  if (node->cls != &cls) return 0;
  const std::span<PyObject*> fields = node->fields();
  for (size_t index = 0; index < values.size(); ++index) {
    const int answer = same(fields[index], values[index]);
    if (answer != 1) return answer;
  }
  return 1;
}

}  // namespace

NodeTable& table() {
  static auto* const all = new NodeTable;  // nodes may end after static objects do
  return *all;
}

bool hash_of(PyObject* value, uint64_t* hash) {
  if (PyFloat_CheckExact(value)) {
    const double number = PyFloat_AsDouble(value);
    std::memcpy(hash, &number, sizeof number);
    if (std::isnan(number)) *hash = kNanHash;
    return true;
  }
  if (PyTuple_Check(value)) {
    uint64_t found = 0x5A17;
    const Py_ssize_t size = tuple_size(value);
    for (Py_ssize_t index = 0; index < size; ++index) {
      uint64_t item = 0;
      if (!hash_of(tuple_item(value, index), &item)) return false;
      found = mixed(found, item);
    }
    *hash = found;
    return true;
  }
  const Py_hash_t found = PyObject_Hash(value);
  *hash = static_cast<uint64_t>(found);
  return found != -1 || PyErr_Occurred() == nullptr;
}

Node* NodeTable::find(const NodeClass& cls, std::span<PyObject* const> values, uint64_t hash) {
  if (slots_.empty()) return nullptr;
  const size_t mask = slots_.size() - 1;
  const uint64_t moves = moves_;
  for (size_t at = hash & mask; slots_[at] != 0; at = (at + 1) & mask) {
    const Entry entry = entries_[slots_[at] - 1];
    if (entry.hash != hash || entry.node == nullptr) continue;
    const int answer = same_fields(entry.node, cls, values);
    if (answer < 0) return nullptr;
    // Comparing may have run code that made nodes.
    if (moves_ != moves) return find(cls, values, hash);
    if (answer == 1) return entry.node;
  }
  return nullptr;
}

void NodeTable::add(Node* node, uint64_t hash) {
  if ((entries_.size() + 1) * 2 > slots_.size()) index_entries(std::max(kSlotsMin, slots_.size() * 2));
  Py_INCREF(node->object());
  entries_.push_back({hash, node});
  place(hash, static_cast<uint32_t>(entries_.size()));
  ++in_use_;
}

void NodeTable::place(uint64_t hash, uint32_t entry) {
  const size_t mask = slots_.size() - 1;
  size_t at = hash & mask;
  while (slots_[at] != 0) at = (at + 1) & mask;
  slots_[at] = entry;
}

void NodeTable::index_entries(size_t capacity) {
  ++moves_;
  slots_.assign(capacity, 0);
  for (size_t index = 0; index < entries_.size(); ++index) {
    if (entries_[index].node != nullptr) place(entries_[index].hash, static_cast<uint32_t>(index + 1));
  }
}

void NodeTable::drop_unused() {
  if (is_dropping_) return;
  is_dropping_ = true;
  // A node is younger than those it holds: from the youngest on, one pass drops whole trees.
  for (size_t index = entries_.size(); index-- > 0;) {
    Node* const node = entries_[index].node;
    if (node == nullptr || Py_REFCNT(node->object()) > 1) continue;
    entries_[index].node = nullptr;
    --in_use_;
    Py_DECREF(node->object());
  }
  std::erase_if(entries_, [](const Entry& entry) { return entry.node == nullptr; });
  size_t capacity = kSlotsMin;
  while (capacity < entries_.size() * 4) capacity *= 2;
  index_entries(capacity);
  limit_ = in_use_ + std::max(kNodesKept, in_use_);
  is_dropping_ = false;
}

}  // namespace bireme::nodes
