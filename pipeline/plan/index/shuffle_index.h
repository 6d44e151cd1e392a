// All positions among themselves, in another order in each pass or not.
#pragma once

#include <cstdint>
#include <memory>

#include "headrace/devices/base/permutation.h"
#include "headrace/pipeline/plan/index/index_stage.h"
#include "headrace/pipeline/plan/plan.h"

namespace headrace {

class ShuffleIndex final : public IndexStage {
 public:
  // `key` keys the order, with the pass.
  ShuffleIndex(std::uint64_t size, const ShuffleOptions& options, std::uint64_t key)
      : size_(size), key_(key), each_pass_anew_(options.each_epoch_anew) {}

  std::uint64_t size() const noexcept override { return size_; }
  Located locate(const Located& at, IndexMemory* memory) const override {
    auto& order = static_cast<Order&>(*memory);
    const std::uint64_t pass = each_pass_anew_ ? at.pass : 0;
    if (order.pass != pass) {
      order.permutation = Permutation(size_, mix_seed(key_, pass));
      order.pass = pass;
    }
    return {.record = order.permutation(at.record), .pass = at.pass};
  }
  std::unique_ptr<IndexMemory> create_memory() const override { return std::make_unique<Order>(); }

 private:
  struct Order final : IndexMemory {
    Permutation permutation;
    std::uint64_t pass = ~std::uint64_t{0};  // none yet
  };

  std::uint64_t size_, key_;
  bool each_pass_anew_;
};

}  // namespace headrace
