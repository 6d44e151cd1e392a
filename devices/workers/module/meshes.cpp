#include <fmt/format.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/broadcast_one_to_all.h>
#include <gloo/context.h>
#include <gloo/transport/address.h>
#include <gloo/transport/context.h>
#include <gloo/transport/tcp/device.h>
#include <pthread.h>
#include <signal.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/shared_module.h"
#include "headrace/devices/workers/module/meshes.h"

namespace headrace {
namespace {

// While it lives, a write to a connection that the peer has closed fails and raises no SIGPIPE, which would end
// the process: in this thread and in those that it starts.
class BrokenPipesFail {
 public:
  BrokenPipesFail() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    was_pending_ = is_pending();
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~BrokenPipesFail() {
    const timespec at_once{};
    if (!was_pending_ && is_pending()) sigtimedwait(&pipe_, nullptr, &at_once);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  BrokenPipesFail(const BrokenPipesFail&) = delete;
  BrokenPipesFail& operator=(const BrokenPipesFail&) = delete;

 private:
  static bool is_pending() {
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, SIGPIPE) == 1;
  }

  sigset_t pipe_{}, before_{};
  bool was_pending_ = false;
};

constexpr std::size_t kMaxFloats = std::size_t{1} << 26;  // per call: Gloo counts bytes in an int
constexpr std::size_t kMaxBytes = std::size_t{1} << 26;
constexpr std::size_t kMaxSums = 256;  // kept for counts that recur

// Each worker sends the addresses of its ends of the connections, ordered by the other workers' ranks.
std::vector<char> address_for(const std::string& addresses, int of_rank, int for_rank, int workers) {
  const std::size_t size = addresses.size() / static_cast<std::size_t>(workers - 1);
  const auto place = static_cast<std::size_t>(for_rank < of_rank ? for_rank : for_rank - 1);
  const char* begin = addresses.data() + place * size;
  return {begin, begin + size};
}

}  // namespace

class GlooMesh::Connections final : public gloo::Context {
 public:
  Connections(int own_rank, int workers, const std::string& address, double timeout_seconds)
      : gloo::Context(own_rank, workers) {
    const BrokenPipesFail here_and_in_the_devices_thread;
    gloo::transport::tcp::attr attributes;
    attributes.hostname = address;
    const std::chrono::milliseconds limit(static_cast<std::int64_t>(timeout_seconds * 1000));
    device_ = gloo::transport::tcp::CreateDevice(attributes);
    setTimeout(limit);
    transportContext_ = device_->createContext(own_rank, workers);
    transportContext_->setTimeout(limit);
    for (int other = 0; other < workers; ++other) {
      if (other != own_rank) transportContext_->createPair(other)->setLocalRank(0);
    }
  }

  void connect(const Gather& gather) {
    const BrokenPipesFail here;
    std::string mine;
    for (int other = 0; other < size; ++other) {
      if (other == rank) continue;
      const std::vector<char> address = transportContext_->getPair(other)->address().bytes();
      mine.append(address.begin(), address.end());
    }
    const std::vector<std::string> all = gather(mine);
    for (int other = 0; other < size; ++other) {
      if (other == rank) continue;
      transportContext_->getPair(other)->connect(
          address_for(all[static_cast<std::size_t>(other)], other, rank, size));
    }
  }
};

struct GlooMesh::Sum {
  Sum(const std::shared_ptr<gloo::Context>& context, std::size_t count)
      : values(count), algorithm(context, {values.data()}, static_cast<int>(count)) {}

