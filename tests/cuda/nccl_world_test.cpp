// NCCL over several workers, on the host's side: workers are threads, and so are their replicas.
#include "headrace/devices/base/clock.h"
#include "headrace/devices/workers.h"
#include "headrace/tests/conformance/replicas.h"
#include "headrace/tests/cuda/fake_cuda_fixture.h"
#include "headrace/tests/support/test.h"
#include "headrace/tests/support/thread_world.h"

namespace headrace {
namespace {

using test::ThreadWorld;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;
namespace nccl = test::fake_nccl;

constexpr std::int64_t kCount = 1000;

float value_of(int replica, std::size_t i) {
  return std::sin(static_cast<float>(replica * 7919 + static_cast<int>(i))) * std::ldexp(1.0F, replica * 5 % 11);
}

std::vector<float> values_of(int replica) {
  std::vector<float> values(static_cast<std::size_t>(kCount));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = value_of(replica, i);
  return values;
}

// The pairwise tree of all replicas' values.
std::vector<float> tree_sums(int replicas) {
  std::vector<std::vector<float>> parts;
  for (int r = 0; r < replicas; ++r) parts.push_back(values_of(r));
  for (std::size_t stride = 1; stride < parts.size(); stride *= 2) {
    for (std::size_t at = 0; at + stride < parts.size(); at += 2 * stride) {
      for (std::size_t i = 0; i < parts[at].size(); ++i) parts[at][i] += parts[at + stride][i];
    }
  }
  return parts[0];
}

// A worker with a vector on each of its GPUs.
struct Worker {
  std::shared_ptr<Workers> workers;
  DeviceGroup devices;
  std::unique_ptr<Collective> collective;
  std::vector<std::unique_ptr<Stream>> streams;
  std::vector<Buffer> buffers;

  Worker(const ThreadWorld& world, int rank, const std::string& spec)
      : workers(world.join(rank)), devices(open_devices(spec)), collective(create_collective(devices, workers)) {
    for (int r = 0; r < devices.size(); ++r) {
      streams.push_back(devices[r].create_stream());
      buffers.push_back(devices[r].allocate(kCount * sizeof(float)));
      const std::vector<float> values = values_of(collective->first_replica() + r);
      std::memcpy(buffers.back().data(), values.data(), buffers.back().size());
    }
  }

  Stream& stream(int replica) const { return *streams[static_cast<std::size_t>(replica)]; }
  TensorView view(int replica) const {
    return buffers[static_cast<std::size_t>(replica)].view({kCount}, DType::kF32);
  }
  std::vector<float> values(int replica) const {
    const auto* first = view(replica).as<float>();
    return {first, first + kCount};
  }
  // Each replica's call waits for the others of the world where it is made.
  void sum(Collective& calls) const {
    test::on_threads(devices.size(), [&](int r) { calls.all_reduce_sum(r, view(r), stream(r)); });
  }
  void broadcast(int root) const {
    test::on_threads(devices.size(), [&](int r) { collective->broadcast(r, root, view(r), stream(r)); });
  }
};

class NcclWorld : public test::FakeCuda {
 protected:
  // Workers who are threads must not change the environment that others read: what each would set is there.
  static void SetUpTestSuite() {
    test::FakeCuda::SetUpTestSuite();
    setenv("NCCL_RUNTIME_CONNECT", "0", 1);
    setenv("NCCL_GRAPH_REGISTER", "0", 1);
  }
  void SetUp() override {
    nccl::clear();
    nccl::exchange_values();
  }

