#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/devices/base/bf16.h"
#include "headrace/devices/base/error.h"
#include "headrace/train/checkpoints.h"
#include "headrace/train/model.h"
#include "headrace/train/model/model_state.h"
#include "headrace/train/records/tensor_file.h"

namespace headrace {
namespace {

// The order in which PyTorch has the features of a layer's last axis: ours at i is its at [i]. Empty: the same
// order; std::nullopt: unknown.
using FeatureOrder = std::optional<std::vector<std::int64_t>>;

// A variable and what PyTorch calls it.
struct Wanted {
  std::string name, torch_name;
  Shape shape;
  bool last = false;        // of a layer that gives a result of the model
  FeatureOrder order = {};  // of its last axis
};

// Layers whose results have their own order of features, whatever their inputs', and those that keep it.
const std::set<std::string, std::less<>> kFresh{
    "attention",           "average_pool", "conv",     "conv_transpose",    "dense", "depthwise_conv", "embedding",
    "global_average_pool", "input",        "max_pool", "position_embedding"};
const std::set<std::string, std::less<>> kSame{"add",        "batch_norm", "dropout",  "elu",   "gelu",
                                               "layer_norm", "leaky_relu", "relu",     "scale", "sigmoid",
                                               "silu",       "softmax",    "softplus", "tanh"};

// "weight", as PyTorch names the variable of such a layer; empty if it has none. What its namesake of a custom
// layer means is not known.
std::string torch_part(const std::string& kind, const std::string& variable) {
  if (!kFresh.contains(kind) && !kSame.contains(kind)) return "";
  if (variable == "gamma" || variable == "weights") return "weight";
  if (variable == "beta" || variable == "bias") return "bias";
  return kind == "batch_norm" ? variable : "";
}

// PyTorch flattens (channels, height, width), we (height, width, channels).
FeatureOrder flattened(const Shape& image) {
  std::vector<std::int64_t> order;
  if (image.rank() != 3 || image[2] == 1 || image[0] * image[1] == 1) return order;
  const std::int64_t channels = image[2], pixels = image[0] * image[1];
  for (std::int64_t i = 0; i < channels * pixels; ++i) order.push_back(i % channels * pixels + i / channels);
  return order;
}

// Returns the order of what is concatenated.
FeatureOrder order_of_inputs(const Graph& graph, const std::vector<int>& inputs,
                             const std::vector<FeatureOrder>& orders) {
  std::vector<std::int64_t> all;
  bool turned = false;
  for (const int input : inputs) {
    const FeatureOrder& order = orders[static_cast<std::size_t>(input)];
    if (!order) return std::nullopt;
    turned = turned || !order->empty();
    const auto before = static_cast<std::int64_t>(all.size());
    for (std::int64_t i = 0; i < graph.layer(input).shape().back(); ++i) {
      all.push_back(before + (order->empty() ? i : (*order)[static_cast<std::size_t>(i)]));
    }
  }
  return turned ? all : std::vector<std::int64_t>{};
}

// Returns the orders of all layers' results. Only flattening an image changes one.
std::vector<FeatureOrder> feature_orders(const Graph& graph) {
  std::vector<FeatureOrder> orders;
  for (int id = 0; id < graph.size(); ++id) {
    const std::string kind = graph.layer(id).kind();
    const std::vector<int>& inputs = graph.inputs(id);
    const auto of = [&](int input) -> const FeatureOrder& { return orders[static_cast<std::size_t>(input)]; };
    FeatureOrder order(std::in_place);
    if (kind == "flatten") {
      const Shape& shape = graph.layer(inputs.front()).shape();
      order = shape.rank() == 1 || !of(inputs.front()) ? of(inputs.front()) : flattened(shape);
    } else if (kind == "concat") {
      order = order_of_inputs(graph, inputs, orders);
    } else if (!kFresh.contains(kind)) {
      for (const int input : inputs) {
        // A custom layer keeps an order that is PyTorch's, unless it makes features of an image or the reverse.
        const bool kept = kSame.contains(kind) ? of(input) == of(inputs.front())
                                               : of(input) == order && graph.layer(input).shape().rank() ==
                                                                           graph.layer(id).shape().rank();
        if (!kept) order.reset();
      }
      if (order && !inputs.empty()) order = of(inputs.front());
    }
    orders.push_back(std::move(order));
  }
  return orders;
}

// Returns the order of the features on which the layer's variables act, in all calls of the layer.
FeatureOrder order_of_variables(const Graph& graph, int owner, const std::vector<FeatureOrder>& orders) {
  FeatureOrder order;
  for (int id = owner; id < graph.size(); ++id) {
    if (graph.owner(id) != owner || graph.inputs(id).empty()) continue;
    const FeatureOrder& here = orders[static_cast<std::size_t>(graph.inputs(id).front())];
    if (!here || (order && order != here)) return std::nullopt;
    order = here;
  }
  return order;
}

// Returns whether the layer gives a result, or one that only activations and such follow.
bool is_last(const Graph& graph, int id) {
  if (std::ranges::find(graph.outputs(), id) != graph.outputs().end()) return true;
  const std::vector<int>& next = graph.consumers(id);
  return !next.empty() && std::ranges::all_of(next, [&](int consumer) {
    return graph.layer(consumer).variables().empty() && is_last(graph, consumer);
  });
}

std::vector<Wanted> wanted_by(const Model& model) {
  const Graph& graph = model.graph();
  const std::vector<FeatureOrder> orders = feature_orders(graph);
  std::vector<Wanted> all;
  for (int id = 0; id < graph.size(); ++id) {
    if (graph.owner(id) != id) continue;
    const std::string kind = graph.layer(id).kind();
    const FeatureOrder order = order_of_variables(graph, id, orders);
    for (const VariableSpec& spec : graph.layer(id).variables()) {
      const std::string part = torch_part(kind, spec.name);
      all.push_back({.name = graph.name(id) + "/" + spec.name,
                     .torch_name = part.empty() ? "" : graph.name(id) + "." + part,
                     .shape = spec.shape,
                     .last = is_last(graph, id),
                     // A bias is of a layer's results.
                     .order = spec.name == "bias" ? FeatureOrder(std::in_place) : order});
    }
  }
  return all;
}

// Returns PyTorch's shape of a variable: of filters (out, in, height, width).
Shape torch_shape(const Wanted& wanted) {
  const Shape& shape = wanted.shape;
  return shape.rank() == 4 ? Shape{shape[0], shape[3], shape[1], shape[2]} : shape;
}

float half_value(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const float sign = (bits & 0x8000) != 0 ? -1.0F : 1.0F;
  if (exponent == 31) return fraction == 0 ? sign * HUGE_VALF : std::nanf("");
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
  return sign * std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
}

std::vector<float> read_floats(const TensorFile& file, const StoredTensor& tensor) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.bytes));
  file.read(tensor, bytes);
  std::vector<float> values(static_cast<std::size_t>(tensor.shape.elements()));
  if (tensor.dtype == DType::kF32) {
    if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, bytes.data() + 2 * i, sizeof bits);
    values[i] = tensor.dtype == DType::kF16 ? half_value(bits) : widened(BFloat16{bits});
  }
  return values;
}

