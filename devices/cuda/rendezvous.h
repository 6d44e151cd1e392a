// Where the streams of one GPU's replicas meet, and what they do together. Private to the CUDA backend.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "headrace/devices/cuda/reduction_tree.h"

namespace headrace::cuda {

inline constexpr int kNoRoot = -1;  // all-reduce

// What a replica brings to a meeting.
struct RendezvousCall {
  std::byte* data;
  std::int64_t bytes;
  int root;  // kNoRoot for a sum of f32
};

// What became of a replica's calls, kept until the host has read it.
enum class Outcome : std::uint32_t { kFine, kDisagreed, kCancelled, kTimedOut };

// Why a group was called off.
inline constexpr std::uint32_t kNotCancelled = 0;
inline constexpr std::uint32_t kCancelledByHost = 1;
inline constexpr std::uint32_t kReplicaFailed = 2;                  // + the replica whose stream had failed
inline constexpr std::uint32_t kReplicaMissing = 2 + kMaxReplicas;  // + the replica that was waited for in vain

// In device memory, zeroed at the start. A replica writes its own elements only.
struct RendezvousState {
  unsigned long long arrivals[kMaxReplicas];  // meetings each replica has come to, ever
  RendezvousCall calls[kMaxReplicas];
  std::uint32_t go[kMaxReplicas];  // 1 when the replica's present call is to be carried out
};

// In pinned host memory, zeroed at the start.
struct RendezvousWords {
  std::uint32_t cancelled;               // kNotCancelled ...; once set it stays
  std::uint32_t outcomes[kMaxReplicas];  // Outcome
};

struct Rendezvous {
  RendezvousState* state;
  RendezvousWords* words;
  int replica, replicas;
  // Not 0 when the replica's stream has failed; in pinned host memory.
  const std::uint32_t* stream_failed;
  unsigned long long patience_ns;
};

// Waits until all replicas have come, with the same call. The wait is on the GPU, by one block a replica.
cudaError_t meet(const Rendezvous& rendezvous, const RendezvousCall& call, cudaStream_t stream);
// The replica's part of the call: a slice summed over all replicas and written to all, or the root's bytes copied.
cudaError_t carry_out(const Rendezvous& rendezvous, const RendezvousCall& call, cudaStream_t stream);
// Waits until all replicas have carried theirs out.
cudaError_t part(const Rendezvous& rendezvous, cudaStream_t stream);

// Loads the kernels now: loading one may wait for the GPU, where another replica may be waiting already.
cudaError_t load_rendezvous_kernels();

}  // namespace headrace::cuda
