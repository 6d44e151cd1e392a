#include <algorithm>

#include "headrace/devices/cuda/load_kernels.h"
#include "headrace/devices/cuda/rendezvous.h"

namespace headrace::cuda {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMaxBlocks = 512;
constexpr int kHostPolls = 64;  // polls of device memory per poll of host memory

__device__ unsigned long long now_ns() {
  unsigned long long time = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
  return time;
}

template <typename T>
__device__ T read(const T* word) {
  return *static_cast<const volatile T*>(word);
}
template <typename T>
__device__ void write(T* word, T value) {
  *static_cast<volatile T*>(word) = value;
}

__device__ void report(const Rendezvous& r, Outcome outcome) {
  write(&r.words->outcomes[r.replica], static_cast<std::uint32_t>(outcome));
  __threadfence_system();
}

__device__ void cancel(const Rendezvous& r, std::uint32_t reason) {
  if (read(&r.words->cancelled) == kNotCancelled) write(&r.words->cancelled, reason);
  __threadfence_system();
}

// Returns true once all replicas have arrived as often as this one, false if further waiting is pointless.
__device__ bool all_arrive(const Rendezvous& r) {
  const unsigned long long mine = read(&r.state->arrivals[r.replica]) + 1;
  __threadfence();  // replicas that see the arrival also see this stream's earlier writes
  write(&r.state->arrivals[r.replica], mine);
  const unsigned long long start = now_ns();
  int polls = 0;
  for (int other = 0; other < r.local_replicas;) {
    if (read(&r.state->arrivals[other]) >= mine) {
      ++other;
      continue;
    }
    if (++polls < kHostPolls) {
      __nanosleep(100);
      continue;
    }
    polls = 0;
    if (read(&r.words->cancelled) != kNotCancelled) return false;
    if (now_ns() - start > r.patience_ns) {
      report(r, Outcome::kTimedOut);
      cancel(r, kReplicaMissing + static_cast<std::uint32_t>(other));
      return false;
    }
  }
  __threadfence();
  return true;
}

__device__ bool agree(const Rendezvous& r) {
  const RendezvousCall& mine = r.state->calls[r.replica];
  for (int other = 0; other < r.local_replicas; ++other) {
    if (read(&r.state->calls[other].bytes) != mine.bytes) return false;
    if (read(&r.state->calls[other].root) != mine.root) return false;
  }
  return true;
}

// One thread. A cancelled group stays cancelled: further calls of its replicas return at once.
__global__ void meet_kernel(Rendezvous r, RendezvousCall call) {
  write(&r.state->go[r.replica], 0U);
  if (read(r.stream_failed) != 0) {
    cancel(r, kReplicaFailed + static_cast<std::uint32_t>(r.replica));
    return;
  }
  write(&r.state->calls[r.replica].data, call.data);
  write(&r.state->calls[r.replica].bytes, call.bytes);
  write(&r.state->calls[r.replica].root, call.root);
  const bool called_off = read(&r.words->cancelled) != kNotCancelled;
  if (called_off || !all_arrive(r)) {
    if (read(&r.words->outcomes[r.replica]) == static_cast<std::uint32_t>(Outcome::kFine)) {
      report(r, Outcome::kCancelled);
    }
    return;
  }
  if (!agree(r)) {
    report(r, Outcome::kDisagreed);
    write(&r.state->go[r.replica], 2U);
    return;
  }
  write(&r.state->go[r.replica], 1U);
}

// Replicas that met also part, whether they agreed or not.
__global__ void part_kernel(Rendezvous r) {
  if (read(&r.state->go[r.replica]) == 0) return;
  if (all_arrive(r)) return;
  if (read(&r.words->outcomes[r.replica]) == static_cast<std::uint32_t>(Outcome::kFine)) {
    report(r, Outcome::kCancelled);
  }
}

__global__ void sum_kernel(Rendezvous r) {
  if (read(&r.state->go[r.replica]) != 1) return;
  __shared__ float* vectors[kMaxReplicas];
  for (int i = static_cast<int>(threadIdx.x); i < r.local_replicas; i += kThreads) {
    vectors[i] = reinterpret_cast<float*>(r.state->calls[i].data);
  }
  __syncthreads();
  const std::int64_t elements = r.state->calls[r.replica].bytes / static_cast<std::int64_t>(sizeof(float));
  const Slice slice = slice_of(elements, r.replica, r.local_replicas);
  for (std::int64_t i = slice.begin + static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
       i < slice.end; i += static_cast<std::int64_t>(gridDim.x) * kThreads) {
    const float sum = pairwise_sum(r.local_replicas, [&](int replica) { return vectors[replica][i]; });
    for (int replica = 0; replica < r.local_replicas; ++replica) vectors[replica][i] = sum;
  }
}

__global__ void copy_kernel(Rendezvous r) {
  if (read(&r.state->go[r.replica]) != 1) return;
  const RendezvousCall& mine = r.state->calls[r.replica];
  if (mine.root == r.replica) return;
  const std::byte* from = r.state->calls[mine.root].data;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < mine.bytes;
       i += static_cast<std::int64_t>(gridDim.x) * kThreads) {
    mine.data[i] = from[i];
  }
}

unsigned int blocks_for(std::int64_t items) {
  return static_cast<unsigned int>(std::clamp<std::int64_t>((items + kThreads - 1) / kThreads, 1, kMaxBlocks));
}

}  // namespace

cudaError_t meet(const Rendezvous& rendezvous, const RendezvousCall& call, cudaStream_t stream) {
  meet_kernel<<<1, 1, 0, stream>>>(rendezvous, call);
  return cudaGetLastError();
}

cudaError_t carry_out(const Rendezvous& rendezvous, const RendezvousCall& call, cudaStream_t stream) {
  if (call.root == kNoRoot) {
    const std::int64_t elements = call.bytes / static_cast<std::int64_t>(sizeof(float));
    sum_kernel<<<blocks_for(elements / rendezvous.local_replicas + 1), kThreads, 0, stream>>>(rendezvous);
  } else {
    copy_kernel<<<blocks_for(call.bytes), kThreads, 0, stream>>>(rendezvous);
  }
  return cudaGetLastError();
}

cudaError_t part(const Rendezvous& rendezvous, cudaStream_t stream) {
  part_kernel<<<1, 1, 0, stream>>>(rendezvous);
  return cudaGetLastError();
}

cudaError_t load_rendezvous_kernels() { return load_kernels(meet_kernel, part_kernel, sum_kernel, copy_kernel); }

}  // namespace headrace::cuda