// Turns `outer` times (channels, pixels) to (pixels, channels).
std::vector<float> channels_last(const std::vector<float>& from, std::int64_t channels, std::int64_t pixels) {
  std::vector<float> to(from.size());
  const std::int64_t block = channels * pixels, outer = static_cast<std::int64_t>(from.size()) / block;
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::int64_t c = 0; c < channels; ++c) {
      for (std::int64_t p = 0; p < pixels; ++p) {
        to[static_cast<std::size_t>(o * block + p * channels + c)] =
            from[static_cast<std::size_t>(o * block + c * pixels + p)];
      }
    }
  }
  return to;
}

// A variable and the tensor that it comes from.
struct Match {
  const Wanted* to = nullptr;
  const StoredTensor* from = nullptr;
  bool torch = false;
};

std::vector<float> values_of(const TensorFile& file, const Match& match) {
  std::vector<float> values = read_floats(file, *match.from);
  const Shape& shape = match.to->shape;
  if (!match.torch || values.empty()) return values;
  if (shape.rank() == 4) return channels_last(values, shape[3], shape[1] * shape[2]);
  if (!match.to->order || match.to->order->empty()) return values;
  const std::vector<std::int64_t>& order = *match.to->order;
  std::vector<float> turned(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t feature = i % order.size();
    turned[i] = values[i - feature + static_cast<std::size_t>(order[feature])];
  }
  return turned;
}

