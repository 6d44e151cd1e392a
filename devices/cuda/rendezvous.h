// Where the streams of one GPU's replicas meet, and what they do together. Private to the CUDA backend.
//
// A meeting waits on the GPU: meet() and part() are kernels of one thread that post the replica's arrival and then
// look at the others' until all are there. That ends, whatever the order of launches, if what the others have to
// do before they arrive can start while this one waits. What it takes, and who sees to it:
//  - Room on the GPU. A waiting kernel is one thread without shared memory: with at most kMaxWaiting of them no
//    multiprocessor is full, and a grid that needs more than is free runs in waves. Kernels that must be resident
//    as a whole (cooperative launches) are not used.
//  - Hardware queues. The driver maps streams to CUDA_DEVICE_MAX_CONNECTIONS queues (8, at most 32; read when the
//    process first uses CUDA) and keeps the order of submission within a queue: behind a kernel that waits nothing
//    else of its queue starts, whichever stream it is of. The backend asks for 32. A replica uses three streams at
//    most, kStreamsAReplica: sums run on its compute stream and not beside it (Collective::runs_beside), which
//    also keeps its graph one chain: a graph with branches would be given streams by the driver.
//    SharedGpuCollective measures when the collective is made whether so many run at once, and refuses where they
//    do not. Not proved: that the driver deals queues out evenly, which it does not document. Where it does not,
//    the next line holds.
//  - The host's launches must not wait for the GPU: CUDA_LAUNCH_BLOCKING unset (seen by the same measurement), and
//    memory, kernels and graphs made before the first meeting: input kernels are loaded with the device, the
//    others by BatchQueue::warm_up(), which meets last.
//  - A limit. Who has waited for `patience_ns` calls the group off, so that a wait which could not end does:
//    DeviceError(kTimeout) with the replica that did not come.
//
// Why not events: within graphs that are launched one after the other an event-wait node waits for the last record
// submitted before its own launch. The other replicas' records of this step come with their launches, which are
// later: of two graphs that record for each other the first would run on with the step before. Only work that the
// host submits after all replicas' arrivals can wait by events, and that means to cut each replica's step at each
// of its sums.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "headrace/devices/cuda/reduction_tree.h"

namespace headrace::cuda {

inline constexpr int kNoRoot = -1;  // all-reduce

// That may have work while the replica waits: its compute stream and the copy streams of two loaders.
inline constexpr int kStreamsAReplica = 3;
inline constexpr int kMaxQueues = 32;  // of one GPU's context, CUDA_DEVICE_MAX_CONNECTIONS at its highest
inline constexpr int kMaxWaiting = kMaxQueues / kStreamsAReplica;  // replicas that can wait for one another
static_assert(kMaxWaiting * kStreamsAReplica <= kMaxReplicas);

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
  int replica, local_replicas;
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

// Loads the kernels on the current device.
cudaError_t load_rendezvous_kernels();

}  // namespace headrace::cuda
