// An NCCL without GPUs, on the fake runtime. Ranks of one id are a world, whatever their threads. It counts its
// calls there, blocks and dawdles where a test says so, and remembers what it was asked for that NCCL forbids.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace headrace::test::fake_nccl {

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
