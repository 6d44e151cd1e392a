#include "headrace/tools/output/output_check.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/file_writer.h"
#include "headrace/tools/options/common_options.h"

namespace headrace::tools {
namespace {

constexpr std::string_view kQuarantineStart = "{\"source\":";

bool is_given(const NamedPath& named) { return !named.path.empty() && named.path != "-"; }

bool is_same_output(const std::filesystem::path& a, const std::filesystem::path& b) {
  if (path_kind(a) == PathKind::kOther) return false;  // many may write to a device
  std::error_code ignored;
  return std::filesystem::weakly_canonical(a, ignored) == std::filesystem::weakly_canonical(b, ignored) ||
         would_overwrite(a, b);
}

void check_against_input(const NamedPath& output, const NamedPath& input) {
  if (!would_overwrite(output.path, input.path)) return;
  const bool folder = path_kind(input.path) == PathKind::kDirectory;
  throw ConfigError(std::string(output.option) + " would overwrite " + output.path.string() +
                        (folder ? ", a file in the folder of " : ", which is ") + input.option,
                    "name another file");
}

// Whether appending to it spoils nothing.
void check_quarantine(const std::filesystem::path& path) {
  if (path_kind(path) == PathKind::kDirectory) {
    throw ConfigError("--quarantine " + path.string() + " is a folder", "name a file");
  }
  if (path_kind(path) == PathKind::kFile) {
    std::array<std::byte, kQuarantineStart.size()> start{};
    const std::size_t count = File::open(path).read_some(0, start);
    const std::string_view text(reinterpret_cast<const char*>(start.data()), count);
    if (count > 0 && text != kQuarantineStart) {
      throw ConfigError("--quarantine " + path.string() + " exists and is not a quarantine file",
                        "name a new file, or one that an earlier run listed bad records in");
    }
  }
  append_to_file(path, {});  // before the work: it may not be writable
}

}  // namespace

void check_outputs(const std::vector<NamedPath>& outputs, const std::vector<NamedPath>& inputs) {
  for (auto output = outputs.begin(); output != outputs.end(); ++output) {
    if (!is_given(*output)) continue;
    if (path_kind(output->path) == PathKind::kDirectory) {
      throw ConfigError(std::string(output->option) + " " + output->path.string() + " is a folder", "name a file");
    }
    for (const NamedPath& input : inputs) {
      if (is_given(input)) check_against_input(*output, input);
    }
    const auto same = std::find_if(outputs.begin(), output, [&](const NamedPath& earlier) {
      return is_given(earlier) && is_same_output(earlier.path, output->path);
    });
    if (same != output) {
      throw ConfigError(
          std::string(same->option) + " and " + output->option + " both name " + output->path.string(),
          "give each a file of its own");
    }
    // A pipe waits for its reader.
    if (path_kind(output->path) != PathKind::kPipe) FileWriter probe(output->path);
  }
}

void check_outputs(const std::vector<NamedPath>& outputs, const std::vector<NamedPath>& inputs,
                   const ErrorOptions& errors) {
  check_outputs(outputs, inputs);
  if (errors.quarantine.empty()) return;
  for (const NamedPath& output : outputs) {
    if (is_given(output) && is_same_output(errors.quarantine, output.path)) {
      throw ConfigError(std::string(output.option) + " and --quarantine both name " + output.path.string(),
                        "give each a file of its own");
    }
  }
  check_quarantine(errors.quarantine);
}

void check_outputs(const CommonOptions& options, std::vector<NamedPath> more) {
  const NamedPath data{.option = "--data", .path = options.data};
  NamedPath cache{.option = "--cache", .path = options.cache};
  if (options.cache == "none" || options.cache == "memory" || options.cache == "auto") cache.path.clear();
  more.push_back({.option = "--json", .path = options.json});
  check_outputs(more, {data, cache}, options.errors);
}

}  // namespace headrace::tools
