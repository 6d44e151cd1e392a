// The step in pieces: DistributedDataset, Trainer, Evaluator and their forward passes.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "headrace/bindings/python/options.h"
#include "headrace/bindings/python/train/arrays.h"
#include "headrace/bindings/python/train/bindings.h"
#include "headrace/bindings/python/train/python_steps.h"
#include "headrace/train/trainer.h"

namespace headrace::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

using ModelPtr = std::shared_ptr<PythonModel>;
using BatchPtr = std::shared_ptr<PythonGlobalBatch>;

// A Trainer or an Evaluator, with what it must not outlive. Its end waits for submitted work.
template <typename Runner>
class StepRunner {
 public:
  template <typename Make>
  StepRunner(ModelPtr model, FeedPtr feed, const Make& make) : model_(std::move(model)), feed_(std::move(feed)) {
    const PythonModel::Use use = model_->use();
    compiled_ = model_->compiled();
    failures_ = model_->strategy()->failures();
    const WithoutGil others_run;
    runner_.set(make(model_->strategy()->get(), *use, feed_->loader()));
  }
  StepRunner(const StepRunner&) = delete;
  StepRunner& operator=(const StepRunner&) = delete;
  ~StepRunner() {
    const WithoutGil others_run;
    runner_.reset();
  }

  // Calls body(runner) with the model and without the interpreter's lock.
  template <typename Body>
  decltype(auto) call(const Body& body) const {
    const PythonModel::Use use = model_->use();
    require_current();
    const WithoutGil others_run;
    return body(runner_.get());
  }
  Runner& get() const { return runner_.get(); }
  const StrategyPtr& strategy() const noexcept { return model_->strategy(); }
  const PythonFeed& feed() const noexcept { return *feed_; }

  // Throws ConfigError if the model or its strategy has changed such that this can no longer be used.
  void require_current() const {
    if (compiled_ != model_->compiled()) {
      throw ConfigError("the model was compiled anew since this was made", "make another one after compile()");
    }
    if (failures_ != model_->strategy()->failures()) {
      throw ConfigError("a function given to Strategy.run() has failed since this was made", "make another one");
    }
  }

 private:
  ModelPtr model_;
  FeedPtr feed_;
  std::uint64_t compiled_ = 0, failures_ = 0;
  OfProcess<Runner> runner_;
};

class PythonTrainer : public StepRunner<Trainer> {
 public:
  PythonTrainer(ModelPtr model, FeedPtr feed, const TrainerOptions& options)
      : StepRunner(std::move(model), std::move(feed), [&](Strategy& strategy, Model& of, Loader& loader) {
          return std::make_unique<Trainer>(strategy, of, loader, options);
        }) {}
};

class PythonEvaluator : public StepRunner<Evaluator> {
 public:
  PythonEvaluator(ModelPtr model, FeedPtr feed, const EvaluateOptions& options)
      : StepRunner(std::move(model), std::move(feed), [&](Strategy&, Model& of, Loader& loader) {
          return std::make_unique<Evaluator>(of, loader, options);
        }) {}
};

class PythonPass {
 public:
  template <typename Runner>
  PythonPass(const std::shared_ptr<Runner>& runner, const ForwardPass& pass)
      : owner_(runner),
        require_current_([&of = *runner] { of.require_current(); }),
        strategy_(runner->strategy()),
        pass_(&pass) {}

  // Throws ConfigError if the pass is no longer there.
  const ForwardPass& get() const {
    require_current_();
    return *pass_;
  }
  // Also throws ConfigError if this process has no such replica.
  const ForwardPass& get(int replica) const {
    require_replica(strategy_->get(), replica);
    return get();
  }
  DeviceTensor tensor(int replica, TensorView view) const { return {owner_, view, replica}; }

 private:
  std::shared_ptr<const void> owner_;  // of the pass
  std::function<void()> require_current_;
  StrategyPtr strategy_;
  const ForwardPass* pass_;
};

template <typename Runner>
PythonPass forward(const std::shared_ptr<Runner>& runner, PythonGlobalBatch& batches) {
  GlobalBatch shares = batches.take(runner->feed().number());
  const ForwardPass& pass =
      runner->call([&](auto& of) -> const ForwardPass& { return of.forward(std::move(shares)); });
  return {runner, pass};
}

