// An NCCL without GPUs, on the fake runtime: a rank's values are its sum. It counts its calls there, blocks and
// dawdles where a test says so, and remembers what it was asked for that NCCL forbids.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace headrace::test::fake_nccl {

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

// Groups come up no more: a communicator says so when it is made, or in progress.
enum class Failing { kWhenMade, kInProgress };
void fail_to_connect(Failing when);

// In words, since the last clear().
std::vector<std::string> misuses();
void clear();

}  // namespace headrace::test::fake_nccl
