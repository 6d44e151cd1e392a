// The processes that train together: their identity, how they find each other, and what they exchange.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "headrace/devices/base/api.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/launcher.h"
#include "headrace/devices/base/option_visitor.h"
#include "headrace/devices/collective.h"

namespace HEADRACE_API headrace {

// One value of a plan, and the variable or rule that it comes from.
struct WorkerFact {
  std::string name = {};   // "coordinator"
  std::string value = {};  // "node-a:29501"
  std::string from = {};   // "MASTER_ADDR, MASTER_PORT + 1"
};

// The library that carries sums and broadcasts between processes. kMpiOrGloo: MPI if every worker can use it, else
// Gloo.
enum class WorkerTransportKind { kGloo, kMpi, kMpiOrGloo };
// Returns "gloo", "mpi" or "mpi or gloo".
const char* to_string(WorkerTransportKind kind) noexcept;

// Keeps strangers out of a world; all of it is empty by default. The secret is never printed or written. See
// SECURITY.md.
struct WorldGuard {
  std::string secret = {};       // at least 16 characters, the same on all workers
  std::string secret_file = {};  // which holds it
  // PEM files for TLS between the workers and worker 0.
  std::string tls_authorities = {}, tls_certificate = {}, tls_key = {};
  std::string listen = {};  // worker 0's own address; empty: loopback if the coordinator's is, else every address

  bool has_secret() const noexcept { return !secret.empty() || !secret_file.empty(); }
  bool has_tls() const noexcept { return !tls_key.empty(); }
};

// The way this process joins the others, read only from its environment; nothing is opened.
struct WorkerPlan {
  std::string launcher = {};  // "torchrun"; empty for a process that runs alone
  int rank = 0;
  int workers = 1;
  int local_rank = -1;           // among the processes of this host; -1 if the launcher does not say
  int local_workers = -1;        // processes of this host; -1 if unknown
  std::string coordinator = {};  // "host:port", where worker 0 listens; empty for a process that runs alone
  std::vector<std::string> addresses = {};  // by rank, if the launcher lists them, like TF_CONFIG
  WorkerTransportKind transport = WorkerTransportKind::kGloo;
  WorldGuard guard = {};
  std::vector<WorkerFact> facts = {};

  bool alone() const noexcept { return workers == 1; }
  // Returns whether this worker writes checkpoints, logs and reports.
  bool is_chief() const noexcept { return rank == 0; }
};

// Reads TF_CONFIG, the variables of torchrun, MPI launchers, Slurm and Kubernetes; HEADRACE_COORDINATOR, which
// names worker 0's address whatever the launcher; and HEADRACE_TRANSPORT: auto (MPI under a launcher of MPI
// processes, else Gloo), gloo or mpi; and those of WorldGuard: HEADRACE_WORLD_SECRET or
// HEADRACE_WORLD_SECRET_FILE, HEADRACE_WORLD_TLS_CA, _CERTIFICATE and _KEY, HEADRACE_WORLD_LISTEN. Throws
// ConfigError naming the variable that is missing or wrong.
WorkerPlan plan_workers(const Environment& environment);

// Plans from this process's own environment.
WorkerPlan plan_workers();

// Reads the same variables but no addresses, for processes that exchange nothing: `coordinator` stays empty. With
// D devices in each process, this one's are rank * D and those after it, of workers * D.
WorkerPlan place_worker(const Environment& environment);
WorkerPlan place_worker();

struct WorkerOptions {
  double start_timeout_seconds = 300;
  double call_timeout_seconds = 60;
  std::string listen = {};
  void each_field(OptionVisitor& visit) {
    visit("start_timeout_seconds", start_timeout_seconds, "For all workers to join.");
    visit("call_timeout_seconds", call_timeout_seconds, "For all workers to reach the same call.");
    visit("listen", listen,
          "The address of its host at which worker 0 waits for the others; empty: as HEADRACE_WORLD_LISTEN says, "
          "else loopback where the others are said to reach it there, else every address.");
  }
};

// A worker as it introduced itself.
struct WorkerInfo {
  std::string host = {};
  std::int64_t process = 0;

  // "worker 2 (node-b, process 4711)"
  std::string to_string(int rank) const {
    return "worker " + std::to_string(rank) + " (" + host + ", process " + std::to_string(process) + ")";
  }
};

// Thrown alike on all workers that do not fit together.
class WorkersDiffer : public ConfigError {
 public:
  using ConfigError::ConfigError;
};

// Thrown by a worker that cannot go on because of another one, which was lost (kCancelled), failed (kCancelled) or
// is late (kTimeout): once all are started again, training can go on.
class WorkerLost : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

// Thrown at the end of a fit or an evaluation that all ended after the same step because another worker was told
// to stop. All have left this one's work as after a stop of their own.
class WorkerInterrupted : public Error {
 public:
  explicit WorkerInterrupted(const std::string& message)
      : Error(ErrorCode::kCancelled, message, "start all workers again when wanted") {}
};

// Throws WorkersDiffer unless all workers' values, by rank, are equal; names `what`, each group of ranks and its
// value.
void require_equal_values(const std::string& what, const std::vector<std::string>& values);

class WorkerTransport;

// One process's membership in the world. All workers must make the same calls in the same order, from one thread
// at a time; abort(), failure(), rank(), count(), at() and transport() are thread-safe. A call throws WorkerLost
// naming the other worker, the call that waited for it, and the file
// with this worker's last calls (in the folder HEADRACE_WORKERS_DUMP, else in that for temporary files); every
// later call throws it again. Calls are virtual for backends, whose modules do not link to this library.
class Workers {
 public:
  // `options`: the limits that the transport has.
  explicit Workers(std::unique_ptr<WorkerTransport> transport, const WorkerOptions& options = {});
  virtual ~Workers();  // signs off, so that the others do not consider this worker lost
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  virtual int rank() const noexcept;
  virtual int count() const noexcept;
  virtual const WorkerInfo& at(int rank) const;
  virtual const WorkerOptions& options() const noexcept;
  // Returns what carries the values, as all workers agreed, and why: "gloo", "worker 1 has no module for MPI ...".
  virtual const WorkerFact& transport() const noexcept;

