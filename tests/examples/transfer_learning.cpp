// Transfer learning: a net that has learned eight of ten classes learns all ten from 75 images in five passes, and
// beats the same net that begins from nothing, on average over five draws of the images. Ends with 1 where it does
// not. On Fashion-MNIST, or on what lies at the path that is given, as MNIST. On all GPUs, else one CPU replica;
// HEADRACE_DEVICES=cpu:8 says otherwise.
//   example_transfer_learning [DATA]
//
// Prints: ^Number of devices: {R}$
// Prints: ^copied features/weights$
// Prints: ^from nothing [01]\.[0-9]+, with what the base learned [01]\.[0-9]+$
#include <headrace/devices/registry.h>
#include <headrace/pipeline/sources.h>
#include <headrace/train/graph.h>
#include <headrace/train/strategy.h>

#include <cstdio>

using namespace headrace;

namespace {

constexpr std::uint64_t kDraws = 5, kFew = 75;

Node base_net(Graph& g) {
  Node x = g.input("image", {28, 28, 1});
  x = g.max_pool(g.conv(x, 16, {.activation = Activation::kRelu}), 2);
  x = g.max_pool(g.conv(x, 32, {.activation = Activation::kRelu}), 2);
  x = g.dense(g.flatten(x), 64, {.activation = Activation::kRelu, .name = "features"});
  return g.dense(x, 10, {.name = "head"});
}

// Everything up to the features of a net that was written as JSON, with a head of its own.
Net with_new_head(const std::string& json) {
  return [json](Graph& g) {
    const auto base = graph_from_json(json);
    const Node features = g.call(*base, {}, {.outputs = {"features/relu"}}).front();
    return g.dense(features, 10, {.name = "new_head"});
  };
}

double accuracy_of(Model& model, const Dataset& train, const Dataset& test) {
  model.compile({.optimizer = adam(1e-3F)});
  model.fit(train, {.epochs = 5, .verbose = 0});
  return model.evaluate(test).accuracy;
}

}  // namespace

int main(int argc, char** argv) try {
  const char* data = argc > 1 ? argv[1] : "/usr/share/datasets/fashion-mnist";
  const Dataset train = Dataset::from(open_source(data, Split::kTrain));
  const Dataset test = Dataset::from(open_source(data, Split::kTest));
  const Dataset known = train.filter(with_labels({0, 1, 2, 3, 4, 5, 7, 8})).take(8000).shuffle({.seed = 1});
  const Dataset judged = test.take(2000).batch({.global_batch = 200});

  DeviceGroup devices = open_devices();
  Strategy mirrored(devices);
  Model base = mirrored.build(base_net);
  base.compile({.optimizer = adam(1e-3F)});
  base.fit(known.batch({.global_batch = 64}), {.epochs = 2});

  const Net net = with_new_head(to_json(base.graph()));
  double without = 0, with = 0;
  for (std::uint64_t draw = 0; draw < kDraws; ++draw) {
    const Dataset few = train.skip(kFew * draw).take(kFew).shuffle({.seed = 2}).batch({.global_batch = 15});
    Model scratch = mirrored.build(net, {.seed = draw});
    Model transferred = mirrored.build(net, {.seed = draw});
    for (const std::string& name : transferred.copy_variables(base)) {
      if (draw == 0) std::printf("copied %s\n", name.c_str());
    }
    transferred.freeze("conv*");  // the head learns, and what the features make of edges and textures
    without += accuracy_of(scratch, few, judged) / kDraws;
    with += accuracy_of(transferred, few, judged) / kDraws;
  }
  std::printf("from nothing %.3f, with what the base learned %.3f\n", without, with);
  return with > without + 0.02 ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
