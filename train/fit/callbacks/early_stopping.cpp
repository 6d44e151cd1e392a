// Ends a fit that no longer improves.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <openssl/evp.h>
#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "headrace/devices/base/api.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/train/fit/callbacks/monitor.h"
#include "headrace/train/model.h"

namespace headrace {
namespace {

class SavedVariables {
 public:
  // Copies all variables, and the second sets of weights (lookahead's, the average) of the optimizer.
  void take(const Model& model);
  void give_back(Model& model) const;

  // Returns the same bits as pairs of a name and the values' bytes in base64.
  nlohmann::json to_json() const;
  // Throws ConfigError for values, and nlohmann's exceptions for a form, that to_json() does not return.
  static SavedVariables from_json(const nlohmann::json& json);

 private:
  // In the order of restoring: a variable before its second sets.
  std::vector<std::pair<std::string, std::vector<float>>> values_;
};

static_assert(std::endian::native == std::endian::little, "values are written as they lie in memory");

// OpenSSL counts in int.
constexpr std::size_t kBlock = std::size_t{3} << 20, kEncodedBlock = kBlock / 3 * 4;

std::string to_base64(const std::vector<float>& values) {
  const std::size_t bytes = values.size() * sizeof(float);
  const auto* from = reinterpret_cast<const unsigned char*>(values.data());
  std::string text((bytes + 2) / 3 * 4 + 1, '\0');
  auto* to = reinterpret_cast<unsigned char*>(text.data());
  for (std::size_t at = 0; at < bytes; at += kBlock) {
    to += EVP_EncodeBlock(to, from + at, static_cast<int>(std::min(kBlock, bytes - at)));
  }
  text.pop_back();
  return text;
}

std::vector<float> from_base64(const std::string& text) {
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  std::string bytes(text.size() / 4 * 3 + 1, '\0');
  std::size_t size = 0;
  bool sound = text.size() % 4 == 0;
  for (std::size_t at = 0; sound && at < text.size(); at += kEncodedBlock) {
    const auto* from = reinterpret_cast<const unsigned char*>(text.data() + at);
    const int length = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data() + size), from,
                                       static_cast<int>(std::min(kEncodedBlock, text.size() - at)));
    sound = length >= 0;
    if (sound) size += static_cast<std::size_t>(length);
  }
  if (!sound || size < padding || (size - padding) % sizeof(float) != 0) {
    throw ConfigError("the values of the best weights are damaged", "resume from another checkpoint");
  }
  std::vector<float> values((size - padding) / sizeof(float));
  std::memcpy(values.data(), bytes.data(), size - padding);
  return values;
}

void SavedVariables::take(const Model& model) {
  values_.clear();
  for (const std::string& name : model.variable_names()) values_.emplace_back(name, model.read_variable(name));
  for (const std::string& name : model.optimizer_variable_names()) {
    if (!name.ends_with(":slow") && !name.ends_with(":average")) continue;
    values_.emplace_back(name, model.read_variable(name));
  }
}

void SavedVariables::give_back(Model& model) const {
  for (const auto& [name, values] : values_) model.write_variable(name, values);
}

nlohmann::json SavedVariables::to_json() const {
  nlohmann::json list = nlohmann::json::array();
  for (const auto& [name, values] : values_) list.push_back({name, to_base64(values)});
  return list;
}

SavedVariables SavedVariables::from_json(const nlohmann::json& json) {
  SavedVariables saved;
  for (const nlohmann::json& pair : json) {
    saved.values_.emplace_back(pair.at(0).get<std::string>(), from_base64(pair.at(1).get<std::string>()));
  }
  return saved;
}

class EarlyStopping {
 public:
  explicit EarlyStopping(const EarlyStoppingOptions& options)
      : options_(options),
        monitor_("early_stopping", options.monitor, "EarlyStoppingOptions::mode", options.mode,
                 options.min_delta) {
    if (options.patience < 0) {
      throw ConfigError(fmt::format("early_stopping: the patience is {}", options.patience),
                        "give 0 or more epochs");
    }
  }

  void begin(FitControl& control) {
    monitor_.begin(control.lists());
    if (std::exchange(restored_, false)) {
      if (waited_ >= std::max(1, options_.patience)) control.request_stop();  // as it had requested
      return;
    }
    monitor_.best.reset();
    waited_ = 0;
    saved_ = {};
  }

  void end_epoch(const EpochReport& report, FitControl& control) {
    const std::optional<double> value = monitor_.value(report);
    if (!value) return;
    if (monitor_.improves(*value)) {
      waited_ = 0;
      if (options_.restore_best_weights) saved_.take(control.model());
    } else if (++waited_ >= std::max(1, options_.patience)) {
      control.request_stop();
    }
  }

  void end(FitControl& control) const { saved_.give_back(control.model()); }

  std::string save() const {
    return nlohmann::json{
        {"best", optional_number(monitor_.best)}, {"waited", waited_}, {"variables", saved_.to_json()}}
        .dump();
  }

  void restore(const std::string& text) {
    read_callback_state("early_stopping", text, [&](const nlohmann::json& state) {
      monitor_.best = optional_number(state.at("best"));
      waited_ = state.at("waited").get<int>();
      saved_ = SavedVariables::from_json(state.at("variables"));
    });
    restored_ = true;
  }

 private:
  EarlyStoppingOptions options_;
  Monitor monitor_;
  int waited_ = 0;  // epochs since the best
  SavedVariables saved_;
  bool restored_ = false;  // since the last fit
};

}  // namespace

Callback early_stopping(const EarlyStoppingOptions& options) {
  const auto self = std::make_shared<EarlyStopping>(options);
  return {
      .name = "early_stopping",
      .on_train_begin = [self](FitControl& control) { self->begin(control); },
      .on_epoch_end = [self](const EpochReport& report, FitControl& control) { self->end_epoch(report, control); },
      .on_train_end = [self](FitControl& control) { self->end(control); },
      .save = [self] { return self->save(); },
      .restore = [self](const std::string& text) { self->restore(text); },
      .same = described("early_stopping", options)};
}

}  // namespace headrace
