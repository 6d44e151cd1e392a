// The positions of each window among themselves, in another order in each pass or not.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "headrace/devices/base/permutation.h"
#include "headrace/pipeline/plan/index/index_stage.h"
#include "headrace/pipeline/plan/plan.h"

namespace headrace {

class ShuffleWindowIndex final : public IndexStage {
 public:
  ShuffleWindowIndex(std::uint64_t size, const ShuffleWindowOptions& options, std::uint64_t key)
      : size_(size), window_(options.size), key_(key), each_pass_anew_(options.each_epoch_anew) {}

  std::uint64_t size() const noexcept override { return size_; }
  Located locate(const Located& at, IndexMemory* memory) const override {
    auto& order = static_cast<Order&>(*memory);
    const std::uint64_t window = at.record / window_, first = window * window_;
    const std::uint64_t pass = each_pass_anew_ ? at.pass : 0;
    if (order.window != window || order.pass != pass) {
      order.permutation = Permutation(std::min(window_, size_ - first), mix_seed(mix_seed(key_, pass), window));
      order.pass = pass;
      order.window = window;
    }
    return {.record = first + order.permutation(at.record - first), .pass = at.pass};
  }
  std::uint64_t last_before(std::uint64_t position) const override { return first_before(position) + window_ - 1; }
  std::uint64_t first_before(std::uint64_t position) const override { return position / window_ * window_; }
  std::uint64_t needed_before(std::uint64_t position) const override { return position; }
  std::unique_ptr<IndexMemory> create_memory() const override { return std::make_unique<Order>(); }

 private:
  struct Order final : IndexMemory {
    Permutation permutation;
    std::uint64_t pass = 0, window = ~std::uint64_t{0};  // none yet
  };

  std::uint64_t size_, window_, key_;
  bool each_pass_anew_;
};

}  // namespace headrace
