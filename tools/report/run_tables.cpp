#include "headrace/tools/report/run_tables.h"

#include <fmt/format.h>

#include <algorithm>

#include "headrace/devices/base/text.h"
#include "headrace/tools/report/json_values.h"
#include "headrace/tools/report/number_text.h"
#include "headrace/tools/report/run_charts.h"
#include "headrace/tools/report/xml_text.h"

namespace headrace::tools {
namespace {

constexpr std::size_t kMaxRows = 300;

std::string plain(double value) { return fmt::format("{:.6g}", value); }
std::string four_decimals(double value) { return fmt::format("{:.4f}", value); }

struct Column {
  std::string key, title;
  std::string (*text)(double);
};

std::string table_of(const std::vector<Column>& columns, const std::vector<const nlohmann::json*>& rows) {
  std::string html = "<div class=\"scroll\"><table><thead><tr>";
  for (const Column& column : columns) html += "<th scope=\"col\">" + xml_text(column.title) + "</th>";
  html += "</tr></thead><tbody>\n";
  for (const nlohmann::json* row : rows) {
    html += "<tr>";
    for (const Column& column : columns) {
      const auto value = number_at(*row, column.key);
      html += "<td>" + (value ? xml_text(column.text(*value)) : "") + "</td>";
    }
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

// Without those of which no row has a number.
void drop_empty(std::vector<Column>& columns, const std::vector<const nlohmann::json*>& rows) {
  std::erase_if(columns, [&](const Column& column) {
    return std::ranges::none_of(
        rows, [&](const nlohmann::json* row) { return number_at(*row, column.key).has_value(); });
  });
}

std::vector<const nlohmann::json*> rows_of(const std::vector<nlohmann::json>& lines, std::size_t every) {
  std::vector<const nlohmann::json*> rows;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i % every == 0 || i + 1 == lines.size()) rows.push_back(&lines[i]);
  }
  return rows;
}

}  // namespace

std::string epoch_table(const TrainingLines& training) {
  if (training.epochs.empty()) return "";
  const std::size_t every = (training.epochs.size() + kMaxRows - 1) / kMaxRows;
  const auto rows = rows_of(training.epochs, every);
  std::vector<Column> columns{
      {"epoch", "epoch", plain}, {"steps", "steps", plain}, {"loss", "loss", four_decimals}};
  const std::vector<std::string> metrics = metrics_of(training);
  for (const std::string& metric : metrics) columns.push_back({metric, metric, four_decimals});
  columns.push_back({"val_loss", "val loss", four_decimals});
  for (const std::string& metric : metrics) columns.push_back({"val_" + metric, "val " + metric, four_decimals});
  columns.insert(columns.end(), {{"examples_per_second", "examples/s", short_number},
                                 {"input_stall_fraction", "input stall", percent},
                                 {"exposed_copy_fraction", "copies", percent},
                                 {"device_idle_fraction", "idle", percent},
                                 {"seconds", "time", duration},
                                 {"bad_records", "bad records", plain}});
  drop_empty(columns, rows);
  std::string html;
  if (every > 1) {
    html = fmt::format("<p>Every {}th of {} and the last; history.jsonl has all.</p>\n", every,
                       count_of(training.epochs.size(), "epoch"));
  }
  return html + table_of(columns, rows);
}

std::string worker_table(const TrainingLines& training) {
  if (training.epochs.empty()) return "";
  const nlohmann::json workers = training.epochs.back().value("workers", nlohmann::json());
  if (!workers.is_array()) return "";
  const std::vector<nlohmann::json> lines(workers.begin(), workers.end());
  const auto rows = rows_of(lines, (lines.size() + kMaxRows - 1) / kMaxRows);
  std::vector<Column> columns{{"worker", "worker", plain},
                              {"input_stall_fraction", "input stall", percent},
                              {"exposed_copy_fraction", "copies", percent},
                              {"device_idle_fraction", "idle", percent},
                              {"sync_wait_fraction", "waits for others", percent},
                              {"hidden_sum_fraction", "of the sums hidden", percent}};
  drop_empty(columns, rows);
  return table_of(columns, rows);
}

std::string training_table(const RunReading& run) {
  std::vector<nlohmann::json> ends;
  for (const TrainingLines& training : run.trainings) ends.push_back(training.final);
  if (ends.size() < 2) return "";
  const auto rows = rows_of(ends, 1);
  std::vector<Column> columns{{"seed", "seed", plain},
                              {"steps", "steps", plain},
                              {"test_loss", "test loss", four_decimals},
                              {"test_accuracy", "test accuracy", four_decimals},
                              {"train_seconds", "time", duration}};
  drop_empty(columns, rows);
  return columns.empty() ? "" : table_of(columns, rows);
}

}  // namespace headrace::tools
