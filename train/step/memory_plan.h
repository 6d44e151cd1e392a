// Places a step's tensors in one block of memory, so that tensors which are never needed at the same time share
// bytes.
#pragma once

#include <cstddef>
#include <vector>

namespace headrace {

// Storages are numbered from 0 in the order of add(). Times are inclusive.
class MemoryPlan {
 public:
  int add(std::size_t bytes, int birth);
  // Keeps the storage until at least `time`.
  void keep(int storage, int time);
  // Places all storages: largest first, each at the lowest free offset. Call once, after all add() and keep().
  void place();

  std::size_t offset(int storage) const { return storages_.at(static_cast<std::size_t>(storage)).offset; }
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  struct Storage {
    std::size_t bytes = 0;
    int birth = 0, death = 0;
    std::size_t offset = 0;
  };

  std::size_t lowest_free(const Storage& wanted, const std::vector<const Storage*>& placed) const;

  std::vector<Storage> storages_;
  std::size_t bytes_ = 0;
};

}  // namespace headrace
