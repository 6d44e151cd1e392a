// What the name of a folder, a file or an array says of its split.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace headrace {

enum class Part {
  kUnused,  // named like a split for which another was named, or like two splits
  kTrain,
  kTest,
  kValidation,
};
const char* to_string(Part part) noexcept;  // "train", "test", "val"

// Returns the part that is called so, in any case: train, training, trainset, trainval; test, testing, testset;
// val, valid, validation, valset, dev, eval, evaluation.
std::optional<Part> part_called(std::string_view name);

struct PartInName {
  Part part;         // kUnused if several are named: "train_test"
  std::string rest;  // the name without that word, in lower case: "_images"
};
// Returns the part that is a word of the name, between anything but letters or where the case changes:
// "ds_training-0", "train2017", "trainA", "TEST-0"; std::nullopt if there is none.
std::optional<PartInName> part_in(std::string_view name);

// Returns whether a name in the path belongs to tools and not to the data: one that begins with a dot
// (.ipynb_checkpoints, .thumbnails, .cache), __MACOSX, @eaDir and the like.
bool is_hidden_name(std::string_view name);
// Returns the first such folder of a path; empty if there is none.
std::string_view hidden_folder_of(std::string_view path);

}  // namespace headrace
