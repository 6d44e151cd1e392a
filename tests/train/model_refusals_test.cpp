// What a model refuses, and what stops it.
#include "headrace/tests/train/training_fixture.h"

namespace headrace::test {
namespace {

// What a model refuses before anything runs: nets, data and options that do not fit.

TEST_F(ModelTest, NeedsCompile) {
  Model model = training_.strategy.build(small_mlp);
  EXPECT_THAT(message_of([&] { model.fit(data_, {.verbose = 0}); }), HasSubstr("compile"));
  EXPECT_THAT(message_of([&] { model.evaluate(data_); }), HasSubstr("compile"));
}

TEST_F(ModelTest, LossAndNetMustFitTogether) {
  Model logits = training_.strategy.build(small_mlp);
  EXPECT_THAT(
      message_of([&] { logits.compile({.loss = sparse_categorical_crossentropy({.from_logits = false})}); }),
      AllOf(HasSubstr("'dense_1'"), HasSubstr("softmax")));
  Model probabilities = training_.strategy.build([](Graph& g) { return g.softmax(small_mlp(g)); });
  EXPECT_THAT(message_of([&] { probabilities.compile({}); }), HasSubstr("probabilities"));
  Model image = training_.strategy.build([](Graph& g) { return g.conv(g.input("image", {4, 4, 1}), 2); });
  EXPECT_THAT(message_of([&] { image.compile({}); }), HasSubstr("(4, 4, 2)"));
  EXPECT_THROW(sparse_categorical_crossentropy({.label_smoothing = 1.5F}), ConfigError);
  Model empty = training_.strategy.build([](Graph& g) { return g.flatten(g.input("image", {4})); });
  EXPECT_THAT(message_of([&] { empty.compile({}); }), HasSubstr("no parameters"));
}

TEST_F(ModelTest, DataMustFitTheNet) {
  Model model = make();
  EXPECT_THAT(message_of([&] {
                model.fit(blobs(20, {3, 3, 1}).batch({.global_batch = 4}), {.verbose = 0});
              }),
              AllOf(HasSubstr("'image'"), HasSubstr("(3, 3, 1)"), HasSubstr("(8,)")));
  const Dataset no_label =
      Dataset::from(in_memory("half", 4, {array_of("image", Shape{8}, std::vector<float>(32))}))
          .batch({.global_batch = 4});
  EXPECT_THAT(message_of([&] { model.fit(no_label, {.verbose = 0}); }), HasSubstr("label"));
  const Dataset float_label = Dataset::from(in_memory(
      "floats", 4,
      {array_of("image", Shape{8}, std::vector<float>(32)), array_of("label", Shape{}, std::vector<float>(4))}));
  EXPECT_THAT(message_of([&] { model.fit(float_label.batch({.global_batch = 4}), {.verbose = 0}); }),
              AllOf(HasSubstr("float32"), HasSubstr("int64")));
  EXPECT_THAT(message_of([&] { model.fit(data_, {.epochs = 0, .verbose = 0}); }), HasSubstr("epoch"));
  EXPECT_THAT(message_of([&] { model.fit(data_, {.verbose = 0, .step = {.accumulate = 0}}); }),
              HasSubstr("accumulate"));
}

// Nets take (height, width, channels).
TEST_F(ModelTest, ImagesWithTheChannelsFirstAreRefused) {
  constexpr auto kFirst = ImageLayout::kChannelsFirst, kLast = ImageLayout::kChannelsLast;
  using Middle = std::function<Node(Graph&, Node)>;
  const Middle conv = [](Graph& g, Node x) { return g.conv(x, 2); };
  const Middle flat = [](Graph& g, Node x) { return g.relu(g.flatten(x)); };
  const Middle norm = [](Graph& g, Node x) { return g.layer_norm(x); };
  const auto model_of = [&](const Shape& shape, const Middle& middle) {
    return make([&](Graph& g) { return g.dense(g.flatten(middle(g, g.input("image", shape))), 4); });
  };
  const std::string first = "has the channels first, and layer '",
                    doubt = "nothing says where they are, and layer '";
  const std::string known = "leave to_layout(channels_first) out", unknown = "layout_is(channels_last)";
  struct PlannedImage {
    Shape shape;
    Operations chain;
    Middle middle;
    std::string refused, remedy;  // empty: it fits
  };
  const Operations same = cast(DType::kF32);
  const std::vector<PlannedImage> cases{
      {{4, 4, 4}, to_layout(kFirst), conv, first + "conv'", known},
      {{4, 4, 4},
       layout_is(kFirst),
       [](Graph& g, Node x) { return g.max_pool(g.relu(g.dropout(x, 0.1F)), 2); },
       first + "max_pool'",
       known},
      {{6, 6, 2},
       to_layout(kFirst),
       [](Graph& g, Node x) {
         return g.global_average_pool(g.add({x, g.tanh(x)}));
       },
       first + "global_average_pool'",
       known},
      {{4, 4, 4},
       layout_is(kFirst),
       [](Graph& g, Node x) { return g.batch_norm(x); },
       first + "batch_norm'",
       known},
      {{4, 4, 4}, layout_is(kFirst), [](Graph& g, Node x) { return g.dense(x, 3); }, first + "dense'", known},
      {{4, 4, 4}, layout_is(kFirst), norm, first + "layer_norm'", known},
      {{4, 4, 4}, layout_is(kFirst), flat, "", ""},
      {{4, 4, 4}, layout_is(kFirst) | to_layout(kLast), conv, "", ""},
      {{3, 8, 8}, same, conv, doubt + "conv'", unknown},
      {{5, 8, 8},
       same,
       [&](Graph& g, Node x) { return g.average_pool(norm(g, x), 2); },
       doubt + "average_pool'",
       unknown},
      {{3, 8, 8}, same, norm, "", ""},
      {{3, 8, 8}, layout_is(kLast), conv, "", ""},
      {{6, 6, 8}, same, conv, "", ""}};
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto& [shape, chain, middle, refused, remedy] = cases[i];
    const Dataset data = blobs(8, shape).map(chain).batch({.global_batch = 4});
    Model model = model_of(data.fields()[0].shape, middle);
    for (const auto& run :
         std::vector<std::function<void()>>{[&] { model.fit(data, {.epochs = 1, .verbose = 0}); },
                                            [&] { model.evaluate(data); }, [&] { model.predict(data); }}) {
      EXPECT_THAT(message_of(run), refused.empty()
                                       ? testing::Matcher<std::string>("")
                                       : AllOf(HasSubstr("'image'"), HasSubstr(refused), HasSubstr(remedy)))
          << i;
    }
  }
  const Dataset planes = blobs(8, {6, 6, 2}).map(to_layout(kFirst)).batch({.global_batch = 4});
  Model last = model_of({6, 6, 2}, conv), any = model_of({2, 6, 6}, flat);
  EXPECT_THAT(message_of([&] { last.predict(planes); }), HasSubstr(known));
  EXPECT_THAT(message_of([&] { any.evaluate(planes, {.views = mirrored_views()}); }),
              HasSubstr("a view takes (height, width, channels)"));
  // A target that is compared with an image.
  Array target = array_of("label", {4, 4, 4}, std::vector<float>(128));
  target.field.layout = kFirst;
  const Dataset pairs =
      Dataset::from(in_memory("pairs", 2, {array_of("image", {4, 4, 4}, std::vector<float>(128)), target}));
  Model images = training_.strategy.build([](Graph& g) { return g.conv(g.input("image", {4, 4, 4}), 4); });
  images.compile({.loss = mean_squared_error(), .metrics = {}});
  EXPECT_THAT(message_of([&] { images.fit(pairs.batch({.global_batch = 2}), {.verbose = 0}); }),
              HasSubstr("field 'label' has the channels first, and layer 'conv' (conv) gives"));
}

// A net is compiled for batches of one shape.
TEST_F(ModelTest, BucketsAreRefused) {
  Model model = make();
  const Dataset lists =
      Dataset::from(generator({.name = "lists",
                               .fields = {{.name = "image", .dtype = DType::kF32, .shape = {8}},
                                          {.name = "label", .dtype = DType::kI64, .shape = {}},
                                          {.name = "list", .dtype = DType::kU8, .shape = {Shape::kDynamic}}},
                               .records = 9,
                               .function = [](std::uint64_t index, RecordWriter& record) {
                                 const std::vector<float> image(8);
                                 record.put(0, std::as_bytes(std::span(image)));
                                 record.put(1, std::int64_t{0});
                                 record.allocate(2, index);
                               }}));
  for (const Dataset& data : {lists.bucket_by_length({.field = "list", .boundaries = {4}, .batch_sizes = {2}}),
                              lists.ragged_batch({.global_batch = 2})}) {
    for (const auto& run :
         std::vector<std::function<void()>>{[&] { model.fit(data, {.verbose = 0}); },
                                            [&] { model.evaluate(data); }, [&] { model.predict(data); }}) {
      EXPECT_THAT(message_of(run), HasSubstr("padded_batch()"));
    }
  }
}

TEST_F(ModelTest, WhatTheTrainerDecidesIsRefused) {
  Model model = make();
  const std::vector<std::pair<std::string, LoaderOptions>> decided = {{"epochs", {.epochs = 2}},
                                                                      {"start", {.start = LoaderState{}}},
                                                                      {"converted", {.converted = DType::kBF16}},
                                                                      {"world", {.world = {.total = 4}}},
                                                                      {"trace_spans", {.trace_spans = 8}}};
  for (const auto& [name, input] : decided) {
    EXPECT_THAT(message_of([&] { model.fit(data_, {.verbose = 0, .input = input}); }),
                HasSubstr("LoaderOptions::" + name));
    EXPECT_THAT(message_of([&] { model.evaluate(data_, {.input = input}); }), HasSubstr("LoaderOptions::" + name));
    EXPECT_THAT(message_of([&] { model.predict(data_, {.input = input}); }), HasSubstr("LoaderOptions::" + name));
  }
  EXPECT_THAT(message_of([&] { model.evaluate(data_, {.input = {.headspace = 1}}); }),
              HasSubstr("LoaderOptions::headspace"));
}

// Each is a loader's option that fit() and evaluate() pass on, by its effect or by the refusal of the loader.
TEST_F(ModelTest, TheLoadersOptionsAreReachable) {
  Model model = make();
  const auto refusal = [&](const LoaderOptions& input) {
    const std::string of_fit = message_of([&] { model.fit(data_, {.verbose = 0, .input = input}); });
    EXPECT_EQ(message_of([&] { model.evaluate(data_, {.input = input}); }), of_fit);
    return of_fit;
  };
  // Batches lie in pinned memory where a device has memory of its own.
  const LoaderOptions tight{.memory_budget_bytes = 10, .pinned_budget_bytes = 10};
  EXPECT_THAT(refusal(tight), HasSubstr("_budget_bytes = 10"));
  EXPECT_THAT(refusal({.threads = 3, .cpu_budget = 2}), HasSubstr("cpu_budget = 2"));
  EXPECT_THAT(refusal({.reader_threads = 5000}), HasSubstr("reader_threads = 5000"));
  const std::string before = model.weights_sha256();
  EXPECT_THAT(message_of([&] { model.fit(data_, {.validation = fresh_, .verbose = 0, .input = tight}); }),
              HasSubstr("_budget_bytes"));
  EXPECT_EQ(model.weights_sha256(), before);
}

// How a fit or an evaluation ends before its data does.

TEST_F(ModelTest, CallbacksHearEveryEpochAndCanStop) {
  Model model = make();
  std::vector<std::string> heard;
  const Callback callback{.on_train_begin = [&](FitControl&) { heard.push_back("begin"); },
                          .on_epoch_end =
                              [&](const EpochReport& report, FitControl& control) {
                                heard.push_back("epoch " + std::to_string(report.epoch));
                                EXPECT_EQ(&control.model(), &model);
                                EXPECT_EQ(report.global_step, 20U * static_cast<unsigned>(report.epoch + 1));
                                if (report.epoch == 1) control.request_stop();
                              },
                          .on_train_end = [&](FitControl&) { heard.push_back("end"); }};
  const History history = model.fit(data_, {.epochs = 5, .callbacks = {callback}, .verbose = 0});
  EXPECT_THAT(heard, ElementsAre("begin", "epoch 0", "epoch 1", "end"));
  EXPECT_EQ(history.epochs(), 2U);
}

TEST_F(ModelTest, AStopFlagEndsTheFitWithinAnEpoch) {
  Model model = make();
  std::atomic<bool> stop = false;
  const Callback callback{.on_step = [&](const StepReport& report, FitControl&) {
    EXPECT_LE(report.step, report.steps);
    stop = true;
  }};
  const History history = model.fit(
      data_, {.epochs = 1, .steps_per_epoch = 100'000'000, .callbacks = {callback}, .verbose = 0, .stop = &stop});
  ASSERT_EQ(history.epochs(), 1U);
  EXPECT_EQ(history["steps"][0], static_cast<double>(model.global_step())) << "as far as it came";
  EXPECT_GT(model.global_step(), 0U);
  model.check_mirrored();
  stop = true;
  EXPECT_EQ(model.fit(data_, {.epochs = 3, .verbose = 0, .stop = &stop}).epochs(), 0U);
}

TEST_F(ModelTest, StopsAfterSoManySteps) {
  Model model = make();
  EXPECT_EQ(model.fit(data_, {.epochs = 5, .verbose = 0, .stop_after_steps = 40}).epochs(), 2U);
  EXPECT_EQ(model.global_step(), 40U);
  EXPECT_EQ(model.fit(data_, {.epochs = 5, .verbose = 0, .stop_after_steps = 40}).epochs(), 0U) << "at once";
  std::vector<EpochReport> reports;
  const Callback callback{
      .on_epoch_end = [&](const EpochReport& report, FitControl&) { reports.push_back(report); }};
  const History history = model.fit(
      data_, {.epochs = 5, .validation = fresh_, .callbacks = {callback}, .verbose = 0, .stop_after_steps = 67});
  EXPECT_EQ(model.global_step(), 67U);
  ASSERT_EQ(reports.size(), 2U);
  EXPECT_EQ(reports[0].steps, 20U);
  EXPECT_EQ(reports[0].planned_steps, 20U);
  EXPECT_TRUE(reports[0].val_loss);
  EXPECT_EQ(reports[1].steps, 7U);
  EXPECT_EQ(reports[1].planned_steps, 20U);
  EXPECT_GT(reports[1].loss, 0);
  EXPECT_FALSE(reports[1].val_loss) << "an epoch that is cut short is not validated";
  EXPECT_THAT(history["loss"], SizeIs(2));
  EXPECT_THAT(history["val_loss"], SizeIs(1));
}

// What a second thread or a handler of Ctrl-C sets; with the progress function to know that it has begun.
TEST_F(ModelTest, AStopFlagEndsAnEvaluation) {
  Model model = make();
  std::atomic<bool> stop = false;
  std::uint64_t batches = 0;
  const EvaluateOptions options{.progress =
                                    [&](std::uint64_t done, std::uint64_t of) {
                                      batches = done;
                                      EXPECT_GT(of, 2U);
                                      stop = done == 2;
                                    },
                                .stop = &stop};
  for (const bool predicts : {false, true}) {
    stop = false;
    EXPECT_EQ(error_of([&] {
                predicts ? void(model.predict(data_, options)) : void(model.evaluate(data_, options));
              }).code(),
              ErrorCode::kCancelled);
    EXPECT_EQ(batches, 2U);
  }
  stop = false;
  EXPECT_EQ(model.evaluate(fresh_).examples, model.evaluate(fresh_, {.stop = &stop}).examples);
}

TEST_F(ModelTest, AFitOfDataThatStallsEndsAfterItsTimeOut) {
  Model model = make();
  const Dataset slow =
      blobs(40)
          .map(user_map({.name = "stall",
                         .output = {.dtype = DType::kF32, .shape = {8}},
                         .function =
                             [](std::span<const std::byte> in, const Shape&, std::span<std::byte> out, Philox&) {
                               std::this_thread::sleep_for(std::chrono::milliseconds(600));
                               std::ranges::copy(in, out.begin());
                             }}))
          .batch({.global_batch = 20});
  const Error error =
      error_of([&] { model.fit(slow, {.verbose = 0, .input = {.threads = 1, .stall_timeout_seconds = 0.1}}); });
  EXPECT_EQ(error.code(), ErrorCode::kTimeout) << error.what();
}

TEST_F(ModelTest, ACallbacksExceptionReachesTheCaller) {
  Model model = make();
  const Callback callback{
      .on_epoch_end = [](const EpochReport&, FitControl&) { throw std::runtime_error("enough"); }};
  EXPECT_THAT(message_of<std::runtime_error>([&] { model.fit(data_, {.callbacks = {callback}, .verbose = 0}); }),
              "enough");
  EXPECT_EQ(model.fit(data_, {.verbose = 0}).epochs(), 1U) << "the model can be used again";
}

}  // namespace
}  // namespace headrace::test
