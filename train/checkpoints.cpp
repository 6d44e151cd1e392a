#include "headrace/train/checkpoints.h"

#include <cstdio>

#include "headrace/devices/base/printable.h"
#include "headrace/train/engine/model_state.h"
#include "headrace/train/model.h"
#include "headrace/train/records/checkpoint_folder.h"
#include "headrace/train/records/load_variables.h"
#include "headrace/train/records/model_snapshot.h"
#include "headrace/train/records/record.h"

namespace headrace {

std::optional<std::filesystem::path> newest_checkpoint(const std::filesystem::path& folder) {
  const std::optional<Record> newest = open_newest_checkpoint(folder);
  if (!newest) return std::nullopt;
  return newest->file().path();
}

Model restore_model(Strategy& strategy, const std::filesystem::path& file, const OwnParts& own) {
  return Record(file).build(strategy, own, Record::Use::kAll);
}

Model restore_or_create(Strategy& strategy, const std::filesystem::path& folder,
                        const std::function<Model()>& create, const OwnParts& own) {
  const std::optional<Record> newest = open_newest_checkpoint(folder);
  if (newest) {
    std::printf("Restoring from %s\n", printable(newest->file().path().native()).c_str());
  } else {
    std::printf("Creating a new model\n");
  }
  std::fflush(stdout);
  return newest ? newest->build(strategy, own, Record::Use::kAll) : create();
}

void load_weights(Model& model, const std::filesystem::path& file) {
  load_variables(TensorFile(file), model.state(), LoadedPart::kVariables);
}

void save_model(const Model& model, const std::filesystem::path& file, const InputDescription& input) {
  const ModelState& state = model.state();
  const RecordTexts texts = model_texts(state, input);
  ModelSnapshot snapshot(state, 0, 0);
  snapshot.take({});
  snapshot.wait();
  write_tensor_file(file, texts, snapshot.tensors());
}

}  // namespace headrace
