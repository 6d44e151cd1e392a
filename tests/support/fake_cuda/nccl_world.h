// The ranks of one id, and what they send to one another. Private to the fake.
#pragma once

#include <nccl.h>

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

}  // namespace headrace::test::fake_nccl
