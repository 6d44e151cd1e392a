// Plans: made from a source, and stages added to them.
#include "headrace/pipeline/dataset.h"

#include <cstddef>

#include "headrace/bindings/c/library/handles.h"
#include "headrace/bindings/c/library/structs.h"

namespace headrace::c {
namespace {

// Runs the body of a function that replaces the plan with the result of `with_stage`.
template <typename WithStage>
hr_status add_stage(const char* function, hr_dataset* dataset, const WithStage& with_stage) noexcept {
  return guarded(function, [&] {
    hr_dataset& changed = given(dataset, "dataset");
    changed.plan = with_stage(changed.plan);
  });
}

Remainder remainder_of(bool drop) { return drop ? Remainder::kDrop : Remainder::kKeep; }

Operations chain_of(const hr_operations* chain) {
  const std::vector<Operation>& list = given(chain, "chain").list;
  if (list.empty()) throw ConfigError("hr_dataset_map: the chain has no operations", "add some, as hr_flip()");
  Operations all = list.front();
  for (std::size_t i = 1; i < list.size(); ++i) all = std::move(all) | Operations(list[i]);
  return all;
}

Dataset shuffled(const Dataset& plan, const hr_shuffle_options& how) {
  if (how.window == 0) return plan.shuffle({.seed = how.seed, .each_epoch_anew = how.each_epoch_anew});
  return plan.shuffle_window({.size = how.window, .seed = how.seed, .each_epoch_anew = how.each_epoch_anew});
}

std::vector<PadField> pad_of(const hr_pad_field* fields, std::size_t count) {
  std::vector<PadField> all;
  for (std::size_t i = 0; i < count; ++i) {
    const hr_pad_field& pad = (&given(fields, "pad"))[i];
    if (pad.value > 255) throw ConfigError("hr_pad_field.value is no byte", "it is 0 to 255");
    all.push_back({.field = &given(pad.field, "pad.field"),
                   .length = pad.length,
                   .value = static_cast<std::byte>(pad.value)});
  }
  return all;
}

PaddedBatchOptions padded_batch_of(const hr_padded_batch_options& how) {
  return {
      .global = how.global, .remainder = remainder_of(how.drop_remainder), .pad = pad_of(how.pad, how.pad_count)};
}

RaggedBatchOptions ragged_batch_of(const hr_ragged_batch_options& how) {
  RaggedBatchOptions options{.global = how.global, .remainder = remainder_of(how.drop_remainder)};
  for (std::size_t i = 0; i < how.field_count; ++i) {
    const hr_ragged_field& field = (&given(how.fields, "fields"))[i];
    options.fields.push_back({.field = &given(field.field, "fields.field"), .max_length = field.max_length});
  }
  return options;
}

template <typename Number>
std::vector<Number> numbers_of(const Number* numbers, std::size_t count, const char* name) {
  if (count == 0) return {};
  const Number* first = &given(numbers, name);
  return {first, first + count};
}

BucketOptions buckets_of(const hr_bucket_options& how) {
  return {.field = &given(how.field, "field"),
          .boundaries = numbers_of(how.boundaries, how.boundary_count, "boundaries"),
          .batch_sizes = numbers_of(how.batch_sizes, how.batch_size_count, "batch_sizes"),
          .max_length = how.max_length,
          .remainder = remainder_of(how.drop_remainder),
          .pad = pad_of(how.pad, how.pad_count)};
}

}  // namespace
}  // namespace headrace::c

using headrace::Dataset;
using headrace::c::add_stage;
using headrace::c::given;
using headrace::c::guarded;

hr_status hr_dataset_from(const hr_source* source, hr_dataset** dataset) {
  return guarded(__func__, [&] {
    hr_dataset*& result = given(dataset, "dataset");
    result = new hr_dataset(Dataset::from(given(source, "source").source));
  });
}

hr_status hr_dataset_copy(const hr_dataset* dataset, hr_dataset** copy) {
  return guarded(__func__, [&] {
    hr_dataset*& result = given(copy, "copy");
    result = new hr_dataset(given(dataset, "dataset").plan);
  });
}

void hr_dataset_free(hr_dataset* dataset) { delete dataset; }

hr_status hr_dataset_decode(hr_dataset* dataset, const hr_decode_options* options) {
  return add_stage(__func__, dataset, [&](const Dataset& plan) {
    const auto how = HR_READ(hr_decode_options, HR_DECODE_OPTIONS_INIT, options);
    return plan.decode({.height = how.height, .width = how.width, .apply_orientation = how.apply_orientation});
  });
}

