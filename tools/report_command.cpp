// `headrace report`: a run's folder as a page with pictures.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/file_writer.h"
#include "headrace/devices/base/text.h"
#include "headrace/tools/commands.h"
#include "headrace/tools/options/options.h"
#include "headrace/tools/output/output_check.h"
#include "headrace/tools/output/print.h"
#include "headrace/tools/report/page.h"
#include "headrace/tools/report/run_choice.h"
#include "headrace/tools/runs/run_folder.h"

namespace headrace::tools {
namespace {

struct ReportOptions {
  std::filesystem::path folder, out;
  std::uint64_t run = 0;  // 0: the newest
};

const NumberedFolder& choose(const std::vector<NumberedFolder>& runs, std::uint64_t number) {
  if (number == 0) return newest_of(runs);
  const auto found = std::ranges::find(runs, number, &NumberedFolder::number);
  if (found != runs.end()) return *found;
  std::vector<std::uint64_t> there;
  for (const NumberedFolder& run : runs) there.push_back(run.number);
  throw DataError(ErrorCode::kNotFound, fmt::format("there is no run {}", number),
                  {.source = runs.front().path.string()}, fmt::format("there are: {}", fmt::join(there, ", ")));
}

// Returns an empty text if there are none.
std::string describe_others(const std::vector<NumberedFolder>& runs, const NumberedFolder& chosen) {
  if (runs.size() == 1) return "";
  return fmt::format("This is run {} of {} in its folder; headrace report --run N shows another one.",
                     chosen.number, count_of(runs.size(), "run"));
}

// Refuses to overwrite any file that a run of the folder wrote.
void check_target(const std::filesystem::path& out, const std::vector<NumberedFolder>& runs) {
  std::vector<NamedPath> inputs;
  for (const NumberedFolder& run : runs) {
    for (const char* name : kRunFiles) inputs.push_back({.option = "a file of the run", .path = run.path / name});
  }
  check_outputs({{.option = "--out", .path = out}}, inputs);
}

// Refuses to replace anything but a report, if the user did not name the file.
void require_report(const std::filesystem::path& file) {
  if (path_kind(file) == PathKind::kMissing) return;
  const std::string_view begin = kReportBegin;
  std::string there(begin.size(), '\0');
  if (path_kind(file) == PathKind::kFile) {
    there.resize(File::open(file).read_some(0, std::as_writable_bytes(std::span(there))));
    if (there == begin) return;
  }
  throw DataError(ErrorCode::kInvalidArgument, "what is there was not made by headrace report",
                  {.source = file.string()}, "name another file with --out, or remove this one");
}

// Opened before the work: it may not be writable.
class PageFile {
 public:
  PageFile(std::filesystem::path path, Links links) : path_(std::move(path)) {
    if (path_ != "-") file_.emplace(path_, Appears::kWhole, links);
  }

  void write(const std::string& page) {
    if (file_) {
      file_->append(std::as_bytes(std::span(page)));
      file_->commit();
      print(stdout, "{}\n", path_);
    } else if (std::fwrite(page.data(), 1, page.size(), stdout) != page.size()) {
      throw Error(ErrorCode::kIo, "cannot write the page to standard output", "is the disk full?");
    }
  }

 private:
  std::filesystem::path path_;
  std::optional<FileWriter> file_;
};

void report(const ReportOptions& options) {
  const std::vector<NumberedFolder> runs = runs_in(options.folder);
  const NumberedFolder& chosen = choose(runs, options.run);
  const std::filesystem::path out = options.out.empty() ? chosen.path / kReportFile : options.out;
  check_target(out, runs);
  if (options.out.empty()) require_report(out);
  PageFile file(out, options.out.empty() ? Links::kReplaced : Links::kFollowed);
  const RunReading run = read_run(chosen.path);
  const std::string others = describe_others(runs, chosen);
  file.write(make_page(run_data(run, others)));
  for (const std::string& note : run.notes) print(stderr, "headrace: warning: {}\n", note);
  if (!others.empty()) print(stderr, "headrace: {}\n", others);
}

}  // namespace

void add_report_command(CLI::App& program) {
  auto* command =
      program.add_subcommand("report", "show a run of headrace train --run-dir as a page with pictures");
  auto options = std::make_shared<ReportOptions>();
  command->add_option("folder", options->folder, "the folder that headrace train --run-dir named")
      ->type_name("RUN_DIR")
      ->required();
  command
      ->add_option(
          "--out", options->out,
          "the page, one HTML file that needs nothing else; - for standard output; without it, report.html "
          "in the run's folder")
      ->type_name("FILE");
  add_number(*command, "--run", options->run,
             "which run of a folder with several: 1 is in the folder itself, 2 in run-2; without it, the newest",
             {.min = 1});
  command->callback([options] { report(*options); });
}

}  // namespace headrace::tools
