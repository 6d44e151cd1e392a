// One replica as Strategy::run() and on() show it to a training loop of your own.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "headrace/devices/base/api.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/device.h"
#include "headrace/devices/kernels.h"
#include "headrace/pipeline/batch.h"

namespace HEADRACE_API headrace {

// Valid during the call that it is given to.
struct ReplicaContext {
  int index = 0;           // within this process, from 0
  int local_replicas = 1;  // of this process
  int world_replicas = 1;  // of all processes that train together
  int first_replica = 0;   // of the world's, how many come before this process's
  Device& device;
  Stream& stream;  // in whose order the device works
  Kernels& kernels;
  const Batch* batch = nullptr;  // the replica's share, which `stream` waits for, where run() was given batches

  // A tensor of the device's memory as it stands once the stream has done what it was given; waits for that. An
  // error of that work is thrown here. ConfigError where it is not of T.
  template <typename T>
  std::vector<T> read(const TensorView& tensor) const {
    require<T>(tensor, static_cast<std::size_t>(tensor.elements()));
    std::vector<T> values(static_cast<std::size_t>(tensor.elements()));
    stream.copy(values.data(), tensor.data, tensor.bytes());
    stream.synchronize();
    return values;
  }

  // Sets all elements, in the stream's order; waits.
  template <typename T>
  void write(const TensorView& tensor, std::span<const std::type_identity_t<T>> values) const {
    require<T>(tensor, values.size());
    stream.copy(tensor.data, values.data(), tensor.bytes());
    stream.synchronize();
  }

 private:
  template <typename T>
  static void require(const TensorView& tensor, std::size_t values) {
    if (tensor.dtype != dtype_of<T>() || values != static_cast<std::size_t>(tensor.elements())) {
      throw ConfigError(std::to_string(values) + " values of " + to_string(dtype_of<T>()) + " for a tensor of " +
                        to_string(tensor.dtype) + " and shape " + tensor.shape.to_string());
    }
  }
};

}  // namespace headrace
