// Trainings of every shape end, and give what one replica gives (TRAINER.md, guarantee 4): with virtual shards its
// bits.
//   HEADRACE_FUZZ_CASES=1000   how many cases; HEADRACE_FUZZ_FIRST=17   from this one on
#include <fmt/format.h>

#include "headrace/tests/support/test.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/trainer.h"

namespace headrace {
namespace {

constexpr int kUsualCases = 400;
constexpr std::chrono::seconds kDeadline{60};  // of a case, which takes milliseconds, on a busy machine

// What a training is made of.
struct FuzzCase {
  std::uint64_t number = 0;
  std::int64_t examples = 1, batch = 1;
  int replicas = 1;
  int shards = 0;
  std::uint64_t steps_per_epoch = 0;
  int accumulate = 1;
  int prefetch = 0;
  bool drop_remainder = false;
  int epochs = 1;
  bool validates = false;

  std::string describe() const {
    return fmt::format(
        "case {}: N {}, B {}, R {}, V {}, steps_per_epoch {}, accumulate {}, prefetch {}, drop_remainder {}, "
        "epochs {}, "
        "validation {}",
        number, examples, batch, replicas, shards, steps_per_epoch, accumulate, prefetch, drop_remainder, epochs,
        validates);
  }
};

// The case of this number, the same at every run: small figures, with the edges (more replicas than examples, a
// batch of all, of more than all) drawn often.
FuzzCase draw(std::uint64_t number) {
  Philox random({.seed = 2026, .record = number});
  const auto below = [&](std::uint32_t bound) { return static_cast<int>(random.below(bound)); };
  FuzzCase drawn{.number = number};
  drawn.examples = 1 + below(below(3) == 0 ? 8 : 60);
  drawn.batch = below(4) == 0 ? drawn.examples + below(12) : 1 + below(24);
  drawn.replicas = 2 + below(7);
  drawn.steps_per_epoch = below(2) == 0 ? 0 : static_cast<std::uint64_t>(1 + below(9));
  drawn.accumulate = below(2) == 0 ? 1 : 2 + below(4);
  drawn.prefetch = below(5);
  drawn.drop_remainder = below(3) == 0;
  drawn.epochs = 1 + below(3);
  drawn.validates = below(3) == 0;
  if (below(3) == 0) {  // powers of two, as many shards as replicas or more
    const int log_replicas = below(4);
    drawn.replicas = 1 << log_replicas;
    drawn.shards = drawn.replicas << below(static_cast<std::uint32_t>(4 - log_replicas));
  }
  return drawn;
}

Dataset fuzz_data(const FuzzCase& of) {
  return test::blobs(of.examples)
      .shuffle()
      .batch({.global_batch = of.batch, .drop_remainder = of.drop_remainder})
      .prefetch(of.prefetch);
}

FitOptions fuzz_fit(const FuzzCase& of) {
  return {.epochs = of.epochs,
          .steps_per_epoch = of.steps_per_epoch,
          .validation =
              of.validates ? std::optional(test::blobs(7, {8}, 4, 2).batch({.global_batch = 3})) : std::nullopt,
          .verbose = 0,
          .input = {.seed = of.number},
          .step = {.accumulate = of.accumulate, .virtual_shards = of.shards}};
}

Node fuzz_net(Graph& g) {
  return g.dense(g.dropout(g.dense(g.input("image", {8}), 6, {.activation = Activation::kRelu}), 0.2F), 4);
}

Model fuzz_model(Strategy& strategy) { return test::compiled(strategy, fuzz_net, sgd(0.05F, {.momentum = 0.9F})); }

struct FuzzOutcome {
  std::string refused = {};  // the message, where the training was
  std::map<std::string, std::vector<double>> history = {};
  std::vector<std::vector<float>> variables = {};
};

FuzzOutcome fit(const FuzzCase& of, int replicas) {
  test::Training training(replicas);
  Model model = fuzz_model(training.strategy);
  try {
    FuzzOutcome outcome{.history = model.fit(fuzz_data(of), fuzz_fit(of)).lists()};
    model.check_mirrored();
    outcome.variables = test::variables_of(model);
    return outcome;
  } catch (const ConfigError& error) {
    return {.refused = error.what()};
  }
}

// How often each record came, in each pass that was seen to its end.
class SeenRecords {
 public:
  void add(const GlobalBatch& batches) {
    const BatchPosition position = batches.front().position();
    std::int64_t rows = 0;
    for (const Batch& batch : batches) {
      EXPECT_EQ(batch.position().sequence, position.sequence);
      EXPECT_EQ(batch.position().first_row, rows);
      rows += batch.examples();
      for (const std::uint64_t record : batch.records()) ++times_[record];
    }
    EXPECT_EQ(rows, position.global_examples);
    if (!position.last_of_epoch) return;
    ends_.push_back(std::exchange(times_, {}));
  }

  void expect_once(const FuzzCase& of) const {
    const std::int64_t whole = of.drop_remainder ? of.examples / of.batch * of.batch : of.examples;
    for (const auto& pass : ends_) {
      EXPECT_EQ(static_cast<std::int64_t>(pass.size()), whole);
      EXPECT_TRUE(std::ranges::all_of(pass, [](const auto& record) { return record.second == 1; }));
    }
    EXPECT_TRUE(std::ranges::all_of(times_, [](const auto& record) { return record.second == 1; }));
  }

