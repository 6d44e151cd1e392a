#include "headrace/tools/commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/remote.h"
#include "headrace/devices/base/text.h"
#include "headrace/pipeline/inspect.h"
#include "headrace/tools/output/print.h"

namespace headrace::tools {
namespace {

constexpr std::size_t kMaxClassesShown = 20;

struct SplitReport {
  const char* name = "";
  std::optional<OpenedSource> opened = {};
  std::string absent = {};  // why it cannot be opened
  Inspection found = {};
};

std::string range_of(const Inspection::Range& range) {
  return range.min == range.max ? fmt::format("{}", range.min) : fmt::format("{} to {}", range.min, range.max);
}

std::string class_name(const SourceInfo& info, std::int64_t label) {
  const bool named = label >= 0 && static_cast<std::uint64_t>(label) < info.classes.size();
  return named ? info.classes[static_cast<std::size_t>(label)] : std::string();
}

// Returns the records of every class, including classes without a record.
std::map<std::int64_t, std::uint64_t> records_by_label(const SplitReport& split) {
  std::map<std::int64_t, std::uint64_t> labels = split.found.labels;
  for (std::size_t i = 0; i < split.opened->source->info().classes.size(); ++i) {
    labels.try_emplace(static_cast<std::int64_t>(i), 0);
  }
  return labels;
}

bool has_number_labels(const SourceInfo& info) {
  return std::ranges::any_of(
      info.fields, [](const Field& field) { return field.name == "label" && field.dtype == DType::kF32; });
}

void print_classes(const SplitReport& split, std::FILE* to) {
  const SourceInfo& info = split.opened->source->info();
  if (has_number_labels(info)) return;
  const auto labels = records_by_label(split);
  if (split.found.labelled < info.records) {
    print(to, "         labels of {}:\n", count_of(split.found.labelled, "record"));
  }
  std::size_t shown = 0;
  std::uint64_t min = ~std::uint64_t{0}, max = 0, left = 0;
  for (const auto& [label, records] : labels) {
    if (labels.size() <= kMaxClassesShown + 1 || shown < kMaxClassesShown) {
      print(to, "         {:>6} {:<24} {:>9}\n", label, class_name(info, label), records);
      ++shown;
    } else {
      min = std::min(min, records);
      max = std::max(max, records);
      ++left;
    }
  }
  if (left > 0)
    print(to, "         {} more {} of {} to {} records\n", left, left == 1 ? "class" : "classes", min, max);
}

void print_records(const char* what, const std::vector<BadRecord>& first, std::uint64_t all, std::FILE* to) {
  for (const BadRecord& record : first) {
    const std::string offset =
        record.offset == DataLocation::kUnknown ? "" : fmt::format(", byte offset {}", record.offset);
    print(to, "     {} {}{}: {}\n", what, record.record, offset, describe(record));
  }
  if (all > first.size()) print(to, "     and {} more\n", with_commas(all - first.size()));
}

nlohmann::ordered_json diagnosis_json(const std::vector<BadRecord>& records) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const BadRecord& record : records) {
    nlohmann::ordered_json one = {{"source", record.source}, {"record", record.record}, {"name", record.name}};
    if (record.offset != DataLocation::kUnknown) one["offset"] = record.offset;
    one["operation"] = record.operation;
    one["cause"] = record.cause;
    list.push_back(std::move(one));
  }
  return list;
}

// Prints the columns of the records, if the data have columns.
void print_columns(const SourceInfo& info, std::FILE* to) {
  if (info.columns.empty()) return;
  std::string taken;
  for (const SourceColumn& column : info.columns) {
    if (column.field.empty()) continue;
    taken += fmt::format("{}{} from {} ({})", taken.empty() ? "" : ", ", column.field, column.name, column.holds);
  }
  print(to, "columns  taken: {}\n", taken.empty() ? "none" : taken);
  const std::string left_out = describe(info.columns);
  if (!left_out.empty()) print(to, "         {}; --columns takes them along\n", left_out);
}

void print_split(const SplitReport& split, std::FILE* to) {
  if (!split.opened) return print(to, "{:<8} none: {}\n", split.name, split.absent);
  const Inspection& found = split.found;
  const std::size_t classes = records_by_label(split).size();
  const std::string labels = has_number_labels(split.opened->source->info())
                                 ? "with numbers for labels"
                                 : fmt::format("in {} {}", classes, classes == 1 ? "class" : "classes");
  print(to, "{:<8} {} {}; ", split.name, count_of(found.records, "record"), labels);
  if (found.height.max > 0) {
    print(to, "images of {} x {} pixels; ", range_of(found.width), range_of(found.height));
  }
  print(to, "{} of them examined, {} bytes: {} bad\n", found.examined, found.bytes, found.bad);
  print_classes(split, to);
  print_records("bad record", found.first_bad, found.bad, to);
  if (found.warned > 0) {
    print(to, "         {} used with a warning: damage that changes no pixel\n", count_of(found.warned, "image"));
    print_records("warning, record", found.first_warned, found.warned, to);
  }
  if (found.oriented > 0) {
    print(to,
          "         {} an EXIF orientation: pixels come as they are stored, or turned with "
          "--apply-orientation\n",
          found.oriented == 1 ? "1 image has" : with_commas(found.oriented) + " images have");
  }
}