// Throws DataError if a tensor of PyTorch's is for features of which its order is unknown. Where differing orders
// are added, both sides would have to be turned.
void require_orders(const std::filesystem::path& file, const Graph& graph, const std::vector<Match>& matches) {
  const std::vector<FeatureOrder> orders = feature_orders(graph);
  const auto is_known = [&](int id) { return orders[static_cast<std::size_t>(id)].has_value(); };
  int cause = -1;
  for (int id = graph.size() - 1; id >= 0; --id) {
    if (!is_known(id) && std::ranges::all_of(graph.inputs(id), is_known)) cause = id;
  }
  if (cause < 0) return;
  const bool adds = graph.layer(cause).kind() == "add";
  for (const Match& match : matches) {
    if (!match.torch || (match.to->order && !adds)) continue;
    throw DataError(
        ErrorCode::kInvalidArgument,
        fmt::format(
            "tensor '{}' is PyTorch's, and in which order that has the features of '{}' is not known: layer "
            "'{}' ({}) {}",
            match.from->name, match.to->name, graph.name(cause), graph.layer(cause).kind(),
            adds ? "adds the pixels of a flattened image to features that are in another order"
                 : "may change the order of flattened pixels"),
        {.source = file.string()},
        fmt::format(
            "rename it to '{}' in a file whose tensors are all in this net's order: (height, width, channels)",
            match.to->name));
  }
}

bool is_number(DType dtype) { return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16; }

// A file's tensors by the names under which they are looked for.
class NamedTensors {
 public:
  NamedTensors(const TensorFile& file, const PretrainedOptions& options) {
    for (const StoredTensor& tensor : file.tensors()) {
      const std::string name = options.rename ? options.rename(tensor.name) : tensor.name;
      if (name.empty()) continue;
      const auto [at, added] = tensors_.emplace(name, &tensor);
      if (added) continue;
      throw DataError(
          ErrorCode::kInvalidArgument,
          fmt::format("tensors '{}' and '{}' are both renamed to '{}'", at->second->name, tensor.name, name),
          {.source = file.path().string()}, "give each a name of its own, or leave one out");
    }
  }

  // Returns null if there is none.
  const StoredTensor* find(const std::string& name) const {
    const auto at = tensors_.find(name);
    return at == tensors_.end() ? nullptr : at->second;
  }
  const std::map<std::string, const StoredTensor*>& all() const noexcept { return tensors_; }

 private:
  std::map<std::string, const StoredTensor*> tensors_;
};

std::optional<Match> match_for(const NamedTensors& tensors, const Wanted& wanted, std::string& why) {
  const StoredTensor* own = tensors.find(wanted.name);
  const StoredTensor* torch = wanted.torch_name.empty() ? nullptr : tensors.find(wanted.torch_name);
  const StoredTensor* from = own != nullptr ? own : torch;
  if (from == nullptr) {
    why = fmt::format("has no tensor '{}'{}", wanted.torch_name.empty() ? wanted.name : wanted.torch_name,
                      wanted.torch_name.empty() ? "" : fmt::format(" or '{}'", wanted.name));
    return std::nullopt;
  }
  const Shape needed = own != nullptr ? wanted.shape : torch_shape(wanted);
  if (from->shape == needed && is_number(from->dtype)) return Match{&wanted, from, own == nullptr};
  why = fmt::format("tensor '{}' is {} of shape {}, the model needs numbers of shape {}", from->name,
                    to_string(from->dtype), from->shape.to_string(), needed.to_string());
  return std::nullopt;
}

