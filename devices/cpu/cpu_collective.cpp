#include "headrace/devices/cpu/cpu_collective.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/cpu/cpu_event.h"
#include "headrace/devices/cpu/cpu_stream.h"

namespace headrace {
namespace {

constexpr std::size_t kSummedBlock = 1024;  // elements; a block of every replica stays in the first-level cache
constexpr std::size_t kLineFloats = 16;     // slices begin on cache lines: no two replicas write one

void add(float* __restrict into, const float* __restrict from, std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) into[i] += from[i];
}

void sum_block(std::span<float* const> vectors, std::size_t begin, std::size_t count) noexcept {
  for (std::size_t stride = 1; stride < vectors.size(); stride *= 2) {
    for (std::size_t i = 0; i + stride < vectors.size(); i += 2 * stride) {
      add(vectors[i] + begin, vectors[i + stride] + begin, count);
    }
  }
  for (float* other : vectors.subspan(1)) std::memcpy(other + begin, vectors[0] + begin, count * sizeof(float));
}

}  // namespace

bool CpuBarrier::wait() {
  // In this order, all sequentially consistent: a cancel() that this check misses changes the generation that was
  // read before it, so the wait below ends.
  const std::uint32_t generation = generation_.load();
  if (cancelled_.load()) return false;
  if (arrived_.fetch_add(1) + 1 == threads_) {
    arrived_.store(0);
    generation_.fetch_add(1);
    generation_.notify_all();
  } else {
    wait_while(generation_, generation);
  }
  return !cancelled_.load();
}

void CpuBarrier::cancel(const std::string& reason) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (!cancelled_.load()) reason_ = reason;
    cancelled_.store(true);
  }
  generation_.fetch_add(1);
  generation_.notify_all();
}

std::string CpuBarrier::reason() const {
  const std::lock_guard lock(mutex_);
  return reason_;
}

void sum_in_place(std::span<float* const> vectors, std::size_t count) noexcept {
  for (std::size_t begin = 0; begin < count; begin += kSummedBlock) {
    sum_block(vectors, begin, std::min(kSummedBlock, count - begin));
  }
}

CpuCollective::CpuCollective(DeviceGroup& devices)
    : devices_(devices),
      barrier_(devices.size()),
      members_(static_cast<std::size_t>(devices.size())),
      vectors_(members_.size() * members_.size()) {}

void CpuCollective::all_reduce_sum(int replica, const TensorView& tensor, Stream& stream) {
  if (tensor.dtype != DType::kF32) {
    throw ConfigError(fmt::format("all_reduce_sum of {}: only float32 can be summed", to_string(tensor.dtype)));
  }
  submit(replica, {.data = tensor.as<std::byte>(), .bytes = tensor.bytes(), .root = kNoRoot}, stream);
}

void CpuCollective::broadcast(int replica, int root, const TensorView& tensor, Stream& stream) {
  if (root < 0 || root >= local_replicas()) {
    throw ConfigError(fmt::format("broadcast from replica {} in a group of {}", root, local_replicas()));
  }
  submit(replica, {.data = tensor.as<std::byte>(), .bytes = tensor.bytes(), .root = root}, stream);
}

void CpuCollective::submit(int replica, const Call& call, Stream& stream) {
  if (&stream.device() != &devices_[replica]) {
    throw ConfigError(fmt::format("replica {}: the stream is of {}, not of {}", replica,
                                  stream.device().info().name, devices_[replica].info().name));
  }
  if (local_replicas() == 1) return;
  static_cast<CpuStream&>(stream).submit(
      [this, replica, call] { meet(replica, call); },
      [this, replica] { abort(devices_[replica].info().name + " failed before this collective"); });
}

void CpuCollective::meet(int replica, const Call& call) {
  members_[static_cast<std::size_t>(replica)].call = call;
  wait(replica);
  const bool agreed = calls_agree();
  if (agreed && call.root == kNoRoot) reduce_slice(replica);
  if (agreed && call.root != kNoRoot && call.root != replica) {
    std::memcpy(call.data, members_[static_cast<std::size_t>(call.root)].call.data, call.bytes);
  }
  wait(replica);
  if (!agreed) {
    throw DeviceError(ErrorCode::kInvalidArgument,
                      fmt::format("the replicas disagree about a collective: here {} of {} bytes",
                                  call.root == kNoRoot ? "all-reduce" : "broadcast", call.bytes),
                      devices_[replica].info().name, "all must make the same calls in the same order");
  }
}

void CpuCollective::wait(int replica) {
  const Stopwatch waiting;
  const bool met = barrier_.wait();
  members_[static_cast<std::size_t>(replica)].waited_ns.fetch_add(static_cast<std::int64_t>(waiting.nanoseconds()),
                                                                  std::memory_order_relaxed);
  if (met) return;
  throw DeviceError(ErrorCode::kCancelled, "a collective was aborted: " + barrier_.reason(),
                    devices_[replica].info().name);
}

void CpuCollective::reduce_slice(int replica) {
  const std::size_t group = members_.size();
  const std::size_t count = members_[0].call.bytes / sizeof(float);
  const std::size_t lines = (count + kLineFloats - 1) / kLineFloats;
  const auto rank = static_cast<std::size_t>(replica);
  const std::size_t begin = std::min(count, lines * rank / group * kLineFloats);
  const std::size_t end = std::min(count, lines * (rank + 1) / group * kLineFloats);

  const std::span row(vectors_.data() + rank * group, group);
  for (std::size_t i = 0; i < group; ++i) row[i] = reinterpret_cast<float*>(members_[i].call.data) + begin;
  sum_in_place(row, end - begin);
}

bool CpuCollective::calls_agree() const noexcept {
  const Call& first = members_.front().call;
  return std::ranges::all_of(members_, [&](const Member& member) {
    return member.call.bytes == first.bytes && member.call.root == first.root;
  });
}

}  // namespace headrace
