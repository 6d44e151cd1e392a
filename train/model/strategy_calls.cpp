// The strategy's functions for custom training loops.
#include <algorithm>
#include <array>
#include <cmath>

#include "headrace/devices/base/error.h"
#include "headrace/devices/workers.h"
#include "headrace/train/strategy.h"

namespace headrace {
namespace {

// Returns the sum after Neumaier, "Rundungsfehleranalyse einiger Verfahren zur Summation endlicher Summen" (1974):
// also sums what each addition rounds away.
double exact_sum(std::span<const double> values) {
  double sum = 0, lost = 0;
  for (const double value : values) {
    const double more = sum + value;
    lost += std::abs(sum) >= std::abs(value) ? (sum - more) + value : (value - more) + sum;
    sum = more;
  }
  return std::isfinite(lost) ? sum + lost : sum;
}

double reduce_values(ReduceOp op, std::span<const double> values) {
  if (op == ReduceOp::kSum) return exact_sum(values);
  if (op == ReduceOp::kMean) return exact_sum(values) / static_cast<double>(values.size());
  double max = values.front();
  for (const double value : values) {
    if (std::isnan(value) || value > max) max = value;  // a NaN stays
  }
  return max;
}

void require_one_length(const std::vector<std::vector<double>>& lists) {
  for (const std::vector<double>& list : lists) {
    if (list.size() == lists.front().size()) continue;
    throw ConfigError("lists to reduce have " + std::to_string(lists.front().size()) + " and " +
                      std::to_string(list.size()) + " elements");
  }
}

struct OtherStrategy {
  const char* name;
  const char* instead;
};
constexpr const char* kMirrored = "use mirrored: it takes one device or several";
constexpr const char* kMultiWorker = "use multi-worker mirrored, in which every worker holds all variables";
constexpr std::array kOthers = {
    OtherStrategy{.name = "parameter-server", .instead = kMultiWorker},
    OtherStrategy{.name = "central-storage", .instead = kMirrored},
    OtherStrategy{.name = "one-device", .instead = kMirrored},
    OtherStrategy{.name = "tpu",
                  .instead = "use mirrored, on GPUs or the CPU; over several workers multi-worker mirrored"}};

}  // namespace

void require_mirrored(const std::string& strategy) {
  if (strategy == "mirrored" || strategy == "multi-worker-mirrored") return;
  for (const OtherStrategy& other : kOthers) {
    if (strategy == other.name) {
      throw ConfigError("strategy '" + strategy + "' is not provided", other.instead);
    }
  }
  throw ConfigError("there is no strategy '" + strategy + "'", kMirrored);
}

// Other replicas' streams may wait for what this replica would have submitted.
void Strategy::call(int replica, const GlobalBatch* batches, const Call& function) {
  try {
    const Batch* share = batches == nullptr ? nullptr : &(*batches)[static_cast<std::size_t>(replica)];
    if (share != nullptr) stream(replica).wait(share->ready());
    function({.index = replica,
              .local_replicas = local_replicas(),
              .world_replicas = world_replicas(),
              .first_replica = first_replica(),
              .device = device(replica),
              .stream = stream(replica),
              .kernels = *device(replica).kernels(),
              .batch = share});
  } catch (...) {
    recover();
    throw;
  }
}

int Strategy::replica_on(const std::string& name) const {
  for (int r = 0; r < local_replicas(); ++r) {
    if (device(r).info().name == name) return r;
  }
  throw ConfigError("there is no device '" + name + "' in this strategy", "it has " + devices_->to_string());
}

void Strategy::require_replica(int replica) const {
  if (replica >= 0 && replica < local_replicas()) return;
  throw ConfigError("there is no replica " + std::to_string(replica) + " in this strategy",
                    "it has 0 to " + std::to_string(local_replicas() - 1) + ", on " + devices_->to_string());
}

void Strategy::require_shares(const GlobalBatch* batches) const {
  if (batches == nullptr || static_cast<int>(batches->size()) == local_replicas()) return;
  throw ConfigError("a batch of " + std::to_string(batches->size()) + " shares for " +
                        std::to_string(local_replicas()) + " replicas",
                    "take it from a loader on the strategy's devices");
}

void Strategy::require_one_each(std::size_t count, const char* what) const {
  if (static_cast<int>(count) == local_replicas()) return;
  throw ConfigError(
      std::to_string(count) + " " + what + " to reduce over " + std::to_string(local_replicas()) + " replicas",
      "give one a replica, as run() returns them");
}

double Strategy::reduce(ReduceOp op, std::span<const double> values) const {
  require_one_each(values.size(), "values");
  std::vector<std::vector<double>> lists;
  for (const double value : values) lists.push_back({value});
  return reduce_lists(op, lists).front();
}

std::vector<std::vector<double>> Strategy::gather(const std::vector<std::vector<double>>& lists) const {
  if (!workers_) return lists;
  std::vector<double> mine;
  for (const std::vector<double>& list : lists) mine.insert(mine.end(), list.begin(), list.end());
  std::vector<std::vector<double>> all;
  for (const std::vector<double>& values : gather_values(*workers_, std::span<const double>(mine))) {
    const auto each = static_cast<std::ptrdiff_t>(values.size() / lists.size());
    for (std::size_t r = 0; r < lists.size(); ++r) {
      const auto begin = values.begin() + static_cast<std::ptrdiff_t>(r) * each;
      all.emplace_back(begin, begin + each);
    }
  }
  return all;
}

std::vector<double> Strategy::reduce_lists(ReduceOp op, const std::vector<std::vector<double>>& lists) const {
  require_one_each(lists.size(), "lists");
  require_one_length(lists);
  const std::vector<std::vector<double>> world = gather(lists);
  require_one_length(world);
  std::vector<double> reduced, column(world.size());
  for (std::size_t i = 0; i < world.front().size(); ++i) {
    for (std::size_t r = 0; r < world.size(); ++r) column[r] = world[r][i];
    reduced.push_back(reduce_values(op, column));
  }
  return reduced;
}

void Strategy::all_reduce(std::span<const TensorView> tensors) {
  require_one_each(tensors.size(), "tensors");
  for (const TensorView& tensor : tensors) {
    if (tensor.dtype != DType::kF32 || tensor.shape != tensors.front().shape) {
      throw ConfigError("tensors to sum over replicas are all f32 and of one shape");
    }
  }
  if (world_replicas() == 1) return;
  run([&](const ReplicaContext& replica) {
    collective().all_reduce_sum(replica.index, tensors[static_cast<std::size_t>(replica.index)], replica.stream);
  });
}

}  // namespace headrace
