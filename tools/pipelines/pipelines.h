// Per-channel means and standard deviations of well-known training sets, for values in 0..1.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/sources.h"

namespace headrace::tools {

inline const std::vector<float> kCifarMean{0.4914F, 0.4822F, 0.4465F};
inline const std::vector<float> kCifarStd{0.2470F, 0.2435F, 0.2616F};
inline const std::vector<float> kImagenetMean{0.485F, 0.456F, 0.406F};
inline const std::vector<float> kImagenetStd{0.229F, 0.224F, 0.225F};

// The named pipelines of the command and the benchmarks.

struct PipelineOptions {
  std::filesystem::path data = {};  // "trivial" refuses it, and `split`, a layout and columns
  SourceOptions source = {};
  std::optional<Split> split = {};  // none: the pipeline's own, train or test
  std::int64_t global_batch = 512;
  bool apply_orientation = false;    // see DecodeOptions; ConfigError if nothing is decoded
  std::uint64_t seed = 0;            // of the shuffle
  ShuffleShardsOptions shards = {};  // of data that are not indexed; its seed is `seed`
  int prefetch = 2;
  std::shared_ptr<SampleCache> cache = {};    // of samples before random operations; null: none
  std::optional<std::uint64_t> records = {};  // limit to the first records of the source; none: all
};

//   mnist-train, fashion-train  shuffled, u8 / 255 as f32 (28, 28, 1)
//   cifar-train                 shuffled, zero-pad 4 and random crop 32, flip, normalise: f32 (3, 32, 32)
//   cifar-eval                  in order, normalise: f32 (3, 32, 32)
//   jpeg-train                  shuffled, random resized crop 224, flip: u8 (224, 224, 3)
//   jpeg-train-float            the same, normalised: f32 (3, 224, 224)
//   skewed                      jpeg-train where one sample in twenty takes 20 times as long (skewed.h)
//   jpeg-eval                   in order, resize 256, centre crop 224: u8 (224, 224, 3)
//   trivial                     a million integers, i64
// Throws ConfigError for an unknown name, listing the pipelines, and for data whose images the pipeline cannot
// use, listing the pipelines that can.
Dataset make_pipeline(const std::string& name, const PipelineOptions& options);

// Returns the pipeline's unprocessed records. Throws ConfigError as make_pipeline() does.
SourcePtr source_of(const std::string& name, const PipelineOptions& options);

// Returns the code of these pipelines, which the JSON of their plans names.
PlanParts pipeline_parts();

const std::vector<std::string>& pipeline_names();
// Returns false for "trivial", and for an unknown name.
bool reads_data(const std::string& name);
// Returns whether its records come in another order every epoch.
bool is_shuffled(const std::string& name);

}  // namespace headrace::tools
