#include "headrace/tools/pipelines/pipelines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/pipeline/operations.h"

namespace headrace::tools {
namespace {

constexpr std::uint32_t kOneIn = 20;
constexpr double kSampleSeconds = 2e-3, kSlowSeconds = 19 * kSampleSeconds;

// Keeps its thread busy for one u8 image of shape (224, 224, 3) in twenty, for 19 times jpeg-train's time for a
// sample; leaves the pixels unchanged.
Operations skew() {
  return user_map(
      {.name = "skew",
       .output = {.name = "image", .dtype = DType::kU8, .shape = {224, 224, 3}},
       .function = [](std::span<const std::byte> in, const Shape&, std::span<std::byte> out, Philox& random) {
         std::ranges::copy(in, out.begin());
         if (random.below(kOneIn) != 0) return;
         for (const Stopwatch watch; watch.seconds() < kSlowSeconds;) {
         }
       }});
}

constexpr std::uint64_t kIntegers = std::uint64_t{1} << 20;
constexpr std::uint64_t kWindow = 2048;  // that streams are shuffled in

// The images that a pipeline can use.
struct Takes {
  std::int64_t channels = 0;  // 0: any
  bool encoded = true;        // also images that are not decoded yet, of any size
};
constexpr Takes kAny{}, kColour{.channels = 3}, kPixels{.encoded = false};

struct NamedPipeline {
  Operations (*operations)() = nullptr;  // null: none, and nothing to read: the integers
  Takes takes = kAny;
  Split split = Split::kTrain;
  bool shuffled = true;
};

Operations digits() { return normalize({0.0F}, {1.0F}); }
Operations cifar_train() {
  return pad_crop(32, 4) | flip() | normalize(kCifarMean, kCifarStd) | to_layout(ImageLayout::kChannelsFirst);
}
Operations cifar_eval() {
  return center_crop(32) | normalize(kCifarMean, kCifarStd) | to_layout(ImageLayout::kChannelsFirst);
}
Operations jpeg_train() { return random_resized_crop() | flip(); }
Operations jpeg_train_float() {
  return jpeg_train() | normalize(kImagenetMean, kImagenetStd) | to_layout(ImageLayout::kChannelsFirst);
}
Operations jpeg_eval() { return resize(256) | center_crop(224); }
Operations skewed() { return jpeg_train() | skew(); }

const std::map<std::string, NamedPipeline>& pipelines() {
  static const std::map<std::string, NamedPipeline> table{
      {"mnist-train", {.operations = digits, .takes = kPixels}},
      {"fashion-train", {.operations = digits, .takes = kPixels}},
      {"cifar-train", {.operations = cifar_train, .takes = kColour}},
      {"cifar-eval", {.operations = cifar_eval, .takes = kColour, .split = Split::kTest, .shuffled = false}},
      {"jpeg-train", {.operations = jpeg_train}},
      {"jpeg-train-float", {.operations = jpeg_train_float, .takes = kColour}},
      {"jpeg-eval", {.operations = jpeg_eval, .split = Split::kTest, .shuffled = false}},
      {"skewed", {.operations = skewed}},
      {"trivial", {.shuffled = false}},
  };
  return table;
}

const NamedPipeline& find_pipeline(const std::string& name) {
  const auto found = pipelines().find(name);
  if (found != pipelines().end()) return found->second;
  throw ConfigError(fmt::format("there is no pipeline '{}'", name),
                    fmt::format("one of {}", fmt::join(pipeline_names(), ", ")));
}

bool suits(const Takes& takes, const Field& image) {
  const bool encoded = image.encoding == Encoding::kImage;
  const bool channels = takes.channels == 0 || image.shape.rank() != 3 || image.shape.back() == takes.channels;
  return channels && (takes.encoded || !encoded);
}

void require_images(const Takes& takes, const Source& source) {
  const Fields& fields = source.info().fields;
  const Field& image = fields.at(find_field(fields, "image"));
  if (suits(takes, image)) return;
  std::vector<std::string> fitting;
  for (const auto& [name, pipeline] : pipelines()) {
    if (reads_data(name) && suits(pipeline.takes, image)) fitting.push_back(name);
  }
  const std::string wanted = takes.encoded ? fmt::format("images with {} channels", takes.channels)
                                           : std::string("images that are stored as pixels of one size");
  const std::string there = takes.encoded ? fmt::format("images of shape {}", image.shape.to_string())
                                          : std::string("JPEG or PNG images");
  throw ConfigError(fmt::format("the pipeline wants {}; {} has {}", wanted, source.info().name, there),
                    fmt::format("pipelines that fit this data: {}", fmt::join(fitting, ", ")));
}

SourcePtr make_integers() {
  std::vector<std::byte> bytes(kIntegers * sizeof(std::int64_t));
  for (std::uint64_t i = 0; i < kIntegers; ++i) std::memcpy(bytes.data() + i * sizeof i, &i, sizeof i);
  return in_memory(
      "integers", kIntegers,
      {Array{.field = {.name = "value", .dtype = DType::kI64, .shape = {}}, .bytes = std::move(bytes)}});
}

SourcePtr integers(const PipelineOptions& options) {
  if (!options.data.empty() || options.split || !options.source.layout.empty() ||
      !options.source.columns.empty() || !options.source.indexed) {
    throw ConfigError("the pipeline trivial counts integers and reads no data",
                      joined({"leave out " + named("PipelineOptions::data"), named("PipelineOptions::split"),
                              named("LayoutOptions::classes_at"), named("LayoutOptions::train_folder"),
                              named("LayoutOptions::test_folder"), named("ColumnOptions::image_column"),
                              named("ColumnOptions::label_column"), named("ColumnOptions::columns"),
                              named("ColumnOptions::label_type"), named("SourceOptions::indexed", "false")},
                             ", "));
  }
  return make_integers();
}

Dataset shuffled(const Dataset& data, const PipelineOptions& options) {
  if (data.one_pass()) return data.shuffle_window({.size = kWindow, .seed = options.seed});
  if (!data.streamed()) return data.shuffle({.seed = options.seed});
  ShuffleShardsOptions shards = options.shards;
  shards.seed = options.seed;
  return data.shuffle_shards(shards);
}

// Decoded where the source holds encoded images.
Dataset decoded(const Dataset& dataset, const PipelineOptions& options) {
  for (const Field& field : dataset.fields()) {
    if (field.encoding == Encoding::kImage)
      return dataset.decode({.apply_orientation = options.apply_orientation});
  }
  if (options.apply_orientation) {
    throw ConfigError("the pipeline decodes no images, so there is no EXIF orientation to apply",
                      advice("leave out {}", named("PipelineOptions::apply_orientation")));
  }
  return dataset;
}

}  // namespace

const std::vector<std::string>& pipeline_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const auto& [name, pipeline] : pipelines()) list.push_back(name);
    return list;
  }();
  return names;
}

