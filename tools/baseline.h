// What `headrace bench input --baseline` is compared with: the least code that does the same work, written
// without the engine, on the same records and threads.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "headrace/pipeline/pipelines.h"
#include "headrace/pipeline/source.h"

namespace headrace::tools {

// Images a second of bare libjpeg-turbo decoding every record whole (RGB, islow, fancy upsampling), each thread
// with its own handle over its own share of the records, round and round for `seconds`.
double jpeg_decode_rate(const Source& source, int threads, double seconds);

// All images of 32 x 32 x 3, decoded where they are encoded.
std::vector<std::uint8_t> decoded_images(const Source& source);

// Images a second of one fused loop over decoded 32x32x3 images in memory, in shuffled order: zero-pad 4 crop,
// flip, normalise to f32 NCHW into a reused batch buffer of `batch` images a thread.
double fused_cifar_rate(std::span<const std::uint8_t> images, int threads, double seconds, int batch);

// Samples a second of the pipeline where no thread ever waits for another's sample: `threads` loaders of one
// thread each, with different seeds.
double unordered_rate(const std::string& pipeline, const PipelineOptions& options, int threads, double seconds);

// The baseline of a named pipeline, for messages and JSON; empty where there is none.
std::string baseline_name(const std::string& pipeline);

// Images a second with so many threads in that time. What it needs once, images decoded into memory, it has made
// before; where that takes a while, a line on standard error says how long.
using Baseline = std::function<double(int threads, double seconds)>;
Baseline make_baseline(const std::string& pipeline, const PipelineOptions& options);

}  // namespace headrace::tools