// Throws ConfigError for a number of an output that the net has not.
TensorView output_of(const PythonPass& of, int replica, int output, bool gradient) {
  const ForwardPass& pass = of.get(replica);
  try {
    return gradient ? pass.prediction_gradients(replica, output) : pass.predictions(replica, output);
  } catch (const std::out_of_range&) {
    throw ConfigError("the net has no output " + std::to_string(output), "outputs are numbered from 0");
  }
}

void bind_pass(nb::module_& module) {
  nb::class_<PythonPass>(module, "ForwardPass",
                         "The results of forward(), in place: valid until the next batch, a trainer's until "
                         "backward(). Read them in a function given to Strategy.run().")
      .def(
          "examples", [](const PythonPass& of, int replica) { return of.get(replica).examples(replica); },
          "replica"_a, "The real ones: the first rows of each tensor.")
      .def_prop_ro("global_examples", [](const PythonPass& of) { return of.get().global_examples(); })
      .def_prop_ro(
          "gradient_scale", [](const PythonPass& of) { return of.get().gradient_scale(); },
          "The weight of one example's loss in the gradient.")
      .def(
          "predictions",
          [](const PythonPass& of, int replica, int output) {
            return of.tensor(replica, output_of(of, replica, output, false));
          },
          "replica"_a, "output"_a = 0, "The net's results, or the logits if the loss takes those of a softmax.")
      .def(
          "prediction_gradients",
          [](const PythonPass& of, int replica, int output) {
            return of.tensor(replica, output_of(of, replica, output, true));
          },
          "replica"_a, "output"_a = 0,
          "Where backward() begins: a custom loss writes its gradient here, 0 in padding.")
      .def(
          "labels",
          [](const PythonPass& of, int replica, const std::string& field) {
            return of.tensor(replica, of.get(replica).labels(replica, field));
          },
          "replica"_a, "field"_a = "label")
      .def(
          "example_losses",
          [](const PythonPass& of, int replica) {
            std::vector<float> losses;
            {
              const WithoutGil others_run;
              losses = of.get(replica).example_losses(replica);
            }
            return array_of(std::move(losses));
          },
          "replica"_a, "Each example's compiled loss. Waits, and costs more than the step.");
}

nb::dict values_of(const MetricSums& sums, const std::vector<MetricValue>& metrics) {
  nb::dict values;
  values["loss"] = mean_loss(sums);
  values.update(values_of_metrics(metrics));
  values["examples"] = sums.examples;
  return values;
}

template <typename Runner>
nb::dict finish(const Runner& runner) {
  std::pair<MetricSums, std::vector<MetricValue>> found = runner.call([](auto& of) {
    MetricSums sums = of.finish();
    return std::pair(sums, of.metrics());
  });
  return values_of(found.first, found.second);
}

nb::dict progress(const PythonTrainer& trainer) {
  trainer.require_current();
  return values_of(trainer.get().progress(), trainer.get().metrics());
}

template <typename Runner>
BatchPtr take(const Runner& runner) {
  return runner.call([&](auto& of) -> BatchPtr {
    std::optional<GlobalBatch> shares = of.take();
    return shares
               ? std::make_shared<PythonGlobalBatch>(runner.strategy(), runner.feed().number(), *std::move(shares))
               : nullptr;
  });
}

template <typename Runner>
bool step(const Runner& runner) {
  return runner.call([](auto& of) { return of.step(); });
}

using Piece = void (Trainer::*)();
template <Piece kPiece>
void piece(const PythonTrainer& trainer) {
  trainer.call([](Trainer& of) { (of.*kPiece)(); });
}

void gradients(const PythonTrainer& trainer, PythonGlobalBatch& batches) {
  GlobalBatch shares = batches.take(trainer.feed().number());
  trainer.call([&](Trainer& of) { of.gradients(std::move(shares)); });
}

std::optional<double> gradient_norm(const PythonTrainer& trainer) {
  const auto norms = trainer.call([](Trainer& of) { return of.gradient_norms(); });
  return norms ? std::optional<double>(norms->all) : std::nullopt;
}

