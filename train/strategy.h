// Synchronous training with one mirrored copy of every variable on each device of a group.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "headrace/devices/base/api.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/collective.h"
#include "headrace/devices/device.h"
#include "headrace/devices/device_group.h"
#include "headrace/devices/kernels.h"
#include "headrace/devices/stream.h"
#include "headrace/pipeline/batch.h"
#include "headrace/pipeline/loader.h"
#include "headrace/train/graph.h"
#include "headrace/train/model.h"

namespace HEADRACE_API headrace {

// The streams of one replica's step. What a step submits to streams other than `compute` runs beside it, ordered
// by Stream::follow() alone, and belongs into one capture of it. Where that gains nothing they are `compute`, and
// the step is one chain.
struct ReplicaStreams {
  Stream& compute;
  Stream& communication = compute;  // sums over replicas
  Stream& weights = compute;        // gradients of weights: no other layer of the backward pass waits for them
  Stream& updates = compute;        // updates that need not wait for the end of the backward pass

  bool sums_apart() const noexcept { return &compute != &communication; }
  bool weights_apart() const noexcept { return &compute != &weights; }
  bool updates_apart() const noexcept { return &compute != &updates; }
};

// One replica as Strategy::run() and on() show it to a custom training loop. Valid during the call that it is
// given to.
struct ReplicaContext {
  int index = 0;           // within this process, from 0
  int local_replicas = 1;  // of this process
  int world_replicas = 1;  // of all processes that train together
  int first_replica = 0;   // of the world's, how many come before this process's
  Device& device;
  Stream& stream;  // in whose order the device works
  Kernels& kernels;
  const Batch* batch = nullptr;  // the replica's share, which `stream` waits for, where run() was given batches

  // A tensor of the device's memory as it stands once the stream has done what it was given; waits for that. An
  // error of that work is thrown here. ConfigError where it is not of T.
  template <typename T>
  std::vector<T> read(const TensorView& tensor) const {
    require<T>(tensor, static_cast<std::size_t>(tensor.elements()));
    std::vector<T> values(static_cast<std::size_t>(tensor.elements()));
    stream.copy(values.data(), tensor.data, tensor.bytes());
    stream.synchronize();
    return values;
  }

  // Sets all elements, in the stream's order; waits.
  template <typename T>
  void write(const TensorView& tensor, std::span<const std::type_identity_t<T>> values) const {
    require<T>(tensor, values.size());
    stream.copy(tensor.data, values.data(), tensor.bytes());
    stream.synchronize();
  }

 private:
  template <typename T>
  static void require(const TensorView& tensor, std::size_t values) {
    if (tensor.dtype != dtype_of<T>() || values != static_cast<std::size_t>(tensor.elements())) {
      throw ConfigError(std::to_string(values) + " values of " + to_string(dtype_of<T>()) + " for a tensor of " +
                        to_string(tensor.dtype) + " and shape " + tensor.shape.to_string());
    }
  }
};

struct StrategyOptions {
  // Print the strategy, its devices and "Number of devices: N".
  bool announce = true;
  // A process that a launcher started as one of several (TF_CONFIG, torchrun, MPI, PMIx, Slurm, Kubernetes) is
  // refused with a ConfigError, for it would train alone beside the others; true says that this is meant.
  bool standalone = false;
};

struct BuildOptions {
  std::uint64_t seed = 0;  // of the initial parameters
  Fields fields = {};      // of the data, for input() without a shape
};

// What becomes of one value a replica.
enum class ReduceOp {
  kSum,
  kMean,  // over the world's replicas, whatever each stands for: a mean of their means weighs examples unevenly
  kMax,
};

template <typename T>
concept Number = std::is_arithmetic_v<T>;

// For what names a strategy, as --strategy does: "mirrored" is what Strategy is. ConfigError for others: those of
// TensorFlow that are not provided are answered with what to use in their place.
void require_mirrored(const std::string& strategy);

// Owns the replicas' streams and their collective. Where a replica's device has memory of its own, parts of a step
// run beside others on streams of their own: gradients of weights, sums over several replicas and, where the world
// has one, updates. On a CPU they would take the cores from the compute stream; logical replicas that share a
// device keep each step one chain. `devices` must outlive it, it must outlive its models.
class Strategy {
 public:
  explicit Strategy(DeviceGroup& devices, const StrategyOptions& options = {});
  ~Strategy();
  Strategy(const Strategy&) = delete;
  Strategy& operator=(const Strategy&) = delete;

  // Builds the net once and gives every replica the same initial variables.
  Model build(const Net& net, const BuildOptions& options = {});

  // The replicas of this process, one a device: what streams, arenas and calls with a `replica` are of, from 0.
  int local_replicas() const noexcept { return devices_->size(); }
  // Those of all processes that train together: who shares a global batch, and what is summed and averaged over.
  int world_replicas() const noexcept { return collective().world_replicas(); }
  // How many of the world's come before this process's.
  int first_replica() const noexcept { return collective().first_replica(); }
  // For a loader on devices(), so that it serves these replicas.
  World world() const noexcept { return {.total = world_replicas(), .first = first_replica()}; }
  DeviceGroup& devices() const noexcept { return *devices_; }
  Device& device(int replica) const { return (*devices_)[replica]; }
  Stream& stream(int replica) const { return *streams_.at(static_cast<std::size_t>(replica)); }
  ReplicaStreams streams(int replica) const;
  // For work in several parts, some of which run at a time: the lanes of the replica's device (Device::lanes()),
  // opened when first asked for; the replica's own stream where it is one.
  int lanes(int replica) const { return device(replica).lanes(); }
  Stream& lane(int replica, int lane);
  Collective& collective() const noexcept { return *collectives_.back(); }