  // Returns every worker's bytes, by rank. `what` names the call: workers in calls of other names end with
  // WorkersDiffer, which has both names.
  virtual std::vector<std::string> all_gather(std::string_view mine, std::string_view what = {});
  // Sums over all workers in place: the pairwise tree ((0+1)+(2+3))+... over ranks, the same bits on every worker.
  virtual void all_reduce_sum(std::span<float> values);
  // Replaces `bytes` with the root's.
  virtual void broadcast(std::span<std::byte> bytes, int root);

  // Throws WorkersDiffer unless all workers give the same value, see require_equal_values().
  virtual void require_equal(const std::string& what, const std::string& value);

  // Sets this worker's progress ("step 57"), for the messages of all workers. Cheap.
  virtual void set_moment(std::string moment);

  // Says that this worker makes no further calls; one of the others' that waits for it then fails at once. Returns
  // when all have said so, at most after ten seconds. The destructor does the same.
  virtual void sign_off() noexcept;
  // Fails this worker's calls, now and later, and those of all other workers, which are told `reason`.
  virtual void abort(const std::string& reason) noexcept;
  // Returns which worker failed first and why, as far as this one has been told; empty while none has. Cheap.
  virtual std::string failure() const;

 private:
  std::unique_ptr<WorkerTransport> transport_;
  WorkerOptions options_;
};

// Names and values of what must be the same on all workers.
using NamedValues = std::vector<std::pair<std::string, std::string>>;

// Throws WorkersDiffer naming the first value that differs, or that a worker lacks. `what` names the call, see
// Workers::all_gather(). All workers make the call.
void require_same(Workers& workers, const std::string& what, const NamedValues& values);

// Returns every worker's values, by rank.
template <typename T>
std::vector<std::vector<T>> gather_values(Workers& workers, std::span<const T> mine) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<std::vector<T>> lists;
  for (const std::string& bytes :
       workers.all_gather({reinterpret_cast<const char*>(mine.data()), mine.size_bytes()})) {
    std::vector<T>& list = lists.emplace_back(bytes.size() / sizeof(T));
    if (!list.empty()) std::memcpy(list.data(), bytes.data(), list.size() * sizeof(T));
  }
  return lists;
}

// Joins the world that `plan` describes: waits for all workers, compares builds. Returns null for a process that
// runs alone. Throws WorkersDiffer if workers do not fit together, and DeviceError(kTimeout) naming those that did
// not join.
std::shared_ptr<Workers> open_world(const WorkerPlan& plan, const WorkerOptions& options = {});

// Joins the world of this process's environment.
std::shared_ptr<Workers> open_world(const WorkerOptions& options = {});

// Restricts this thread, and those that it starts from then on, to the worker's share of the cores that it and
// other workers of its host may use: at least one, which several may have to share. Does nothing if a launcher
// gave each its own. All workers make the call.
void share_cores(Workers& workers);

// Returns this worker's part of the devices that `spec` names, see open_devices(): "auto" and "cuda" are divided
// among the workers of one host that see the same GPUs; devices that are listed are each worker's own. All workers
// make the call. `workers` may be null. Throws ConfigError if the GPUs cannot be divided.
std::string devices_of_worker(const std::string& spec, Workers* workers);

// Creates a collective over the replicas of all workers: `local` sums over this process's replicas, `workers` over
// processes. Values of devices with memory of their own pass through pinned memory, in stream order. The sum is
// one pairwise tree over all replicas of the world, by rank, if `local` adds as a tree, or if its number of
// replicas is no power of two: then every worker receives the values of every replica. Throws ConfigError unless
// all workers have equally many replicas. All workers call it.
std::unique_ptr<Collective> create_world_collective(std::unique_ptr<Collective> local,
                                                    std::shared_ptr<Workers> workers);

// Creates the collective of `devices` together with those of all other workers: the backend's own, if that
// connects the devices of every worker (Backend::connects_processes()), else create_world_collective(). If
// `workers` is null, creates that of `devices` alone. All workers call it.
std::unique_ptr<Collective> create_collective(DeviceGroup& devices, std::shared_ptr<Workers> workers);

}  // namespace headrace
