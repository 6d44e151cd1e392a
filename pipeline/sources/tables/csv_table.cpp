// Tables without images: each row is a record of numbers, classes and texts.
#include <fmt/format.h>

#include <memory>
#include <span>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/arrays/array_source.h"
#include "headrace/pipeline/sources/origin.h"
#include "headrace/pipeline/sources/tables/csv_cells.h"

namespace headrace {
namespace {

Array class_numbers(const CsvLabels& labels) {
  const auto bytes = std::as_bytes(std::span(labels.values));
  return {.field = {.name = "label", .dtype = DType::kI64, .shape = {}}, .bytes = {bytes.begin(), bytes.end()}};
}

}  // namespace

SourcePtr csv_table(const std::filesystem::path& csv, CsvOptions options) {
  const std::string name = csv.string();
  if (options.path_column != CsvOptions().path_column) {
    throw ConfigError(fmt::format("{}: a column of images, '{}', is named for a table without images", name,
                                  options.path_column),
                      "open it with csv_manifest()");
  }
  CsvCells cells = read_csv_cells(csv, options, CsvImages::kNone);
  std::vector<Array> arrays;
  CsvLabels labels;
  if (!cells.labels.empty() && options.label_type == LabelType::kNumber) {
    arrays.push_back(csv_number_labels(cells, name));
  } else if (!cells.labels.empty()) {
    labels = number_labels(options.label_column, cells.labels, name, options.label_type);
    arrays.push_back(class_numbers(labels));
  }
  for (Array& column : cells.further) arrays.push_back(std::move(column));
  if (arrays.empty()) {
    throw ConfigError(name + ": no column of numbers, and no label",
                      "name columns of text or classes to take along: COLUMN:text, COLUMN:class");
  }
  const std::uint64_t records = cells.rows.size();
  auto source =
      std::make_shared<ArraySource>(name, records, std::move(arrays), std::move(labels.classes),
                                    options.label_count, DataLocation::kUnknown, std::move(cells.columns));
  return opened_by(CsvTableCall{{csv, {std::move(options)}}}, std::move(source));
}

}  // namespace headrace
