#include "headrace/pipeline/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "headrace/devices/base/rng.h"
#include "headrace/devices/base/text.h"
#include "headrace/pipeline/plan/index/batch_order.h"
#include "headrace/pipeline/plan/index/bucket_batches.h"
#include "headrace/pipeline/plan/order_notes.h"

namespace headrace {
namespace {

std::string note_on_size(const SampleStage& stage) {
  const auto* decode = std::get_if<DecodeStage>(&stage);
  if (decode == nullptr || decode->first_image.empty()) return {};
  return fmt::format("  [the size of the first image, {}]", decode->first_image);
}

// The stages of a sample, one a line; of parts of a combination, indented.
std::string explain_sample_stages(const StreamPlan& plan, const std::vector<std::size_t>& on_device,
                                  const std::string& indent) {
  std::string text;
  for (std::size_t part = 0; part < plan.parts.size(); ++part) {
    const std::string inner = explain_sample_stages(*plan.parts[part].plan, {}, indent + "  ");
    if (!inner.empty()) text += fmt::format("{}records of dataset {}:\n{}", indent, part, inner);
  }
  for (std::size_t i = 0; i <= plan.sample_stages.size(); ++i) {
    for (const PlannedCache& planned : plan.caches) {
      if (planned.stages != i) continue;
      text += indent + printable(fmt::format("cache({})", planned.cache->describe()));
      text += indent.empty() ? "\n" : "  [its records are read nevertheless]\n";
    }
    if (i == plan.sample_stages.size()) break;
    const bool marked = std::ranges::find(on_device, i) != on_device.end();
    text += indent + printable(describe(plan.sample_stages[i]) + note_on_size(plan.sample_stages[i]));
    text += marked ? "  [on the device]\n" : "\n";
  }
  return text;
}

}  // namespace

IndexMap StreamPlan::index_map(std::uint64_t seed) const {
  return IndexMap(source->info().records, index_stages, seed);
}

ShardOrder StreamPlan::shard_order(std::uint64_t seed) const {
  constexpr std::uint64_t kShards = 0x73'68'61'72'64'73;  // apart from the windows' key
  if (!shards) return {};
  const ShuffleShardsOptions& how = shards->options;
  return {.at_a_time = how.shards,
          .key = mix_seed(mix_seed(seed, how.seed), kShards),
          .each_pass_anew = how.reshuffle_each_epoch};
}

IndexMap StreamPlan::batch_index_map(std::uint64_t records, std::uint64_t seed) const {
  if (buckets != nullptr) {
    const BucketBatches batches(buckets, bucket_place, numbers, records);
    return batch_map(batches.count(), batch_stages, seed);
  }
  return batch_map(batch_rows(records).count(), stages_on_batches(combined_batches.get(), batch_stages), seed);
}

BatchRows StreamPlan::batch_rows(std::uint64_t records) const {
  return combined_batches != nullptr ? BatchRows(*combined_batches) : BatchRows(records, *batch);
}

std::uint64_t StreamPlan::steps_per_epoch() const { return batch_index_map(index_map(0).size(), 0).size(); }

std::uint64_t StreamPlan::examples_per_epoch() const {
  const IndexMap map = index_map(0);
  const std::uint64_t records = map.size();
  if (combined_batches != nullptr) {
    return count_examples(batch_rows(records), stages_on_batches(combined_batches.get(), batch_stages), 0);
  }
  if (batch_stages.empty()) return records;
  if (buckets == nullptr) return count_examples(batch_rows(records), batch_stages, 0);
  const BucketBatches batches(buckets, bucket_place, numbers, records);
  return count_bucketed_examples(batches, map, batch_map(batches.count(), batch_stages, 0));
}

std::string explain_plan(const StreamPlan& plan, const std::vector<std::size_t>& on_device) {
  std::string text = printable(describe(*plan.source)) + "\n";
  for (const StagePtr& stage : plan.index_stages) {
    const std::string cost = stage->cost();
    text += printable(stage->describe()) + "  [on indices" + (cost.empty() ? "" : "; " + cost) + "]\n";
  }
  text += notes_on_order(*plan.source, plan.index_stages, !plan.caches.empty());
  text += explain_sample_stages(plan, on_device, "");
  for (const Field& field : plan.fields) {
    text += fmt::format("  -> {} {} {}", printable(field.name), to_string(field.dtype), field.shape.to_string());
    if (field.layout)
      text += *field.layout == ImageLayout::kChannelsFirst ? ", channels first" : ", channels last";
    if (has_doubtful_layout(field)) text += ", of a layout that nothing says: layout_is()";
    text += '\n';
  }
  if (plan.batch) {
    text += plan.combined_batches != nullptr
                ? fmt::format("batches of the datasets, of up to {} examples", plan.batch->global_batch)
                : printable(plan.batching);
    text += plan.buckets == nullptr ? "\n" : "  [an epoch first looks at all records' numbers: 4 bytes each]\n";
    for (const PlannedOperation& planned : plan.batch_operations) {
      text += printable(describe(planned.operation)) + "  [on batches]\n";
    }
    for (const StagePtr& stage : plan.batch_stages) text += printable(stage->describe()) + "  [on batches]\n";
    text += fmt::format("prefetch(batches={})\n", plan.prefetch);
  }
  return text;
}

}  // namespace headrace
