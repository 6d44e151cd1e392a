// Bases and helpers of the built-in layers. Private to train/net.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "headrace/train/layers.h"

namespace headrace {

// Returns the built-in kind of this name; null if there is none. layer_kind() throws ConfigError instead.
const LayerKind* find_layer_kind(const std::string& name);
const LayerKind& layer_kind(const std::string& name);

Fill to_fill(Initializer initializer) noexcept;

// The options of a kind of layer that has none; it has kKind and kDoc besides.
struct NoOptions {
  void each_field(OptionVisitor& /*visit*/) const noexcept {}
};

// A layer with these options; several kinds of layers may have one class. A layer of one input has a constructor
// of (name, input shape, options) and otherwise of (name, input shapes, options).
template <typename Fields>
class OptionLayer : public Layer {
 public:
  using Options = Fields;

  OptionLayer(const std::string& name, const Shape& result, const Options& options)
      : Layer(name, result), options_(options) {}

  std::string kind() const override { return Options::kKind; }
  LayerAttributes attributes() const override { return attributes_of(options_); }

 protected:
  Options options_;
};

// Returns the shape of a layer's only input. Throws ConfigError if it has none or several.
const Shape& only_input(const LayerRecord& record);

template <typename Options>
constexpr int required_fields() {
  if constexpr (requires { Options::kRequired; }) {
    return Options::kRequired;
  } else {
    return 0;
  }
}

// Returns the kind of layer that `Made`, an OptionLayer, is.
template <typename Made>
LayerKind kind_of_layer() {
  using Options = typename Made::Options;
  constexpr int kRequired = required_fields<Options>();
  constexpr bool kOneInput = std::is_constructible_v<Made, std::string, Shape, Options>;
  const auto make = [](const LayerRecord& record) -> std::shared_ptr<const Layer> {
    Options options;
    read_attributes(record.attributes, kRequired, [&](OptionVisitor& visit) { options.each_field(visit); });
    if constexpr (kOneInput) {
      return std::make_shared<Made>(record.name, only_input(record), options);
    } else {
      return std::make_shared<Made>(record.name, record.inputs, options);
    }
  };
  const auto attributes = [](OptionVisitor& visit) {
    Options options;
    options.each_field(visit);
    return attributes_of(options);
  };
  return {.name = Options::kKind,
          .doc = Options::kDoc,
          .make = make,
          .attributes = attributes,
          .required = kRequired,
          .activates = requires(Options options){options.activation;
}
, .several = !kOneInput
};  // namespace headrace
}

}  // namespace headrace
