// Weights of other programs, by the names and layouts of PyTorch.
#include <fmt/format.h>

#include "headrace/tests/train/training_fixture.h"
#include "headrace/tests/train/user_layer.h"
#include "headrace/train/checkpoints.h"
#include "headrace/train/graph.h"

namespace headrace::test {
namespace {

// A file as the safetensors package writes it.
class OtherFile {
 public:
  void add(const std::string& name, const char* type, const std::string& shape, const std::vector<float>& values,
           std::size_t bytes_each = 4) {
    const std::size_t begin = payload_.size();
    for (const float value : values) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, &value, sizeof bits);
      if (bytes_each == 2) bits >>= 16;
      for (std::size_t i = 0; i < bytes_each; ++i) payload_.push_back(static_cast<char>(bits >> (8 * i)));
    }
    header_ += fmt::format(R"({}"{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                           header_.empty() ? "" : ",", name, type, shape, begin, payload_.size());
  }
  std::string bytes() const {
    const std::string header = R"({"__metadata__":{"format":"pt"},)" + header_ + "}";
    std::string all;
    for (int i = 0; i < 8; ++i) all.push_back(static_cast<char>(header.size() >> (8 * i)));
    return all + header + payload_;
  }

 private:
  std::string header_, payload_;
};

// Two channels of 2 x 3 pixels, one filter of 1 x 1 each way, and a head of the flattened pixels.
Results turned_net(Graph& g) {
  Node x = g.conv(g.input("image", {2, 3, 2}), 2, {.kernel = 3, .bias = false, .name = "stem.conv"});
  x = g.relu(g.batch_norm(x, {.name = "stem.bn"}));
  x = g.dense(g.flatten(x), 2, {.name = "hidden"});
  return g.dense(x, 3, {.name = "fc"});
}

std::vector<float> counting(std::size_t count) {
  std::vector<float> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(static_cast<float>(i));
  return values;
}

OtherFile torch_file() {
  OtherFile file;
  file.add("stem.conv.weight", "F32", "2,2,3,3", counting(36));
  file.add("stem.bn.weight", "F32", "2", {2, 3});
  file.add("stem.bn.bias", "BF16", "2", {4, 5}, 2);
  file.add("stem.bn.running_mean", "F32", "2", {6, 7});
  file.add("stem.bn.running_var", "F32", "2", {8, 9});
  file.add("stem.bn.num_batches_tracked", "I64", "", {1, 0});
  file.add("hidden.weight", "F32", "2,12", counting(24));
  file.add("hidden.bias", "F32", "2", {1, 2});
  return file;
}

class Pretrained : public testing::Test {
 protected:
  Model model() { return training_.strategy.build(turned_net, {.seed = 3}); }
  std::filesystem::path write(const OtherFile& file) const { return folder_.write("w.safetensors", file.bytes()); }

