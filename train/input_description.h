// What a net is fed with, as data: how a program that does not know the model makes it of a data set.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/devices/base/api.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/train/views.h"

namespace HEADRACE_API headrace {

struct InputDescription {
  // JSON as pipeline/PLAN.md has it, with the source {"named": "data"}. Empty: there is none.
  std::string plan = {};
  // Why there is no plan: nothing was trained yet, or what of the plan cannot be written down.
  std::string reason = "the model was saved before it was trained";
  std::vector<View> views = {};  // of an evaluation
  // By field with more than one element, the type of the source's data: "uint8" and so on, images as they are
  // decoded. No plan says what a program did to its data beforehand, but the type often shows it. Empty: not
  // known.
  std::map<std::string, std::string> types = {};
  // The class names that labels stand for, where the data have them, and how many classes there are; 0: not known.
  std::vector<std::string> classes = {};
  std::uint64_t label_count = 0;
  // The file is of a version that wrote no plan, and its program said nothing of the input: then data are taken as
  // they are.
  bool assumed = false;
};

// What evaluates, on other data, the model that is trained or evaluated on these: Dataset::evaluation_json(), or
// why it cannot be.
InputDescription describe_input(const Dataset& data, std::vector<View> views = {});

// As a JSON object, and back, those of earlier versions included. ConfigError with the place for what cannot be.
std::string to_json(const InputDescription& input);
InputDescription input_description_from_json(std::string_view json);

// ConfigError where the source has class names, and others than those: its labels would stand for other classes.
void require_same_classes(const InputDescription& input, const Source& source);

// The source's records in order, as the plan treats them; `global_batch` as in PlanOptions. ConfigError where
// there is no plan, or where it or the types do not fit the source.
Dataset described_dataset(const SourcePtr& source, const InputDescription& input, std::int64_t global_batch = 0);

}  // namespace headrace