PlanParts pipeline_parts() { return {.sources = {{"integers", make_integers()}}, .operations = {skew()}}; }

bool reads_data(const std::string& name) {
  const auto found = pipelines().find(name);
  return found != pipelines().end() && found->second.operations != nullptr;
}

bool is_shuffled(const std::string& name) { return find_pipeline(name).shuffled; }

SourcePtr source_of(const std::string& name, const PipelineOptions& options) {
  const NamedPipeline& pipeline = find_pipeline(name);
  if (pipeline.operations == nullptr) return integers(options);
  if (options.data.empty())
    throw ConfigError("the pipeline needs data",
                      advice("name a folder or an archive with {}", named("PipelineOptions::data")));
  SourcePtr source = open_source(options.data, options.split.value_or(pipeline.split), options.source);
  require_images(pipeline.takes, *source);
  return source;
}

Dataset make_pipeline(const std::string& name, const PipelineOptions& options) {
  const NamedPipeline& pipeline = find_pipeline(name);
  Dataset data = Dataset::from(source_of(name, options));
  if (options.records) data = data.take(*options.records);
  data = decoded(data, options);
  if (options.cache != nullptr) data = data.cache(options.cache);
  if (pipeline.shuffled) data = shuffled(data, options);
  if (pipeline.operations != nullptr) data = data.map(pipeline.operations());
  return data.batch({.global_batch = options.global_batch}).prefetch(options.prefetch);
}

}  // namespace headrace::tools