void bind_batches(nb::module_& module) {
  nb::class_<PythonGlobalBatch>(module, "GlobalBatch", "One batch of all replicas, until a step takes it.")
      .def(
          "__len__", [](const PythonGlobalBatch& of) { return of.get().size(); }, "Shares: one a local replica.")
      .def("__bool__", [](const PythonGlobalBatch&) { return true; })
      .def_prop_ro(
          "examples", [](const PythonGlobalBatch& of) { return of.position().global_examples; },
          "Of all replicas of the world.")
      .def_prop_ro("epoch", [](const PythonGlobalBatch& of) { return of.position().epoch; })
      .def_prop_ro("step", [](const PythonGlobalBatch& of) { return of.position().step; })
      .def_prop_ro("last_of_epoch", [](const PythonGlobalBatch& of) { return of.position().last_of_epoch; })
      .def("__repr__", [](const PythonGlobalBatch& of) {
        return "GlobalBatch(" + std::to_string(of.position().global_examples) + " examples, epoch " +
               std::to_string(of.position().epoch) + ", step " + std::to_string(of.position().step) +
               (of.is_taken() ? ", taken)" : ")");
      });
  nb::class_<PythonFeed>(module, "DistributedDataset")
      .def("next", &PythonFeed::next, "epoch"_a = nb::none(), nb::call_guard<WithoutGil>())
      .def("steps_per_epoch", [](const PythonFeed& of) { return of.loader().steps_per_epoch(); })
      .def("state", [](const PythonFeed& of) { return of.loader().state().serialize(); })
      .def(
          "close", [](const PythonFeed& of) { of.loader().stop(); }, nb::call_guard<WithoutGil>());
}

void bind_trainer(nb::module_& module) {
  nb::class_<PythonTrainer>(module, "Trainer")
      .def("step", &step<PythonTrainer>)
      .def("take", &take<PythonTrainer>)
      .def("forward", &forward<PythonTrainer>, "batches"_a)
      .def("gradients", &gradients, "batches"_a)
      .def("backward", &piece<&Trainer::backward>)
      .def("all_reduce", &piece<&Trainer::all_reduce>)
      .def("apply_gradients", &piece<&Trainer::apply_gradients>)
      .def("discard_gradients", &piece<&Trainer::discard_gradients>)
      .def("warm_up", &piece<&Trainer::warm_up>)
      .def("reset_metrics", &piece<&Trainer::reset_metrics>)
      .def("finish", &finish<PythonTrainer>)
      .def("progress", &progress)
      .def("gradient_norm", &gradient_norm)
      .def(
          "gradient",
          [](const std::shared_ptr<PythonTrainer>& trainer, const std::string& variable, int replica) {
            trainer->require_current();
            require_replica(trainer->strategy()->get(), replica);
            return DeviceTensor{trainer, trainer->get().gradient(variable, replica), replica};
          },
          "variable"_a, "replica"_a);
}

void bind_evaluator(nb::module_& module) {
  nb::class_<PythonEvaluator>(module, "Evaluator")
      .def("step", &step<PythonEvaluator>)
      .def("take", &take<PythonEvaluator>)
      .def("forward", &forward<PythonEvaluator>, "batches"_a)
      .def("reset_metrics", [](const PythonEvaluator& of) { of.call([](Evaluator& it) { it.reset_metrics(); }); })
      .def("finish", &finish<PythonEvaluator>);
}

}  // namespace

void bind_steps(nb::module_& module) {
  bind_batches(module);
  bind_pass(module);
  bind_trainer(module);
  bind_evaluator(module);
  module.def(
      "distribute",
      [](const StrategyPtr& strategy, const Dataset& data, const nb::dict& input) {
        return std::make_shared<PythonFeed>(strategy, data, input_of(input));
      },
      "strategy"_a, "data"_a, "input"_a);
  module.def(
      "trainer",
      [](const ModelPtr& model, const FeedPtr& feed, std::uint64_t seed, const nb::dict& step) {
        TrainerOptions options;
        options.seed = seed;
        options.step = read_options<StepOptions>(step, "Trainer()");
        return std::make_shared<PythonTrainer>(model, feed, options);
      },
      "model"_a, "feed"_a, nb::kw_only(), "seed"_a, "step"_a);
  module.def(
      "evaluator",
      [](const ModelPtr& model, const FeedPtr& feed, bool averaged_weights) {
        EvaluateOptions options;
        options.averaged_weights = averaged_weights;
        return std::make_shared<PythonEvaluator>(model, feed, options);
      },
      "model"_a, "feed"_a, nb::kw_only(), "averaged_weights"_a);
}

}  // namespace headrace::python
