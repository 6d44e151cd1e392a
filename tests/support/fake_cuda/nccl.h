// An NCCL without GPUs, and the world that its communicators meet in.
#pragma once

#include <nccl.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace headrace::test::fake_nccl {

// The ranks of one id, and what they send to one another. Private to the fake.

class World;

}  // namespace headrace::test::fake_nccl

struct ncclComm {
  headrace::test::fake_nccl::World* world = nullptr;
  int rank = 0;
  bool finalized = false, gone = false;
  int looks = 0;  // for which it is in progress
  int calls = 0;  // of the whole world
};

namespace headrace::test::fake_nccl {

// One rank's part of a call of the whole world.
struct Part {
  float* values = nullptr;
  std::size_t bytes = 0;
  int root = -1;  // sum
};

// All members by the library's mutex.
class World {
 public:
  explicit World(int ranks) : ranks_(ranks) {}

  // Returns why the rank cannot join; empty if it has.
  std::string join(ncclComm& member, int ranks);
  bool is_up() const { return static_cast<int>(members_.size()) == ranks_; }
  // Returns whether every member is finalized or gone.
  bool has_ended() const;
  const std::vector<ncclComm*>& members() const { return members_; }

  // Adds the rank's part to call number `call`; the last one does it.
  void post(int call, int rank, const Part& part);
  bool is_done(int call) const { return done_.contains(call); }

  void send(int from, int to, std::vector<std::byte> bytes) { mail_[{from, to}].push_back(std::move(bytes)); }
  // Returns nothing while nothing has come.
  std::optional<std::vector<std::byte>> receive(int from, int to);

  // Returns what the ranks do not agree on, and forgets it.
  std::vector<std::string> take_misuses() { return std::exchange(misuses_, {}); }

 private:
  int ranks_;
  std::vector<ncclComm*> members_;
  std::map<int, std::map<int, Part>> calls_;  // that wait for ranks
  std::map<int, bool> done_;
  std::map<std::pair<int, int>, std::deque<std::vector<std::byte>>> mail_;
  std::vector<std::string> misuses_;
};

// An NCCL without GPUs, on the fake runtime. Ranks of one id are a world, whatever their threads. It counts its
// calls there, blocks and dawdles where a test says so, and remembers what it was asked for that NCCL forbids.

// From now on, until clear(): values go from rank to rank, each call waiting for the other ranks' where it is
// made; so each rank needs a thread of its own. Before that, a rank's values are the sum.
void exchange_values();

// From now on, until clear(): a call to sum or to copy comes back when its communicator is aborted, and not
// before.
void block_calls();
// Or such a call takes its time, before it looks at its communicator.
void slow_calls(std::chrono::milliseconds each);
// Waits until a call is under way that is blocked or slow; false where none is in good time.
bool wait_until_under_way();

// How often a communicator says of each call that it is in progress: of sums, and of its end.
inline constexpr int kForEver = -1;
void dawdle(int looks, int looks_at_end);

// Communicators fail: each says so when it is made, or while it is in progress or in use.
enum class Failing { kWhenMade, kInProgress };
void fail_communicators(Failing when);

// The worlds that came up since the last clear(), each with the ranks in the order in which they joined.
std::vector<std::vector<int>> worlds();

// The version that it says it is.
std::string version();

// In words, since the last clear().
std::vector<std::string> misuses();
void clear();

}  // namespace headrace::test::fake_nccl
