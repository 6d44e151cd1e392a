#include "headrace/train/input_description.h"

#include <fmt/format.h>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/source.h"
#include "headrace/train/records/record_json.h"

namespace headrace {
namespace {

using record_json::Json;

struct OperationWriter {
  Json operator()(const Resize& of) const { return {{"resize", {{"size", of.size}}}}; }
  Json operator()(const CenterCrop& of) const { return {{"center_crop", {{"size", of.size}}}}; }
  Json operator()(const Normalize& of) const { return {{"normalize", {{"mean", of.mean}, {"std", of.std}}}}; }
  Json operator()(const Cast& of) const { return {{"cast", {{"to", to_string(of.to)}}}}; }
  Json operator()(const ToLayout& of) const {
    return {{"to_layout", {{"channels_first", of.to == ImageLayout::kChannelsFirst}}}};
  }
  Json operator()(const FlattenSample&) const { return {{"flatten", Json::object()}}; }
  Json operator()(const OneHot& of) const {
    return {{"one_hot", {{"classes", of.classes}, {"smoothing", of.smoothing}, {"field", of.field}}}};
  }
};

InputOperation operation_from(const Json& json) {
  const std::string name = json.begin().key();
  const Json& of = json.begin().value();
  if (name == "resize") return Resize{.size = of.at("size").get<int>()};
  if (name == "center_crop") return CenterCrop{.size = of.at("size").get<int>()};
  if (name == "normalize") {
    return Normalize{.mean = of.at("mean").get<std::vector<float>>(),
                     .std = of.at("std").get<std::vector<float>>()};
  }
  if (name == "cast") {
    const bool bytes = of.at("to").get<std::string>() == to_string(DType::kU8);
    return Cast{.to = bytes ? DType::kU8 : DType::kF32};
  }
  if (name == "to_layout") {
    const bool first = of.at("channels_first").get<bool>();
    return ToLayout{.to = first ? ImageLayout::kChannelsFirst : ImageLayout::kChannelsLast};
  }
  if (name == "flatten") return FlattenSample{};
  if (name == "one_hot") {
    return OneHot{.classes = of.at("classes").get<int>(),
                  .smoothing = of.at("smoothing").get<float>(),
                  .field = of.at("field").get<std::string>()};
  }
  throw ConfigError("an input's operation '" + name + "' is not known",
                    "there are resize, center_crop, normalize, cast, to_layout, flatten and one_hot");
}

Json view_to_json(const View& view) {
  return {{"weight", view.weight},
          {"down", view.shift.down},
          {"right", view.shift.right},
          {"mirror", view.shift.mirror}};
}

View view_from(const Json& json) {
  return {.weight = json.at("weight").get<float>(),
          .shift = {.down = json.at("down").get<int>(),
                    .right = json.at("right").get<int>(),
                    .mirror = json.at("mirror").get<bool>()}};
}

bool holds_images(const Fields& fields) {
  for (const Field& field : fields) {
    if (field.encoding == Encoding::kImage) return true;
  }
  return false;
}

}  // namespace

std::string to_json(const InputDescription& input) {
  Json operations = Json::array(), views = Json::array();
  for (const InputOperation& operation : input.operations) {
    operations.push_back(std::visit(OperationWriter{}, operation));
  }
  for (const View& view : input.views) views.push_back(view_to_json(view));
  const Json decode{{"height", input.decode.height},
                    {"width", input.decode.width},
                    {"apply_orientation", input.decode.apply_orientation}};
  return Json{{"decode", decode}, {"operations", operations}, {"views", views}, {"batch", input.batch}}.dump();
}

InputDescription input_description_from_json(std::string_view text) {
  try {
    const Json json = record_json::parse(text);
    const Json& decode = json.at("decode");
    InputDescription input{.decode = {.height = decode.at("height").get<std::int64_t>(),
                                      .width = decode.at("width").get<std::int64_t>(),
                                      .apply_orientation = decode.at("apply_orientation").get<bool>()},
                           .batch = json.at("batch").get<std::int64_t>()};
    for (const Json& operation : json.at("operations")) input.operations.push_back(operation_from(operation));
    for (const Json& view : json.at("views")) input.views.push_back(view_from(view));
    return input;
  } catch (const Json::exception& error) {
    throw ConfigError(fmt::format("an input's description is wrong: {}", error.what()));
  }
}

Dataset described_dataset(const SourcePtr& source, const InputDescription& input) {
  Dataset data = Dataset::from(source);
  if (holds_images(source->info().fields)) data = data.decode(input.decode);
  for (const InputOperation& operation : input.operations) {
    data = data.map(std::visit([](const auto& options) { return Operations(Operation(options)); }, operation));
  }
  return data.batch({.global = input.batch});
}

}  // namespace headrace
