// `headrace ledger`: which record went to which batch and replica, and the proof that none was lost or repeated.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>
#include <set>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/text.h"
#include "headrace/pipeline/ledger.h"
#include "headrace/pipeline/loader.h"
#include "headrace/tools/commands.h"
#include "headrace/tools/options/pipeline_options.h"
#include "headrace/tools/output/json_lines.h"
#include "headrace/tools/output/output_check.h"
#include "headrace/tools/output/print.h"

namespace headrace::tools {
namespace {

struct LedgerOptions : PipelineCommandOptions {
  bool check = false;
};

Ledger record_stream(const LedgerOptions& options, const Dataset& dataset, DeviceGroup& devices) {
  Loader loader(dataset, devices, options.loader());
  Ledger ledger;
  for (bool more = true; more;) {
    for (int replica = 0; replica < devices.size(); ++replica) {
      const std::optional<Batch> batch = loader.next(replica);
      more = batch.has_value();
      if (batch) ledger.add(*batch, options.common.input.world.first + replica);
    }
  }
  return ledger;
}

// The records of an epoch: of a stream, whose number nobody knows, those of the first, each once.
EpochContents contents_of(const Ledger& ledger, const Dataset& dataset) {
  if (!dataset.streamed()) return EpochContents::all(dataset.size());
  std::set<std::uint64_t> records;
  for (const LedgerEntry& entry : ledger.entries()) {
    if (entry.epoch == 0) records.insert(entry.record);
  }
  return {.records = {records.begin(), records.end()}};
}

// The first thing that is wrong with an epoch, if there is one.
std::optional<std::string> find_breach(const Ledger& ledger, const EpochContents& contents, std::uint64_t epochs) {
  for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
    const auto breach = ledger.find_breach(epoch, contents);
    if (breach) return "epoch " + std::to_string(epoch) + ": " + *breach;
  }
  return std::nullopt;
}

nlohmann::ordered_json verdict_line(const Ledger& ledger, std::size_t records, std::uint64_t epochs,
                                    int world_replicas, const std::optional<std::string>& breach) {
  nlohmann::ordered_json line = {
      {"final", true},    {"ok", !breach.has_value()},  {"records", records},
      {"epochs", epochs}, {"replicas", world_replicas}, {"bad_records", ledger.set_aside()}};
  if (breach) line["breach"] = *breach;
  return line;
}

void keep_ledger(const LedgerOptions& options) {
  if (options.check && options.is_part()) {
    throw ConfigError(
        "--check proves that all replicas together have every record once; --world serves some of them",
        "leave --check out, put the ledgers of all parts together and look for what occurs twice");
  }
  options.check_outputs();
  JsonLines json(options.common.json);
  const Dataset dataset = options.open();
  DeviceGroup devices = options.devices();
  const Ledger ledger = record_stream(options, dataset, devices);
  options.common.warn_of_caches();
  options.common.errors.report();
  for (const LedgerEntry& entry : ledger.entries()) {
    if (!json.on_stdout() && !options.check) {
      print(stdout, "epoch {} step {} replica {} record {}\n", entry.epoch, entry.step, entry.replica,
            entry.record);
    }
    json.write(
        {{"epoch", entry.epoch}, {"step", entry.step}, {"replica", entry.replica}, {"record", entry.record}});
  }
  if (!options.check) return json.finish();
  const std::uint64_t epochs = options.loader().epochs;
  const EpochContents contents = contents_of(ledger, dataset);
  const std::size_t records = contents.records.size();
  const std::optional<std::string> breach = find_breach(ledger, contents, epochs);
  json.write(verdict_line(ledger, records, epochs, devices.size(), breach));
  if (breach) {
    json.finish();
    throw Error(ErrorCode::kInternal, *breach);
  }
  const std::string over = count_of(static_cast<std::uint64_t>(devices.size()), "replica");
  const std::string each = epochs == 1 ? "1 epoch" : "each of " + count_of(epochs, "epoch");
  print(json.text_output(), "exactly once: {} in {} over {}\n", count_of(records, "record"), each, over);
  json.finish();
}

}  // namespace

void add_ledger_command(CLI::App& program) {
  auto* command = program.add_subcommand("ledger", "print which record went to which batch and replica");
  auto options = std::make_shared<LedgerOptions>();
  options->add_to(*command);
  options->add_world_to(*command);
  command->add_flag("--check", options->check, "prove that every epoch has every record exactly once");
  command->callback([options] { keep_ledger(*options); });
}

}  // namespace headrace::tools
