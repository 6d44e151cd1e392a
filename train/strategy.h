// Synchronous training with one mirrored copy of every variable on each device of a group, in one process or in
// several: a program that passes open_world() runs unchanged as one worker or as one of many.
//
//   Strategy strategy(devices, {.workers = open_world()});
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
#include "headrace/devices/workers.h"
#include "headrace/pipeline/batch.h"
#include "headrace/pipeline/loader.h"
#include "headrace/train/graph.h"
#include "headrace/train/model.h"

namespace HEADRACE_API headrace {

// The streams of one replica's step. Work submitted to streams other than `compute` runs beside it, ordered only
// by Stream::follow(), and belongs in a single capture of `compute`. If a separate stream gains nothing it is
// `compute`; if all are, the step is one chain.
struct ReplicaStreams {
  Stream& compute;
  Stream& communication = compute;  // sums over replicas
  Stream& weights = compute;        // gradients of weights: no other layer of the backward pass waits for them
  Stream& updates = compute;        // updates that need not wait for the end of the backward pass

  bool sums_apart() const noexcept { return &compute != &communication; }
  bool weights_apart() const noexcept { return &compute != &weights; }
  bool updates_apart() const noexcept { return &compute != &updates; }
};

// One replica, as passed by Strategy::run() and on() to a custom training loop. Valid during that call.
struct ReplicaContext {
  int index = 0;           // within this process, zero-based
  int local_replicas = 1;  // of this process
  int world_replicas = 1;  // of all processes that train together
  int first_replica = 0;   // number of the world's replicas before this process's
  Device& device;
  Stream& stream;  // in whose order the device works
  Kernels& kernels;
  const Batch* batch = nullptr;  // the replica's share, which `stream` waits for; null without batches

  // Waits until the stream has done all submitted work and returns the elements of a tensor in device memory.
  // Throws the errors of that work, and ConfigError if the elements are not of type T.
  template <typename T>
  std::vector<T> read(const TensorView& tensor) const {
    require<T>(tensor, static_cast<std::size_t>(tensor.elements()));
    std::vector<T> values(static_cast<std::size_t>(tensor.elements()));
    stream.copy(values.data(), tensor.data, tensor.bytes());
    stream.synchronize();
    return values;
  }

  // Sets all elements in the stream's order; waits.
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
  bool announce = true;
  // The processes to train with, as open_world() returns them; null: this process alone.
  std::shared_ptr<Workers> workers = nullptr;
  bool standalone = false;
  void each_field(OptionVisitor& visit) {
    visit("announce", announce,
          "Whether the strategy, its devices and their number are printed; of several workers, by the chief.");
    visit("standalone", standalone,
          "False: without workers, a process that a launcher started as one of several (TF_CONFIG, torchrun, MPI, "
          "PMIx, Slurm, Kubernetes) is refused, since it would train alone beside the others.");
  }
};

struct BuildOptions {
  std::uint64_t seed = 0;
  Fields fields = {};  // of the data, for input() without a shape
  void each_field(OptionVisitor& visit) { visit("seed", seed, "Of the initial parameters."); }
};

// The combination of one value per replica.
enum class ReduceOp {
  kSum,
  kMean,  // over the world's replicas, with equal weights: a mean of their means weighs examples unevenly
  kMax,
};

template <typename T>
concept Number = std::is_arithmetic_v<T>;

// Checks the name of a strategy, as for --strategy: "mirrored" is the class Strategy. Throws ConfigError for
// others; for TensorFlow's strategies that are not provided, the message says what to use instead.
void require_mirrored(const std::string& strategy);

// Owns the replicas' streams and their collective. If a replica's device has its own memory, parts of a step run
// beside others on separate streams: gradients of weights, sums over several replicas and, if the world has one
// replica, updates. On a CPU they would take cores from the compute stream, and logical replicas that share a
// device keep each step one chain. REQUIRES: `devices` outlives it; it outlives its models.
class Strategy {
 public:
  explicit Strategy(DeviceGroup& devices, const StrategyOptions& options = {});
  ~Strategy();
  Strategy(const Strategy&) = delete;
  Strategy& operator=(const Strategy&) = delete;

  // Builds the net once and gives every replica the same initial variables.
  Model build(const Net& net, const BuildOptions& options = {});

