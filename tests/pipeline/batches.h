// Batches of numbers, for the tests of what stands in which batch.
#pragma once

#include "headrace/tests/pipeline/streams.h"

namespace headrace::test {

using Batches = std::vector<std::vector<std::int64_t>>;

// Values first, first + 1, ...
inline Dataset counted(std::int64_t first, std::uint64_t count, const std::string& field = "value") {
  std::vector<std::byte> bytes(count * sizeof first);
  for (std::uint64_t i = 0; i < count; ++i, ++first)
    std::memcpy(bytes.data() + i * sizeof first, &first, sizeof first);
  return Dataset::from(
      in_memory("counted", count,
                {Array{.field = {.name = field, .dtype = DType::kI64, .shape = {}}, .bytes = std::move(bytes)}}));
}

// `total` replicas, of which each loader serves `local`; 0: one loader serves all.
struct Replicas {
  int total = 1, local = 0;
};

// The global batches of all epochs, of the first field or the one that is named, on CPU replicas.
inline Batches batches_of(const Dataset& data, std::uint64_t epochs, const Replicas& replicas,
                          const std::string& field = {}, std::uint64_t seed = 4) {
  const int local = replicas.local == 0 ? replicas.total : replicas.local;
  Batches all(data.steps_per_epoch() * epochs);
  for (int first = 0; first < replicas.total; first += local) {
    DeviceGroup devices = cpu_replicas(local);
    Loader loader(
        data, devices,
        {.seed = seed, .epochs = epochs, .world = {.total = replicas.total, .first = first}, .threads = 2});
    for (std::vector<std::int64_t>& whole : all) {
      for (int r = 0; r < local; ++r) {
        const auto batch = loader.next(r);
        if (!batch) throw Error(ErrorCode::kInternal, "the stream ends too early");
        const std::string& name = field.empty() ? batch->fields()[0].name : field;
        const auto values = download_examples<std::int64_t>(devices[r], *batch, name);
        whole.insert(whole.end(), values.begin(), values.end());
      }
    }
    if (loader.next(0)) throw Error(ErrorCode::kInternal, "the stream does not end");
  }
  return all;
}

// Those of one epoch, on one replica.
inline Batches batches_of_epoch(const Dataset& data, std::uint64_t epoch = 0, const std::string& field = {}) {
  const Batches all = batches_of(data, epoch + 1, {}, field);
  const auto steps = static_cast<std::ptrdiff_t>(data.steps_per_epoch());
  return {all.end() - steps, all.end()};
}

}  // namespace headrace::test
