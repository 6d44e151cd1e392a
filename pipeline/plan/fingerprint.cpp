// What identifies a plan's stream and the contents of its caches.
#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "headrace/devices/base/hash.h"
#include "headrace/devices/base/rng.h"
#include "headrace/pipeline/decoders/image_decoder.h"
#include "headrace/pipeline/plan/plan.h"

namespace headrace {
namespace {

// The version of the results of operations and index stages. Raise it with every change to such a result: a cache
// or state of another version then belongs to another plan.
constexpr std::uint64_t kBitsVersion = 2;

std::uint64_t hash_sample_stages(const StreamPlan& plan, std::size_t count, std::uint64_t seed) {
  std::uint64_t hash = mix_seed(mix_seed(seed, kBitsVersion), plan.source->info().fingerprint);
  for (const ProcessedPart& part : plan.parts) {
    hash = mix_seed(hash, hash_sample_stages(*part.plan, part.plan->sample_stages.size(), seed));
  }
  for (std::size_t i = 0; i < count; ++i) {
    const SampleStage& stage = plan.sample_stages[i];
    hash = xxh3(describe(stage), hash);
    if (std::holds_alternative<DecodeStage>(stage)) hash = xxh3(ImageDecoder::identity(), hash);
  }
  return hash;
}

}  // namespace

std::uint64_t StreamPlan::cache_fingerprint(const PlannedCache& planned) const {
  return hash_sample_stages(*this, planned.stages, mix_seed(1, source->info().revision.value_or(0)));
}

std::uint64_t StreamPlan::fingerprint() const {
  std::uint64_t hash = hash_sample_stages(*this, sample_stages.size(), 2);
  for (const StagePtr& stage : index_stages) hash = xxh3(stage->describe(), hash);
  for (const PlannedOperation& planned : batch_operations) hash = xxh3(describe(planned.operation), hash);
  if (!batch) return hash;
  hash = xxh3(batching, hash);
  for (const StagePtr& stage : batch_stages) hash = xxh3(stage->describe(), hash);
  return hash;
}

std::vector<StageIdentity> StreamPlan::identities() const {
  const auto low = [](std::uint64_t hash) { return static_cast<std::uint32_t>(hash); };
  std::vector<StageIdentity> all{{"the data", low(hash_sample_stages(*this, 0, 2))}};
  const auto add = [&](const std::string& text, std::uint64_t version = 0) {
    all.push_back({text, low(xxh3(text, version))});
  };
  for (const SampleStage& stage : sample_stages) {
    const bool decodes = std::holds_alternative<DecodeStage>(stage);
    add(describe(stage), decodes ? xxh3(ImageDecoder::identity(), 0) : 0);
  }
  for (const StagePtr& stage : index_stages) add(stage->describe());
  for (const PlannedOperation& planned : batch_operations) add(describe(planned.operation));
  if (!batch) return all;
  add(batching);
  for (const StagePtr& stage : batch_stages) add(stage->describe());
  return all;
}

}  // namespace headrace