 private:
  std::map<std::uint64_t, int> times_;  // in the present pass
  std::vector<std::map<std::uint64_t, int>> ends_;
};

// The same training as a custom loop, in pieces.
FuzzOutcome loop(const FuzzCase& of) {
  test::Training training(of.replicas);
  Model model = fuzz_model(training.strategy);
  const Dataset data = fuzz_data(of);
  const std::uint64_t pass = steps_of_pass(data, fuzz_fit(of)), steps = steps_of_fit(data, fuzz_fit(of));
  DeviceGroup repeated = training.devices.repeated(of.shards == 0 ? 1 : of.shards / of.replicas);
  Loader loader(data, repeated, {.seed = of.number, .epochs = (steps + pass - 1) / pass});
  Trainer trainer(training.strategy, model, loader,
                  {.seed = of.number, .step = {.accumulate = of.accumulate, .virtual_shards = of.shards}});
  SeenRecords seen;
  for (int pending = 0; model.global_step() < steps;) {
    std::optional<GlobalBatch> batches = trainer.take();
    if (!batches) {
      ADD_FAILURE() << "the data ended before step " << model.global_step();
      break;
    }
    seen.add(*batches);
    const bool last = batches->front().position().last_of_epoch;
    trainer.gradients(std::move(*batches));
    if (++pending < of.accumulate && !last) continue;
    trainer.all_reduce();
    trainer.apply_gradients();
    pending = 0;
  }
  trainer.finish();
  seen.expect_once(of);
  model.check_mirrored();
  return {.variables = test::variables_of(model)};
}

void expect_equal_variables(const FuzzCase& of, const FuzzOutcome& a, const FuzzOutcome& b) {
  ASSERT_EQ(a.variables.size(), b.variables.size());
  if (of.shards > 0) {
    EXPECT_EQ(a.variables, b.variables) << "the bits of virtual shards";
  }
  for (std::size_t v = 0; v < a.variables.size(); ++v) {
    for (std::size_t i = 0; i < a.variables[v].size(); ++i) {
      ASSERT_NEAR(a.variables[v][i], b.variables[v][i], 1e-4 * test::slack())
          << "variable " << v << "[" << i << "]";
    }
  }
}

void expect_equal_history(const FuzzCase& of, const FuzzOutcome& a, const FuzzOutcome& b) {
  if (of.shards > 0) {
    EXPECT_EQ(a.history.at("loss"), b.history.at("loss")) << "the bits of virtual shards";
  }
  for (const std::string name : {"loss", "val_loss", "steps"}) {
    ASSERT_EQ(a.history.contains(name), b.history.contains(name)) << name;
    if (!a.history.contains(name)) continue;
    const std::vector<double>&one = a.history.at(name), &other = b.history.at(name);
    ASSERT_EQ(one.size(), other.size()) << name;
    for (std::size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(one[i], other[i], 1e-4 * test::slack()) << name;
  }
}

// Ends the program, naming the case, where one does not end: what hangs cannot be failed any other way.
class Watchdog {
 public:
  explicit Watchdog(std::string what) : what_(std::move(what)), thread_([this] { watch(); }) {}
  ~Watchdog() {
    const std::scoped_lock lock(mutex_);
    done_ = true;
    ended_.notify_all();
  }

 private:
  void watch() {
    std::unique_lock lock(mutex_);
    if (ended_.wait_for(lock, kDeadline, [this] { return done_; })) return;
    std::fprintf(stderr, "not done after %lld s: %s\n", static_cast<long long>(kDeadline.count()), what_.c_str());
    std::abort();
  }

  std::string what_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool done_ = false;
  std::jthread thread_;  // last: it uses the others, and is joined first
};

std::uint64_t number_in_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

TEST(TrainingFuzz, EndsAndEqualsOneReplica) {
  const std::uint64_t first = number_in_environment("HEADRACE_FUZZ_FIRST", 0);
  const std::uint64_t cases = number_in_environment("HEADRACE_FUZZ_CASES", kUsualCases);
  std::uint64_t refused = 0;
  for (std::uint64_t number = first; number < first + cases && !HasFailure(); ++number) {
    const FuzzCase drawn = draw(number);
    SCOPED_TRACE(drawn.describe());
    const Watchdog watchdog(drawn.describe());
    const FuzzOutcome one = fit(drawn, 1), several = fit(drawn, drawn.replicas);
    EXPECT_EQ(one.refused, several.refused);
    EXPECT_EQ(one.refused.empty(), !drawn.drop_remainder || drawn.examples >= drawn.batch) << one.refused;
    if (!one.refused.empty()) {
      ++refused;
      continue;
    }
    expect_equal_history(drawn, one, several);
    expect_equal_variables(drawn, one, several);
    expect_equal_variables(drawn, one, loop(drawn));
  }
  std::printf("%llu cases, of which %llu were refused alike\n", static_cast<unsigned long long>(cases),
              static_cast<unsigned long long>(refused));
}

}  // namespace
}  // namespace headrace
