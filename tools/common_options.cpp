#include "headrace/tools/common_options.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/tools/data_options.h"

namespace headrace::tools {

void CommonOptions::add_to(CLI::App& command) {
  add_data_options(command, data, layout);
  command.add_option("--devices", devices, "auto, cpu:N, cuda:0,1 or cuda:0xN: one replica each")
      ->capture_default_str();
  command.add_option("--global-batch", global_batch, "examples in a batch over all replicas")
      ->check(CLI::PositiveNumber);
  command.add_option("--epochs", epochs, "passes over the data")->check(CLI::PositiveNumber);
  command.add_option("--seed", seed, "of everything random")->capture_default_str();
  command.add_option("--threads", threads, "compute threads of the input engine; 0: one a processor")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command.add_option("--prefetch", prefetch, "batches ready ahead of the consumer")
      ->capture_default_str()
      ->check(CLI::Range(0, 1024));
  command.add_option("--cache", cache, "keep decoded samples: none, memory, or a folder")->capture_default_str();
  command.add_flag("--apply-orientation", apply_orientation,
                   "turn images the way up that their EXIF data say; without it pixels come as they are stored");
  errors.add_to(command);
  command.add_option("--convert", convert, "where uint8 images become float32 for a GPU: auto, host or device")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "host", "device"}));
  command
      .add_option("--resident", resident,
                  "whether a GPU keeps the uint8 images of a run of several epochs: auto, never or always")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "never", "always"}));
  command.add_option("--json", json, "results as JSON lines into this file, - for standard output");
}

ConvertAt CommonOptions::convert_at() const {
  if (convert == "host") return ConvertAt::kHost;
  return convert == "device" ? ConvertAt::kDevice : ConvertAt::kAuto;
}

Residency CommonOptions::residency() const {
  if (resident == "never") return Residency::kNever;
  return resident == "always" ? Residency::kAlways : Residency::kAuto;
}

std::shared_ptr<SampleCache> CommonOptions::open_cache() const {
  if (cache == "none") return nullptr;
  if (cache == "memory") return memory();
  opened.push_back(disk(cache));
  return opened.back();
}

void CommonOptions::warn_of_caches() const {
  for (const auto& one : opened) {
    if (const std::string trouble = one->trouble(); !trouble.empty()) {
      std::fprintf(stderr, "headrace: warning: %s\n", trouble.c_str());
    }
  }
}

}  // namespace headrace::tools
