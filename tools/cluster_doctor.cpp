#include "headrace/tools/cluster_doctor.h"

#include <algorithm>
#include <string>

#include "headrace/devices/workers.h"
#include "headrace/tools/output/print.h"

namespace headrace::tools {
namespace {

void print_fact(const WorkerFact& fact, const JsonLines& json) {
  print(json.people(), "{:<14} {:<24} {}\n", fact.name, fact.value, fact.from);
}

void print_plan(const WorkerPlan& plan, const JsonLines& json) {
  if (plan.alone()) {
    print_fact({.name = "world", .value = "1", .from = "no launcher says that there are others"}, json);
    return;
  }
  for (const WorkerFact& fact : plan.facts) print_fact(fact, json);
  for (std::size_t rank = 0; rank < plan.addresses.size(); ++rank) {
    print_fact({.name = "address", .value = plan.addresses[rank], .from = "worker " + std::to_string(rank)}, json);
  }
  print_fact({.name = "transport", .value = "gloo", .from = "between processes, over TCP"}, json);
  print_fact({.name = "chief", .value = "worker 0", .from = "writes checkpoints, logs and reports"}, json);
}

// Every host once, in the order of ranks.
nlohmann::ordered_json meet(const WorkerPlan& plan, const ClusterDoctorOptions& options, const JsonLines& json) {
  nlohmann::ordered_json hosts = nlohmann::ordered_json::array();
  if (plan.alone() || options.wait_seconds <= 0) return hosts;
  const auto workers = open_world(plan, {.start_timeout_seconds = options.wait_seconds});
  for (int rank = 0; rank < workers->count(); ++rank) {
    const WorkerInfo& worker = workers->at(rank);
    print_fact({.name = "here", .value = worker.host, .from = worker.to_string(rank)}, json);
    if (std::find(hosts.begin(), hosts.end(), worker.host) == hosts.end()) hosts.push_back(worker.host);
  }
  return hosts;
}

}  // namespace

void diagnose_cluster(const ClusterDoctorOptions& options, JsonLines& json) {
  const WorkerPlan plan = plan_workers();
  print_plan(plan, json);
  nlohmann::ordered_json line{{"launcher", plan.launcher},
                              {"world", plan.workers},
                              {"rank", plan.rank},
                              {"local_rank", plan.local_rank},
                              {"coordinator", plan.coordinator},
                              {"transport", plan.alone() ? "none" : "gloo"},
                              {"chief", plan.is_chief()}};
  line["hosts"] = meet(plan, options, json);
  json.write(line);
  json.finish();
}

}  // namespace headrace::tools
