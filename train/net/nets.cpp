#include "headrace/train/nets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

// Returns the image input, of the data set's shape if the graph knows one.
Node image(Graph& graph, const Shape& otherwise) {
  return graph.knows("image") ? graph.input("image") : graph.input("image", otherwise);
}

Node conv_norm_relu(Graph& graph, Node x, int filters) {
  return graph.relu(graph.batch_norm(graph.conv(x, filters, {.bias = false}), {.momentum = 0.9F}));
}

Node identity_conv(Graph& graph, Node x, int filters) {
  return graph.conv(x, filters, {.bias = false, .initializer = Initializer::kDirac});
}

Node norm_active(Graph& graph, Node x, const SpeedNetOptions& options) {
  const Node normal = graph.batch_norm(x, {.momentum = options.norm_momentum, .epsilon = 1e-12F, .scale = false});
  return options.activation == Activation::kSilu ? graph.silu(normal) : graph.gelu(normal);
}

Node speed_group(Graph& graph, Node x, int filters, const SpeedNetOptions& options) {
  x = norm_active(graph, graph.max_pool(identity_conv(graph, x, filters), 2), options);
  return norm_active(graph, identity_conv(graph, x, filters), options);
}

// Names of a convolution and its norm; empty ones are the graph's choice.
struct ConvNormNames {
  std::string conv = {}, norm = {};
};

// Matches PyTorch's batch norm.
Node conv_norm(Graph& graph, Node x, int filters, int kernel, int stride, const ConvNormNames& names = {}) {
  x = graph.conv(x, filters,
                 {.kernel = kernel,
                  .stride = stride,
                  .padding = ConvPadding::kEven,
                  .bias = false,
                  .initializer = Initializer::kHeUniform,
                  .name = names.conv});
  return graph.batch_norm(x, {.momentum = 0.9F, .epsilon = 1e-5F, .name = names.norm});
}

// `name`: that of torchvision's module, "layer1.0"; empty: layers have no names of their own.
Node basic_block(Graph& graph, Node x, int filters, int stride, const std::string& name = {}) {
  const auto names = [&](const char* conv, const char* norm) {
    return name.empty() ? ConvNormNames{} : ConvNormNames{.conv = name + conv, .norm = name + norm};
  };
  const Node straight = graph.relu(conv_norm(graph, x, filters, 3, stride, names(".conv1", ".bn1")));
  const bool same = stride == 1 && graph.shape(x)[2] == filters;
  const Node shortcut =
      same ? x : conv_norm(graph, x, filters, 1, stride, names(".downsample.0", ".downsample.1"));
  return graph.relu(graph.add(conv_norm(graph, straight, filters, 3, 1, names(".conv2", ".bn2")), shortcut));
}

struct NamedNet {
  const char* name;
  int classes;
  bool any_classes;
  Results (*build)(Graph& graph, int classes);
};

constexpr NamedNet kNets[]{
    {"mnist_mlp", 10, false, [](Graph& graph, int) -> Results { return mnist_mlp(graph); }},
    {"fashion_cnn", 10, false, [](Graph& graph, int) -> Results { return fashion_cnn(graph); }},
    {"cifar10_cnn", 10, false, [](Graph& graph, int) -> Results { return cifar10_cnn(graph); }},
    {"cifar10_speed_net", 10, false, [](Graph& graph, int) -> Results { return cifar10_speed_net(graph); }},
    {"resnet18", 10, false, [](Graph& graph, int) -> Results { return resnet18(graph); }},
    {"resnet18_imagenet", 1000, true,
     [](Graph& graph, int classes) -> Results { return resnet18_imagenet(graph, {.classes = classes}); }},
    {"small_image_cnn", 1000, true,
     [](Graph& graph, int classes) -> Results { return small_image_cnn(graph, {.classes = classes}); }}};

void require_classes(const NamedNet& net, int classes) {
  if (classes == 0 || classes == net.classes || (net.any_classes && classes > 0)) return;
  throw ConfigError(
      fmt::format("the net {} cannot have {} classes", net.name, classes),
      net.any_classes
          ? "give one or more"
          : fmt::format("it has {}; resnet18_imagenet and small_image_cnn have any number", net.classes));
}

}  // namespace

std::vector<std::string> net_names() {
  std::vector<std::string> names;
  for (const NamedNet& net : kNets) names.emplace_back(net.name);
  return names;
}

