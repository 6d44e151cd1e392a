// A world of several workers within one process, each on a thread of its own.
#pragma once

#include "headrace/devices/workers.h"
#include "headrace/tests/support/free_coordinator.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {

inline std::vector<WorkerPlan> plans_of(int workers) {
  const std::string coordinator = free_coordinator();
  std::vector<WorkerPlan> plans;
  for (int rank = 0; rank < workers; ++rank) {
    plans.push_back({.launcher = "test", .rank = rank, .workers = workers, .coordinator = coordinator});
  }
  return plans;
}

// Runs `work` for each plan and returns what it threw: "" for nothing.
inline std::vector<std::string> run_workers(const std::vector<WorkerPlan>& plans, const WorkerOptions& options,
                                            const std::function<void(Workers&)>& work) {
  setenv("HEADRACE_WORKERS_MODULE", HEADRACE_WORKERS_MODULE, 0);
  std::vector<std::string> errors(plans.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        const std::shared_ptr<Workers> workers = open_world(plans[i], options);
        work(*workers);
      } catch (const std::exception& error) {
        errors[i] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

inline std::vector<std::string> run_workers(int workers, const std::function<void(Workers&)>& work) {
  return run_workers(plans_of(workers), {.start_timeout_seconds = 20, .call_timeout_seconds = 20}, work);
}

}  // namespace headrace::test