  TempFolder folder_;
  Training training_{2};
};

TEST_F(Pretrained, PyTorchsFiltersAndPixelsAreTurned) {
  OtherFile file = torch_file();
  file.add("fc.weight", "F32", "1000,2", std::vector<float>(2000));
  file.add("fc.bias", "F32", "1000", std::vector<float>(1000));
  file.add("other.weight", "F64", "1", {0, 0});
  Model loaded = model();
  const std::vector<float> head = loaded.read_variable("fc/weights");
  const PretrainedReport report = load_pretrained(loaded, write(file));
  EXPECT_EQ(report.loaded.size(), 7U);
  EXPECT_THAT(report.left_out, ElementsAre("fc/weights", "fc/bias"));
  EXPECT_THAT(report.unused, ElementsAre("other.weight"));
  EXPECT_EQ(loaded.read_variable("fc/weights"), head);
  EXPECT_THAT(loaded.read_variable("stem.bn/gamma"), ElementsAre(2, 3));
  EXPECT_THAT(loaded.read_variable("stem.bn/beta"), ElementsAre(4, 5));
  EXPECT_THAT(loaded.read_variable("stem.bn/running_mean"), ElementsAre(6, 7));
  EXPECT_THAT(loaded.read_variable("stem.bn/running_var"), ElementsAre(8, 9));
  const std::vector<float> filters = loaded.read_variable("stem.conv/weights");
  for (std::size_t o = 0; o < 2; ++o) {
    for (std::size_t c = 0; c < 2; ++c) {
      for (std::size_t p = 0; p < 9; ++p) {
        EXPECT_EQ(filters[(o * 9 + p) * 2 + c], static_cast<float>((o * 2 + c) * 9 + p));
      }
    }
  }
  const std::vector<float> dense = loaded.read_variable("hidden/weights");
  for (std::size_t p = 0; p < 6; ++p) {
    EXPECT_EQ(dense[p * 2], static_cast<float>(p)) << "channel 0 of pixel " << p;
    EXPECT_EQ(dense[p * 2 + 1], static_cast<float>(6 + p));
  }
  loaded.check_mirrored();
}

// PyTorch has (in, out, height, width) for a ConvTranspose2d, and (out, in / groups, height, width) for groups.
TEST_F(Pretrained, FiltersOfOtherConvolutionsAreTurned) {
  Model loaded = training_.strategy.build([](Graph& g) {
    Node x = g.depthwise_conv(g.input("image", {2, 3, 2}), {.multiplier = 2, .bias = false, .name = "dw"});
    x = g.conv(x, 4, {.kernel = {1, 5}, .groups = 2, .bias = false, .name = "mix"});
    return g.dense(g.flatten(g.conv_transpose(x, 3, {.kernel = 2, .stride = 2, .name = "up"})), 2, {.name = "fc"});
  });
  OtherFile file;
  file.add("dw.weight", "F32", "4,1,3,3", counting(36));
  file.add("mix.weight", "F32", "4,2,1,5", counting(40));
  file.add("up.weight", "F32", "4,3,2,2", counting(48));
  file.add("up.bias", "F32", "3", {1, 2, 3});
  EXPECT_EQ(load_pretrained(loaded, write(file)).loaded.size(), 4U);
  EXPECT_EQ(loaded.read_variable("dw/weights"), counting(36));
  const std::vector<float> mixed = loaded.read_variable("mix/weights");
  for (std::size_t i = 0; i < 40; ++i) {
    EXPECT_EQ(mixed[i], static_cast<float>(i / 10 * 10 + i % 2 * 5 + i % 10 / 2))
        << "(4, 1, 5, 2) of (4, 2, 1, 5)";
  }
  const std::vector<float> filters = loaded.read_variable("up/weights");
  for (std::size_t in = 0; in < 4; ++in) {
    for (std::size_t out = 0; out < 3; ++out) {
      for (std::size_t p = 0; p < 4; ++p) {
        EXPECT_EQ(filters[(in * 4 + p) * 3 + out], static_cast<float>((in * 3 + out) * 4 + p));
      }
    }
  }
}

// What PyTorch computes of flattened pixels is followed to every layer that has a number for each of them.
TEST_F(Pretrained, TheOrderOfFlattenedPixelsIsFollowed) {
  using Middle = std::function<Node(Graph&, Node)>;
  constexpr std::size_t kPixels = 6, kPixelChannels = 2, kAll = kPixels * kPixelChannels;
  const auto turned = [](std::size_t feature) {
    return feature % kPixelChannels * kPixels + feature / kPixelChannels;
  };
  const std::map<std::string, Middle> middles{
      {"dropout", [](Graph& g, Node x) { return g.dropout(x, 0.5F); }},
      {"relu", [](Graph& g, Node x) { return g.relu(g.scale(x, 2)); }},
      {"flatten", [](Graph& g, Node x) { return g.flatten(g.softmax(x)); }},
      {"sum", [](Graph& g, Node x) { return g.add(x, g.tanh(x)); }},
      {"batch norm", [](Graph& g, Node x) { return g.batch_norm(x, {.name = "norm"}); }},
      {"layer norm", [](Graph& g, Node x) { return g.layer_norm(x, {.name = "norm"}); }},
      {"concat", [](Graph& g, Node x) {
         return g.concat({g.dense(g.input("others", {3}), 3, {.name = "d"}), x});
       }}};
  for (const auto& [name, middle] : middles) {
    Model loaded = training_.strategy.build(
        [&](Graph& g) {
          const Node x = g.flatten(g.conv(g.input("image", {2, 3, 2}), 2, {.bias = false, .name = "conv"}));
          return g.dense(middle(g, x), 2, {.bias = false, .name = "fc"});
        },
        {.seed = 3});
    const std::size_t before = name == "concat" ? 3 : 0, width = before + kAll;
    OtherFile file;
    file.add("conv.weight", "F32", "2,2,3,3", counting(36));
    if (before > 0) file.add("d.weight", "F32", "3,3", std::vector<float>(9));
    if (before > 0) file.add("d.bias", "F32", "3", std::vector<float>(3));
    std::vector<float> weights(2 * width), gains(kAll);
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i);
    for (std::size_t i = 0; i < gains.size(); ++i) gains[i] = static_cast<float>(100 + i);
    file.add("fc.weight", "F32", fmt::format("2,{}", width), weights);
    const bool norm = name.ends_with("norm");
    for (const char* part : {"weight", "bias", "running_mean", "running_var"}) {
      if (norm && (name == "batch norm" || std::string(part).size() < 7)) {
        file.add(std::string("norm.") + part, "F32", "12", gains);
      }
    }
    load_pretrained(loaded, write(file), {.match = PretrainedMatch::kAll});
    const std::vector<float> dense = loaded.read_variable("fc/weights");
    for (std::size_t i = 0; i < dense.size(); ++i) {
      const std::size_t row = i / width * width, at = i % width;
      const std::size_t from = row + (at < before ? at : before + turned(at - before));
      EXPECT_EQ(dense[i], static_cast<float>(from)) << name << " at " << i;
    }
    for (const char* part : {"gamma", "beta", "running_mean"}) {
      if (!norm || (name == "layer norm" && std::string(part).size() > 5)) continue;
      const std::vector<float> found = loaded.read_variable(std::string("norm/") + part);
      for (std::size_t i = 0; i < kAll; ++i) EXPECT_EQ(found[i], 100 + static_cast<float>(turned(i))) << part;
    }
  }
}

