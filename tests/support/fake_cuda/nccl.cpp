#include "headrace/tests/support/fake_cuda/nccl.h"

#include <nccl.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "headrace/tests/support/fake_cuda/runtime.h"

namespace headrace::test::fake_nccl {
namespace {

// From the last rank to the first: NCCL's order is another one than the tree's.
void sum(std::map<int, Part>& parts) {
  const std::size_t count = parts.begin()->second.bytes / sizeof(float);
  std::vector<float> total(count);
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    for (std::size_t i = 0; i < count; ++i) total[i] += part->second.values[i];
  }
  for (auto& [rank, part] : parts) std::memcpy(part.values, total.data(), part.bytes);
}

void broadcast(std::map<int, Part>& parts) {
  const Part& root = parts.at(parts.begin()->second.root);
  for (auto& [rank, part] : parts) {
    if (part.values != root.values) std::memcpy(part.values, root.values, part.bytes);
  }
}

}  // namespace

std::string World::join(ncclComm& member, int ranks) {
  if (ranks != ranks_) return "a world of several sizes";
  if (std::ranges::count(members_, member.rank, &ncclComm::rank) > 0) return "two members of one rank";
  members_.push_back(&member);
  return {};
}

bool World::has_ended() const {
  return std::ranges::all_of(members_, [](const ncclComm* member) { return member->finalized || member->gone; });
}

void World::post(int call, int rank, const Part& part) {
  std::map<int, Part>& parts = calls_[call];
  parts[rank] = part;
  if (static_cast<int>(parts.size()) < ranks_) return;
  const Part& first = parts.begin()->second;
  const bool agreed = std::ranges::all_of(
      parts, [&](const auto& each) { return each.second.bytes == first.bytes && each.second.root == first.root; });
  if (!agreed) misuses_.emplace_back("ranks that make different calls");
  if (agreed) first.root < 0 ? sum(parts) : broadcast(parts);
  calls_.erase(call);
  done_[call] = true;
}

std::optional<std::vector<std::byte>> World::receive(int from, int to) {
  auto& letters = mail_[{from, to}];
  if (letters.empty()) return std::nullopt;
  std::vector<std::byte> first = std::move(letters.front());
  letters.pop_front();
  return first;
}

namespace {

struct Library {
  std::mutex mutex;
  std::condition_variable changed;
  bool exchanges = false, blocks = false, under_way = false;
  std::chrono::milliseconds each{0};
  std::optional<Failing> failing;
  int looks = 0, looks_at_end = 0;
  int ids = 0;
  std::vector<std::string> misuses;
  std::map<std::string, World> worlds;  // by id
  std::vector<const World*> up;         // since the last clear()
  std::deque<ncclComm> communicators;   // kept for ever, so that one which is used too long is found out
};

Library& library() {
  static Library one;
  return one;
}

// A call in two steps: what this rank gives, and what it waits for.
struct Call {
  std::function<void()> post, complete;
  cudaStream_t stream;
  int device = fake_cuda::current_device();
};

thread_local int groups = 0;
thread_local std::vector<Call> grouped;  // until the outermost group's end

// By the library's mutex.
bool may_use(const char* name, const ncclComm* communicator) {
  fake_cuda::note(name);
  if (communicator != nullptr && !communicator->gone) return true;
  library().misuses.push_back(std::string(name) + " of a communicator that is gone");
  return false;
}

// By the library's mutex.
void keep_misuses(World& world) {
  for (std::string& misuse : world.take_misuses()) library().misuses.push_back(std::move(misuse));
}

// Waits until `done` or the communicator is aborted; returns the former.
bool wait_for(const ncclComm& member, const std::function<bool()>& done) {
  std::unique_lock lock(library().mutex);
  bool reached = false;
  library().changed.wait(lock, [&] { return (reached = done()) || member.gone || !library().exchanges; });
  return reached;
}

bool exchanges() {
  const std::lock_guard lock(library().mutex);
  return library().exchanges;
}

// A group's calls are of several devices.
cudaError_t launch(const Call& call, const std::function<void()>& kernel) {
  const int before = fake_cuda::current_device();
  fake_cuda::set_current_device(call.device);
  const cudaError_t status = fake_cuda::launch(call.stream, kernel, "NCCL's kernel");
  fake_cuda::set_current_device(before);
  return status;
}

// Of several, each gives before one waits.
ncclResult_t run(const std::vector<Call>& calls) {
  bool well = true;
  for (const Call& call : calls) well = launch(call, call.post) == cudaSuccess && well;
  for (const Call& call : calls) {
    if (exchanges()) well = launch(call, call.complete) == cudaSuccess && well;
  }
  return well ? ncclInProgress : ncclUnhandledCudaError;
}

ncclResult_t submit(const char* name, ncclComm_t communicator, Call call) {
  Library& all = library();
  {
    std::unique_lock lock(all.mutex);
    if (const auto each = all.each; each.count() > 0) {
      all.under_way = true;
      all.changed.notify_all();
      lock.unlock();
      std::this_thread::sleep_for(each);
      lock.lock();
    }
    if (!may_use(name, communicator)) return ncclInvalidArgument;
    communicator->looks = all.looks;
    if (all.blocks) {
      all.under_way = true;
      all.changed.notify_all();
      all.changed.wait(lock, [&] { return communicator->gone || !all.blocks; });
      return ncclInternalError;
    }
  }
  if (groups == 0 || !exchanges()) return run({std::move(call)});
  grouped.push_back(std::move(call));
  return ncclInProgress;
}

// A call of all ranks, the next one of each.
ncclResult_t submit_part(const char* name, ncclComm_t member, const Part& part, cudaStream_t stream) {
  const auto post = [=] {
    const std::lock_guard lock(library().mutex);
    if (!library().exchanges) return;
    member->world->post(member->calls, member->rank, part);
    keep_misuses(*member->world);
    library().changed.notify_all();
  };
  const auto complete = [=] {
    if (wait_for(*member, [=] { return member->world->is_done(member->calls); })) ++member->calls;
  };
  return submit(name, member, {.post = post, .complete = complete, .stream = stream});
}

}  // namespace

