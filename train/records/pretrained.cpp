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

// A variable and what PyTorch calls it.
struct Wanted {
  std::string name, torch_name;
  std::string kind;  // of its layer
  Shape shape;
  bool last = false;  // of a layer that gives a result of the model
  Shape flattened;    // of the image whose flattened pixels a dense layer takes; rank 0: none
};

// "weight", as PyTorch names the variable of such a layer; empty if it has none.
std::string torch_part(const std::string& kind, const std::string& variable) {
  if (variable == "gamma" || variable == "weights") return "weight";
  if (variable == "beta" || variable == "bias") return "bias";
  return kind == "batch_norm" ? variable : "";
}

Shape flattened_image(const Graph& graph, int id) {
  if (graph.layer(id).kind() != "dense") return {};
  const int from = graph.inputs(id).front();
  if (graph.layer(from).kind() != "flatten") return {};
  const Shape& image = graph.layer(graph.inputs(from).front()).shape();
  return image.rank() == 3 ? image : Shape{};
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
  std::vector<Wanted> all;
  for (int id = 0; id < graph.size(); ++id) {
    if (graph.owner(id) != id) continue;
    for (const VariableSpec& spec : graph.layer(id).variables()) {
      const std::string kind = graph.layer(id).kind(), part = torch_part(kind, spec.name);
      all.push_back({.name = graph.name(id) + "/" + spec.name,
                     .torch_name = part.empty() ? "" : graph.name(id) + "." + part,
                     .kind = kind,
                     .shape = spec.shape,
                     .last = is_last(graph, id),
                     .flattened = flattened_image(graph, id)});
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
  const Shape& image = match.to->flattened;
  if (image.rank() == 3 && shape.rank() == 2) return channels_last(values, image[2], image[0] * image[1]);
  return values;
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
  std::vector<std::vector<float>> values;  // all are read before any is written
  for (const Match& match : found.matches) values.push_back(values_of(file, match));
  PretrainedReport report{.left_out = found.left_out, .unused = found.unused};
  for (std::size_t i = 0; i < found.matches.size(); ++i) {
    model.write_variable(found.matches[i].to->name, values[i]);
    report.loaded.push_back(found.matches[i].to->name);
  }
  return report;
}

}  // namespace headrace
