// `headrace digest`: the identity of a batch stream.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/hash.h"
#include "headrace/pipeline/digest.h"
#include "headrace/tools/commands.h"
#include "headrace/tools/options/options.h"
#include "headrace/tools/options/pipeline_options.h"
#include "headrace/tools/output/json_lines.h"
#include "headrace/tools/output/output_check.h"
#include "headrace/tools/output/print.h"

namespace headrace::tools {
namespace {

struct DigestOptions : PipelineCommandOptions {
  std::uint64_t start_step = 0;
  bool per_replica = false;
};

// A loader that stands where one from the start would after `sequence` batches; found without reading them.
std::unique_ptr<Loader> loader_at(const DigestOptions& options, const Dataset& dataset, DeviceGroup& devices) {
  LoaderOptions settings = options.loader();
  if (options.start_step > 0) {
    const Loader loader(dataset, devices, settings);
    const std::uint64_t batches = loader.steps_per_epoch() * settings.epochs;
    if (!dataset.streamed() && options.start_step > batches) {
      throw ConfigError(
          fmt::format("--start-step {} is past the end: there are {} batches", options.start_step, batches),
          "give a smaller step, or more --epochs");
    }
    settings.start = loader.state();
    settings.start->sequence = options.start_step;
  }
  return std::make_unique<Loader>(dataset, devices, settings);
}

void print_batch(const BatchDigest& batch, JsonLines& json) {
  if (!json.on_stdout()) {
    print(stdout, "epoch {} step {} examples {} {}\n", batch.epoch, batch.step, batch.examples, batch.sha256);
  }
  json.write(
      {{"epoch", batch.epoch}, {"step", batch.step}, {"examples", batch.examples}, {"sha256", batch.sha256}});
}

void print_share(const ShareDigest& share, JsonLines& json) {
  if (!json.on_stdout()) {
    print(stdout, "epoch {} step {} replica {} {}\n", share.epoch, share.step, share.replica, share.sha256);
  }
  json.write({{"epoch", share.epoch}, {"step", share.step}, {"replica", share.replica}, {"sha256", share.sha256}});
}

// The digest of the whole: over those of its batches; of a part of the replicas: over those of its shares.
std::string print_stream(const DigestOptions& options, Loader& loader, DeviceGroup& devices, JsonLines& json) {
  const bool shares = options.per_replica || options.is_part();
  StreamDigest stream(devices, shares ? std::optional<int>(options.common.input.world.first) : std::nullopt);
  Sha256 part;
  while (const std::optional<BatchDigest> batch = stream.next(loader)) {
    if (!options.is_part()) print_batch(*batch, json);
    for (const ShareDigest& share : stream.shares()) {
      print_share(share, json);
      part.update(share.sha256);
    }
  }
  return options.is_part() ? part.finish_hex() : stream.finish();
}

void digest(const DigestOptions& options) {
  options.check_outputs();
  JsonLines json(options.common.json);
  const Dataset dataset = options.open();
  DeviceGroup devices = options.devices();
  const std::unique_ptr<Loader> loader = loader_at(options, dataset, devices);
  const std::string whole = print_stream(options, *loader, devices, json);
  options.common.warn_of_caches();
  if (!json.on_stdout()) print(stdout, "{}\n", whole);
  json.write({{"final", true}, {"sha256", whole}, {"bad_records", options.common.errors.bad_records()}});
  options.common.errors.report();
  json.finish();
}

}  // namespace

void add_digest_command(CLI::App& program) {
  auto* command = program.add_subcommand("digest", "print the identity of a batch stream");
  auto options = std::make_shared<DigestOptions>();
  options->add_to(*command);
  options->add_world_to(*command);
  command->add_flag("--per-replica", options->per_replica,
                    "also print a digest of each replica's share of each batch");
  add_number(*command, "--start-step", options->start_step, "continue as if this many batches had been taken",
             kSteps);
  command->callback([options] { digest(*options); });
}

}  // namespace headrace::tools