void exchange_values() {
  const std::lock_guard lock(library().mutex);
  library().exchanges = true;
}

void block_calls() {
  const std::lock_guard lock(library().mutex);
  library().blocks = true;
}

void slow_calls(std::chrono::milliseconds each) {
  const std::lock_guard lock(library().mutex);
  library().each = each;
}

bool wait_until_under_way() {
  std::unique_lock lock(library().mutex);
  return library().changed.wait_for(lock, std::chrono::seconds(20), [] { return library().under_way; });
}

void dawdle(int looks, int looks_at_end) {
  const std::lock_guard lock(library().mutex);
  library().looks = looks;
  library().looks_at_end = looks_at_end;
}

void fail_communicators(Failing when) {
  const std::lock_guard lock(library().mutex);
  library().failing = when;
}

std::vector<std::vector<int>> worlds() {
  const std::lock_guard lock(library().mutex);
  std::vector<std::vector<int>> all;
  for (const World* world : library().up) {
    std::vector<int>& ranks = all.emplace_back();
    for (const ncclComm* member : world->members()) ranks.push_back(member->rank);
  }
  return all;
}

std::string version() { return std::to_string(NCCL_VERSION_CODE); }

std::vector<std::string> misuses() {
  const std::lock_guard lock(library().mutex);
  return library().misuses;
}

void clear() {
  Library& all = library();
  const std::lock_guard lock(all.mutex);
  all.exchanges = all.blocks = all.under_way = false;
  all.each = {};
  all.failing.reset();
  all.looks = all.looks_at_end = 0;
  all.misuses.clear();
  all.up.clear();
  all.changed.notify_all();
}

}  // namespace headrace::test::fake_nccl

namespace nccl_fake = headrace::test::fake_nccl;

