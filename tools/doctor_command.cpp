// `headrace doctor`: what this machine has, what is missing and how to get it.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "headrace/devices/registry.h"
#include "headrace/tools/commands.h"
#include "headrace/tools/json_lines.h"

namespace headrace::tools {
namespace {

void print(const Finding& finding, JsonLines& json) {
  std::fprintf(json.people(), "%-8s %-22s %s\n", finding.found ? "ok" : "missing", finding.name.c_str(),
               finding.version.c_str());
  if (!finding.hint.empty()) std::fprintf(json.people(), "         %-22s hint: %s\n", "", finding.hint.c_str());
  json.write(
      {{"name", finding.name}, {"found", finding.found}, {"version", finding.version}, {"hint", finding.hint}});
}

void diagnose(const std::string& target) {
  JsonLines json(target);
  for (const Backend* backend : backends()) {
    for (const Finding& finding : backend->diagnose()) print(finding, json);
    for (const DeviceInfo& device : backend->list()) {
      print({.name = "device " + device.name, .found = true, .version = device.description, .hint = {}}, json);
    }
  }
  for (const Finding& finding : missing_backends()) print(finding, json);
  print(
      {.name = "AMD GPUs (ROCm)", .found = false, .version = "not supported", .hint = "use CPU or NVIDIA devices"},
      json);
  json.finish();
}

}  // namespace

void add_doctor_command(CLI::App& program) {
  auto* command = program.add_subcommand("doctor", "show devices, libraries, and what is missing");
  auto json = std::make_shared<std::string>();
  command->add_option("--json", *json, "results as JSON lines into this file, - for standard output");
  command->callback([json] { diagnose(*json); });
}

}  // namespace headrace::tools
