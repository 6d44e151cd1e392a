// The engine as a guest of oneTBB: what the embedding program says holds, and nothing is left behind.
#include <sys/wait.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#include <unistd.h>

#include "headrace/pipeline/compute_arena.h"
#include "headrace/tests/pipeline/on_each.h"
#include "headrace/tests/pipeline/streams.h"
#include "headrace/tests/support/gate.h"

namespace headrace::test {
namespace {

// The most calls that were at work at the same time; each takes a while.
struct Concurrency {
  std::atomic<int> now{0}, max{0};

  std::function<void(std::int64_t)> probe() {
    return [this](std::int64_t) {
      const int inside = ++now;
      for (int seen = max; seen < inside && !max.compare_exchange_weak(seen, inside);) {
      }
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      --now;
    };
  }
};

void run_through(const Dataset& dataset, const LoaderOptions& options) {
  DeviceGroup devices = cpu_replicas(1);
  Loader loader(dataset, devices, options);
  while (loader.next()) {
  }
}

TEST(OneTbb, AsManyLanesAsAskedForRunAtOnce) {
  Concurrency lanes;
  run_through(Dataset::from(numbers(400)).map(on_each(lanes.probe())).batch({.global_batch = 10}),
              {.threads = 4, .prefetch = 8});
  EXPECT_EQ(lanes.max.load(), 4);
}

TEST(OneTbb, AGlobalControlOfTheProgramIsObeyed) {
  for (const int allowed : {1, 2}) {  // oneTBB gives enqueued tasks one worker where it allows no other
    const tbb::global_control control(tbb::global_control::max_allowed_parallelism,
                                      static_cast<std::size_t>(allowed));
    Concurrency lanes;
    run_through(Dataset::from(numbers(200)).map(on_each(lanes.probe())).batch({.global_batch = 10}),
                {.threads = 4, .prefetch = 8});
    EXPECT_EQ(lanes.max.load(), 1) << allowed;
  }
}

TEST(OneTbb, AnArenaOfTheProgramRunsTheCompute) {
  tbb::task_arena arena(3, 0);
  std::atomic<int> elsewhere{0}, inside{0};
  const auto look = [&](std::int64_t) {
    // The program's arena has another concurrency than any other here.
    (tbb::this_task_arena::max_concurrency() == 3 ? inside : elsewhere)++;
  };
  const Dataset dataset = Dataset::from(numbers(100)).map(on_each(look)).batch({.global_batch = 10});
  run_through(dataset, {.threads = 2, .arena = use_arena(arena)});
  EXPECT_EQ(inside.load(), 100);
  EXPECT_EQ(elsewhere.load(), 0);
}

TEST(OneTbb, ConstraintsThatTheMachineDoesNotHaveAreRefused) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer ends programs that load a library as oneTBB loads tbbbind";
#endif
  DeviceGroup devices = cpu_replicas(1);
  const Dataset dataset = Dataset::from(numbers(10)).batch({.global_batch = 5});
  EXPECT_THROW(Loader(dataset, devices, {.constraints = {.numa_node = 4711}}), ConfigError);
  EXPECT_THROW(Loader(dataset, devices, {.constraints = {.core_type = 4711}}), ConfigError);
}

TEST(OneTbb, WorkersGoBackWhenThereIsNothingToDo) {
  DeviceGroup devices = cpu_replicas(1);
  Loader loader(Dataset::from(numbers(100)).batch({.global_batch = 10}), devices, {.threads = 2});
  ASSERT_TRUE(loader.next());
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the ring is full: the lanes have ended
  std::atomic<int> sum{0};
  tbb::parallel_for(0, 1000, [&](int i) { sum += i; });
  EXPECT_EQ(sum.load(), 999 * 500);
}

// Loops inside a user's function do not begin another batch, which would make the outer one wait for it.
TEST(OneTbb, LoopsInsideUserCodeHaveTheSameBits) {
  const auto twice = [](bool parallel) {
    UserMap map{.name = "sum", .field = "value", .output = {.dtype = DType::kI64, .shape = {}}};
    map.function = [parallel](std::span<const std::byte> in, const Shape&, std::span<std::byte> out, Philox&) {
      std::int64_t value = 0;
      std::memcpy(&value, in.data(), sizeof value);
      std::atomic<std::int64_t> sum{0};
      if (parallel) {
        tbb::parallel_for(std::int64_t{0}, value, [&](std::int64_t i) { sum += i; });
      } else {
        sum = value * (value - 1) / 2;
      }
      const std::int64_t total = sum;
      std::memcpy(out.data(), &total, sizeof total);
    };
    return Dataset::from(numbers(200)).shuffle().map(user_map(std::move(map))).batch({.global_batch = 16});
  };
  EXPECT_EQ(digests_of(twice(true), 2, {.seed = 1, .epochs = 2, .threads = 4}),
            cpu_digests_of(twice(false), {.seed = 1, .epochs = 2, .threads = 1}));
}

// Lanes that are stuck in user code must not take other loaders' workers away.
TEST(OneTbb, ALoaderRunsBesideOneThatIsStuck) {
  const Blocker blocker;
  DeviceGroup devices = cpu_replicas(1);
  auto stuck =
      std::make_unique<Loader>(Dataset::from(numbers(8)).map(on_each(blocker.at(0))).batch({.global_batch = 4}),
                               devices, LoaderOptions{.threads = 4, .stall_timeout_seconds = 0.1});
  EXPECT_THROW(stuck->next(), Error);
  run_through(Dataset::from(numbers(100)).batch({.global_batch = 10}),
              {.threads = 4, .stall_timeout_seconds = 20});
  stuck.reset();  // the lane is left behind
  run_through(Dataset::from(numbers(100)).batch({.global_batch = 10}),
              {.threads = 4, .stall_timeout_seconds = 20});
  blocker.open();
}

// No task holds anything of a loader that is gone: caches write what they must, files are closed.
TEST(OneTbb, ALoaderThatIsGoneHoldsNothing) {
  for (int round = 0; round < 300; ++round) {
    SourcePtr source = numbers(64);
    const std::weak_ptr<const Source> held = source;
    {
      DeviceGroup devices = cpu_replicas(1);
      Loader loader(Dataset::from(std::move(source)).batch({.global_batch = 4}), devices,
                    {.threads = 4, .prefetch = 8});
      for (int i = 0; i < round % 4; ++i) loader.next();
    }
    ASSERT_TRUE(held.expired()) << "round " << round;
  }
}

TEST(OneTbb, AForkedProcessIsToldToForkEarlier) {
  run_through(Dataset::from(numbers(20)).batch({.global_batch = 10}), {.threads = 2});
  const pid_t child = fork();
  if (child == 0) {
    int status = 1;
    try {
      run_through(Dataset::from(numbers(20)).batch({.global_batch = 10}), {.threads = 2});
    } catch (const Error& error) {
      status = error.code() == ErrorCode::kUnsupported ? 0 : 2;
    }
    _exit(status);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

std::ptrdiff_t open_entries_of(const char* folder) {
  const std::filesystem::directory_iterator all(folder);
  return std::distance(begin(all), end(all));
}

std::int64_t resident_pages() {
  std::ifstream statm("/proc/self/statm");
  std::int64_t size = 0, resident = 0;
  statm >> size >> resident;
  return resident;
}

TEST(OneTbb, AThousandLoadersLeaveNothing) {
  const Dataset dataset =
      Dataset::from(noise_images(64, 16, 16)).shuffle().map(flip()).batch({.global_batch = 16});
  const auto open_and_drop = [&](int times) {
    for (int i = 0; i < times; ++i) {
      DeviceGroup devices = cpu_replicas(1);
      Loader loader(dataset, devices, {.threads = 2});
      loader.next();
    }
  };
  open_and_drop(100);  // allocators and oneTBB's workers are warm
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const std::ptrdiff_t threads = open_entries_of("/proc/self/task"), files = open_entries_of("/proc/self/fd");
  const std::int64_t pages = resident_pages();
  open_and_drop(1000);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const std::ptrdiff_t workers = std::thread::hardware_concurrency() + 1;  // start when they are first needed
  EXPECT_LE(open_entries_of("/proc/self/task"), threads + workers);
  EXPECT_LE(open_entries_of("/proc/self/fd"), files);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LE(resident_pages(), pages + 1024) << "pages of 4 KiB";
#else
  static_cast<void>(pages);
#endif
}

}  // namespace
}  // namespace headrace::test
