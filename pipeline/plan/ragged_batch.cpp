#include "headrace/pipeline/plan/ragged_batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/plan/scan/length_scan.h"
#include "headrace/pipeline/plan/stage.h"

namespace headrace {
namespace {

// Whether it is raw, and its first extent alone differs from sample to sample.
bool differs_in_front(const Field& field) {
  return field.encoding == Encoding::kRaw && field.shape.is_dynamic() && !field.shape.without_front().is_dynamic();
}

Field as_bytes(const Field& image) {
  return {.name = image.name, .dtype = DType::kU8, .shape = {Shape::kDynamic}};
}

}  // namespace

RaggedBatch::RaggedBatch(SourcePtr source, bool measurable, std::vector<RaggedField> fields)
    : source_(std::move(source)), fields_(std::move(fields)) {
  for (auto one = fields_.begin(); one != fields_.end(); ++one) {
    if (one->max_length < 0) {
      throw ConfigError(fmt::format("ragged_batch(): field '{}' of up to {} entries", one->field, one->max_length),
                        "leave the maximum out for that of the longest record");
    }
    if (std::find_if(fields_.begin(), one, [&](const RaggedField& other) { return other.field == one->field; }) !=
        one)
      throw ConfigError(fmt::format("ragged_batch(): field '{}' is named twice", one->field));
  }
  for (std::size_t i = 0; measurable && i < source_->info().fields.size(); ++i) measure(i);
}

void RaggedBatch::measure(std::size_t index) {
  const Field& field = source_->info().fields[index];
  if ((!fields_.empty() && !names(field.name)) || given_length(field.name) > 0) return;
  if (field.encoding == Encoding::kImage && names(field.name)) {
    measured_.push_back({.field = index, .row_bytes = 1});
  } else if (differs_in_front(field) && entry_bytes_of(field) > 0) {
    measured_.push_back({.field = index, .row_bytes = entry_bytes_of(field)});
  }
}

bool RaggedBatch::names(const std::string& field) const noexcept {
  return std::ranges::find(fields_, field, &RaggedField::field) != fields_.end();
}

std::int64_t RaggedBatch::given_length(const std::string& field) const noexcept {
  const auto given = std::ranges::find(fields_, field, &RaggedField::field);
  return given != fields_.end() ? given->max_length : 0;
}

std::vector<RaggedTensor> RaggedBatch::add_offsets(Fields& fields) const {
  std::vector<RaggedTensor> ragged;
  for (const RaggedField& one : fields_) ragged.push_back({.values = find_field(fields, one.field)});
  for (std::size_t i = 0; fields_.empty() && i < fields.size(); ++i) {
    if (differs_in_front(fields[i])) ragged.push_back({.values = i});
  }
  if (ragged.empty()) {
    throw ConfigError("ragged_batch(): no field differs in length from record to record", "use batch()");
  }
  if (fields.size() + ragged.size() > kMaxFields) {
    throw ConfigError(fmt::format("ragged_batch(): {} fields with their offsets; a sample has at most {}",
                                  fields.size() + ragged.size(), kMaxFields));
  }
  for (RaggedTensor& one : ragged) {
    Field& values = fields[one.values];
    if (values.encoding == Encoding::kImage) values = as_bytes(values);
    if (!differs_in_front(values) || entry_bytes_of(values) == 0) {
      throw ConfigError(
          fmt::format("ragged_batch(): field '{}' {} cannot be ragged", values.name, values.shape.to_string()),
          "raw fields can, whose first extent alone differs from sample to sample; leave out others");
    }
    std::string name = values.name + "_offsets";
    if (std::ranges::find(fields, name, &Field::name) != fields.end()) {
      throw ConfigError(fmt::format("ragged_batch(): there is a field '{}' already", name), "rename it");
    }
    one.offsets = fields.size();
    fields.push_back({.name = std::move(name), .dtype = DType::kI64, .shape = {}});
  }
  return ragged;
}

std::int64_t RaggedBatch::max_length(const std::string& field) const {
  if (const std::int64_t given = given_length(field); given > 0) return given;
  const auto is_it = [&](const PaddedField& one) { return source_->info().fields[one.field].name == field; };
  const auto measured = std::ranges::find_if(measured_, is_it);
  if (measured == measured_.end()) {
    throw ConfigError(
        fmt::format("ragged_batch(): the maximum length of field '{}', which operations make, is not known",
                    field),
        "give its max_length");
  }
  refuse_stream(*source_, "ragged_batch() without max_length");
  const auto& longest = scan_.get([this] { return with_lengths(source_, measured_); });
  return longest[static_cast<std::size_t>(measured - measured_.begin())].length;
}

}  // namespace headrace
