// The baseline of `headrace bench input --baseline`: minimal code that does the same work, written without the
// engine, on the same records and threads.
#pragma once

#include <functional>
#include <string>

#include "headrace/tools/pipelines/pipelines.h"

namespace headrace::tools {

// Returns the name of a pipeline's baseline, for messages and JSON.
std::string baseline_name(const std::string& pipeline);

// Returns the images per second with `threads` threads in that time. Images are decoded into memory beforehand, if
// needed; if that takes a while, a line on standard error says how long.
//   jpeg-*   bare libjpeg-turbo that decodes every record whole (RGB, islow, fancy upsampling), each thread with
//            its own handle over its own share of the records
//   skewed   the pipeline where no thread ever waits for another's sample: a loader of one thread a thread, with
//            different seeds
//   others   FusedLoop, each thread into its own ring of batches
using Baseline = std::function<double(int threads, double seconds)>;
Baseline make_baseline(const std::string& pipeline, const PipelineOptions& options);

// Throws ConfigError if the loop would get decoded images where the engine decodes each one: for encoded images
// that no cache holds.
void require_comparable(const std::string& pipeline, const Source& source, bool cached);

// Returns the images per second that memory alone allows: the pipeline's traffic without its work (CifarTraffic).
// Null if memory does not bound the pipeline, which is all but cifar-train.
Baseline make_memory_bound(const std::string& pipeline);

}  // namespace headrace::tools