TEST_F(Pretrained, AnUnknownOrderIsRefused) {
  const std::map<std::string, Results (*)(Graph&)> nets{
      {"adds the pixels",
       [](Graph& g) -> Results {
         const Node x = g.flatten(g.input("image", {2, 3, 2}));
         return g.dense(g.add(x, g.dense(x, 12, {.bias = false, .name = "d"})), 2, {.bias = false, .name = "fc"});
       }},
      {"'mine' (residual_step) may change", [](Graph& g) -> Results {
         const Node x = g.flatten(g.input("image", {2, 3, 2}));
         const Node y = g.call(std::make_shared<ResidualStep>("mine", g.shape(x), 0.5F), {x}, {.name = "mine"});
         return g.dense(y, 2, {.bias = false, .name = "fc"});
       }}};
  for (const auto& [text, net] : nets) {
    Model loaded = training_.strategy.build(net, {.seed = 3});
    OtherFile file;
    file.add("d.weight", "F32", "12,12", std::vector<float>(144));
    file.add("fc.weight", "F32", "2,12", std::vector<float>(24));
    const std::string before = loaded.weights_sha256();
    EXPECT_THAT(error_of<DataError>([&] {
                  load_pretrained(loaded, write(file), {.match = PretrainedMatch::kAny});
                }).what(),
                HasSubstr(text));
    EXPECT_EQ(loaded.weights_sha256(), before);
    // In our own order they are taken as they are.
    const auto ours = [](const std::string& name) { return name.substr(0, name.find('.')) + "/weights"; };
    EXPECT_FALSE(
        load_pretrained(loaded, write(file), {.rename = ours, .match = PretrainedMatch::kAny}).loaded.empty());
  }
}

TEST_F(Pretrained, ARecordOfOursServesToo) {
  Model saved = model(), loaded = training_.strategy.build(turned_net, {.seed = 4});
  saved.compile({});
  save_model(saved, folder_ / "ours.safetensors");
  EXPECT_EQ(load_pretrained(loaded, folder_ / "ours.safetensors").loaded.size(), 9U);
  EXPECT_EQ(loaded.weights_sha256(), saved.weights_sha256());
}

TEST_F(Pretrained, TensorsAreRenamedAndAllMustMatch) {
  OtherFile file;
  file.add("body.bn.weight", "F32", "2", {2, 3});
  file.add("extra.bias", "F32", "1", {1});
  Model loaded = model();
  const std::string before = loaded.weights_sha256();
  const auto rename = [](const std::string& name) { return name == "body.bn.weight" ? "stem.bn/gamma" : name; };
  const DataError error = error_of<DataError>(
      [&] { load_pretrained(loaded, write(file), {.rename = rename, .match = PretrainedMatch::kAll}); });
  for (const char* text : {"'stem.conv.weight'", "'fc.bias'", "no variable of the model is for: extra.bias"}) {
    EXPECT_THAT(error.what(), HasSubstr(text));
  }
  EXPECT_EQ(loaded.weights_sha256(), before);
  const auto report = load_pretrained(loaded, write(file), {.rename = rename, .match = PretrainedMatch::kAny});
  EXPECT_THAT(report.loaded, ElementsAre("stem.bn/gamma"));
  EXPECT_THAT(report.unused, ElementsAre("extra.bias"));
  EXPECT_EQ(report.left_out.size(), 8U);
  EXPECT_THAT(loaded.read_variable("stem.bn/gamma"), ElementsAre(2, 3));
  const auto same = [](const std::string&) { return "stem.bn/gamma"; };
  EXPECT_THROW(load_pretrained(loaded, write(file), {.rename = same, .match = PretrainedMatch::kAny}), DataError);
}

TEST_F(Pretrained, WeightsOfAnotherNetChangeNothing) {
  Model loaded = model();
  const std::string before = loaded.weights_sha256();
  const auto refusal = [&](const std::filesystem::path& file) -> std::string {
    return message_of<DataError>([&] { load_pretrained(loaded, file); });
  };
  OtherFile missing;
  missing.add("stem.conv.weight", "F32", "2,2,3,3", counting(36));
  EXPECT_THAT(refusal(write(missing)), HasSubstr("no tensor 'stem.bn.bias' or 'stem.bn/beta'"));
  OtherFile wrong;
  wrong.add("stem.conv.weight", "F32", "2,3,3,2", counting(36));
  EXPECT_THAT(refusal(write(wrong)), HasSubstr("needs numbers of shape (2, 2, 3, 3)"));
  EXPECT_THAT(refusal(folder_.write("short.safetensors", torch_file().bytes().substr(0, 900))),
              HasSubstr("cut short"));
  EXPECT_THAT(refusal(folder_.write("no.safetensors", "nothing of the kind")), HasSubstr("is no record"));
  EXPECT_THAT(refusal(folder_ / "absent"), HasSubstr("absent"));
  EXPECT_EQ(loaded.weights_sha256(), before);
}

}  // namespace
}  // namespace headrace::test
