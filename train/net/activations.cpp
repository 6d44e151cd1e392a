// The words for activations.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "headrace/devices/base/error.h"
#include "headrace/train/layers.h"

namespace headrace {
namespace {

// In the order of Activation.
constexpr std::array<const char*, 10> kActivationWords{"linear", "relu",       "gelu", "silu",     "sigmoid",
                                                       "tanh",   "leaky_relu", "elu",  "softplus", "softmax"};

}  // namespace

std::string to_text(Activation activation) { return kActivationWords.at(static_cast<std::size_t>(activation)); }

Activation activation_named(const std::string& word) {
  const auto found = std::ranges::find(kActivationWords, word);
  if (found != kActivationWords.end()) return static_cast<Activation>(found - kActivationWords.begin());
  throw ConfigError(fmt::format("there is no activation '{}'", word),
                    fmt::format("there are {}", fmt::join(kActivationWords, ", ")));
}

}  // namespace headrace
