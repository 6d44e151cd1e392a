// The pipelines that the command and the benchmarks know by name.
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

struct PipelineOptions {
  std::filesystem::path data = {};  // "trivial" refuses it, and `split`, a layout and columns
  SourceOptions source = {};
  std::optional<Split> split = {};  // none: the pipeline's own, train or test
  std::int64_t global_batch = 512;
  bool apply_orientation = false;  // as DecodeOptions has it; ConfigError where nothing is decoded
  std::uint64_t seed = 0;          // of the shuffle
  int prefetch = 2;
  std::shared_ptr<SampleCache> cache = {};    // of samples before anything random; null: none
  std::optional<std::uint64_t> records = {};  // the first ones of the source only; none: all
};

//   mnist-train, fashion-train  shuffled, u8 / 255 as f32 (28, 28, 1)
//   cifar-train                 shuffled, zero-pad 4 and random crop 32, flip, normalise: f32 (3, 32, 32)
//   cifar-eval                  in order, normalise: f32 (3, 32, 32)
//   jpeg-train                  shuffled, random resized crop 224, flip: u8 (224, 224, 3)
//   jpeg-train-float            the same, normalised: f32 (3, 224, 224)
//   skewed                      jpeg-train where one sample in twenty takes 20 times as long (skewed.h)
//   jpeg-eval                   in order, resize 256, centre crop 224: u8 (224, 224, 3)
//   trivial                     a million integers, i64
// An unknown name is a ConfigError that lists them, data whose images a pipeline cannot use one that lists the
// pipelines that can.
Dataset make_pipeline(const std::string& name, const PipelineOptions& options);

// Its records, before anything is done to them; ConfigError as make_pipeline()'s.
SourcePtr source_of(const std::string& name, const PipelineOptions& options);

// The code of these pipelines, which the JSON of their plans names.
PlanParts pipeline_parts();

const std::vector<std::string>& pipeline_names();
// False for "trivial", and for a name that there is not.
bool reads_data(const std::string& name);
// Whether its records come in another order every epoch.
bool is_shuffled(const std::string& name);

}  // namespace headrace::tools