Net net_named(const std::string& name, int classes) {
  for (const NamedNet& net : kNets) {
    if (name != net.name) continue;
    require_classes(net, classes);
    return [&net, count = classes > 0 ? classes : net.classes](Graph& graph) { return net.build(graph, count); };
  }
  throw ConfigError("no net is called '" + name + "'", fmt::format("there are {}", fmt::join(net_names(), ", ")));
}

Node mnist_mlp(Graph& graph) {
  Node x = graph.flatten(image(graph, {28, 28, 1}));
  x = graph.dense(x, 256, {.activation = Activation::kRelu});
  x = graph.dense(x, 256, {.activation = Activation::kRelu});
  return graph.dense(x, 10);
}

Node fashion_cnn(Graph& graph) {
  Node x = image(graph, {28, 28, 1});
  x = graph.max_pool(graph.conv(x, 32, {.activation = Activation::kRelu}), 2);
  x = graph.max_pool(graph.conv(x, 64, {.activation = Activation::kRelu}), 2);
  x = graph.dropout(graph.flatten(x), 0.25F);
  x = graph.dense(x, 128, {.activation = Activation::kRelu});
  return graph.dense(x, 10);
}

Node cifar10_cnn(Graph& graph) {
  Node x = image(graph, {32, 32, 3});
  x = conv_norm_relu(graph, conv_norm_relu(graph, x, 32), 32);
  x = graph.dropout(graph.max_pool(x, 2), 0.1F);
  x = conv_norm_relu(graph, conv_norm_relu(graph, x, 64), 64);
  x = graph.dropout(graph.max_pool(x, 2), 0.2F);
  x = conv_norm_relu(graph, x, 128);
  x = graph.dropout(graph.global_average_pool(graph.max_pool(x, 2)), 0.2F);
  return graph.dense(x, 10);
}

Node cifar10_speed_net(Graph& graph, const SpeedNetOptions& options) {
  if (options.activation != Activation::kGelu && options.activation != Activation::kSilu) {
    throw ConfigError("the groups of cifar10_speed_net() are activated by GELU or SiLU");
  }
  constexpr int kWhitened = 24;  // the 12 directions of a 2x2 patch of three channels, and their opposites
  Node x = image(graph, {32, 32, 3});
  x = graph.conv(x, kWhitened,
                 {.kernel = 2,
                  .padding = ConvPadding::kValid,
                  .activation = Activation::kGelu,
                  .trained_weights = false,
                  .initializer = Initializer::kFanInUniform,
                  .name = "whiten"});
  for (const int filters : {options.first, options.second, options.third}) {
    x = speed_group(graph, x, filters, options);
  }
  x = graph.flatten(graph.max_pool(x, 3));
  x = graph.dense(x, 10, {.bias = false, .initializer = Initializer::kUnitDeviation, .name = "head"});
  return graph.scale(x, 1.0F / 256);
}

Node resnet18(Graph& graph, const ResNetWidths& widths) {
  Node x = graph.relu(conv_norm(graph, image(graph, {32, 32, 3}), widths.first, 3, 1));
  int stride = 1;
  for (const int filters : {widths.first, widths.second, widths.third, widths.fourth}) {
    x = basic_block(graph, x, filters, stride);
    x = basic_block(graph, x, filters, 1);
    stride = 2;
  }
  return graph.dense(graph.global_average_pool(x), 10);
}

Node resnet18_imagenet(Graph& graph, const ImageNetOptions& options) {
  Node x = conv_norm(graph, image(graph, options.image), 64, 7, 2, {.conv = "conv1", .norm = "bn1"});
  x = graph.max_pool(graph.relu(x), 3, {.stride = 2, .padding = 1});
  int stride = 1, group = 1;
  for (const int filters : {64, 128, 256, 512}) {
    const std::string name = fmt::format("layer{}", group++);
    x = basic_block(graph, x, filters, stride, name + ".0");
    x = basic_block(graph, x, filters, 1, name + ".1");
    stride = 2;
  }
  return graph.dense(graph.global_average_pool(x), options.classes, {.name = "fc"});
}

Node small_image_cnn(Graph& graph, const ImageNetOptions& options) {
  Node x = graph.relu(conv_norm(graph, image(graph, options.image), 32, 3, 2));
  for (const int filters : {32, 64, 128}) {
    x = graph.relu(conv_norm(graph, x, filters, 3, 2));
    x = graph.relu(conv_norm(graph, x, filters, 3, 1));
  }
  return graph.dense(graph.dropout(graph.global_average_pool(x), 0.2F), options.classes, {.name = "head"});
}

}  // namespace headrace
