// Processes that train together, as threads with a membership each.
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/workers.h"
#include "headrace/tests/workers/transport_suite.h"
#include "headrace/tests/workers/world_fixture.h"

namespace headrace::test {
namespace {

TEST(Workers, SumAsOneTreeOverRanks) {
  for (const int world : {2, 3, 4, 5, 6, 7, 8}) {
    const auto errors = run_workers(world, [&](Workers& workers) {
      for (const std::size_t count : {1, 7, 1000, 70'001}) require_tree_sums(workers, count);
    });
    EXPECT_THAT(errors, Each(IsEmpty())) << world << " workers";
  }
}

TEST(Workers, SumAndSendInAnyMixOfSizes) {
  EXPECT_THAT(run_workers(3, require_any_mix_of_sizes), Each(IsEmpty()));
}

bool has_ipv6() {
  const int socket = ::socket(AF_INET6, SOCK_STREAM, 0);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  const bool bound = socket >= 0 && ::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  if (socket >= 0) ::close(socket);
  return bound;
}

TEST(Workers, MeetOnOneHostThoughOneReachesItByIPv6) {
  if (!has_ipv6()) GTEST_SKIP() << "no IPv6 on this machine";
  std::vector<WorkerPlan> plans = plans_of(3);
  plans[1].coordinator.replace(0, plans[1].coordinator.find(':'), "[::1]");
  const auto errors =
      run_workers(plans, {.start_timeout_seconds = 20, .call_timeout_seconds = 20}, [](Workers& workers) {
        std::vector<float> values(100, 1.0F);
        workers.all_reduce_sum(values);
      });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(Workers, KnowEachOther) {
  const auto errors = run_workers(2, [](Workers& workers) {
    if (workers.count() != 2 || workers.at(1).process != getpid() || workers.at(0).host.empty()) {
      throw ConfigError("not as introduced");
    }
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(Workers, RefuseWhatDiffersByName) {
  const auto errors = run_workers(4, [](Workers& workers) {
    workers.require_equal("model", "one");
    workers.require_equal("fingerprint of the plan", workers.rank() == 2 ? "4f0a" : "93bc");
  });
  EXPECT_THAT(errors, Each(HasSubstr("the workers differ in their fingerprint of the plan: 4f0a of worker 2, "
                                     "93bc of workers 0, 1, 3")));
}

TEST(Workers, NameThoseThatDoNotCome) {
  std::vector<WorkerPlan> plans = plans_of(4);
  for (WorkerPlan& plan : plans) plan.addresses = {"a:1", "b:2", "c:3", "d:4"};
  plans.erase(plans.begin() + 2);
  const auto errors =
      run_workers(plans, {.start_timeout_seconds = .5, .call_timeout_seconds = 20}, [](Workers&) {});
  EXPECT_THAT(errors, Each(HasSubstr("after 0.5 s there is no worker 2 (expected at c:3)")));
}

TEST(Workers, NameACoordinatorThatDoesNotCome) {
  std::vector<WorkerPlan> plans = plans_of(2);
  const std::string coordinator = plans[0].coordinator;
  plans.erase(plans.begin());
  const auto errors =
      run_workers(plans, {.start_timeout_seconds = .3, .call_timeout_seconds = 20}, [](Workers&) {});
  EXPECT_THAT(errors, ElementsAre(AllOf(HasSubstr("worker 0 at " + coordinator), HasSubstr("in 0.3 s"))));
}

TEST(Workers, RefuseTwoOfOneRankAndOtherCounts) {
  std::vector<WorkerPlan> plans = plans_of(3);
  plans[2].rank = 1;
  const WorkerOptions brief{.start_timeout_seconds = 1, .call_timeout_seconds = 20};
  EXPECT_THAT(run_workers(plans, brief, [](Workers&) {}),
              Contains(HasSubstr("two processes say that they are worker 1")));
  plans = plans_of(2);
  plans[1].workers = 3;
  EXPECT_THAT(run_workers(plans, brief, [](Workers&) {})[1],
              HasSubstr("worker 1 counts 3 workers, worker 0 counts 2"));
}

// Seconds from a worker's failure to the others' errors.
double seconds_to_errors(const std::function<void(Workers&)>& failing, std::vector<std::string>& errors) {
  std::atomic<std::uint64_t> failed{0}, last{0};
  errors = run_workers(3, [&](Workers& workers) {
    std::vector<float> values(1000, 1.0F);
    workers.all_reduce_sum(values);
    if (workers.rank() == 1) {
      workers.set_moment("step 57");
      std::this_thread::sleep_for(std::chrono::milliseconds(400));  // a beat tells the moment
      failed = now_ns();
      failing(workers);
    }
    try {
      for (;;) workers.all_reduce_sum(values);
    } catch (const std::exception&) {
      if (workers.rank() != 1) last = std::max(last.load(), now_ns());
      throw;
    }
  });
  return static_cast<double>(last - failed) * 1e-9;
}

TEST(WorkerFailures, AFailureIsToldToAllAtOnce) {
  std::vector<std::string> errors;
  const double seconds = seconds_to_errors([](Workers& workers) { workers.abort("the disk is full"); }, errors);
  for (const int survivor : {0, 2}) {
    EXPECT_THAT(errors[static_cast<std::size_t>(survivor)],
                AllOf(HasSubstr("worker 1 ("), HasSubstr("failed: the disk is full"), HasSubstr("at step 57"),
                      HasSubstr("in all-reduce")));
  }
  EXPECT_LT(seconds, 5);  // well before the call limit of 20; on an idle machine in a moment
}

TEST(WorkerFailures, AnErrorEndsAllThoughTheOthersAreWriting) {
  const auto errors = run_workers(3, [](Workers& workers) {
    std::vector<float> values(1 << 20, 1.0F);
    for (int call = 0;; ++call) {
      workers.all_reduce_sum(values);
      if (workers.rank() == 1 && call == 3) throw ConfigError("its own error");
    }
  });
  EXPECT_THAT(errors[1], HasSubstr("its own error"));
  for (const int survivor : {0, 2}) {
    EXPECT_THAT(errors[static_cast<std::size_t>(survivor)],
                AllOf(HasSubstr("worker 1 ("), HasSubstr("failed: an error ended its work")));
  }
}

TEST(WorkerFailures, OneThatIsLateIsNamedAtTheDeadline) {
  std::promise<void> over;
  const std::shared_future<void> is_over = over.get_future().share();
  std::atomic<int> survivors{0};
  const auto errors =
      run_workers(plans_of(3), {.start_timeout_seconds = 20, .call_timeout_seconds = 1}, [&](Workers& workers) {
        std::vector<float> values(1000, 1.0F);
        workers.all_reduce_sum(values);
        if (workers.rank() == 2) {
          is_over.wait();
        } else {
          const Stopwatch waited;
          try {
            workers.all_reduce_sum(values);
          } catch (const std::exception&) {
            if (waited.nanoseconds() > 2'000'000'000) throw ConfigError("the deadline was 1 s");
            if (++survivors == 2) over.set_value();
            throw;
          }
        }
        workers.all_reduce_sum(values);
      });
  EXPECT_THAT(errors, Each(AllOf(HasSubstr("worker 2 ("), HasSubstr("is late"))));
}

// Two workers whose calls differ, and what both are told.
struct OtherCalls {
  const char* name;
  std::function<void(Workers&)> chiefs, others;
  std::string said_to_chief, said_to_other;
};

std::ostream& operator<<(std::ostream& stream, const OtherCalls& calls) { return stream << calls.name; }

class WorkersInOtherCalls : public ::testing::TestWithParam<OtherCalls> {};

// Long before the time for a call is over.
TEST_P(WorkersInOtherCalls, EndAtOnceWithBothNamed) {
  const OtherCalls& calls = GetParam();
  const Stopwatch waited;
  const auto errors =
      run_workers(plans_of(2), {.start_timeout_seconds = 60, .call_timeout_seconds = 60}, [&](Workers& workers) {
        workers.all_gather("", "the beginning");
        (workers.rank() == 0 ? calls.chiefs : calls.others)(workers);
      });
  EXPECT_LT(waited.seconds(), 20);
  EXPECT_THAT(errors, ElementsAre(HasSubstr(calls.said_to_chief), HasSubstr(calls.said_to_other)));
}

void sum(Workers& workers, std::size_t count) {
  std::vector<float> values(count, 1.0F);
  workers.all_reduce_sum(values);
}

const std::string kInOtherGathers =
    "the workers are in different calls: all-gather (evaluate()) of worker 0, all-gather (fit()) of worker 1";

INSTANTIATE_TEST_SUITE_P(
    Ways, WorkersInOtherCalls,
    ::testing::Values(OtherCalls{"Gathers", [](Workers& workers) { workers.all_gather("", "evaluate()"); },
                                 [](Workers& workers) { workers.all_gather("", "fit()"); }, kInOtherGathers,
                                 kInOtherGathers},
                      OtherCalls{"AComparison",
                                 [](Workers& workers) {
                                   require_same(workers, "fit()", {{"a", "1"}});
                                 },
                                 [](Workers& workers) { workers.require_equal("variables", "1"); },
                                 "all-gather (variables) of worker 1", "all-gather (fit()) of worker 0"},
                      OtherCalls{"AGatherBesideASum", [](Workers& workers) { workers.all_gather("", "fit()"); },
                                 [](Workers& workers) { sum(workers, 1000); },
                                 "all-reduce of 4000 bytes of worker 1", "all-gather (fit()) of worker 0"},
                      OtherCalls{"OneThatReturns", [](Workers& workers) { workers.all_gather("", "evaluate()"); },
                                 [](Workers&) {},
                                 "has left, while this worker was in all-gather 3 of 0 bytes (evaluate())", ""},
                      OtherCalls{"AChiefThatReturns", [](Workers&) {},
                                 [](Workers& workers) { sum(workers, 1000); }, "", "worker 0 ("},
                      OtherCalls{"OneThatSignsOff", [](Workers& workers) { sum(workers, 1000); },
                                 [](Workers& workers) {
                                   workers.sign_off();
                                   workers.all_gather("");
                                 },
                                 "worker 1 (", "this worker has signed off"},
                      OtherCalls{"AnOptionOfOne",
                                 [](Workers& workers) {
                                   require_same(workers, "fit()", {{"a", "1"}, {"b", "on"}, {"c", "2"}});
                                 },
                                 [](Workers& workers) {
                                   require_same(workers, "fit()", {{"a", "1"}, {"c", "3"}});
                                 },
                                 "the workers differ in their b: none of worker 1, on of worker 0",
                                 "the workers differ in their b: none of worker 1, on of worker 0"}),
    [](const auto& each) { return std::string(each.param.name); });

// Joins as worker 1 and stops: the other half of the test below, in a process of its own.
void join_and_stop(const std::string& coordinator) {
  std::vector<WorkerPlan> plans{{.launcher = "test", .rank = 1, .workers = 2, .coordinator = coordinator}};
  run_workers(plans, {.start_timeout_seconds = 20, .call_timeout_seconds = 1}, [](Workers&) { raise(SIGSTOP); });
}

TEST(WorkerFailures, OneThatIsStoppedIsNamedThoughNoCallWaitsForIt) {
  constexpr const char* kCoordinator = "HEADRACE_TEST_COORDINATOR";
  if (const char* coordinator = std::getenv(kCoordinator)) return join_and_stop(coordinator);
  std::vector<WorkerPlan> plans = plans_of(2);
  plans.pop_back();
  setenv(kCoordinator, plans[0].coordinator.c_str(), 1);
  std::string program = "/proc/self/exe", filter = "--gtest_filter=WorkerFailures.OneThatIsStopped*";
  char* const arguments[] = {program.data(), filter.data(), nullptr};
  pid_t process = 0;
  ASSERT_EQ(posix_spawn(&process, program.c_str(), nullptr, nullptr, arguments, environ), 0);
  unsetenv(kCoordinator);
  const auto errors =
      run_workers(plans, {.start_timeout_seconds = 20, .call_timeout_seconds = 1}, [](Workers& workers) {
        const Stopwatch waited;
        while (workers.failure().empty() && waited.seconds() < 10) std::this_thread::yield();
        throw ConfigError(workers.failure() + " within " + std::to_string(waited.seconds()) + " s");
      });
  kill(process, SIGKILL);
  waitpid(process, nullptr, 0);
  EXPECT_THAT(errors,
              ElementsAre(AllOf(HasSubstr("worker 1 ("), HasSubstr("is late"), ContainsRegex("within [0-3]\\."))));
}

}  // namespace
}  // namespace headrace::test
