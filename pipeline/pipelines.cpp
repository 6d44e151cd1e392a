#include "headrace/pipeline/pipelines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

constexpr std::uint64_t kIntegers = std::uint64_t{1} << 20;

// Means and standard deviations of the training sets' channels, of values in 0..1.
const std::vector<float> kCifarMean{0.4914F, 0.4822F, 0.4465F};
const std::vector<float> kCifarStd{0.2470F, 0.2435F, 0.2616F};
const std::vector<float> kImagenetMean{0.485F, 0.456F, 0.406F};
const std::vector<float> kImagenetStd{0.229F, 0.224F, 0.225F};

// What a pipeline can make of the images of its data.
struct Takes {
  std::int64_t channels = 0;  // 0: any
  bool encoded = true;        // also images that are not decoded yet, of any size
};
constexpr Takes kAny{}, kColour{.channels = 3}, kPixels{.encoded = false};

void require_fields(const Takes& takes, const SourcePtr& source);

Dataset open_dataset(const PipelineOptions& options, Split split, const Takes& takes) {
  if (options.data.empty())
    throw ConfigError("the pipeline needs data", "name a folder or an archive with --data");
  const SourcePtr source = open_source(options.data, options.split.value_or(split), options.source);
  require_fields(takes, source);
  const Dataset all = Dataset::from(source);
  return options.records ? all.take(*options.records) : all;
}

void refuse_orientation(const PipelineOptions& options) {
  if (!options.apply_orientation) return;
  throw ConfigError("the pipeline decodes no images, so there is no EXIF orientation to apply",
                    "leave out --apply-orientation (PipelineOptions::apply_orientation)");
}

// Decodes, behind it the cache, where the source holds encoded images.
Dataset decoded(const Dataset& dataset, const PipelineOptions& options) {
  const Fields fields = dataset.fields();
  if (fields[find_field(fields, "image")].encoding != Encoding::kImage) {
    refuse_orientation(options);
    return dataset;
  }
  const Dataset images = dataset.decode({.apply_orientation = options.apply_orientation});
  return options.cache == nullptr ? images : images.cache(options.cache);
}

Dataset batched(const Dataset& dataset, const PipelineOptions& options) {
  return dataset.batch({.global = options.global_batch}).prefetch(options.prefetch);
}

Operations laid_out(const Operations& operations, const PipelineOptions& options, ImageLayout standard) {
  return operations | to_layout(options.layout.value_or(standard));
}

Dataset digits(const PipelineOptions& options) {
  const Dataset data =
      decoded(open_dataset(options, Split::kTrain, kPixels), options).shuffle({.seed = options.seed});
  return batched(data.map(laid_out(normalize({0.0F}, {1.0F}), options, ImageLayout::kChannelsLast)), options);
}

Dataset cifar_train(const PipelineOptions& options) {
  const Dataset data =
      decoded(open_dataset(options, Split::kTrain, kColour), options).shuffle({.seed = options.seed});
  const Operations operations = pad_crop(32, 4) | flip() | normalize(kCifarMean, kCifarStd);
  return batched(data.map(laid_out(operations, options, ImageLayout::kChannelsFirst)), options);
}

Dataset cifar_eval(const PipelineOptions& options) {
  const Dataset data = decoded(open_dataset(options, Split::kTest, kColour), options);
  const Operations operations = center_crop(32) | normalize(kCifarMean, kCifarStd);
  return batched(data.map(laid_out(operations, options, ImageLayout::kChannelsFirst)), options);
}

Dataset jpeg_train(const PipelineOptions& options) {
  const Dataset data =
      decoded(open_dataset(options, Split::kTrain, kAny), options).shuffle({.seed = options.seed});
  return batched(data.map(random_resized_crop() | flip()), options);
}

// What a sample of jpeg-train takes, about, and 19 times that.
constexpr double kSampleSeconds = 2e-3, kSlowSeconds = 19 * kSampleSeconds;

// Keeps its thread busy for one sample in twenty; the pixels stay as they are.
Operations skew() {
  UserMap map{
      .name = "skew",
      .output = {.name = "image", .dtype = DType::kU8, .shape = {224, 224, 3}},
      .function = [](std::span<const std::byte> in, const Shape&, std::span<std::byte> out, Philox& random) {
        std::ranges::copy(in, out.begin());
        if (random.below(20) != 0) return;
        for (const Stopwatch watch; watch.seconds() < kSlowSeconds;) {
        }
      }};
  return user_map(std::move(map));
}