hr_status hr_dataset_map(hr_dataset* dataset, const hr_operations* chain) {
  return add_stage(__func__, dataset, [&](const Dataset& plan) { return plan.map(headrace::c::chain_of(chain)); });
}

hr_status hr_dataset_shuffle(hr_dataset* dataset, const hr_shuffle_options* options) {
  return add_stage(__func__, dataset, [&](const Dataset& plan) {
    return headrace::c::shuffled(plan, HR_READ(hr_shuffle_options, HR_SHUFFLE_OPTIONS_INIT, options));
  });
}

hr_status hr_dataset_repeat(hr_dataset* dataset, int64_t times) {
  return add_stage(__func__, dataset, [&](const Dataset& plan) { return plan.repeat(times); });
}

hr_status hr_dataset_take(hr_dataset* dataset, uint64_t count) {
  return add_stage(__func__, dataset, [&](const Dataset& plan) { return plan.take(count); });
}

hr_status hr_dataset_skip(hr_dataset* dataset, uint64_t count) {
  return add_stage(__func__, dataset, [&](const Dataset& plan) { return plan.skip(count); });
}

hr_status hr_dataset_select(hr_dataset* dataset, const uint64_t* numbers, size_t count) {
  return add_stage(__func__, dataset, [&](const Dataset& plan) {
    return plan.select(headrace::c::numbers_of(numbers, count, "numbers"));
  });
}

hr_status hr_dataset_shard(hr_dataset* dataset, uint64_t count, uint64_t index) {
  return add_stage(__func__, dataset, [&](const Dataset& plan) { return plan.shard(count, index); });
}

hr_status hr_dataset_without_shard(hr_dataset* dataset, uint64_t count, uint64_t index) {
  return add_stage(__func__, dataset, [&](const Dataset& plan) { return plan.without_shard(count, index); });
}

hr_status hr_dataset_shard_for_worker(hr_dataset* dataset, uint64_t count, uint64_t index, int32_t by) {
  return add_stage(__func__, dataset, [&](const Dataset& plan) {
    return plan.shard_for_worker(
        {.count = count, .index = index, .by = headrace::c::enum_of(by, headrace::ShardBy::kElement, "by")});
  });
}

hr_status hr_dataset_enumerate(hr_dataset* dataset, const char* field) {
  return add_stage(__func__, dataset, [&](const Dataset& plan) {
    return field == nullptr ? plan.enumerate() : plan.enumerate({.field = field});
  });
}

hr_status hr_dataset_unbatch(hr_dataset* dataset) {
  return add_stage(__func__, dataset, [&](const Dataset& plan) { return plan.unbatch(); });
}

hr_status hr_dataset_cache(hr_dataset* dataset, const hr_cache* cache) {
  return add_stage(__func__, dataset,
                   [&](const Dataset& plan) { return plan.cache(given(cache, "cache").cache); });
}

hr_status hr_dataset_batch(hr_dataset* dataset, const hr_batch_options* options) {
  return add_stage(__func__, dataset, [&](const Dataset& plan) {
    const auto how = HR_READ(hr_batch_options, HR_BATCH_OPTIONS_INIT, options);
    return plan.batch({.global = how.global, .remainder = headrace::c::remainder_of(how.drop_remainder)});
  });
}

hr_status hr_dataset_padded_batch(hr_dataset* dataset, const hr_padded_batch_options* options) {
  return add_stage(__func__, dataset, [&](const Dataset& plan) {
    const auto how = HR_READ(hr_padded_batch_options, HR_PADDED_BATCH_OPTIONS_INIT, options);
    return plan.padded_batch(headrace::c::padded_batch_of(how));
  });
}

hr_status hr_dataset_ragged_batch(hr_dataset* dataset, const hr_ragged_batch_options* options) {
  return add_stage(__func__, dataset, [&](const Dataset& plan) {
    const auto how = HR_READ(hr_ragged_batch_options, HR_RAGGED_BATCH_OPTIONS_INIT, options);
    return plan.ragged_batch(headrace::c::ragged_batch_of(how));
  });
}

hr_status hr_dataset_bucket_by_length(hr_dataset* dataset, const hr_bucket_options* options) {
  return add_stage(__func__, dataset, [&](const Dataset& plan) {
    const auto how = HR_READ(hr_bucket_options, HR_BUCKET_OPTIONS_INIT, options);
    return plan.bucket_by_length(headrace::c::buckets_of(how));
  });
}

hr_status hr_dataset_prefetch(hr_dataset* dataset, int32_t batches) {
  return add_stage(__func__, dataset, [&](const Dataset& plan) { return plan.prefetch(batches); });
}
