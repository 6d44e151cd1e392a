// One logical set of variables, a copy on each replica.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "headrace/devices/buffer.h"
#include "headrace/train/model/variable_layout.h"

namespace headrace {

class Strategy;

// All calls wait for the streams they use. One thread at a time.
class MirroredVariables {
 public:
  // Fills the first replica's copy and broadcasts it.
  MirroredVariables(Strategy& strategy, const VariableLayout& layout, std::uint64_t seed);

  TensorView parameters(int replica) const;  // the whole arenas
  TensorView state(int replica) const;
  TensorView view(const Variable& variable, int replica) const;

  // Whether a bf16 copy of each arena is kept, of which the weights of products are right (VariableSpec): made
  // here, written by write(), and by whoever else changes parameters.
  void keep_rounded(bool kept);
  // After the arenas were written in place: the bf16 copies become what they round to. Waits.
  void round_again();
  TensorView rounded_parameters(int replica) const;  // undefined where none is kept
  TensorView rounded_state(int replica) const;

  std::vector<float> read(const Variable& variable, int replica) const;
  void write(const Variable& variable, std::span<const float> values);

  std::string sha256() const;
  // DeviceError naming the first variable, in layer order, of which a replica's copy differs from the first's, or
  // the bf16 copy from the variable.
  void check() const;
  // Error naming the first variable of which replica 0's copy holds something that is not a finite number.
  void check_finite();

 private:
  struct Copy {
    Buffer parameters, state;
    Buffer rounded_parameters = {}, rounded_state = {};
  };

  void broadcast();
  // Undefined where none is kept, or no product reads the variable.
  TensorView rounded_view(const Variable& variable, int replica) const;
  void round(int replica, const TensorView& values, const TensorView& rounded) const;
  void check_rounded(const Variable& variable, int replica) const;
  // The first replica's arenas, in place or in `copy_`.
  std::vector<std::span<const float>> on_host();
  void name_what_is_not_finite() const;

  Strategy* strategy_;
  const VariableLayout* layout_;
  std::vector<Copy> copies_;
  Buffer copy_;  // pinned, where the first replica has memory of its own and somebody looked
};

}  // namespace headrace
