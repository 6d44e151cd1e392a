// One logical set of variables, with a copy on each replica.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "headrace/devices/base/api.h"
#include "headrace/devices/buffer.h"
#include "headrace/train/model/variable_layout.h"

namespace HEADRACE_API headrace {
class Strategy;
}

namespace headrace {

// All calls wait for the streams they use. One thread at a time.
class MirroredVariables {
 public:
  // Fills the first replica's copy and broadcasts it.
  MirroredVariables(Strategy& strategy, const VariableLayout& layout, std::uint64_t seed);

  TensorView parameters(int replica) const;  // the whole arenas
  TensorView state(int replica) const;
  TensorView view(const Variable& variable, int replica) const;

  // Sets whether to keep a bf16 copy of each arena, in which only the weights of products (VariableSpec) are
  // valid. The copy is made here and updated by write(); other callers who change parameters must update it too.
  void keep_rounded(bool kept);
  // Updates the bf16 copies after the arenas were written in place. Waits.
  void round_again();
  TensorView rounded_parameters(int replica) const;  // undefined if none is kept
  TensorView rounded_state(int replica) const;

  std::vector<float> read(const Variable& variable, int replica) const;
  void write(const Variable& variable, std::span<const float> values);

  std::string sha256() const;
  // Throws DeviceError naming the first variable, in layer order, whose copy on a replica differs from the first
  // replica's, or whose bf16 copy is not what it rounds to; WorkersDiffer if another worker's are not the same.
  void check() const;
  // Throws Error naming the first variable whose copy on replica 0 holds a number that is not finite.
  void check_finite();

 private:
  struct Copy {
    Buffer parameters, state;
    Buffer rounded_parameters = {}, rounded_state = {};
  };

  void broadcast();
  // Returns an undefined view if no copy is kept or no product reads the variable.
  TensorView rounded_view(const Variable& variable, int replica) const;
  void round(int replica, const TensorView& values, const TensorView& rounded) const;
  void check_rounded(const Variable& variable, int replica) const;
  // Returns the first replica's arenas, in place or copied to `copy_`.
  std::vector<std::span<const float>> on_host();
  void name_what_is_not_finite() const;

  Strategy* strategy_;
  const VariableLayout* layout_;
  std::vector<Copy> copies_;
  Buffer copy_;  // pinned; made at the first on_host() that cannot work in place
};

}  // namespace headrace
