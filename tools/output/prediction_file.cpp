#include "headrace/tools/output/prediction_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>

#include "headrace/tools/output/npz_parts.h"

namespace headrace::tools {
namespace {

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char character : text) {
    if (character == '"') out.push_back('"');
    out.push_back(character);
  }
  return out + '"';
}

std::string listed_name(const std::vector<std::string>& names, std::size_t at) {
  return at < names.size() ? names[at] : std::string();
}

std::string csv_header(const NamedPredictions& all) {
  std::string header = "name,record,label,label_class,prediction,class";
  for (std::size_t i = 0; i < all.width(); ++i) {
    header += ',' + (i < all.classes.size() ? csv_field(all.classes[i]) : fmt::format("value_{}", i));
  }
  return header + '\n';
}

std::string csv_row(const NamedPredictions& all, std::size_t example) {
  const std::optional<std::int64_t>& label = all.labels[example];
  const std::optional<std::size_t> best = all.prediction(example);
  std::string row = fmt::format(
      "{},{},{},{},{},{}", csv_field(all.names[example]), all.results.records[example],
      label ? std::to_string(*label) : "",
      label && *label >= 0 ? csv_field(listed_name(all.classes, static_cast<std::size_t>(*label))) : "",
      best ? std::to_string(*best) : "", best ? csv_field(listed_name(all.classes, *best)) : "");
  for (std::size_t i = 0; i < all.width(); ++i) {
    row += fmt::format(",{}", all.results.values[example * all.width() + i]);
  }
  return row + '\n';
}

std::vector<std::int64_t> extents(const Shape& shape) {
  std::vector<std::int64_t> list;
  for (int axis = 0; axis < shape.rank(); ++axis) list.push_back(shape[axis]);
  return list;
}

std::string values_npy(const std::vector<float>& values, const Shape& shape) {
  return npy_bytes("<f4", extents(shape), std::as_bytes(std::span(values)));
}

template <typename Number>
std::string numbers_npy(std::string_view type, const std::vector<Number>& numbers) {
  return npy_bytes(type, {static_cast<std::int64_t>(numbers.size())}, std::as_bytes(std::span(numbers)));
}

std::string npz(const NamedPredictions& all) {
  std::vector<std::int64_t> predictions, labels;
  for (std::size_t i = 0; i < all.names.size(); ++i) {
    const std::optional<std::size_t> best = all.prediction(i);
    predictions.push_back(best ? static_cast<std::int64_t>(*best) : -1);
    labels.push_back(all.labels[i].value_or(-1));
  }
  std::vector<NpzEntry> entries{{"values", values_npy(all.results.values, all.results.shape)},
                                {"records", numbers_npy("<u8", all.results.records)},
                                {"names", npy_texts(all.names)}};
  const bool predicted = std::ranges::any_of(predictions, [](std::int64_t best) { return best >= 0; });
  if (predicted) entries.push_back({"predictions", numbers_npy("<i8", predictions)});
  const bool labelled = std::ranges::any_of(labels, [](std::int64_t label) { return label >= 0; });
  if (labelled) entries.push_back({"labels", numbers_npy("<i8", labels)});
  if (!all.classes.empty()) entries.push_back({"classes", npy_texts(all.classes)});
  for (const OutputValues& other : all.results.others) {
    entries.push_back({"output_" + other.layer, values_npy(other.values, other.shape)});
  }
  return npz_bytes(entries);
}

}  // namespace

std::size_t NamedPredictions::width() const { return names.empty() ? 0 : results.values.size() / names.size(); }

std::optional<std::size_t> NamedPredictions::prediction(std::size_t example) const {
  const std::optional<std::int64_t> found = predicted_class(results, example);
  return found ? std::optional(static_cast<std::size_t>(*found)) : std::nullopt;
}

PredictionFormat prediction_format(const std::filesystem::path& file) {
  if (file.extension() == ".csv") return PredictionFormat::kCsv;
  if (file.extension() == ".npy") return PredictionFormat::kNpy;
  return file.extension() == ".npz" ? PredictionFormat::kNpz : PredictionFormat::kJsonLines;
}

PredictionFile::PredictionFile(const std::filesystem::path& file)
    : format_(prediction_format(file)), file_(file) {}

void PredictionFile::write(const NamedPredictions& predictions) {
  const auto append = [&](const std::string& text) { file_.append(std::as_bytes(std::span(text))); };
  if (format_ == PredictionFormat::kNpy) {
    append(values_npy(predictions.results.values, predictions.results.shape));
  } else if (format_ == PredictionFormat::kNpz) {
    append(npz(predictions));
  } else {
    append(csv_header(predictions));
    for (std::size_t i = 0; i < predictions.names.size(); ++i) append(csv_row(predictions, i));
  }
  file_.commit();
}

}  // namespace headrace::tools