  // Runs `work(rank)` for each worker, as if on a host of its own, and returns what it threw: "" for nothing.
  static std::vector<std::string> run(int workers, const std::function<void(int rank)>& work) {
    std::vector<std::string> errors(static_cast<std::size_t>(workers));
    test::on_threads(workers, [&](int rank) {
      test::fake_cuda::set_host(rank);
      try {
        work(rank);
      } catch (const std::exception& error) {
        errors[static_cast<std::size_t>(rank)] = error.what();
      }
    });
    return errors;
  }
  static std::vector<std::string> comings_and_goings() {
    std::vector<std::string> calls = test::fake_cuda::log();
    std::erase_if(calls, [](const std::string& name) {
      return !name.starts_with("ncclComm") || name == "ncclCommGetAsyncError";
    });
    return calls;
  }
};

TEST_F(NcclWorld, IsOneOfAllWorkersGpus) {
  test::fake_cuda::start_log();
  const ThreadWorld world(2);
  const auto errors = run(2, [&](int rank) {
    const Worker worker(world, rank, "cuda:0,1");
    EXPECT_EQ(worker.collective->local_replicas(), 2);
    EXPECT_EQ(worker.collective->world_replicas(), 4);
    EXPECT_EQ(worker.collective->first_replica(), 2 * rank);
    worker.sum(*worker.collective);
    const std::vector<float> sum = tree_sums(4);
    for (int r = 0; r < 2; ++r) EXPECT_THAT(worker.values(r), Pointwise(::testing::FloatNear(.01F), sum));
  });
  EXPECT_THAT(errors, Each(""));
  EXPECT_THAT(nccl::worlds(), ElementsAre(UnorderedElementsAre(0, 1, 2, 3)));
  EXPECT_EQ(std::ranges::count(test::fake_cuda::log(), "ncclGetUniqueId"), 1);
}

// Of one worker, in this thread.
TEST_F(NcclWorld, RegistersNoMemoryOfGraphsUnlessTheUserSaysSo) {
  unsetenv("NCCL_GRAPH_REGISTER");
  const Worker alone(ThreadWorld(1), 0, "cuda:0");
  EXPECT_STREQ(std::getenv("NCCL_GRAPH_REGISTER"), "0");
  setenv("NCCL_GRAPH_REGISTER", "1", 1);
  const Worker another(ThreadWorld(1), 0, "cuda:0");
  EXPECT_STREQ(std::getenv("NCCL_GRAPH_REGISTER"), "1");
}

TEST_F(NcclWorld, BroadcastsFromAnyReplicaOfTheWorld) {
  const ThreadWorld world(2);
  const auto errors = run(2, [&](int rank) {
    const Worker worker(world, rank, "cuda:0,1");
    worker.broadcast(3);
    for (int r = 0; r < 2; ++r) EXPECT_EQ(worker.values(r), values_of(3));
    EXPECT_THROW(worker.collective->broadcast(0, 4, worker.view(0), worker.stream(0)), ConfigError);
  });
  EXPECT_THAT(errors, Each(""));
}

TEST_F(NcclWorld, SumsInOrderAsOneProcessWould) {
  for (const auto& [workers, spec] : {std::pair(2, "cuda:0,1"), {3, "cuda:0"}, {5, "cuda:0"}}) {
    SCOPED_TRACE(std::to_string(workers) + " of " + spec);
    const ThreadWorld world(workers);
    const auto errors = run(workers, [&world, spec = std::string(spec)](int rank) {
      const Worker worker(world, rank, spec);
      Collective& ordered = worker.collective->in_order();
      EXPECT_EQ(ordered.world_replicas(), worker.collective->world_replicas());
      EXPECT_EQ(ordered.first_replica(), worker.collective->first_replica());
      worker.sum(ordered);
      const std::vector<float> sum = tree_sums(ordered.world_replicas());
      for (int r = 0; r < worker.devices.size(); ++r) EXPECT_EQ(worker.values(r), sum);
    });
    EXPECT_THAT(errors, Each(""));
  }
}

// Does what a worker's collective asks of the others before it connects.
void agree(Workers& workers) {
  workers.all_gather("connects its devices");
  workers.require_equal("number of replicas", "1");
  workers.require_equal("version of NCCL", nccl::version());
  workers.all_gather("another GPU");
  workers.all_gather("no id");
}

TEST_F(NcclWorld, ThatDoesNotConnectInTimeIsAnErrorOfAll) {
  const ThreadWorld world(2, {.start_timeout_seconds = .3, .call_timeout_seconds = 20});
  const auto errors = run(2, [&](int rank) {
    if (rank == 0) return static_cast<void>(Worker(world, rank, "cuda:0"));
    const std::shared_ptr<Workers> workers = world.join(rank);
    agree(*workers);
    workers->all_gather("never comes");
  });
  EXPECT_THAT(errors[0], AllOf(HasSubstr("connecting the GPUs took longer than 0.3 s"), HasSubstr("NCCL_SOCKET")));
  EXPECT_THAT(errors[1], AllOf(HasSubstr("worker 0 (thread, process "), HasSubstr("connecting the GPUs")));
}

TEST_F(NcclWorld, AWorkerThatIsLostWhileTheyConnectIsNamed) {
  ThreadWorld world(2, {.start_timeout_seconds = 60, .call_timeout_seconds = 20});
  const auto errors = run(2, [&](int rank) {
    if (rank == 0) return static_cast<void>(Worker(world, rank, "cuda:0"));
    agree(*world.join(rank));
    world.lose(1);
  });
  EXPECT_THAT(errors[0], HasSubstr("worker 1 (thread, process "));
  EXPECT_THAT(errors[0], HasSubstr("was lost"));
}

// Sums on worker 0, while worker 1 does not, until `fail` ends it; returns the error of its stream.
std::string error_of_a_wait(ThreadWorld& world, const std::function<void(Worker& worker_1)>& fail) {
  std::string message;
  test::on_threads(2, [&](int rank) {
    test::fake_cuda::set_host(rank);
    Worker worker(world, rank, "cuda:0");
    if (rank == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      return fail(worker);
    }
    const Stopwatch waited;
    worker.sum(*worker.collective);
    EXPECT_LT(waited.seconds(), 1);
    const auto [code, text] = test::error_of(worker.stream(0));
    EXPECT_EQ(code, ErrorCode::kCancelled);
    message = text;
  });
  return message;
}

TEST_F(NcclWorld, AWorkerThatIsLostEndsTheOthersWaits) {
  ThreadWorld world(2);
  EXPECT_THAT(error_of_a_wait(world, [&](Worker&) { world.lose(1); }),
              AllOf(HasSubstr("worker 1 (thread, process "), HasSubstr("was lost")));
}

TEST_F(NcclWorld, AbortEndsTheOthersWaitsAndSaysWhy) {
  ThreadWorld world(2);
  EXPECT_THAT(error_of_a_wait(world, [](Worker& worker) { worker.collective->abort("the disk is full"); }),
              AllOf(HasSubstr("worker 1 (thread, process "), HasSubstr("failed: the disk is full")));
  EXPECT_THAT(world.join(0)->failure(), HasSubstr("the disk is full"));
}

TEST_F(NcclWorld, AbortOfTheWorkersEndsWaits) {
  ThreadWorld world(2);
  EXPECT_THAT(error_of_a_wait(world, [](Worker& worker) { worker.workers->abort("the loader failed"); }),
              AllOf(HasSubstr("worker 1 (thread, process "), HasSubstr("failed: the loader failed")));
}

TEST_F(NcclWorld, AnErrorOfNcclAbortsTheWorkers) {
  const ThreadWorld world(2);
  const auto errors = run(2, [&](int rank) {
    const Worker worker(world, rank, "cuda:0");
    worker.sum(*worker.collective);
    worker.workers->all_gather("both have");
    nccl::fail_communicators(nccl::Failing::kInProgress);
    const Stopwatch waited;
    while (worker.workers->failure().empty() && waited.seconds() < 5) std::this_thread::yield();
    EXPECT_THAT(worker.workers->failure(), HasSubstr("NCCL: the network is down (cuda:0)"));
  });
  EXPECT_THAT(errors, Each(""));
}

TEST_F(NcclWorld, EndsTogetherFinalizedAndThenDestroyed) {
  const ThreadWorld world(2);
  const auto errors = run(2, [&](int rank) {
    auto worker = std::make_unique<Worker>(world, rank, "cuda:0");
    worker->sum(*worker->collective);
    const std::shared_ptr<Workers> workers = worker->workers;
    if (rank == 0) test::fake_cuda::start_log();
    workers->all_gather("the log has begun");
    if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    worker.reset();
  });
  EXPECT_THAT(errors, Each(""));
  EXPECT_THAT(comings_and_goings(),
              ElementsAre("ncclCommFinalize", "ncclCommFinalize", "ncclCommDestroy", "ncclCommDestroy"));
}

TEST_F(NcclWorld, DoesNotWaitAtItsEndForAWorkerThatIsLost) {
  ThreadWorld world(2);
  std::promise<void> over;
  const auto errors = run(2, [&](int rank) {
    auto worker = std::make_unique<Worker>(world, rank, "cuda:0");
    if (rank == 1) return over.get_future().wait();
    world.lose(1);
    const Stopwatch waited;
    worker.reset();
    EXPECT_LT(waited.seconds(), 1);
    over.set_value();
  });
  EXPECT_THAT(errors, Each(""));
}

TEST_F(NcclWorld, RefusesOneGpuTwice) {
  const ThreadWorld world(2);
  const auto errors = run(2, [&](int rank) {
    test::fake_cuda::set_host(0);
    const Worker worker(world, rank, "cuda:0");
  });
  EXPECT_THAT(errors, Each(AllOf(HasSubstr("worker 0 (thread"), HasSubstr("worker 1 (thread"),
                                 HasSubstr("would train on one GPU"), HasSubstr("cuda:N"))));
}

TEST_F(NcclWorld, RefusesOtherNumbersOfGpus) {
  const ThreadWorld world(2);
  const auto errors =
      run(2, [&](int rank) { const Worker worker(world, rank, rank == 0 ? "cuda:0" : "cuda:0,1"); });
  EXPECT_THAT(errors, Each(HasSubstr("differ in their number of replicas: 1 of worker 0, 2 of worker 1")));
}

// Logical replicas on one GPU: all workers meet through the host's memory.
TEST_F(NcclWorld, IsNotThereUnlessEveryWorkerHasGpusOfItsOwn) {
  const ThreadWorld world(2);
  const auto errors = run(2, [&](int rank) {
    const Worker worker(world, rank, rank == 0 ? "cuda:0,1" : "cuda:0x2");
    EXPECT_EQ(worker.collective->world_replicas(), 4);
    ASSERT_NE(worker.collective->failure_word(1), nullptr) << "that of the replicas which meet on the GPU";
    EXPECT_EQ(*worker.collective->failure_word(1), 0U);
  });
  EXPECT_THAT(errors, Each(""));
  EXPECT_THAT(nccl::worlds(), ElementsAre(SizeIs(2))) << "worker 0's own";
}

// Values of GPUs pass through pinned memory, also in captured work.
TEST_F(NcclWorld, ReplicasThatNcclDoesNotConnectAreSummedOnTheHosts) {
  const ThreadWorld world(2);
  const auto errors = run(2, [&](int rank) {
    DeviceGroup devices = open_devices("cuda:0");
    const auto collective = create_world_collective(create_collective(devices), world.join(rank));
    const std::unique_ptr<Stream> stream = devices[0].create_stream();
    const Buffer buffer = devices[0].allocate(kCount * sizeof(float));
    const TensorView view = buffer.view({kCount}, DType::kF32);
    stream->begin_capture();
    collective->all_reduce_sum(0, view, *stream);
    const std::unique_ptr<CapturedWork> work = stream->end_capture();
    const std::vector<float> mine = values_of(rank), sum = tree_sums(2);
    for (int launch = 0; launch < 2; ++launch) {
      stream->copy(view.data, mine.data(), view.bytes());
      stream->launch(*work);
      stream->synchronize();
      EXPECT_EQ(std::memcmp(view.data, sum.data(), view.bytes()), 0);
    }
    EXPECT_GT(collective->waited_ns(0), 0);
  });
  EXPECT_THAT(errors, Each(""));
}

}  // namespace
}  // namespace headrace
