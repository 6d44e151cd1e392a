// Replicas with a vector each, for the suite of the collectives, and the oracle: the contract's pairwise tree.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/rng.h"
#include "headrace/devices/collective.h"

namespace headrace::test {

// A group of replicas, each with a stream and a vector in its device's memory.
class Replicas {
 public:
  using Create = std::function<std::unique_ptr<Collective>(DeviceGroup&)>;

  Replicas(
      DeviceGroup devices, std::size_t count,
      const Create& create = [](DeviceGroup& group) { return create_collective(group); })
      : devices_(std::move(devices)), collective_(create(devices_)), count_(count) {
    for (int r = 0; r < size(); ++r) {
      streams_.push_back(devices_[r].create_stream());
      buffers_.push_back(devices_[r].allocate(count * sizeof(float)));
      values_.emplace_back(count);
    }
  }

  int size() const { return devices_.size(); }
  Device& device(int replica) const { return devices_[replica]; }
  Collective& group() const { return *collective_; }
  // Whose sums are the tree's.
  Collective& collective() const { return collective_->in_order(); }
  // What upload() brings to this replica.
  std::vector<float>& values(int replica) { return values_[static_cast<std::size_t>(replica)]; }
  TensorView view(int replica) const {
    return buffers_[static_cast<std::size_t>(replica)].view({static_cast<std::int64_t>(count_)}, DType::kF32);
  }
  Stream& stream(int replica) const { return *streams_[static_cast<std::size_t>(replica)]; }

  // Signs and magnitudes over 2^24, so that another order of addition gives other bits.
  void randomize(std::uint64_t seed) {
    for (int r = 0; r < size(); ++r) {
      Philox random({.seed = seed, .epoch = 0, .record = static_cast<std::uint64_t>(r), .operation = 0});
      for (float& value : values(r)) {
        value = (random.uniform() - 0.5F) * static_cast<float>(1U << random.below(24));
      }
    }
  }

  void upload() {
    each([](Replicas& all, int r) {
      all.stream(r).copy(all.view(r).data, all.values(r).data(), all.count_ * sizeof(float));
    });
  }
  void all_reduce() {
    each([](Replicas& all, int r) { all.collective().all_reduce_sum(r, all.view(r), all.stream(r)); });
  }

  void each(const std::function<void(Replicas&, int)>& act) {
    for (int r = 0; r < size(); ++r) act(*this, r);
  }

  std::vector<float> download(int replica) {
    std::vector<float> result(count_);
    stream(replica).copy(result.data(), view(replica).data, count_ * sizeof(float));
    stream(replica).synchronize();
    return result;
  }

  // ((0+1)+(2+3))+...: neighbours are added, an odd one out moves up.
  float tree_sum(std::size_t element) const {
    std::vector<float> level;
    for (const auto& vector : values_) level.push_back(vector[element]);
    while (level.size() > 1) {
      std::vector<float> next;
      for (std::size_t i = 0; i + 1 < level.size(); i += 2) next.push_back(level[i] + level[i + 1]);
      if (level.size() % 2 == 1) next.push_back(level.back());
      level = std::move(next);
    }
    return level[0];
  }

  std::vector<float> tree_sums() const {
    std::vector<float> sums(count_);
    for (std::size_t i = 0; i < count_; ++i) sums[i] = tree_sum(i);
    return sums;
  }

 private:
  DeviceGroup devices_;
  std::unique_ptr<Collective> collective_;
  std::size_t count_;
  std::vector<std::vector<float>> values_;
  std::vector<Buffer> buffers_;
  std::vector<std::unique_ptr<Stream>> streams_;  // last: they end before what their work refers to
};

// The code and message of the stream's error; kInternal and "" where there is none.
inline std::pair<ErrorCode, std::string> error_of(Stream& stream) {
  try {
    stream.synchronize();
  } catch (const Error& error) {
    return {error.code(), error.message()};
  } catch (const std::exception& error) {
    return {ErrorCode::kDevice, error.what()};
  }
  return {ErrorCode::kInternal, ""};
}

}  // namespace headrace::test
