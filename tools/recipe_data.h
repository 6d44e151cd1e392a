// What recipes do with their data.
#pragma once

#include <string>
#include <vector>

#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/sources.h"
#include "headrace/tools/common_options.h"

namespace headrace::tools {

constexpr std::int64_t kEvaluationBatch = 500;

// Of CIFAR-10's training images, by channel, of values in 0..1.
inline const std::vector<float> kCifarMean{0.4914F, 0.4822F, 0.4465F};
inline const std::vector<float> kCifarStd{0.2470F, 0.2435F, 0.2616F};

struct Halves {
  SourcePtr train = {};
  SourcePtr test = {};
};

// ConfigError without --data, and where the data are for another recipe.
Halves open_halves(const std::string& recipe, const CommonOptions& options);
// Decoded where it is encoded, and then kept: in memory unless --cache says otherwise. An image that is not of 32
// x 32 pixels is then a bad record.
Dataset decoded_cifar(const SourcePtr& source, const CommonOptions& options);

// --global-batch, or what is usual.
std::int64_t batch_size(const CommonOptions& options, std::int64_t usual);
// ConfigError where a batch is never full and the rest is dropped.
Dataset batched(const Dataset& data, const BatchOptions& batch, const CommonOptions& options);

}  // namespace headrace::tools
