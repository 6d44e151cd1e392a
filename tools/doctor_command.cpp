// `headrace doctor`: what this machine has, what is missing and how to get it; or what a data set is.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "headrace/devices/registry.h"
#include "headrace/tools/commands.h"
#include "headrace/tools/data_doctor.h"
#include "headrace/tools/data_options.h"
#include "headrace/tools/json_lines.h"
#include "headrace/tools/number_checks.h"

namespace headrace::tools {
namespace {

void print(const Finding& finding, JsonLines& json) {
  std::fprintf(json.people(), "%-8s %-22s %s\n", finding.found ? "ok" : "missing", finding.name.c_str(),
               finding.version.c_str());
  if (!finding.hint.empty()) std::fprintf(json.people(), "         %-22s hint: %s\n", "", finding.hint.c_str());
  json.write(
      {{"name", finding.name}, {"found", finding.found}, {"version", finding.version}, {"hint", finding.hint}});
}

void diagnose(JsonLines& json) {
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
  auto* command = program.add_subcommand(
      "doctor", "show devices, libraries, and what is missing; with --data what was recognised there");
  struct Options {
    DataDoctorOptions data;
    std::string json;
  };
  auto options = std::make_shared<Options>();
  CLI::Option* data = add_data_options(*command, options->data.data, options->data.layout);
  for (const char* name : {"--classes-at", "--train-folder", "--test-folder"})
    command->get_option(name)->needs(data);
  command
      ->add_option("--examine", options->data.examine,
                   "so many records of each split, evenly spread, are read and decoded; 0: all")
      ->capture_default_str()
      ->needs(data);
  command->add_option("--json", options->json, "results as JSON lines into this file, - for standard output");
  check_numbers(*command);
  command->callback([options] {
    JsonLines json(options->json);
    options->data.data.empty() ? diagnose(json) : diagnose_data(options->data, json);
  });
}

}  // namespace headrace::tools
