// `headrace cache inspect` and `headrace cache verify`: what a disk cache holds, and whether it is sound.
#include "headrace/cache/cache_report.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/text.h"
#include "headrace/pipeline/compute_arena.h"
#include "headrace/tools/commands.h"
#include "headrace/tools/options/options.h"
#include "headrace/tools/output/json_lines.h"
#include "headrace/tools/output/output_check.h"
#include "headrace/tools/output/print.h"

namespace headrace::tools {
namespace {

struct CacheOptions {
  std::filesystem::path folder;
  std::string json = {};
  int threads = 0;
};

void report_on_cache(const CacheOptions& options, Thoroughness thoroughness) {
  check_outputs({{.option = "--json", .path = options.json}},
                {{.option = "the cache that is read", .path = options.folder}});
  JsonLines json(options.json);
  const std::vector<CacheReport> streams =
      inspect_cache(options.folder, thoroughness,
                    [&](std::size_t count, const auto& task) { run_tasks(options.threads, count, task); });
  std::uint64_t bad = 0;
  for (const CacheReport& stream : streams) {
    bad += stream.bad;
    print(json.text_output(), "{}: {} of {}, {:.1f} MB in {}, {} bad\n", stream.fingerprint, stream.records,
          count_of(stream.source_records, "record"), static_cast<double>(stream.bytes) / 1e6,
          count_of(stream.segments, "segment"), stream.bad);
    for (const std::string& finding : stream.findings) print(json.text_output(), "  {}\n", finding);
    json.write({{"fingerprint", stream.fingerprint},
                {"records", stream.records},
                {"source_records", stream.source_records},
                {"bytes", stream.bytes},
                {"segments", stream.segments},
                {"bad", stream.bad}});
  }
  if (streams.empty()) print(json.text_output(), "{} holds no cache\n", options.folder);
  json.finish();
  if (bad == 0) return;
  throw Error(
      ErrorCode::kDataCorrupt,
      (bad == 1 ? "1 damaged entry in " : std::to_string(bad) + " damaged entries in ") + options.folder.string(),
      "what is damaged is computed again when it is needed; remove the folder to free its space");
}

void add_subcommand(CLI::App& cache, const char* name, const char* what, Thoroughness thoroughness) {
  auto* command = cache.add_subcommand(name, what);
  auto options = std::make_shared<CacheOptions>();
  command->add_option("folder", options->folder, "the cache's folder")->type_name("FOLDER")->required();
  if (thoroughness == Thoroughness::kEveryByte) {
    add_number(*command, "--threads", options->threads, "threads that read and check; 0: one per processor",
               {.min = 0, .max = kMaxThreads});
  }
  add_json_option(*command, options->json);
  command->callback([options, thoroughness] { report_on_cache(*options, thoroughness); });
}

}  // namespace

void add_cache_command(CLI::App& program) {
  auto* cache = program.add_subcommand("cache", "inspect or verify a disk cache");
  add_subcommand(*cache, "inspect", "show what a cache holds, by its indexes", Thoroughness::kIndexes);
  add_subcommand(*cache, "verify", "check every byte of a cache", Thoroughness::kEveryByte);
}

}  // namespace headrace::tools