extern "C" {

const char* ncclGetErrorString(ncclResult_t status) {
  return status == ncclSystemError ? "the network is down" : "an error of a test";
}
ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const std::lock_guard lock(nccl_fake::library().mutex);
  headrace::test::fake_cuda::note("ncclGetUniqueId");
  *id = {};
  std::strcpy(id->internal, ("id " + std::to_string(++nccl_fake::library().ids)).c_str());
  return ncclSuccess;
}
ncclResult_t ncclGroupStart() {
  ++nccl_fake::groups;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  if (nccl_fake::groups > 0) {
    if (--nccl_fake::groups > 0) return ncclInProgress;
    return nccl_fake::run(std::exchange(nccl_fake::grouped, {}));
  }
  const std::lock_guard lock(nccl_fake::library().mutex);
  nccl_fake::library().misuses.emplace_back("the end of a group that did not begin");
  return ncclInvalidUsage;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* made, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  nccl_fake::Library& all = nccl_fake::library();
  const std::lock_guard lock(all.mutex);
  headrace::test::fake_cuda::note("ncclCommInitRankConfig");
  if (config->blocking != 0) all.misuses.emplace_back("a communicator that blocks");
  if (all.failing == nccl_fake::Failing::kWhenMade) return ncclSystemError;
  nccl_fake::World& world = all.worlds.try_emplace(id.internal, ranks).first->second;
  *made = &all.communicators.emplace_back(ncclComm{.world = &world, .rank = rank});
  if (const std::string why = world.join(**made, ranks); !why.empty()) all.misuses.push_back(why);
  if (world.is_up()) all.up.push_back(&world);
  return ncclInProgress;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t* status) {
  const std::lock_guard lock(nccl_fake::library().mutex);
  if (!nccl_fake::may_use("ncclCommGetAsyncError", communicator)) return ncclInvalidArgument;
  if (nccl_fake::library().failing) return *status = ncclSystemError, ncclSuccess;
  const bool waits = communicator->finalized ? !communicator->world->has_ended() : !communicator->world->is_up();
  *status = communicator->looks == 0 && !waits ? ncclSuccess : ncclInProgress;
  if (communicator->looks > 0) --communicator->looks;
  return ncclSuccess;
}
ncclResult_t ncclCommFinalize(ncclComm_t communicator) {
  const std::lock_guard lock(nccl_fake::library().mutex);
  if (!nccl_fake::may_use("ncclCommFinalize", communicator)) return ncclInvalidArgument;
  communicator->finalized = true;
  communicator->looks = nccl_fake::library().looks_at_end;
  return ncclInProgress;
}
ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  const std::lock_guard lock(nccl_fake::library().mutex);
  if (!nccl_fake::may_use("ncclCommDestroy", communicator)) return ncclInvalidArgument;
  if (!communicator->finalized || communicator->looks != 0) {
    nccl_fake::library().misuses.emplace_back("the end of a communicator that was at work");
  }
  communicator->gone = true;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t communicator) {
  const std::lock_guard lock(nccl_fake::library().mutex);
  if (!nccl_fake::may_use("ncclCommAbort", communicator)) return ncclInvalidArgument;
  communicator->gone = true;
  nccl_fake::library().changed.notify_all();
  return ncclInProgress;
}

ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t, ncclRedOp_t,
                           ncclComm_t communicator, cudaStream_t stream) {
  if (from != to) return ncclInvalidArgument;
  const nccl_fake::Part part{.values = static_cast<float*>(to), .bytes = count * sizeof(float), .root = -1};
  return nccl_fake::submit_part("ncclAllReduce", communicator, part, stream);
}
ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t count, ncclDataType_t, int root,
                           ncclComm_t communicator, cudaStream_t stream) {
  if (from != to) return ncclInvalidArgument;
  const nccl_fake::Part part{.values = static_cast<float*>(to), .bytes = count, .root = root};
  return nccl_fake::submit_part("ncclBroadcast", communicator, part, stream);
}
ncclResult_t ncclSend(const void* data, std::size_t count, ncclDataType_t, int peer, ncclComm_t member,
                      cudaStream_t stream) {
  const auto post = [=] {
    const std::lock_guard lock(nccl_fake::library().mutex);
    if (!nccl_fake::library().exchanges) return;
    const auto* bytes = static_cast<const std::byte*>(data);
    member->world->send(member->rank, peer, {bytes, bytes + count * sizeof(float)});
    nccl_fake::library().changed.notify_all();
  };
  return nccl_fake::submit("ncclSend", member, {.post = post, .complete = [] {}, .stream = stream});
}
ncclResult_t ncclRecv(void* data, std::size_t count, ncclDataType_t, int peer, ncclComm_t member,
                      cudaStream_t stream) {
  const auto complete = [=] {
    std::optional<std::vector<std::byte>> sent;
    nccl_fake::wait_for(*member, [&] { return (sent = member->world->receive(peer, member->rank)).has_value(); });
    if (sent && sent->size() == count * sizeof(float)) std::memcpy(data, sent->data(), sent->size());
    if (!sent || sent->size() == count * sizeof(float)) return;
    const std::lock_guard lock(nccl_fake::library().mutex);
    nccl_fake::library().misuses.emplace_back("a message of another size than is awaited");
  };
  return nccl_fake::submit("ncclRecv", member, {.post = [] {}, .complete = complete, .stream = stream});
}

}  // extern "C"
