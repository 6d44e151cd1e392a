// A stage that is a name and its fields: description and JSON follow from them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "headrace/devices/base/reader_words.h"
#include "headrace/pipeline/plan/json/option_writer.h"
#include "headrace/pipeline/plan/planner.h"
#include "headrace/pipeline/plan/stage.h"

namespace headrace {

template <typename Options>
class OptionStage : public Stage {
 public:
  // `name` outlives it.
  OptionStage(const char* name, Options options) : name_(name), options_(std::move(options)) {}

  std::string describe() const override { return described(name_, options_); }
  nlohmann::ordered_json to_json(const PlanParts& /*parts*/, const std::string& path) const override {
    return plan_json::named_options(path, name_, options_);
  }

 protected:
  const Options& options() const noexcept { return options_; }

 private:
  const char* name_;
  Options options_;
};

// One that chooses or orders positions: of records or, after batch(), of batches.
template <typename Options>
class OrderStage : public OptionStage<Options> {
 public:
  using OptionStage<Options>::OptionStage;

  void plan_into(PlanBuilder& plan) const override {
    if (!this->traits().streams) plan.want_numbers(this->describe());
    plan.add_index_stage(this->shared_from_this());
  }
};

struct NoOptions {
  void each_field(OptionVisitor& /*visit*/) {}
};

}  // namespace headrace