  // Returns the number of this process's replicas, one per device: the zero-based `replica` arguments are local.
  int local_replicas() const noexcept { return devices_->size(); }
  // Returns the number of replicas of all processes that train together, which share a global batch and its sums.
  int world_replicas() const noexcept { return collective().world_replicas(); }
  // Returns the number of the world's replicas before this process's.
  int first_replica() const noexcept { return collective().first_replica(); }
  // Returns the processes that train together; null for one alone.
  const std::shared_ptr<Workers>& workers() const noexcept { return workers_; }
  // Returns whether this process writes checkpoints, logs and reports: worker 0, or the only one.
  bool is_chief() const noexcept { return workers_ == nullptr || workers_->rank() == 0; }
  // Returns the world to give to a loader on devices(), so that it serves these replicas.
  World world() const noexcept { return {.total = world_replicas(), .first = first_replica()}; }
  DeviceGroup& devices() const noexcept { return *devices_; }
  Device& device(int replica) const { return (*devices_)[replica]; }
  Stream& stream(int replica) const { return *streams_.at(static_cast<std::size_t>(replica)); }
  ReplicaStreams streams(int replica) const;
  // Returns the number of lanes of the replica's device (Device::lanes()), for work in several concurrent parts.
  // lane() opens them on first use; a single lane is the replica's own stream.
  int lanes(int replica) const { return device(replica).lanes(); }
  Stream& lane(int replica, int lane);
  Collective& collective() const noexcept { return *collectives_.back(); }

  // Calls function(replica, stream) for all streams, lanes included.
  template <typename Function>
  void for_each_stream(const Function& function) const {
    for (int r = 0; r < local_replicas(); ++r) {
      function(r, stream(r));
      for (const auto& lane : lanes_.at(static_cast<std::size_t>(r))) function(r, *lane);
    }
  }

  // Runs a custom step: calls function(const ReplicaContext&) for each local replica, one after another on this
  // thread; the submitted work runs concurrently. Returns the results in replica order. After an exception the
  // strategy has recovered, see recover().
  template <typename Function>
  auto run(Function&& function) {
    return run_on_all(nullptr, std::forward<Function>(function));
  }
  // As above, with a batch's shares, one per local replica. Throws ConfigError if their number differs.
  template <typename Function>
  auto run(const GlobalBatch& batches, Function&& function) {
    return run_on_all(&batches, std::forward<Function>(function));
  }

  // Runs work on one device, named as in the group ("cuda:1"), or on one replica's; returns the function's result.
  // Throws ConfigError listing the strategy's devices or replicas if there is no such one.
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

  // Combines one value per replica of the world, as run() returns the local ones, in double; each addition's
  // rounding error is carried along, so that a sum of whole numbers is exact up to 2^53 and any other is rounded
  // once. Combines lists element by element. All workers make the call. Throws ConfigError unless there is one per
  // replica, all of one length.
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
  // Replaces each of these f32 device tensors, one per replica, by their sum, in stream order.
  void all_reduce(std::span<const TensorView> tensors);

  // Blocks until all streams are idle; throws the first replica's error.
  void synchronize();

  // Recovers from a failed step: drains the streams, drops their errors and opens a new collective. Trainers made
  // earlier can no longer be used. If a device is lost and no collective opens, the old one stays, aborted, so
  // that no thread waits in it; also with several workers, which all end and are started again.
  void recover() noexcept;

  // Returns "MirroredStrategy over cpu:0, cpu:1\nNumber of devices: 2"; of several workers
  // "MultiWorkerMirroredStrategy over cpu:0 on each of 2 workers\nNumber of devices: 2".
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
  // Returns the lists of all replicas of the world.
  std::vector<std::vector<double>> gather(const std::vector<std::vector<double>>& lists) const;

  DeviceGroup* devices_;
  std::shared_ptr<Workers> workers_;
  std::vector<std::unique_ptr<Collective>> collectives_;  // the last one is in use, earlier ones were aborted
  std::vector<std::unique_ptr<Stream>> streams_;
  // By replica; null if it is the compute stream.
  std::vector<std::unique_ptr<Stream>> communication_, weights_, updates_;
  std::vector<std::vector<std::unique_ptr<Stream>>> lanes_;  // by replica; opened on first use
};

}  // namespace headrace
