#include "headrace/train/step/memory_plan.h"

#include <algorithm>

namespace headrace {
namespace {

constexpr std::size_t kAlignment = 64;

}  // namespace

int MemoryPlan::add(std::size_t bytes, int birth) {
  storages_.push_back(
      {.bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment, .birth = birth, .death = birth});
  return static_cast<int>(storages_.size()) - 1;
}

void MemoryPlan::keep(int storage, int time) {
  Storage& kept = storages_.at(static_cast<std::size_t>(storage));
  kept.death = std::max(kept.death, time);
}

void MemoryPlan::place() {
  std::vector<Storage*> order;
  for (Storage& storage : storages_) order.push_back(&storage);
  std::ranges::stable_sort(order, std::ranges::greater{}, [](const Storage* s) { return s->bytes; });

  std::vector<const Storage*> placed;  // by offset
  for (Storage* storage : order) {
    storage->offset = lowest_free(*storage, placed);
    bytes_ = std::max(bytes_, storage->offset + storage->bytes);
    placed.insert(
        std::ranges::upper_bound(placed, storage->offset, {}, [](const Storage* s) { return s->offset; }),
        storage);
  }
}

std::size_t MemoryPlan::lowest_free(const Storage& wanted, const std::vector<const Storage*>& placed) const {
  std::size_t offset = 0;
  for (const Storage* other : placed) {
    if (other->death < wanted.birth || wanted.death < other->birth) continue;
    if (other->offset >= offset + wanted.bytes) break;
    offset = std::max(offset, other->offset + other->bytes);
  }
  return offset;
}

}  // namespace headrace
