// Synchronous training with one mirrored copy of every variable on each device of a group.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "headrace/devices/collective.h"
#include "headrace/devices/device_group.h"
#include "headrace/train/graph.h"
#include "headrace/train/model.h"
#include "headrace/train/replica_streams.h"

namespace headrace {

struct StrategyOptions {
  // Print the strategy, its devices and "Number of devices: N".
  bool announce = true;
  // A process that a launcher started as one of several (TF_CONFIG, torchrun, mpirun, Slurm) is refused with a
  // ConfigError, for it would train alone beside the others; true says that this is meant.
  bool standalone = false;
};

struct BuildOptions {
  std::uint64_t seed = 0;  // of the initial parameters
  Fields fields = {};      // of the data, for input() without a shape
};

// Owns the replicas' streams and their collective. A replica among several whose device has memory of its own sums
// on a stream of its own, where the collective runs beside other work; a CPU's would take the cores from its
// compute stream. `devices` must outlive it, it must outlive its models.
class Strategy {
 public:
  explicit Strategy(DeviceGroup& devices, const StrategyOptions& options = {});
  ~Strategy();
  Strategy(const Strategy&) = delete;
  Strategy& operator=(const Strategy&) = delete;

  // Builds the net once and gives every replica the same initial variables.
  Model build(const Net& net, const BuildOptions& options = {});

  int replicas() const noexcept { return devices_->size(); }
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
    for (int r = 0; r < replicas(); ++r) {
      function(r, stream(r));
      for (const auto& lane : lanes_.at(static_cast<std::size_t>(r))) function(r, *lane);
    }
  }

  // Blocks until all streams are idle; throws the first replica's error.
  void synchronize();

  // After a failed step: drains the streams, drops their errors and opens a fresh collective. Trainers that were
  // made before can no longer be used. Where a device is lost and none opens, the old one stays: called off, so
  // that no thread waits in it.
  void recover() noexcept;

  // "MirroredStrategy over cpu:0, cpu:1\nNumber of devices: 2"
  std::string to_string() const;

 private:
  DeviceGroup* devices_;
  std::vector<std::unique_ptr<Collective>> collectives_;  // the last one is in use, earlier ones were aborted
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<std::unique_ptr<Stream>> communication_;  // null where it is the compute stream
  std::vector<std::vector<std::unique_ptr<Stream>>>
      lanes_;  // of each replica; none before the first was asked for
};

}  // namespace headrace
