// Positions as they are, which are remembered.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "headrace/pipeline/plan/index/index_stage.h"

namespace headrace {

// All positions as they are; remembers them.
class EnumerateIndex final : public IndexStage {
 public:
  // `place` is that of its number among those of all such stages.
  EnumerateIndex(std::uint64_t size, std::size_t place) : size_(size), place_(place) {}

  std::uint64_t size() const noexcept override { return size_; }
  Located locate(const Located& at, IndexMemory* memory) const override {
    if (memory != nullptr) static_cast<Number&>(*memory).number = at.record;
    return at;
  }
  std::unique_ptr<IndexMemory> create_memory() const override { return std::make_unique<Number>(place_); }

 private:
  struct Number final : IndexMemory {
    explicit Number(std::size_t at) : place(at) {}
    void write_numbers(std::uint64_t* numbers) const override { numbers[place] = number; }

    std::size_t place;
    std::uint64_t number = 0;
  };

  std::uint64_t size_;
  std::size_t place_;
};

}  // namespace headrace
