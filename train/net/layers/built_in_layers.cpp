// The table of the built-in kinds of layers.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/text.h"
#include "headrace/train/net/layers/layer.h"

namespace headrace {

LayerKind activation_layer(Activation activation);
LayerKind add_layer();
LayerKind attention_layer();
LayerKind average_pool_layer();
LayerKind batch_norm_layer();
LayerKind concat_layer();
LayerKind conv_layer();
LayerKind conv_transpose_layer();
LayerKind dense_layer();
LayerKind depthwise_conv_layer();
LayerKind dropout_layer();
LayerKind embedding_layer();
LayerKind flatten_layer();
LayerKind global_average_pool_layer();
LayerKind layer_norm_layer();
LayerKind max_pool_layer();
LayerKind position_embedding_layer();
LayerKind scale_layer();
LayerKind softmax_layer();

const std::vector<LayerKind>& layer_kinds() {
  static const std::vector<LayerKind> kinds = [] {
    std::vector<LayerKind> all{add_layer(),
                               attention_layer(),
                               average_pool_layer(),
                               batch_norm_layer(),
                               concat_layer(),
                               conv_layer(),
                               conv_transpose_layer(),
                               dense_layer(),
                               depthwise_conv_layer(),
                               dropout_layer(),
                               embedding_layer(),
                               flatten_layer(),
                               global_average_pool_layer(),
                               layer_norm_layer(),
                               max_pool_layer(),
                               position_embedding_layer(),
                               scale_layer(),
                               softmax_layer()};
    for (auto activation = Activation::kRelu; activation < Activation::kSoftmax;
         activation = static_cast<Activation>(static_cast<int>(activation) + 1)) {
      all.push_back(activation_layer(activation));
    }
    std::ranges::sort(all, {}, &LayerKind::name);
    return all;
  }();
  return kinds;
}

const LayerKind* find_layer_kind(const std::string& name) {
  const auto found = std::ranges::find(layer_kinds(), name, &LayerKind::name);
  return found == layer_kinds().end() ? nullptr : &*found;
}

const LayerKind& layer_kind(const std::string& name) {
  if (const LayerKind* found = find_layer_kind(name)) return *found;
  std::vector<std::string> names;
  for (const LayerKind& each : layer_kinds()) names.push_back(each.name);
  throw ConfigError("no layer is of the kind '" + name + "'" + did_you_mean(name, names),
                    fmt::format("there are {}", fmt::join(names, ", ")));
}

}  // namespace headrace