Dataset skewed(const PipelineOptions& options) {
  const Dataset data =
      decoded(open_dataset(options, Split::kTrain, kAny), options).shuffle({.seed = options.seed});
  return batched(data.map(random_resized_crop() | flip() | skew()), options);
}

Dataset jpeg_train_float(const PipelineOptions& options) {
  const Dataset data =
      decoded(open_dataset(options, Split::kTrain, kColour), options).shuffle({.seed = options.seed});
  const Operations operations = random_resized_crop() | flip() | normalize(kImagenetMean, kImagenetStd);
  return batched(data.map(laid_out(operations, options, ImageLayout::kChannelsFirst)), options);
}

Dataset jpeg_eval(const PipelineOptions& options) {
  const Dataset data = decoded(open_dataset(options, Split::kTest, kAny), options);
  return batched(data.map(resize(256) | center_crop(224)), options);
}

Dataset trivial(const PipelineOptions& options) {
  if (!options.data.empty() || options.split || !options.source.layout.empty()) {
    throw ConfigError("the pipeline trivial counts integers and reads no data",
                      "leave out --data, --split, --classes-at, --train-folder and --test-folder");
  }
  refuse_orientation(options);
  std::vector<std::byte> bytes(kIntegers * sizeof(std::int64_t));
  for (std::uint64_t i = 0; i < kIntegers; ++i) std::memcpy(bytes.data() + i * sizeof i, &i, sizeof i);
  const SourcePtr integers =
      in_memory("integers", kIntegers,
                {Array{.field = {.name = "value", .dtype = DType::kI64, .shape = {}}, .bytes = std::move(bytes)}});
  return batched(Dataset::from(integers), options);
}

struct Named {
  Dataset (*make)(const PipelineOptions&);
  Takes takes = kAny;
  bool images = true;
};

const std::map<std::string, Named>& makers() {
  static const std::map<std::string, Named> table{
      {"mnist-train", {digits, kPixels}},
      {"fashion-train", {digits, kPixels}},
      {"cifar-train", {cifar_train, kColour}},
      {"cifar-eval", {cifar_eval, kColour}},
      {"jpeg-train", {jpeg_train}},
      {"jpeg-train-float", {jpeg_train_float, kColour}},
      {"jpeg-eval", {jpeg_eval}},
      {"skewed", {skewed}},
      {"trivial", {trivial, kAny, false}},
  };
  return table;
}

bool takes_image(const Takes& takes, const Field& image) {
  const bool encoded = image.encoding == Encoding::kImage;
  const bool channels = takes.channels == 0 || image.shape.rank() != 3 || image.shape.back() == takes.channels;
  return channels && (takes.encoded || !encoded);
}

void require_fields(const Takes& takes, const SourcePtr& source) {
  const Fields& fields = source->info().fields;
  const Field& image = fields.at(find_field(fields, "image"));
  if (takes_image(takes, image)) return;
  std::vector<std::string> fitting;
  for (const auto& [name, named] : makers()) {
    if (named.images && takes_image(named.takes, image)) fitting.push_back(name);
  }
  const std::string wanted = takes.encoded ? fmt::format("images with {} channels", takes.channels)
                                           : std::string("images that are stored as pixels of one size");
  const std::string there = takes.encoded ? fmt::format("images of shape {}", image.shape.to_string())
                                          : std::string("JPEG or PNG images");
  throw ConfigError(fmt::format("the pipeline wants {}; {} has {}", wanted, source->info().name, there),
                    fmt::format("pipelines that fit this data: {}", fmt::join(fitting, ", ")));
}

}  // namespace

const std::vector<std::string>& pipeline_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const auto& [name, named] : makers()) list.push_back(name);
    return list;
  }();
  return names;
}

bool reads_data(const std::string& name) {
  const auto found = makers().find(name);
  return found != makers().end() && found->second.images;
}

Dataset make_pipeline(const std::string& name, const PipelineOptions& options) {
  const auto found = makers().find(name);
  if (found == makers().end()) {
    throw ConfigError(fmt::format("there is no pipeline '{}'", name),
                      fmt::format("one of {}", fmt::join(pipeline_names(), ", ")));
  }
  return found->second.make(options);
}

}  // namespace headrace
