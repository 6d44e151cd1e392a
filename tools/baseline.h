// What `headrace bench input --baseline` is compared with: the least code that does the same work, written
// without the engine, on the same records and threads.
#pragma once

#include <string>

#include "headrace/pipeline/pipelines.h"
#include "headrace/pipeline/source.h"

namespace headrace::tools {

// Images a second of bare libjpeg-turbo decoding every record whole (RGB, islow, fancy upsampling), each thread
// with its own handle over its own share of the records, round and round for `seconds`.
double jpeg_decode_rate(const Source& source, int threads, double seconds);

// Images a second of one fused loop over decoded 32x32x3 images in memory, in shuffled order: zero-pad 4 crop,
// flip, normalise to f32 NCHW into a reused batch buffer of `batch` images a thread.
double fused_cifar_rate(const Source& source, int threads, double seconds, int batch);

// Samples a second of the pipeline where no thread ever waits for another's sample: `threads` loaders of one
// thread each, with different seeds.
double unordered_rate(const std::string& pipeline, const PipelineOptions& options, int threads, double seconds);

// The baseline of a named pipeline, for messages and JSON; empty where there is none.
std::string baseline_name(const std::string& pipeline);
double baseline_rate(const std::string& pipeline, const PipelineOptions& options, int threads, double seconds);

}  // namespace headrace::tools
