// Ready-made nets. Their input is the field "image", f32 or u8; their results are logits.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "headrace/devices/base/api.h"
#include "headrace/train/graph.h"

namespace HEADRACE_API headrace {

// Adds 784-256-256-10 with ReLU, 269,322 parameters. Takes (784) or (28, 28, 1).
Node mnist_mlp(Graph& graph);
// Adds two 3x3 convolutions with pooling, dropout and a dense layer, for (28, 28, 1).
Node fashion_cnn(Graph& graph);
// Adds five 3x3 convolutions with batch norm and dropout, for (32, 32, 3).
Node cifar10_cnn(Graph& graph);

struct SpeedNetOptions {
  int first = 64, second = 256, third = 256;  // channels of the groups
  Activation activation = Activation::kGelu;  // of the groups: kGelu or kSilu
  float norm_momentum = 0.6F;                 // of the running statistics
};
// Adds a net for (32, 32, 3) that learns in few steps; 1.97 million parameters. A frozen 2x2 convolution "whiten"
// with a trained bias, whose weights must be set to filters that whiten its patches; three groups of two 3x3
// convolutions that begin as identities, with batch norm without scale, an activation and max pooling; a dense
// layer "head" without bias, its result divided by 256.
Node cifar10_speed_net(Graph& graph, const SpeedNetOptions& options = {});

// Channels of the four groups of resnet18().
struct ResNetWidths {
  int first = 64, second = 128, third = 256, fourth = 512;
};
// Adds ResNet-18 for (32, 32, 3) (He et al., 2015, with a 3x3 stem and no pooling before the groups); 11,173,962
// parameters. A 3x3 convolution; four groups of two basic blocks, of which the later groups begin with a stride of
// 2; global average pooling and a dense layer. Convolutions have no bias and are followed by batch norm and ReLU;
// if a block changes the shape, its shortcut is a 1x1 convolution with batch norm.
Node resnet18(Graph& graph, const ResNetWidths& widths = {});

struct ImageNetOptions {
  int classes = 1000;
  Shape image = {224, 224, 3};  // of one example, if the graph does not know the data set's
};
// Adds ResNet-18 as for ImageNet: a 7x7 convolution with a stride of 2, max pooling of 3 with a stride of 2, then
// as resnet18(). 11,689,512 parameters with 1000 classes. Its layers have the names that torchvision's resnet18
// gives its modules ("layer1.0.conv1", "fc"), so that load_pretrained() takes that net's weights.
Node resnet18_imagenet(Graph& graph, const ImageNetOptions& options = {});
// Adds a net for photographs that a processor trains quickly: a convolution and three blocks of two, each with
// batch norm and ReLU, all of which begin with a stride of 2; global average pooling, dropout and a dense layer.
// 297 thousand parameters and those of the dense layer.
Node small_image_cnn(Graph& graph, const ImageNetOptions& options = {});

// Returns the function names of the nets above.
std::vector<std::string> net_names();
// Returns the net of this name with its default options, but for the number of classes; 0: the default. Throws
// ConfigError listing the names if there is none, or if the net has a fixed number of classes and it is another.
Net net_named(const std::string& name, int classes = 0);

// A net that is one chain of layers:
//   Net net = Sequential().flatten().dense(256, {.activation = Activation::kRelu}).dense(10).net("image");
// Copies are independent.
class Sequential {
 public:
  Sequential& dense(int units, DenseLayerOptions options = {});
  Sequential& conv(int filters, ConvLayerOptions options = {});
  Sequential& conv_transpose(int filters, ConvTransposeLayerOptions options = {});
  Sequential& depthwise_conv(DepthwiseConvLayerOptions options = {});
  Sequential& batch_norm(BatchNormLayerOptions options = {});
  Sequential& relu();
  Sequential& gelu();
  Sequential& silu();
  Sequential& sigmoid();
  Sequential& tanh();
  Sequential& leaky_relu();
  Sequential& elu();
  Sequential& softplus();
  Sequential& softmax();
  Sequential& layer_norm(LayerNormLayerOptions options = {});
  Sequential& embedding(int entries, int width, EmbeddingLayerOptions options = {});
  Sequential& position_embedding();
  Sequential& multi_head_attention(int heads, int key_dim, MultiHeadAttentionLayerOptions options = {});
  Sequential& max_pool(int window, MaxPoolLayerOptions options = {});
  Sequential& average_pool(int window, AveragePoolLayerOptions options = {});
  Sequential& global_average_pool();
  Sequential& flatten();
  Sequential& dropout(float rate);
  // Appends the layers that `layers` adds to the chain's result: any layer of the graph, or several.
  Sequential& then(std::function<Node(Graph&, Node)> layers);

  // Returns the chain applied to the field `input`, with this shape or, by default, the data set's.
  Net net(const std::string& input, std::optional<Shape> shape = std::nullopt) const;

 private:
  std::vector<std::function<Node(Graph&, Node)>> steps_;
};

}  // namespace headrace