  std::vector<float> values;
  gloo::AllreduceHalvingDoubling<float> algorithm;
  std::uint64_t last_use = 0;
};

GlooMesh::GlooMesh(int rank, int workers, const std::string& address, double timeout_seconds)
    : context_(std::make_shared<Connections>(rank, workers, address, timeout_seconds)) {}

GlooMesh::~GlooMesh() = default;

void GlooMesh::connect(const Gather& gather) { context_->connect(gather); }

void GlooMesh::all_reduce_sum(float* values, std::size_t count) {
  const BrokenPipesFail here;
  for (std::size_t begin = 0; begin < count; begin += kMaxFloats) {
    sum_part(values + begin, std::min(kMaxFloats, count - begin));
  }
}

void GlooMesh::sum_part(float* values, std::size_t count) {
  Sum& sum = sum_of(count);
  std::memcpy(sum.values.data(), values, count * sizeof(float));
  sum.algorithm.run();
  std::memcpy(values, sum.values.data(), count * sizeof(float));
}

// The choice of those kept depends only on the counts, which are the same on all workers.
GlooMesh::Sum& GlooMesh::sum_of(std::size_t count) {
  auto found = sums_.find(count);
  if (found == sums_.end()) {
    if (sums_.size() == kMaxSums) {
      sums_.erase(std::ranges::min_element(sums_, {}, [](const auto& each) { return each.second->last_use; }));
    }
    found = sums_.emplace(count, std::make_unique<Sum>(context_, count)).first;
  }
  found->second->last_use = ++uses_;
  return *found->second;
}

void GlooMesh::broadcast(std::byte* bytes, std::size_t count, int root) {
  const BrokenPipesFail here;
  for (std::size_t begin = 0; begin < count; begin += kMaxBytes) {
    auto* part = reinterpret_cast<char*>(bytes + begin);
    const int size = static_cast<int>(std::min(kMaxBytes, count - begin));
    gloo::BroadcastOneToAll<char>(context_, {part}, size, root).run();
  }
}

// Gloo ends all waiting of a context once one of its buffers has waited too long.
void GlooMesh::abort() noexcept {
  try {
    char byte = 0;
    int from = 0;
    context_->createUnboundBuffer(&byte, sizeof byte)->waitRecv(&from, std::chrono::milliseconds(1));
  } catch (...) {  // it has
  }
}

namespace {

std::filesystem::path path_of_mpi_module() {
  const char* named = std::getenv("HEADRACE_MPI_MODULE");
  if (named != nullptr && *named != '\0') return named;
  return folder_of_code(reinterpret_cast<const void*>(&find_mpi_module)) / "libheadrace_mpi.so";
}

// Returns why a worker whose plan does not want MPI does not use it.
std::string reason_for_gloo(const WorkerPlan& plan) {
  const auto fact =
      std::ranges::find_if(plan.facts, [](const WorkerFact& each) { return each.name == "transport"; });
  return fact == plan.facts.end() ? "its plan says gloo" : fact->from;
}

}  // namespace

std::string MpiOffer::to_json() const {
  return nlohmann::json{{"wanted", static_cast<int>(wanted)}, {"why_not", why_not}, {"library", library}}.dump();
}

MpiOffer MpiOffer::from_json(const std::string& json) {
  const nlohmann::json said = nlohmann::json::parse(json);
  return {.wanted = static_cast<WorkerTransportKind>(said["wanted"].get<int>()),
          .why_not = said["why_not"],
          .library = said["library"]};
}

WorkerFact choose_mesh(const std::vector<MpiOffer>& offers) {
  const auto unable = std::ranges::find_if(offers, [](const MpiOffer& each) { return !each.why_not.empty(); });
  if (unable == offers.end()) {
    return {.name = "transport", .value = "mpi", .from = "all workers can use it: " + offers.front().library};
  }
  const std::string why = fmt::format("worker {}: {}", unable - offers.begin(), unable->why_not);
  const auto demanding = std::ranges::find(offers, WorkerTransportKind::kMpi, &MpiOffer::wanted);
  if (demanding == offers.end()) return {.name = "transport", .value = "gloo", .from = why};
  throw WorkersDiffer(
      fmt::format("worker {} has HEADRACE_TRANSPORT=mpi, but not all workers can use MPI: {}",
                  demanding - offers.begin(), why),
      "start all workers with one mpirun or srun and one value of HEADRACE_TRANSPORT, or unset it");
}

FoundMpi find_mpi_module() {
  const std::filesystem::path path = path_of_mpi_module();
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    return {.why_not = fmt::format("there is no {}: install libheadrace-mpi, or build with -DHEADRACE_MPI=on",
                                   path.string())};
  }
  const SharedModule opened = open_shared_module(path, kMpiModuleEntryName);
  if (opened.entry == nullptr) return {.why_not = opened.missing};
  if (const auto* module = reinterpret_cast<MpiModuleEntry>(opened.entry)(kMpiAbiVersion)) {
    return {.module = module};
  }
  return {.why_not = path.string() + " is from another build of Headrace"};
}

MpiOffer offer_of(const WorkerPlan& plan, const FoundMpi& found) {
  if (plan.transport == WorkerTransportKind::kGloo) return {.why_not = reason_for_gloo(plan)};
  return {.wanted = plan.transport, .why_not = found.why_not};
}

MpiOffer offer_of(const WorkerPlan& plan, const MpiPlace& place) {
  MpiOffer offer{.wanted = plan.transport, .why_not = place.why_not, .library = place.library};
  if (offer.why_not.empty() && (place.rank != plan.rank || place.workers != plan.workers)) {
    offer.why_not = fmt::format("MPI knows it as rank {} of {} ({}), the launcher as {} of {}", place.rank,
                                place.workers, place.library, plan.rank, plan.workers);
  }
  return offer;
}

}  // namespace headrace