// Returns whether a tensor is what no model needs: counters of norms, and of our records the optimizer's memory.
bool is_aside(const StoredTensor& tensor) {
  return tensor.name.ends_with("num_batches_tracked") || tensor.name.find(':') != std::string::npos;
}

// What a file has for a model.
struct FoundTensors {
  std::vector<Match> matches = {};
  std::vector<std::string> left_out = {};  // variables that keep their values
  std::vector<std::string> whys = {};      // of variables that must not
  std::vector<std::string> unused = {};    // names of tensors, after renaming
};

// Returns whether a variable for which the file has no fitting tensor may keep its value.
bool may_keep(const NamedTensors& tensors, const Wanted& wanted, PretrainedMatch match) {
  if (match == PretrainedMatch::kAllButLast) return wanted.last;
  const bool there = tensors.find(wanted.name) != nullptr || tensors.find(wanted.torch_name) != nullptr;
  return match == PretrainedMatch::kAny && !there;
}

FoundTensors find_matches(const NamedTensors& tensors, const std::vector<Wanted>& wanted, PretrainedMatch match) {
  FoundTensors found;
  std::set<std::string> known;
  for (const Wanted& one : wanted) {
    std::string why;
    known.insert({one.name, one.torch_name});
    if (const std::optional<Match> matched = match_for(tensors, one, why)) {
      found.matches.push_back(*matched);
    } else if (may_keep(tensors, one, match)) {
      found.left_out.push_back(one.name);
    } else {
      found.whys.push_back(why);
    }
  }
  for (const auto& [name, tensor] : tensors.all()) {
    if (!is_aside(*tensor) && !known.contains(name)) found.unused.push_back(tensor->name);
  }
  return found;
}

void require_match(const std::filesystem::path& path, const FoundTensors& found, PretrainedMatch match) {
  if (match != PretrainedMatch::kAll) {
    if (found.whys.empty()) return;
    throw DataError(ErrorCode::kInvalidArgument, found.whys.front(), {.source = path.string()},
                    match == PretrainedMatch::kAny
                        ? "rename the tensor, or leave it out"
                        : "give weights of the same net: only its last layers may differ");
  }
  std::vector<std::string> whys = found.whys;
  if (!found.unused.empty()) {
    whys.push_back(
        fmt::format("has tensors that no variable of the model is for: {}", fmt::join(found.unused, ", ")));
  }
  if (whys.empty()) return;
  throw DataError(ErrorCode::kInvalidArgument, fmt::format("{}", fmt::join(whys, "; ")), {.source = path.string()},
                  "rename tensors to the names of the model's variables, or allow that not all match");
}

}  // namespace

PretrainedReport load_pretrained(Model& model, const std::filesystem::path& path,
                                 const PretrainedOptions& options) {
  const TensorFile file(path, OtherFiles::kAccepted);
  const NamedTensors tensors(file, options);
  const std::vector<Wanted> wanted = wanted_by(model);
  const FoundTensors found = find_matches(tensors, wanted, options.match);
  require_match(path, found, options.match);
  require_orders(path, model.graph(), found.matches);
  std::vector<std::vector<float>> values;  // all are read before any is written
  for (const Match& match : found.matches) values.push_back(values_of(file, match));
  PretrainedReport report{.left_out = found.left_out, .unused = found.unused};
  for (std::size_t i = 0; i < found.matches.size(); ++i) {
    model.write_variable(found.matches[i].to->name, values[i]);
    report.loaded.push_back(found.matches[i].to->name);
    const FeatureOrder& order = found.matches[i].to->order;
    if (found.matches[i].torch && order && !order->empty()) model.state().turned_flattened = true;
  }
  return report;
}

}  // namespace headrace
