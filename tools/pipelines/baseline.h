// What `headrace bench input --baseline` is compared with: the least code that does the same work, written
// without the engine, on the same records and threads.
#pragma once

#include <functional>
#include <string>

#include "headrace/tools/pipelines/pipelines.h"

namespace headrace::tools {

// The baseline of a named pipeline, for messages and JSON.
std::string baseline_name(const std::string& pipeline);

// Images a second with so many threads in that time. What it needs once, images decoded into memory, it has made
// before; where that takes a while, a line on standard error says how long.
//   jpeg-*   bare libjpeg-turbo that decodes every record whole (RGB, islow, fancy upsampling), each thread with
//            its own handle over its own share of the records
//   skewed   the pipeline where no thread ever waits for another's sample: a loader of one thread a thread, with
//            different seeds
//   others   FusedLoop, each thread into a ring of batches of its own
using Baseline = std::function<double(int threads, double seconds)>;
Baseline make_baseline(const std::string& pipeline, const PipelineOptions& options);

// ConfigError where the loop would find decoded what the engine decodes, image by image: of encoded images that no
// cache holds.
void require_comparable(const std::string& pipeline, const Source& source, bool cached);

// Images a second that memory alone allows: the pipeline's traffic without its work (CifarTraffic). Null where
// memory is not what bounds the pipeline, which is all but cifar-train.
Baseline make_memory_bound(const std::string& pipeline);

}  // namespace headrace::tools