nlohmann::ordered_json diagnosis_json(const SplitReport& split) {
  if (!split.opened) return {{"split", split.name}, {"found", false}, {"hint", split.absent}};
  const Inspection& found = split.found;
  const SourceInfo& info = split.opened->source->info();
  nlohmann::ordered_json line = {{"split", split.name},
                                 {"found", true},
                                 {"format", split.opened->format},
                                 {"reading", describe_reading(*split.opened->source)},
                                 {"records", found.records},
                                 {"examined", found.examined},
                                 {"bytes", found.bytes},
                                 {"height", {found.height.min, found.height.max}},
                                 {"width", {found.width.min, found.width.max}},
                                 {"labelled", found.labelled},
                                 {"classes", nlohmann::ordered_json::array()},
                                 {"bad", found.bad},
                                 {"first_bad", diagnosis_json(found.first_bad)},
                                 {"warned", found.warned},
                                 {"first_warned", diagnosis_json(found.first_warned)},
                                 {"oriented", found.oriented},
                                 {"left_out", nlohmann::ordered_json::array()},
                                 {"columns", nlohmann::ordered_json::array()}};
  for (const auto& [label, records] : records_by_label(split)) {
    line["classes"].push_back({{"label", label}, {"name", class_name(info, label)}, {"records", records}});
  }
  for (const LeftOut& one : info.left_out) line["left_out"].push_back({{"what", one.what}, {"files", one.files}});
  for (const SourceColumn& one : info.columns) {
    line["columns"].push_back(
        {{"name", one.name},
         {"holds", one.holds},
         {"field", one.field.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(one.field)}});
  }
  return line;
}

// What was fetched of a URL while it was examined.
class NetworkReport {
 public:
  void tell(JsonLines& json) const {
    const remote::Counters now = remote::counters();
    const double rate = static_cast<double>(now.bytes - before_.bytes) / clock_.seconds();
    const std::uint64_t requests = now.requests - before_.requests, retries = now.retries - before_.retries;
    const std::uint64_t cached = now.cached_bytes - before_.cached_bytes;
    print(json.text_output(),
          "network  first byte after {:.1f} ms, {:.1f} MB/s while it was examined; {}, {} of them repeated{}\n",
          1e3 * now.latency_seconds, rate / 1e6, count_of(requests, "request"), retries,
          cached == 0 ? "" : fmt::format("; {:.1f} MB from the fetch cache", static_cast<double>(cached) / 1e6));
    json.write({{"network", true},
                {"latency_ms", 1e3 * now.latency_seconds},
                {"bytes_per_second", rate},
                {"requests", requests},
                {"retries", retries},
                {"cached_bytes", cached}});
  }

 private:
  remote::Counters before_ = remote::counters();
  Stopwatch clock_;
};

SourceOptions source_options(const DataDoctorOptions& options) {
  return {.layout = options.layout, .columns = options.columns};
}

SplitReport open_split(const char* name, Split split, const DataDoctorOptions& options) {
  SplitReport report{.name = name};
  try {
    report.opened = recognise_source(options.data, split, source_options(options));
  } catch (const Error& error) {
    report.absent = error.message();
  }
  return report;
}

}  // namespace

void diagnose_data(const DataDoctorOptions& options, JsonLines& json) {
  const NetworkReport network;
  std::vector<SplitReport> splits = {open_split("train", Split::kTrain, options),
                                     open_split("test", Split::kTest, options)};
  const auto first =
      std::ranges::find_if(splits, [](const SplitReport& split) { return split.opened.has_value(); });
  if (first == splits.end()) open_source(options.data, Split::kTrain, source_options(options));  // says why
  print(json.text_output(), "data     {}: {}\n", options.data, first->opened->format);
  for (const SplitReport& split : splits) {
    if (split.opened) print(json.text_output(), "read as  {}\n", describe_reading(*split.opened->source));
  }
  print_columns(first->opened->source->info(), json.text_output());
  for (SplitReport& split : splits) {
    if (split.opened) split.found = inspect_source(split.opened->source, {.max_examined = options.examine});
    print_split(split, json.text_output());
    json.write(diagnosis_json(split));
  }
  if (is_url(options.data)) network.tell(json);
  const std::string left_out = describe(first->opened->source->info().left_out);
  if (!left_out.empty()) print(json.text_output(), "{}\n", left_out);
}

}  // namespace headrace::tools
