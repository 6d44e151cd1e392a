#include "headrace/train/prepared_fit.h"

#include "headrace/train/fit/fit_loop.h"
#include "headrace/train/fit/one_run.h"
#include "headrace/train/model.h"

namespace headrace {

class PreparedFit::Impl {
 public:
  Impl(Model& model, const Dataset& train, const FitOptions& options)
      : options_(options), once_(model, "fit"), loop_(model, train, options_) {}

  void warm_up() {
    once_.check_model();
    loop_.warm_up();
  }

  const History& history() const noexcept { return loop_.history(); }

  History run() {
    once_.begin();
    return loop_.run();
  }

 private:
  const FitOptions options_;  // the loop refers to them
  OneRun once_;               // before the loop: the model has to be compiled
  FitLoop loop_;
};

PreparedFit::PreparedFit(Model& model, const Dataset& train, const FitOptions& options) {
  const ScanPoll poll(options.input.while_waiting);  // counting steps may need a filter's pass
  impl_ = std::make_unique<Impl>(model, train, options);
}

PreparedFit::~PreparedFit() = default;

void PreparedFit::warm_up() { impl_->warm_up(); }
const History& PreparedFit::history() const noexcept { return impl_->history(); }
History PreparedFit::run() { return impl_->run(); }

}  // namespace headrace
