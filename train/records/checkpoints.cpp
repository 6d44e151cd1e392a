#include "headrace/train/checkpoints.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <utility>

#include "headrace/devices/base/hash.h"
#include "headrace/devices/base/text.h"
#include "headrace/train/model.h"
#include "headrace/train/model/model_state.h"
#include "headrace/train/records/checkpoint_folder.h"
#include "headrace/train/records/model_snapshot.h"
#include "headrace/train/records/record.h"
#include "headrace/train/strategy.h"

namespace headrace {
namespace {

std::optional<Record> newest_record(const std::filesystem::path& folder) {
  FoundCheckpoint found = find_newest_checkpoint(folder, /*trained=*/false);
  warn_of(found.unreadable, stderr);
  return std::move(found.record);
}

std::optional<Record> newest_of_chief(Strategy& strategy, const std::filesystem::path& folder) {
  const std::shared_ptr<Workers>& workers = strategy.workers();
  if (!workers) return newest_record(folder);
  std::optional<Record> record;
  try {
    if (strategy.is_chief()) record = newest_record(folder);
  } catch (const std::exception& error) {
    workers->abort(error.what());
    throw;
  }
  share_record(*workers, record);
  return record;
}

}  // namespace

std::optional<std::filesystem::path> newest_checkpoint(const std::filesystem::path& folder,
                                                       std::vector<UnreadableCheckpoint>* unreadable) {
  FoundCheckpoint found = find_newest_checkpoint(folder, /*trained=*/false);
  if (unreadable == nullptr) warn_of(found.unreadable, stderr);
  if (unreadable != nullptr) std::ranges::move(found.unreadable, std::back_inserter(*unreadable));
  if (!found.record) return std::nullopt;
  return found.record->file().path();
}

bool holds_training(const std::filesystem::path& folder) { return !checkpoints_of_others(folder, "").empty(); }

Model restore_model(Strategy& strategy, const std::filesystem::path& file, const CustomParts& own) {
  return Record(file).build(strategy, own, Record::Use::kAll);
}

Model restore_or_create(Strategy& strategy, const std::filesystem::path& folder,
                        const std::function<Model()>& create, const CustomParts& own) {
  const std::optional<Record> newest = newest_of_chief(strategy, folder);
  if (strategy.is_chief()) {
    const std::string told =
        newest ? "Restoring from " + printable(newest->file().path().native()) : "Creating a new model";
    std::printf("%s\n", told.c_str());
    std::fflush(stdout);
  }
  return newest ? newest->build(strategy, own, Record::Use::kAll) : create();
}

void load_weights(Model& model, const std::filesystem::path& file) {
  load_variables(TensorFile(file), model.state(), LoadedPart::kVariables);
  model.state().written = xxh3("load_weights()", model.state().written);
}

void save_model(const Model& model, const std::filesystem::path& file, const std::optional<Dataset>& input) {
  const ModelState& state = model.state();
  if (!state.strategy->is_chief()) return;
  const RecordTexts texts = model_texts(state, input ? describe_input(*input, state.input.views) : state.input);
  ModelSnapshot snapshot(state, 0, 0);
  snapshot.take({});
  snapshot.wait();
  write_tensor_file(file, texts, snapshot.tensors());
}

}  // namespace headrace
