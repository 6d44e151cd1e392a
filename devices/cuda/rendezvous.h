// Meetings of the streams of one GPU's replicas, and their common work. Private to the CUDA backend.
//
// A meeting waits on the GPU: meet() and part() are kernels of one thread that post the replica's arrival and then
// poll the others' until all have arrived. The wait ends, whatever the order of launches, if the work that the
// others must do before arriving can start while this one waits. The conditions, and how they are ensured:
//  - Room on the GPU. A waiting kernel is one thread without shared memory: with at most kMaxWaiting of them no
//    multiprocessor is full, and a grid that needs more than is free runs in waves. Kernels that must be resident
//    as a whole (cooperative launches) are not used.
//  - Hardware queues. The driver maps streams to CUDA_DEVICE_MAX_CONNECTIONS queues (8, at most 32; read when the
//    process first uses CUDA) and keeps the order of submission within a queue: after a waiting kernel nothing
//    else of its queue starts, whatever its stream. The backend asks for 32. A replica uses at most three streams,
//    kStreamsPerReplica: sums run on its compute stream and not beside it (Collective::runs_beside), which also
//    keeps its graph a single chain: the driver would give streams to a graph with branches. On construction,
//    SharedGpuCollective measures whether that many run at once, and throws if not; as long as it lives, no
//    further stream is opened on the GPU once there are kMaxQueues (SharedGpu::OpenStream). Not proved: that the
//    driver distributes queues evenly, which it does not document. If it does not, the limit below applies.
//  - The host's launches must not wait for the GPU: CUDA_LAUNCH_BLOCKING unset (seen by the same measurement), and
//    memory, kernels and graphs made before the first meeting: input kernels are loaded with the device, the
//    others by BatchQueue::warm_up(), which meets last.
//  - A limit. A replica that has waited for `patience_ns` cancels the group, so that even an endless wait ends:
//    DeviceError(kTimeout) names the missing replica.
//
// Why not events: in graphs that are launched one after the other, an event-wait node waits for the last record
// submitted before its own launch. The other replicas' records of this step come with their later launches: of two
// graphs that record for each other, the first would continue with the previous step. Only work that the host
// submits after all replicas' arrivals can wait for events, which would mean cutting each replica's step at each
// of its sums.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "headrace/devices/cuda/reduction_tree.h"

namespace headrace::cuda {

inline constexpr int kNoRoot = -1;  // all-reduce

// Streams that may have work while the replica waits: its compute stream and the copy streams of two loaders.
inline constexpr int kStreamsPerReplica = 3;
inline constexpr int kMaxQueues = 32;  // of one GPU's context, CUDA_DEVICE_MAX_CONNECTIONS at its highest
inline constexpr int kMaxWaiting = kMaxQueues / kStreamsPerReplica;  // replicas that can wait for one another
static_assert(kMaxWaiting * kStreamsPerReplica <= kMaxReplicas);

// A replica's arguments of a meeting.
struct RendezvousCall {
  std::byte* data;
  std::int64_t bytes;
  int root;  // kNoRoot for a sum of f32
};

// The outcome of a replica's calls, kept until the host has read it.
enum class Outcome : std::uint32_t { kFine, kDisagreed, kCancelled, kTimedOut };

// Why a group was cancelled.
inline constexpr std::uint32_t kNotCancelled = 0;
inline constexpr std::uint32_t kCancelledByHost = 1;
inline constexpr std::uint32_t kReplicaFailed = 2;                  // + the replica whose stream had failed
inline constexpr std::uint32_t kReplicaMissing = 2 + kMaxReplicas;  // + the replica that did not arrive

// In device memory, zeroed at the start. A replica writes its own elements only.
struct RendezvousState {
  unsigned long long arrivals[kMaxReplicas];  // total meetings that each replica has reached
  RendezvousCall calls[kMaxReplicas];
  std::uint32_t go[kMaxReplicas];  // 1 if the replica's current call must be carried out
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
  // Not 0 if the replica's stream has failed; in pinned host memory.
  const std::uint32_t* stream_failed;
  unsigned long long patience_ns;
};

// Waits until all replicas have arrived with the same call. The wait is on the GPU, by one block per replica.
cudaError_t meet(const Rendezvous& rendezvous, const RendezvousCall& call, cudaStream_t stream);
// Does the replica's part of the call: sums a slice over all replicas and writes it to all, or copies the root's
// bytes.
cudaError_t carry_out(const Rendezvous& rendezvous, const RendezvousCall& call, cudaStream_t stream);
// Waits until all replicas have carried out their parts.
cudaError_t part(const Rendezvous& rendezvous, cudaStream_t stream);

// Loads the kernels on the current device.
cudaError_t load_rendezvous_kernels();

}  // namespace headrace::cuda
