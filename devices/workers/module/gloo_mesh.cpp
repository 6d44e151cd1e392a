#include "headrace/devices/workers/module/gloo_mesh.h"

#include <gloo/allreduce_halving_doubling.h>
#include <gloo/broadcast_one_to_all.h>
#include <gloo/context.h>
#include <gloo/transport/address.h>
#include <gloo/transport/context.h>
#include <gloo/transport/tcp/device.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

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

}  // namespace headrace
