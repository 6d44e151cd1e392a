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
  print_fact({.name = "chief", .value = "worker 0", .from = "writes checkpoints, logs and reports"}, json);
}

// What the workers know once they have met.
struct Meeting {
  std::string transport = {};
  nlohmann::ordered_json hosts = nlohmann::ordered_json::array();  // each once, in the order of ranks
};

Meeting meet(const WorkerPlan& plan, const ClusterDoctorOptions& options, const JsonLines& json) {
  Meeting meeting{.transport = plan.alone() ? "none" : to_string(plan.transport)};
  if (plan.alone() || options.wait_seconds <= 0) return meeting;
  const auto workers = open_world(plan, {.start_timeout_seconds = options.wait_seconds});
  for (int rank = 0; rank < workers->count(); ++rank) {
    const WorkerInfo& worker = workers->at(rank);
    print_fact({.name = "here", .value = worker.host, .from = worker.to_string(rank)}, json);
    nlohmann::ordered_json& hosts = meeting.hosts;
    if (std::find(hosts.begin(), hosts.end(), worker.host) == hosts.end()) hosts.push_back(worker.host);
  }
  const WorkerFact& agreed = workers->transport();
  print_fact({.name = "agreed", .value = agreed.value, .from = agreed.from}, json);
  meeting.transport = agreed.value;
  return meeting;
}

}  // namespace

void diagnose_cluster(const ClusterDoctorOptions& options, JsonLines& json) {
  const WorkerPlan plan = plan_workers();
  print_plan(plan, json);
  const Meeting meeting = meet(plan, options, json);
  nlohmann::ordered_json line{
      {"launcher", plan.launcher},     {"world", plan.workers},           {"rank", plan.rank},
      {"local_rank", plan.local_rank}, {"coordinator", plan.coordinator}, {"transport", meeting.transport},
      {"chief", plan.is_chief()},      {"hosts", meeting.hosts},          {"secret", plan.guard.has_secret()},
      {"tls", plan.guard.has_tls()},   {"listen", plan.guard.listen}};
  json.write(line);
  json.finish();
}

}  // namespace headrace::tools
