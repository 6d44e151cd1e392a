// What can be said about a layer when it is added to a graph.
#pragma once

#include <string>

#include "headrace/devices/base/api.h"
#include "headrace/devices/kernels.h"

namespace HEADRACE_API headrace {

enum class ConvPadding {
  kSame,   // output extent = ceil(input / stride); an odd pixel of padding goes below and to the right
  kEven,   // the same extents, with (kernel - 1) / 2 pixels on every side whatever the stride, as PyTorch's nets
           // pad; for odd kernels
  kValid,  // no padding
};

// Of weights; biases start at 0.
enum class Initializer {
  kGlorotUniform,  // uniform in +-sqrt(6 / (fan_in + fan_out)), Keras's default
  kHeUniform,      // uniform in +-sqrt(6 / fan_in), for deep ReLU nets
  kFanInUniform,   // uniform in +-1 / sqrt(fan_in), PyTorch's default
  kDirac,          // kFanInUniform, but the first filters of a convolution each pass one channel on as it is
  kUnitDeviation,  // uniform, divided by the standard deviation of the values drawn
};

// An empty name becomes "<kind>", "<kind>_1", ... in every options struct below.
struct ConvLayerOptions {
  int kernel = 3;
  int stride = 1;
  ConvPadding padding = ConvPadding::kSame;
  Activation activation = Activation::kNone;  // adds an activation layer, fused where that is possible
  bool bias = true;
  bool trained_weights = true;  // false: they stay as they are, no gradient is computed
  Initializer initializer = Initializer::kGlorotUniform;
  std::string name = {};
};

struct DenseLayerOptions {
  Activation activation = Activation::kNone;
  bool bias = true;
  Initializer initializer = Initializer::kGlorotUniform;
  std::string name = {};
};

// Statistics are those of each replica's own rows, and the running ones are averaged over replicas every step;
// synchronised they are those of all replicas' rows, at the price of a sum over replicas each way.
struct BatchNormLayerOptions {
  float momentum = 0.99F;  // running = momentum * running + (1 - momentum) * batch
  float epsilon = 1e-3F;
  bool scale = true;  // false: gamma fixed at 1
  bool synchronised = false;
  std::string name = {};
};

struct PoolLayerOptions {
  int stride = 0;  // 0: the window
  std::string name = {};
};

struct LayerOptions {
  std::string name = {};
};

}  // namespace headrace
