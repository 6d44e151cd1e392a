// What was prepared for a model can be run once, and only for the model as it was compiled then.
#pragma once

#include <cstdint>
#include <string>

namespace headrace {

class Model;
struct ModelState;

class OneRun {
 public:
  // `what` is prepared: "fit". ConfigError where the model is not compiled.
  OneRun(const Model& model, std::string what);

  // ConfigError where the model was compiled since.
  void check_model() const;
  // ConfigError at a second call, too.
  void begin();

 private:
  const ModelState& model_;
  std::string what_;
  std::uint64_t compilation_;
  bool begun_ = false;
};

}  // namespace headrace