  // function(replica, stream) for all of them, lanes included.
  template <typename Function>
  void for_each_stream(const Function& function) const {
    for (int r = 0; r < local_replicas(); ++r) {
      function(r, stream(r));
      for (const auto& lane : lanes_.at(static_cast<std::size_t>(r))) function(r, *lane);
    }
  }

  // A step of your own: calls function(const ReplicaContext&) for each local replica, one after another on this
  // thread. What it submits runs side by side. Returns what it returned, in replica order. After an exception the
  // strategy has recovered, as below.
  template <typename Function>
  auto run(Function&& function) {
    return run_on_all(nullptr, std::forward<Function>(function));
  }
  // The same with a batch's shares, one a local replica; ConfigError where there are more or fewer.
  template <typename Function>
  auto run(const GlobalBatch& batches, Function&& function) {
    return run_on_all(&batches, std::forward<Function>(function));
  }

  // Work that is placed on one device, named as the group names it ("cuda:1"), or on one replica's; returns what
  // the function returned. ConfigError for one that the strategy does not have, naming those that it has.
  template <typename Function>
  auto on(const std::string& device, Function&& function) {
    return on(replica_on(device), std::forward<Function>(function));
  }
  template <typename Function>
  auto on(int replica, Function&& function) {
    using Result = std::invoke_result_t<Function&, const ReplicaContext&>;
    require_replica(replica);
    if constexpr (std::is_void_v<Result>) {
      call(replica, nullptr, function);
    } else {
      std::optional<Result> result;
      call(replica, nullptr, [&](const ReplicaContext& context) { result.emplace(function(context)); });
      return *std::move(result);
    }
  }

  // Of one value a local replica, as run() returns them: in double, with what each addition rounds away carried
  // along, so that the sum of whole numbers is exact up to 2^53 and any other is rounded once. Of lists, element
  // by element. ConfigError unless there is one a replica, all of one length.
  double reduce(ReduceOp op, std::span<const double> values) const;
  template <Number T>
  double reduce(ReduceOp op, const std::vector<T>& values) const {
    return reduce(op, std::span<const double>(std::vector<double>(values.begin(), values.end())));
  }
  template <Number T>
  std::vector<double> reduce(ReduceOp op, const std::vector<std::vector<T>>& lists) const {
    std::vector<std::vector<double>> wide;
    for (const std::vector<T>& list : lists) wide.emplace_back(list.begin(), list.end());
    return reduce_lists(op, wide);
  }
  // The same on the devices: each of these tensors, f32 and one a replica, becomes their sum, in stream order.
  void all_reduce(std::span<const TensorView> tensors);

  // Blocks until all streams are idle; throws the first replica's error.
  void synchronize();

  // After a failed step: drains the streams, drops their errors and opens a fresh collective. Trainers that were
  // made before can no longer be used. Where a device is lost and none opens, the old one stays: called off, so
  // that no thread waits in it.
  void recover() noexcept;

  // "MirroredStrategy over cpu:0, cpu:1\nNumber of devices: 2": this process's devices, the world's number.
  std::string to_string() const;

 private:
  using Call = std::function<void(const ReplicaContext&)>;

  template <typename Function>
  auto run_on_all(const GlobalBatch* batches, Function&& function) {
    using Result = std::invoke_result_t<Function&, const ReplicaContext&>;
    require_shares(batches);
    if constexpr (std::is_void_v<Result>) {
      for (int r = 0; r < local_replicas(); ++r) call(r, batches, function);
    } else {
      std::vector<Result> results;
      for (int r = 0; r < local_replicas(); ++r) {
        call(r, batches, [&](const ReplicaContext& context) { results.push_back(function(context)); });
      }
      return results;
    }
  }

  void open_streams_beside();
  void call(int replica, const GlobalBatch* batches, const Call& function);
  int replica_on(const std::string& device) const;
  void require_replica(int replica) const;
  void require_shares(const GlobalBatch* batches) const;
  void require_one_each(std::size_t count, const char* what) const;
  std::vector<double> reduce_lists(ReduceOp op, const std::vector<std::vector<double>>& lists) const;

  DeviceGroup* devices_;
  std::vector<std::unique_ptr<Collective>> collectives_;  // the last one is in use, earlier ones were aborted
  std::vector<std::unique_ptr<Stream>> streams_;
  // Of each replica; null where it is the compute stream.
  std::vector<std::unique_ptr<Stream>> communication_, weights_, updates_;
  std::vector<std::vector<std::unique_ptr<Stream>>>
      lanes_;  // of each replica; none before the first was asked for
};

}  // namespace headrace
