#include "headrace/train/records/record.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/file_writer.h"
#include "headrace/train/graph.h"
#include "headrace/train/model/model_state.h"
#include "headrace/train/records/record_json.h"
#include "headrace/train/strategy.h"

namespace headrace {
namespace {

using record_json::Json;

constexpr int kRecordVersion = 1;
constexpr const char* kFormatText = "format";
constexpr const char* kGraphText = "graph";
constexpr const char* kCompiledText = "compiled";
constexpr const char* kInputText = "input";

void require_version(const TensorFile& file) {
  const int version =
      record_json::read_text(file, kFormatText, [](const Json& json) { return json.at("version").get<int>(); });
  if (version == kRecordVersion) return;
  throw DataError(ErrorCode::kUnsupported,
                  "is of version " + std::to_string(version) + " of the format, this program reads version " +
                      std::to_string(kRecordVersion),
                  {.source = file.path().string()}, "use the program that wrote it");
}

// Returns the frozen variables as of the last compile().
std::set<std::string> frozen_names(const VariableLayout& layout) {
  std::set<std::string> names;
  for (const Variable& variable : layout.variables()) {
    if (variable.frozen) names.insert(variable.name);
  }
  return names;
}

std::set<std::string> frozen_names(const TensorFile& file) {
  return record_json::read_text(file, kCompiledText,
                                [](const Json& json) { return json.at("frozen").get<std::set<std::string>>(); });
}

// Removes updates from a model that will not be trained, so that it needs no custom rules of other programs.
Json without_updates(Json compiled) {
  Json& optimizer = compiled.at("optimizer");
  for (const char* name : {"groups", "learning_rate"}) optimizer.erase(name);
  optimizer["rule"] = {{"sgd", Json::object()}};
  return compiled;
}

}  // namespace

RecordTexts model_texts(const ModelState& model, const InputDescription& input) {
  Json compiled = to_record_json(model.require_compiled("a checkpoint"));
  compiled["step"] = model.step;
  compiled["frozen"] = frozen_names(model.layout);
  return {{kFormatText, Json{{"name", "headrace"}, {"version", kRecordVersion}}.dump()},
          {kGraphText, record_json::parse(to_json(*model.graph)).dump()},
          {kCompiledText, compiled.dump()},
          {kInputText, to_json(input)}};
}

Record::Record(const std::filesystem::path& path) : file_(path) {
  require_version(file_);
  step_ = record_json::read_text(file_, kCompiledText,
                                 [](const Json& json) { return json.at("step").get<std::uint64_t>(); });
  training_ = read_training_state(file_);
}

InputDescription Record::input() const {
  return record_json::read_text(file_, kInputText,
                                [](const Json& json) { return input_description_from_json(json.dump()); });
}

Model Record::build(Strategy& strategy, const CustomParts& own, Use use) const {
  const CompileOptions options = record_json::read_text(file_, kCompiledText, [&](const Json& json) {
    return compile_options_from(use == Use::kAll ? json : without_updates(json), own);
  });
  Model model = record_json::read_text(
      file_, kGraphText, [&](const Json& json) { return strategy.build(net_from_json(json.dump(), own.layers)); });
  model.state().input = input();
  model.state().frozen = frozen_names(file_);
  model.compile(options);
  load_variables(file_, model.state(), use == Use::kAll ? LoadedPart::kAll : LoadedPart::kVariables);
  if (use == Use::kAll) take_over(model.state());
  return model;
}

void Record::load_into(ModelState& model) const {
  if (frozen_names(file_) != frozen_names(model.layout)) {
    throw ConfigError("the training in " + file_.path().string() + " has other frozen variables",
                      "freeze() the same, then compile() and resume; or begin another one in another folder");
  }
  load_variables(file_, model, LoadedPart::kAll);
  take_over(model);
}

void Record::take_over(ModelState& model) const {
  model.step = step_;
  if (!training_) return;
  model.learning_rate_scale = training_->position.learning_rate_scale;
  model.restored = std::make_shared<const TrainingState>(*training_);
}

void Record::verify() const {
  std::vector<std::byte> block(kTensorBlock);
  for (const StoredTensor& tensor : file_.tensors()) {
    for (std::size_t i = 0; i < tensor.blocks(); ++i) {
      file_.read_block(tensor, i, std::span(block).first(tensor.block_bytes(i)));
    }
  }
}

namespace {

constexpr std::uint64_t kPieceBytes = std::uint64_t{16} << 20;  // sent at once

std::filesystem::path temporary_name(int rank) {
  return std::filesystem::temp_directory_path() / fmt::format("headrace-worker-{}-{}.safetensors", rank, getpid());
}

}  // namespace

void share_record(Workers& workers, std::optional<Record>& record) {
  const bool chief = workers.rank() == 0;
  if (!chief) record.reset();
  std::optional<File> from;
  if (record) from = File::open(record->file().path());
  const std::uint64_t size = std::stoull(workers.all_gather(std::to_string(from ? from->size() : 0)).front());
  if (size == 0) return;
  const std::filesystem::path copy = temporary_name(workers.rank());
  std::optional<FileWriter> into;
  if (!chief) into.emplace(copy);
  std::vector<std::byte> piece;
  for (std::uint64_t at = 0; at < size; at += piece.size()) {
    piece.resize(std::min<std::uint64_t>(kPieceBytes, size - at));
    if (from) from->read_exact(at, piece);
    workers.broadcast(piece, 0);
    if (into) into->append(piece);
  }
  if (!into) return;
  into->commit(Durability::kLater);
  record.emplace(copy);
  remove_file(copy);  // the record keeps it open
}

}  // namespace headrace
