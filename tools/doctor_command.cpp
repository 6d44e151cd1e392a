// `headrace doctor`: what this machine has, what is missing and how to get it; what a data set is, or the
// world of workers that this process would join.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>

#include "headrace/devices/base/remote.h"
#include "headrace/devices/registry.h"
#include "headrace/devices/workers.h"
#include "headrace/tools/commands.h"
#include "headrace/tools/options/common_options.h"
#include "headrace/tools/options/options.h"
#include "headrace/tools/output/json_lines.h"
#include "headrace/tools/output/output_check.h"
#include "headrace/tools/output/print.h"

namespace headrace::tools {
namespace {

struct ClusterDoctorOptions {
  bool cluster = false;
  double wait_seconds = 10;  // for the others to arrive; 0: only reads the environment
};

void print_fact(const WorkerFact& fact, const JsonLines& json) {
  print(json.text_output(), "{:<14} {:<24} {}\n", fact.name, fact.value, fact.from);
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

// Prints the launcher's settings and their origin, then meets the others and prints who they are and which
// transport of values they agreed on, and why. Throws as
// plan_workers() and open_world() do: ConfigError for inconsistent variables, DeviceError naming missing workers.
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

void print_finding(const Finding& finding, JsonLines& json) {
  print(json.text_output(), "{:<8} {:<22} {}\n", finding.found ? "ok" : "missing", finding.name, finding.version);
  if (!finding.hint.empty()) print(json.text_output(), "         {:<22} hint: {}\n", "", finding.hint);
  json.write(
      {{"name", finding.name}, {"found", finding.found}, {"version", finding.version}, {"hint", finding.hint}});
}

void diagnose(JsonLines& json) {
  for (const Backend* backend : backends()) {
    for (const Finding& finding : backend->diagnose()) print_finding(finding, json);
    for (const DeviceInfo& device : backend->list()) {
      print_finding({.name = "device " + device.name,
                     .found = device.unusable.empty(),
                     .version = device.description,
                     .hint = device.unusable},
                    json);
    }
  }
  for (const Finding& finding : missing_backends()) print_finding(finding, json);
  const std::string library = remote::library();
  print_finding(
      {.name = "remote data",
       .found = !library.empty(),
       .version = library.empty() ? "built without" : "libcurl " + library,
       .hint = library.empty() ? "install libcurl4-openssl-dev and libpugixml-dev, and build again" : ""},
      json);
  print_finding(
      {.name = "AMD GPUs (ROCm)", .found = false, .version = "not supported", .hint = "use CPU or NVIDIA devices"},
      json);
  json.finish();
}

}  // namespace

void add_doctor_command(CLI::App& program) {
  auto* command = program.add_subcommand(
      "doctor", "show devices, libraries and what is missing; with --data, what a data set holds");
  struct Options {
    DataDoctorOptions data;
    ClusterDoctorOptions cluster;
    std::string json;
  };
  auto options = std::make_shared<Options>();
  CLI::Option* data = add_data_options(*command, options->data.data, options->data.layout);
  add_column_options(*command, options->data.columns, true);
  for (const char* name : {"--classes-at", "--train-folder", "--test-folder", "--image-column", "--label-column",
                           "--label-type", "--columns"})
    command->get_option(name)->needs(data);
  add_number(*command, "--examine", options->data.examine,
             "how many records of each split to read and decode, evenly spread; 0: all")
      ->capture_default_str()
      ->needs(data);
  CLI::Option* cluster =
      command->add_flag("--cluster", options->cluster.cluster,
                        "the world that this process would join as its launcher says, and who is there");
  cluster->excludes(data);
  add_number(*command, "--wait", options->cluster.wait_seconds,
             "seconds to wait for the other workers; 0: only read what the launcher says")
      ->capture_default_str()
      ->needs(cluster);
  add_json_option(*command, options->json);
  command->callback([options] {
    check_outputs({{.option = "--json", .path = options->json}},
                  {{.option = "--data", .path = options->data.data}});
    JsonLines json(options->json);
    if (options->cluster.cluster) return diagnose_cluster(options->cluster, json);
    options->data.data.empty() ? diagnose(json) : diagnose_data(options->data, json);
  });
}

}  // namespace headrace::tools
